//! This machine, as far as drafts have to know it.

use std::path::{Path, PathBuf};

use import::{Kind, Machine};

/// The disk.
#[derive(Debug)]
pub(super) struct Disk;

impl Machine for Disk {
    fn at(&self, path: &Path) -> Option<(Kind, PathBuf)> {
        let found = path.canonicalize().ok()?;
        let kind = if found.is_dir() { Kind::Folder } else { Kind::File };
        Some((kind, found))
    }

    fn home(&self) -> Option<PathBuf> {
        std::env::home_dir()?.canonicalize().ok()
    }
}
