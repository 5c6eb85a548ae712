//! Whether another server serves the same embedded database.
//!
//! Any number may: each change is a transaction that waits for the others, each looks for what the others have changed,
//! and a package file is removed only after the database has said so to all. But whoever starts a second one by mistake
//! should know, for each has flags of its own.

use std::fs::{File, TryLockError};
use std::path::Path;

/// Says to others that a server is there, until it is dropped or its process has ended.
pub(super) struct Company {
    _held: File,
    /// Whether others were there before.
    pub(super) has_others: bool,
}

impl Company {
    /// Joins those who serve this database, by a file beside it: the database's own has locks that would be lost when it
    /// is opened and closed once more. None where it cannot be told, which keeps nobody from serving.
    pub(super) fn join(database: &Path) -> Option<Self> {
        let mut name = database.as_os_str().to_owned();
        name.push(".served");
        let mut options = File::options();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let held = options.open(name).ok()?;
        let has_others = match held.try_lock() {
            Ok(()) => {
                held.unlock().ok()?;
                false
            }
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(_)) => return None,
        };
        // All who are there hold it together.
        held.try_lock_shared().ok()?;
        Some(Self { _held: held, has_others })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_later_sees_those_who_are_still_there() {
        let folder = tempfile::tempdir().unwrap();
        let join = || Company::join(&folder.path().join("registry.db")).unwrap();
        let first = join();
        let second = join();
        assert_eq!((first.has_others, second.has_others), (false, true));
        drop(first);
        assert!(join().has_others, "the second is still there");
        drop(second);
        assert!(!join().has_others);
    }
}
