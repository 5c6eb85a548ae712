//! Recordings of what servers answer: made, or answered from.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use host::Host;
use prove::recording::LARGEST;
use prove::{Recorder, Recording};

use super::TestArgs;
use crate::exit::{Exit, Failure};
use crate::output::Beside;
use crate::printer::Printer;

/// Whether there is a recording, and what becomes of it.
pub(super) enum Taping<'a> {
    /// There is none.
    Nothing,
    /// One is made.
    Recording(&'a Path, Arc<Recorder>),
    /// One answers.
    Replaying(Arc<Recording>),
}

impl<'a> Taping<'a> {
    /// What is wanted. A file that could not be written in the end is told before anything is run.
    pub(super) fn begin(args: &'a TestArgs) -> Result<Self, Failure> {
        if let Some(path) = &args.replay {
            let bytes = read(path)?;
            let recording = Recording::read(&bytes).map_err(|error| {
                Failure::invalid(format!("`{}` is no recording", path.display())).cause(error)
            })?;
            return Ok(Self::Replaying(Arc::new(recording)));
        }
        let Some(path) = &args.record else { return Ok(Self::Nothing) };
        if path.exists() && !Recording::is_one(&read(path)?) {
            let message = format!("`{}` is there already, and is no recording", path.display());
            return Err(Failure::new(Exit::Conflict, message).hint("name another file"));
        }
        crate::output::check_folder_of(path)?;
        Ok(Self::Recording(path, Arc::default()))
    }

    /// The same host, whose requests are heard or answered.
    pub(super) fn put_before(&self, host: Host) -> Host {
        match self {
            Self::Nothing => host,
            Self::Recording(_, recorder) => host.taped(Arc::<Recorder>::clone(recorder)),
            Self::Replaying(recording) => host.taped(Arc::<Recording>::clone(recording)),
        }
    }

    /// Keeps what was heard.
    pub(super) fn end(self, printer: Printer) -> Result<(), Failure> {
        let Self::Recording(path, recorder) = self else { return Ok(()) };
        if recorder.is_empty() {
            // What may be there is worth more than nothing.
            printer.warn("no HTTP tool was answered by a server, so there is nothing to record");
            return Ok(());
        }
        let bytes = recorder.to_bytes().map_err(|error| Failure::of(Exit::Failed, &error))?;
        let mut beside = Beside::new(path)?;
        std::io::Write::write_all(&mut beside.file(), &bytes).map_err(|error| {
            Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
                .cause(error)
        })?;
        beside.replace()?;
        let answers = crate::commands::count(recorder.len(), "answer");
        printer.note(&format!("Recorded {answers} in {}", path.display()));
        Ok(())
    }
}

/// Reads as much of a file as a recording may have, and a byte more, so that the excess is seen.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::unread(path.display(), error);
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
