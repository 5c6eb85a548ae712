//! A scratch folder on the host, where a process has no root of its own.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of the host's, only for its owner, that is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct HostScratch(PathBuf);

impl HostScratch {
    /// Makes one in the temporary folder.
    pub(crate) fn make() -> std::io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("haft-scratch-{}-{number}", std::process::id());
        let path = std::env::temp_dir().canonicalize()?.join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for HostScratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
