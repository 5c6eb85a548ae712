//! The log, open at its end; and the files of it that a writer keeps open between two records.
//!
//! Whoever has kept them asks for the lock again, and goes on only where all is as they left it: the same files, the head that they
//! signed, and a log that ends with the record that it names. Otherwise the end is looked for anew.

use std::fs::File;

use super::end::End;
use super::error::AuditError;
use super::folder::{Folder, Lock, Small};
use super::head::Head;
use crate::time::Day;

/// The log, open at its end, while nobody else may write.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) end: End,
    /// The file of the head, where it can be written over.
    pub(super) head: Option<Small>,
    pub(super) lock: Lock,
}

/// The files of a log, open, while anybody may write.
#[derive(Debug)]
pub(super) struct Held {
    lock: File,
    head: File,
    log: File,
}

impl Open {
    /// Lets others write, and keeps the files.
    pub(super) fn hold(self) -> Option<Held> {
        let Self { end: End { log, .. }, head, lock } = self;
        let (head, (log, _)) = (head?.file, log?);
        Some(Held { lock: lock.let_go().ok()?, head, log })
    }
}

impl Held {
    /// Opens the log again for a record of a day, where nobody changed anything since this head was written.
    pub(super) fn open(
        self,
        folder: &Folder,
        (bytes, head): &(Vec<u8>, Head),
        day: Day,
    ) -> Result<Option<Open>, AuditError> {
        // Only the slow way tells whether the next day has begun.
        if day > head.day {
            return Ok(None);
        }
        let Self { lock, head: file, log } = self;
        let open = Open {
            lock: folder.lock_again(lock)?,
            head: Some(Small { file, bytes: bytes.clone() }),
            end: End {
                seq: head.seq,
                hash: head.hash,
                day: Some(head.day),
                log: Some((log, head.bytes)),
                notes: Vec::new(),
            },
        };
        Ok(is_as_left(&open, head).then_some(open))
    }
}

/// Whether the files are still those of the log, and what is in them is what was.
#[cfg(unix)]
fn is_as_left(open: &Open, head: &Head) -> bool {
    use std::os::unix::fs::{FileExt, MetadataExt};

    let length = |file: &File| {
        let found = file.metadata().ok()?;
        // What was taken away or replaced has no name any more.
        (found.nlink() > 0).then_some(found.len())
    };
    let ends_with = |file: &File, length: u64, expected: &[u8]| {
        let mut last = [0; 1024];
        let Some(last) = last.get_mut(..expected.len()) else { return false };
        length
            .checked_sub(expected.len() as u64)
            .is_some_and(|at| file.read_exact_at(last, at).is_ok() && last == expected)
    };
    let (Some(small), Some((log, bytes))) = (&open.head, &open.end.log) else { return false };
    length(&open.lock.0).is_some()
        && length(&small.file) == Some(small.bytes.len() as u64)
        && ends_with(&small.file, small.bytes.len() as u64, &small.bytes)
        && length(log) == Some(*bytes)
        && ends_with(log, *bytes, head.last_bytes().as_bytes())
}

#[cfg(not(unix))]
fn is_as_left(_: &Open, _: &Head) -> bool {
    false
}
