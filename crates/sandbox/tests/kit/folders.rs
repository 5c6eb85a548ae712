//! Folders to work in, and what is in them afterwards.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::machine::until;

/// A folder that is removed at the end. It stands for its path, which has no links in it.
pub struct Folder {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Folder {
    /// An empty one where temporary files are.
    pub fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap())
    }

    /// An empty one where a room has nothing of its own, as it has in `/tmp`.
    pub fn outside() -> Self {
        Self::of(tempfile::tempdir_in("/var/tmp").unwrap())
    }

    fn of(folder: tempfile::TempDir) -> Self {
        let path = folder.path().canonicalize().unwrap();
        Self { _folder: folder, path }
    }

    /// Writes a file in it, with the folders on the way.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a program in it.
    pub fn write_program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        set_mode(&path, 0o755);
        path
    }

    /// Makes a folder in it, with those on the way.
    pub fn make(&self, name: &str) -> PathBuf {
        fs::create_dir_all(self.join(name)).unwrap();
        self.join(name)
    }
}

impl Deref for Folder {
    type Target = PathBuf;

    fn deref(&self) -> &PathBuf {
        &self.path
    }
}

/// The names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Every name below a folder with its kind, mode and content: what must be the same afterwards.
pub fn listing(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        // What goes away while we look is not there.
        for path in fs::read_dir(&next).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let content = if metadata.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap_or_default().display())
            } else if metadata.is_dir() {
                folders.push(path.clone());
                "folder".to_owned()
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned()
            };
            let mode = metadata.permissions().mode();
            let name = path.strip_prefix(folder).unwrap().display();
            found.push(format!("{name} {mode:o} {content:?}"));
        }
    }
    found.sort();
    found
}

/// Expects a folder to be as it was. Its room is cleaned up a moment after it has ended.
pub fn assert_settles(folder: &Path, before: &[String]) {
    until(Duration::from_secs(5), || listing(folder) == before);
    assert_eq!(listing(folder), before);
}

/// Sets the mode of a file or a folder.
pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
