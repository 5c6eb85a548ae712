//! What was fetched before, on the disk.
//!
//! | file | what it is |
//! |---|---|
//! | `packages/DIGEST` | a package file, whole; it is held against its name whenever it is read |
//! | `packages/DIGEST.part` | the beginning of one, locked by whoever fetches it |
//! | `packages/DIGEST.tag` | what the registry calls the version that it is the beginning of |
//! | `packages/DIGEST.yanked` | why that package was taken back for security, where a registry said so |
//! | `answers/KEY` | an answer with its tag, under the digest of the address it came from |
//! | `*.new` | being written, or left by somebody who was killed |
//!
//! Nothing here is the only copy of anything: whatever is damaged is removed and fetched again. Files appear whole by
//! one rename, so any number of processes may use it at once, and any of them may be killed at any time. What was
//! used longest ago is removed where it is more than it may be.

pub mod answers;
pub mod packages;
mod prune;
mod taken_back;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

pub use answers::Kept;
pub use packages::{Begun, Part};

/// How much is kept unless somebody says otherwise: 2 GiB.
pub const MOST: u64 = 2 << 30;

/// What was fetched before.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    most: u64,
}

impl Cache {
    /// What is kept in a folder, of which no more than so many bytes. The folder is made when something is put into it.
    pub fn new(folder: impl Into<PathBuf>, most: u64) -> Self {
        Self { folder: folder.into(), most }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of packages, which is another one whenever it is learnt that one of them was taken back.
    pub fn packages(&self) -> PathBuf {
        self.folder.join("packages")
    }

    fn answers(&self) -> PathBuf {
        self.folder.join("answers")
    }
}

/// Makes a folder for its owner alone.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Opens a file for its owner alone, made where it is not there.
fn open_to_write(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
