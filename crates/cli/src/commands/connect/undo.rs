//! The way back: the file as it was before, or without the entry where others have changed it since.

use import::edit::without;

use super::kept::Before;
use super::{Connecting, State};
use crate::exit::{Failure, Outcome};

/// What the file becomes.
enum Back {
    /// It goes, and perhaps its folder.
    Nothing {
        folder: bool,
    },
    Text(State, String),
}

impl Connecting<'_> {
    pub(super) fn undo(&self) -> Outcome {
        if !self.placed.is_there || self.found()?.is_none() {
            // Somebody else has taken it out.
            if !self.args.dry_run {
                self.kept.forget()?;
            }
            return self.tell(State::Absent, None, Vec::new());
        }
        let back = self.back()?;
        if self.args.dry_run {
            return match back {
                Back::Nothing { .. } => self.tell(State::Removed, Some(""), Vec::new()),
                Back::Text(state, text) => self.tell(state, Some(&text), Vec::new()),
            };
        }
        let state = match back {
            Back::Nothing { folder } => {
                self.settings.remove()?;
                if let Some(above) = self.placed.path.parent().filter(|_| folder) {
                    // It goes only where it is empty.
                    let _ = std::fs::remove_dir(above);
                }
                State::Removed
            }
            Back::Text(state, text) => {
                self.settings.write(&text)?;
                state
            }
        };
        self.kept.forget()?;
        self.tell(state, None, Vec::new())
    }

    fn back(&self) -> Result<Back, Failure> {
        let settings = &self.settings;
        let record = self.kept.record().filter(|record| record.is_of(settings.text()));
        match record.map(|record| record.before) {
            Some(Before::Nothing { folder }) => return Ok(Back::Nothing { folder }),
            Some(Before::File) => {
                if let Some(text) = self.kept.text() {
                    return Ok(Back::Text(State::Restored, text));
                }
            }
            Some(Before::Older) | None => {}
        }
        let name = self.args.name.as_str();
        let left = without(settings.text(), &self.placed.form, name)
            .map_err(|why| settings.broken(&why))?;
        settings.check_others(&left, &[name])?;
        Ok(Back::Text(State::TakenOut, left))
    }
}
