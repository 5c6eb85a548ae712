//! Whether files are still the ones they were, as the file system tells it.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For how long somebody who is in a hurry takes what was seen for what is there.
const LATELY: Duration = Duration::from_millis(1);

/// What tells one state of a file from another; nothing where there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    inode: u64,
    size: u64,
    /// When anything of it was last changed, which nobody can set.
    changed: (i64, i64),
}

/// The states of several files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marks(Vec<Option<Mark>>);

impl Marks {
    /// As they are now.
    #[cfg(unix)]
    pub(crate) fn of(files: &[PathBuf]) -> Self {
        use std::os::unix::fs::MetadataExt;
        let mark = |path: &PathBuf| {
            let found = std::fs::metadata(path).ok()?;
            let changed = (found.ctime(), found.ctime_nsec());
            Some(Mark { inode: found.ino(), size: found.size(), changed })
        };
        Self(files.iter().map(mark).collect())
    }

    /// As they are now.
    #[cfg(not(unix))]
    pub(crate) fn of(files: &[PathBuf]) -> Self {
        let mark = |path: &PathBuf| {
            let found = std::fs::metadata(path).ok()?;
            let since = found.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            let changed = (since.as_secs().cast_signed(), since.subsec_nanos().into());
            Some(Mark { inode: 0, size: found.len(), changed })
        };
        Self(files.iter().map(mark).collect())
    }
}

/// Files that were read, as they were then.
#[derive(Debug)]
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    marks: Marks,
    /// When they were last seen so.
    seen: Mutex<Option<Instant>>,
}

impl Files {
    /// As they are now.
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        Self { marks: Marks::of(&paths), paths, seen: Mutex::default() }
    }

    /// Whether they are what they were.
    pub(crate) fn are_unchanged(&self) -> bool {
        let are_unchanged = Marks::of(&self.paths) == self.marks;
        *self.seen() = are_unchanged.then(Instant::now);
        are_unchanged
    }

    /// Whether they were a moment ago.
    pub(crate) fn were_unchanged(&self) -> bool {
        let lately = self.seen().is_some_and(|at| at.elapsed() < LATELY);
        lately || self.are_unchanged()
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_is_another() {
        let folder = std::env::temp_dir().join(format!("haft-mark-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = [folder.join("a"), folder.join("b")];
        let none = Marks::of(&files);
        std::fs::write(&files[0], "1").unwrap();
        let one = Marks::of(&files);
        assert_ne!(none, one);
        assert_eq!(one, Marks::of(&files));
        std::fs::write(&files[0], "22").unwrap();
        assert_ne!(one, Marks::of(&files));
        let seen = Files::new(files.to_vec());
        assert!(seen.were_unchanged());
        std::fs::write(&files[1], "3").unwrap();
        std::thread::sleep(2 * LATELY);
        assert!(!seen.were_unchanged() && !seen.are_unchanged());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
