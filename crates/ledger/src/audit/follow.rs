//! Records to come, as they are written.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::error::AuditError;
use super::folder::Folder;
use super::line::parse;
use super::lines::{Backward, Forward, Next};
use super::read::Place;
use super::record::Record;
use crate::time::Day;

/// How long [`Follow`] waits before it looks again.
const PAUSE: Duration = Duration::from_millis(100);

/// Gives each record once, and waits for the next; over midnight as well.
///
/// Lines that are no sound records are stepped over; `verify` names them.
#[derive(Debug)]
pub struct Follow {
    folder: Folder,
    /// The file that is read, as far as it was read.
    at: Option<Place>,
    lines: Option<Forward>,
}

impl Follow {
    /// Follows from the end, as it is now.
    pub fn from_end(folder: &Path) -> Result<Self, AuditError> {
        let folder = Folder::new(folder.to_owned());
        let at = match folder.days()?.pop() {
            None => None,
            Some(day) => {
                let path = folder.log(day);
                let look = || -> io::Result<u64> {
                    let file = File::open(&path)?;
                    let length = file.metadata()?.len();
                    Ok(Backward::new(file, length)?.at())
                };
                Some(Place { day, at: look().map_err(AuditError::file("read", &path))? })
            }
        };
        Ok(Self { folder, at, lines: None })
    }

    /// Follows from the first record on.
    pub fn from_start(folder: &Path) -> Self {
        Self { folder: Folder::new(folder.to_owned()), at: None, lines: None }
    }

    /// The next record, if it is there already.
    pub fn poll(&mut self) -> Result<Option<Record>, AuditError> {
        loop {
            if let Some(place) = self.at
                && let Some(record) = self.read(place)?
            {
                return Ok(Some(record));
            }
            let next = self.folder.days()?.into_iter().find(|day| Some(*day) > self.day());
            let Some(next) = next else { return Ok(None) };
            // A record may have come while the later file was made; none comes after that.
            if let Some(place) = self.at
                && let Some(record) = self.read(place)?
            {
                return Ok(Some(record));
            }
            self.at = Some(Place { day: next, at: 0 });
            self.lines = None;
        }
    }

    fn day(&self) -> Option<Day> {
        self.at.map(|place| place.day)
    }

    /// The next sound record of the file that is read.
    fn read(&mut self, place: Place) -> Result<Option<Record>, AuditError> {
        let path = self.folder.log(place.day);
        let mut look = || -> io::Result<Option<Record>> {
            let mut lines = match self.lines.take() {
                Some(lines) => lines,
                None => Forward::new(File::open(&path)?, place.at, u64::MAX)?,
            };
            loop {
                match lines.next()? {
                    Next::Line(line) => {
                        self.at = Some(Place { day: place.day, at: lines.at });
                        if let Ok(record) = parse(&line) {
                            self.lines = Some(lines);
                            return Ok(Some(record));
                        }
                    }
                    // The beginning of a line was read; it is read again when there is more.
                    Next::Torn => return Ok(None),
                    Next::End => {
                        self.lines = Some(lines);
                        return Ok(None);
                    }
                }
            }
        };
        look().map_err(AuditError::file("read", &path))
    }
}

impl Iterator for Follow {
    type Item = Result<Record, AuditError>;

    /// Waits until there is one.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.poll() {
                Ok(Some(record)) => return Some(Ok(record)),
                Ok(None) => thread::sleep(PAUSE),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
