//! The log, open at its end; and the files of it that a writer keeps open between two records.
//!
//! Whoever has kept them asks for the lock again, and goes on only where all is as they left it: the same files, the head that they
//! signed, and a log of the same length, which only ever grows. Otherwise the end is looked for anew. What somebody changed in
//! place is found by whoever verifies the log: the chain goes on from what was written.

use std::fs::File;

use super::end::End;
use super::error::AuditError;
use super::folder::{Folder, Lock, Small};
use crate::time::Day;

/// The log, open at its end, while nobody else may write.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) end: End,
    /// The file of the head, where it can be written over.
    pub(super) head: Option<Small>,
    /// The number of the record that the head names.
    pub(super) signed: Option<u64>,
    pub(super) lock: Lock,
}

/// A log that is open at its end, while anybody may write.
#[derive(Debug)]
pub(super) struct Held {
    end: End,
    head: File,
    signed: Option<u64>,
    lock: File,
}

impl Open {
    /// Whether its files can be kept.
    pub(super) fn can_be_held(&self) -> bool {
        self.end.log.is_some() && self.head.is_some()
    }

    /// Lets others write, and keeps the files.
    pub(super) fn hold(self) -> Option<Held> {
        let Self { end, head, signed, lock } = self;
        end.log.as_ref()?;
        Some(Held { end, head: head?.file, signed, lock: lock.let_go().ok()? })
    }
}

impl Held {
    /// Opens the log again for a record of a day, where nobody wrote anything since: the head is the one that was written, and
    /// the log is as long as it was.
    pub(super) fn open(
        self,
        folder: &Folder,
        bytes: &[u8],
        day: Day,
    ) -> Result<Option<Open>, AuditError> {
        // Only the slow way tells whether the next day has begun.
        if self.end.day < Some(day) {
            return Ok(None);
        }
        let Self { end, head, signed, lock } = self;
        let head = Some(Small { file: head, bytes: bytes.to_vec() });
        let open = Open { end, head, signed, lock: folder.lock_again(lock)? };
        Ok(is_as_left(&open).then_some(open))
    }
}

/// Whether the files are still those of the log, and nobody wrote into them.
#[cfg(unix)]
fn is_as_left(open: &Open) -> bool {
    use std::os::unix::fs::{FileExt, MetadataExt};

    let length = |file: &File| {
        let found = file.metadata().ok()?;
        // What was taken away or replaced has no name any more.
        (found.nlink() > 0).then_some(found.len())
    };
    let holds = |file: &File, expected: &[u8]| {
        let mut bytes = [0; 1024];
        let Some(bytes) = bytes.get_mut(..expected.len()) else { return false };
        file.read_exact_at(bytes, 0).is_ok() && bytes == expected
    };
    let (Some(small), Some((log, bytes))) = (&open.head, &open.end.log) else { return false };
    length(&open.lock.0).is_some()
        && length(&small.file) == Some(small.bytes.len() as u64)
        && holds(&small.file, &small.bytes)
        && length(log) == Some(*bytes)
}

#[cfg(not(unix))]
fn is_as_left(_: &Open) -> bool {
    false
}
