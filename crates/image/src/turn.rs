//! Whose turn it is to work on an image, among processes and threads.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(20);

/// The right to work on one image. It ends when it is dropped, or with the process.
#[derive(Debug)]
pub(crate) struct Turn {
    path: PathBuf,
    /// Locked; the lock goes with it.
    _file: File,
}

impl Turn {
    /// What begins the names of the files that are locked.
    pub(crate) const PREFIX: &str = ".lock-";

    /// Waits for the turn; `None` when it is called off before.
    pub(crate) fn wait(
        folder: &Path,
        digits: &str,
        is_called_off: &dyn Fn() -> bool,
    ) -> io::Result<Option<Self>> {
        while !is_called_off() {
            if let Some(turn) = Self::try_take(folder, digits)? {
                return Ok(Some(turn));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(None)
    }

    /// Takes the turn if nobody has it.
    pub(crate) fn take(folder: &Path, digits: &str) -> Option<Self> {
        Self::try_take(folder, digits).ok().flatten()
    }

    fn try_take(folder: &Path, digits: &str) -> io::Result<Option<Self>> {
        let path = folder.join(format!("{}{digits}", Self::PREFIX));
        let file = File::options().create(true).append(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Whoever had it before may have taken the file away after it was opened here.
        let (locked, there) = (file.metadata()?, path.metadata());
        let is_same = there.is_ok_and(|one| (one.dev(), one.ino()) == (locked.dev(), locked.ino()));
        Ok(is_same.then_some(Self { path, _file: file }))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // While it is locked, so that nobody takes away what another has locked since.
        let _ = fs::remove_file(&self.path);
    }
}
