//! A scratch folder on the host, where a process has no root of its own.

use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the names of such folders begin with.
pub(crate) const PREFIX: &str = "haft-scratch-";

/// A folder of the host's, only for its owner, that is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct HostScratch {
    path: PathBuf,
    /// Locked, by which others know that it is in use, wherever they count processes.
    _held: File,
}

impl HostScratch {
    /// Makes one in the temporary folder.
    pub(crate) fn make() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = std::env::temp_dir().canonicalize()?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                // Processes of different namespaces can have one number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Somebody may have taken it for a leftover before it was locked.
            if let Ok(held) = File::open(&path)
                && held.try_lock().is_ok()
                && path.exists()
            {
                return Ok(Self { path, _held: held });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for HostScratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
