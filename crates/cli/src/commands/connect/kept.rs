//! What a file was before we wrote into it: a copy, and how the two go together.
//!
//! They are in a folder of the home that only its owner can look into: settings may hold secrets.

use std::fs;
use std::path::PathBuf;

use import::edit::Form;
use package::digest::Digest;
use serde::{Deserialize, Serialize};

use super::place::Placed;
use crate::clients::Client;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::output;

/// The folder of the home that they are in.
const FOLDER: &str = "clients";

/// The file that says how the two go together.
const RECORD: &str = "record.json";

/// What is kept of one entry.
#[derive(Debug)]
pub(super) struct Kept {
    folder: PathBuf,
    /// What the copy is called: as the file itself.
    name: String,
}

/// What was done to a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// The file, for whoever looks at the record.
    file: String,
    /// The SHA-256 of what was written.
    written: String,
    pub(super) before: Before,
}

/// What was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Before {
    /// No file, and perhaps no folder.
    Nothing { folder: bool },
    /// The file without an entry of ours.
    File,
    /// The file with an older entry of ours: it is kept, and is not what undoing leads to.
    Older,
}

impl Before {
    fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Older)
    }
}

impl Record {
    /// Whether a file is still what was written.
    pub(super) fn is_of(&self, text: &str) -> bool {
        self.written == digest(text)
    }
}

impl Kept {
    /// That of an entry of a file.
    pub(super) fn of(client: Client, placed: &Placed, name: &str, home: &Home) -> Self {
        let below = match &placed.form {
            Form::Json(path) => path.join("/"),
            Form::Toml => String::new(),
        };
        let digest = digest(&format!("{}\n{below}\n{name}", placed.shown()));
        let folder = format!("{}-{name}-{}", client.name(), &digest[..12]);
        let file = placed.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { folder: home.path().join(FOLDER).join(folder), name: file }
    }

    /// What was done, as far as it is known.
    pub(super) fn record(&self) -> Option<Record> {
        serde_json::from_slice(&fs::read(self.folder.join(RECORD)).ok()?).ok()
    }

    /// The copy, where there is one.
    pub(super) fn backup(&self) -> Option<PathBuf> {
        Some(self.folder.join(&self.name)).filter(|path| path.is_file())
    }

    /// What the file was.
    pub(super) fn text(&self) -> Option<String> {
        fs::read_to_string(self.folder.join(&self.name)).ok()
    }

    /// Keeps what a file is before it is written. Where it still is what we wrote last, what it was before that is kept.
    pub(super) fn keep(
        &self,
        placed: &Placed,
        (text, after): (&str, &str),
        now: Before,
    ) -> Result<(), Failure> {
        let old = self.record().filter(|old| old.is_of(text));
        output::make_private_folder(&self.folder)?;
        if old.is_none() {
            self.anew(&self.name, now.is_file().then_some(text))?;
        }
        let record = Record {
            file: placed.path.to_string_lossy().into_owned(),
            written: digest(after),
            before: old.map_or(now, |old| old.before),
        };
        let record = serde_json::to_string_pretty(&record)
            .map_err(|error| Failure::new(Exit::Bug, "failed to write JSON").cause(error))?;
        self.anew(RECORD, Some(&(record + "\n")))
    }

    /// Forgets all of it.
    pub(super) fn forget(&self) -> Result<(), Failure> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("failed to remove `{}`", self.folder.display());
                Err(Failure::new(Exit::Unavailable, message).cause(error))
            }
            _ => Ok(()),
        }
    }

    /// Writes a file in the place of an older one, or nothing.
    fn anew(&self, name: &str, text: Option<&str>) -> Result<(), Failure> {
        let path = self.folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("failed to remove `{}`", path.display());
                return Err(Failure::new(Exit::Unavailable, message).cause(error));
            }
            _ => {}
        }
        text.map_or(Ok(()), |text| output::keep_secret(&path, text.as_bytes()))
    }
}

fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}
