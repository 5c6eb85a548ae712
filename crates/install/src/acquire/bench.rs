//! A folder in which programs work, and what is taken from there.
//!
//! Whoever may write a folder may put a link into it, and have us write or read elsewhere. So we put things there only
//! before a program has run, and of what it left behind we take no links.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::AcquireError;

/// What the names of such folders begin with.
const NAME: &str = "work";

/// A new folder, gone with all that is in it when this is dropped.
#[derive(Debug)]
pub(super) struct Bench(PathBuf);

impl Bench {
    /// Makes one in a folder of ours.
    pub(super) fn new(inside: &Path) -> Result<Self, AcquireError> {
        let mut number = 1;
        loop {
            let path = inside.join(format!("{NAME}-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(AcquireError::Disk(path, error)),
            }
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Puts a folder there.
    pub(super) fn make(&self, name: &str) -> Result<PathBuf, AcquireError> {
        let path = self.0.join(name);
        fs::create_dir(&path).map_err(|error| AcquireError::Disk(path.clone(), error))?;
        Ok(path)
    }

    /// Puts a file there.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), AcquireError> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(|error| AcquireError::Disk(path, error))
    }

    /// A file that a program left.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf, AcquireError> {
        self.found(name, fs::Metadata::is_file)
    }

    /// Moves a folder that a program left.
    pub(super) fn take(&self, name: &str, to: &Path) -> Result<(), AcquireError> {
        let path = self.found(name, fs::Metadata::is_dir)?;
        fs::rename(path, to).map_err(|error| AcquireError::Disk(to.to_owned(), error))
    }

    fn found(
        &self,
        name: &str,
        is_right: fn(&fs::Metadata) -> bool,
    ) -> Result<PathBuf, AcquireError> {
        let path = self.0.join(name);
        match path.symlink_metadata() {
            Ok(found) if is_right(&found) => Ok(path),
            Ok(_) => Err(AcquireError::Disk(path, io::ErrorKind::InvalidData.into())),
            Err(error) => Err(AcquireError::Disk(path, error)),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What cannot be removed goes with the folder around it.
        let _goes_later = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_that_were_left_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "secret").unwrap();
        let bench = Bench::new(folder.path()).unwrap();
        symlink(&outside, bench.path().join("folder")).unwrap();
        symlink(outside.join("file"), bench.path().join("file")).unwrap();
        assert!(bench.file("file").is_err());
        assert!(bench.take("folder", &folder.path().join("taken")).is_err());
        drop(bench);
        assert!(outside.join("file").is_file(), "what they lead to stays");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
