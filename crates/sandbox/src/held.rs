//! Folders that are there for as long as somebody holds them: locked, so that what a killed process leaves is known for what
//! it is.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// How many names are tried: so many are never in use.
const MOST_TRIES: u32 = 100_000;

/// A folder that only its owner can look into, and that is removed when this is dropped.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    /// Locked, by which others know that it is in use, wherever they count processes.
    _held: File,
}

impl HeldFolder {
    /// Makes one in another folder; its name begins with the prefix.
    pub fn make(parent: &Path, prefix: &str) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt;
            builder.mode(0o700);
        }
        for number in 0..MOST_TRIES {
            let path = parent.join(format!("{prefix}{}-{number}", std::process::id()));
            match builder.create(&path) {
                // Processes of different namespaces can have one number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Somebody may have taken it for a leftover before it was locked.
            match hold(&path) {
                Ok(Some(held)) => return Ok(Self { path, _held: held }),
                Ok(None) => {}
                Err(error) => {
                    let _ = fs::remove_dir(&path);
                    return Err(error);
                }
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for HeldFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what a process of ours that was killed left in a folder.
pub fn sweep(parent: &Path, prefix: &str) {
    for path in left(parent, prefix) {
        // It is held meanwhile, so that nobody takes it for theirs.
        if let Ok(Some(_held)) = hold(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Those in a folder that another process of ours holds.
pub fn in_use(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let is_held = |path: &PathBuf| {
        File::open(path)
            .is_ok_and(|folder| matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock)))
    };
    left(parent, prefix).filter(is_held).collect()
}

/// Locks what is at a path, where nobody else has, and nothing else is there by then.
fn hold(path: &Path) -> io::Result<Option<File>> {
    let held = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match held.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {}
    }
    let is_it = path.symlink_metadata().is_ok_and(|there| is_same(&there, held.metadata().ok()));
    Ok(is_it.then_some(held))
}

#[cfg(unix)]
fn is_same(there: &fs::Metadata, held: Option<fs::Metadata>) -> bool {
    use std::os::unix::fs::MetadataExt;
    held.is_some_and(|held| (held.dev(), held.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_same(_there: &fs::Metadata, held: Option<fs::Metadata>) -> bool {
    held.is_some()
}

/// The folders of ours in a folder that are called as we call them.
fn left(parent: &Path, prefix: &str) -> impl Iterator<Item = PathBuf> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_left = move |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let numbers = name.to_str().and_then(|name| name.strip_prefix(prefix)?.split_once('-'));
        numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
            && entry.metadata().is_ok_and(|found| found.is_dir() && is_own(&found))
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter(is_left).map(|entry| entry.path())
}

/// Whether something is ours; others may name theirs like ours.
#[cfg(unix)]
fn is_own(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    found.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_found: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "call-";

    #[test]
    fn a_folder_is_swept_when_nobody_holds_it() {
        let parent = tempfile::tempdir().unwrap();
        let running = HeldFolder::make(parent.path(), PREFIX).unwrap();
        let other = HeldFolder::make(parent.path(), PREFIX).unwrap();
        assert_ne!(running.path, other.path);
        // What a process leaves that is killed, whoever has its number now; and what is called otherwise.
        let left = parent.path().join(format!("{PREFIX}{}-7", std::process::id()));
        let foreign =
            ["calls", "call-notes", "call-1-", "call-1-x"].map(|name| parent.path().join(name));
        fs::create_dir_all(left.join("files")).unwrap();
        for folder in &foreign {
            fs::create_dir(folder).unwrap();
        }
        assert_eq!(in_use(parent.path(), PREFIX).len(), 2);
        sweep(parent.path(), PREFIX);
        assert!(running.path.exists() && other.path.exists() && !left.exists());
        drop((running, other));
        assert!(foreign.iter().all(|folder| folder.exists()));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), foreign.len());
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_swept_behind_a_link() {
        let (parent, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("kept"), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), parent.path().join("call-1-0")).unwrap();
        sweep(parent.path(), PREFIX);
        assert!(elsewhere.path().join("kept").exists());
    }
}
