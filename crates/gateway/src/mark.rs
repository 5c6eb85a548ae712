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

/// Who may write files and folders, as far as the file system tells it: their modes and owners, and nothing of one that is not
/// there.
#[derive(Debug, PartialEq, Eq)]
struct Guards(Vec<Option<(u32, u32)>>);

impl Guards {
    /// As they are now.
    #[cfg(unix)]
    fn of(paths: &[PathBuf]) -> Self {
        use std::os::unix::fs::MetadataExt;
        let guard = |path: &PathBuf| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.mode(), found.uid()))
        };
        Self(paths.iter().map(guard).collect())
    }

    /// As they are now, which nothing is told of.
    #[cfg(not(unix))]
    fn of(_paths: &[PathBuf]) -> Self {
        Self(Vec::new())
    }
}

/// Files that were read, as they were then, and what only their owner may write.
#[derive(Debug)]
pub struct Files {
    paths: Vec<PathBuf>,
    marks: Marks,
    /// What may say something else at any time, and be written by nobody else.
    guarded: Vec<PathBuf>,
    guards: Guards,
    /// When they were last seen so.
    seen: Mutex<Option<Instant>>,
}

impl Files {
    /// As they are now, before they are read: what changes while they are read is noticed.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self::and_guarded(paths, Vec::new())
    }

    /// The same beside others of which only counts who may write them.
    pub(crate) fn and_guarded(paths: Vec<PathBuf>, guarded: Vec<PathBuf>) -> Self {
        let (marks, guards) = (Marks::of(&paths), Guards::of(&guarded));
        Self { paths, marks, guarded, guards, seen: Mutex::default() }
    }

    /// Whether they are what they were.
    pub(crate) fn are_unchanged(&self) -> bool {
        let are_unchanged =
            Marks::of(&self.paths) == self.marks && Guards::of(&self.guarded) == self.guards;
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

    #[cfg(unix)]
    #[test]
    fn of_what_is_guarded_only_counts_who_may_write_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("haft-guard-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let state = folder.join("state");
        std::fs::write(&state, "1").unwrap();
        let seen = Files::and_guarded(Vec::new(), vec![folder.clone(), state.clone()]);
        std::fs::write(&state, "22").unwrap();
        std::fs::write(folder.join("other"), "3").unwrap();
        assert!(seen.are_unchanged());
        for path in [&state, &folder] {
            let before = std::fs::metadata(path).unwrap().permissions();
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
            assert!(!seen.are_unchanged(), "{}", path.display());
            std::fs::set_permissions(path, before).unwrap();
            assert!(seen.are_unchanged(), "{}", path.display());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
