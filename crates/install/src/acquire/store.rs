//! What was acquired before, on the disk: files by their digests, and what was resolved to what.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use package::digest::{Digest, Hasher};
use registry::client::Cache;
use registry::client::cache::{Begun, Kept, Part};

use super::artefact::Artefact;
use super::error::AcquireError;

/// How much is kept: one stack for machine learning is several GiB.
const MOST: u64 = 16 << 30;

/// What was acquired before.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) cache: Arc<Cache>,
}

impl Store {
    pub(super) fn new(folder: &Path) -> Self {
        Self { cache: Arc::new(Cache::new(folder, MOST)) }
    }

    /// Puts bytes into it.
    pub(super) fn put(&self, bytes: &[u8]) -> Result<Digest, AcquireError> {
        let digest = Digest::of(bytes);
        self.fill(digest, |part| part.write(bytes))?;
        Ok(digest)
    }

    /// Puts a file into it.
    pub(super) fn put_file(&self, path: &Path) -> Result<Digest, AcquireError> {
        let mut hasher = Hasher::default();
        let mut hash = |piece: &[u8]| {
            hasher.update(piece);
            Ok(())
        };
        pieces(path, &mut hash).map_err(|error| AcquireError::Disk(path.to_owned(), error))?;
        let digest = hasher.finish();
        self.fill(digest, |part| pieces(path, &mut |piece| part.write(piece)))?;
        Ok(digest)
    }

    fn fill(
        &self,
        digest: Digest,
        fill: impl FnOnce(&mut Part) -> io::Result<()>,
    ) -> Result<(), AcquireError> {
        let put = || -> io::Result<()> {
            if let Begun::Part(mut part) = self.cache.begin(digest)? {
                part.restart(None)?;
                fill(&mut part)?;
                part.finish()?.map_err(|_| io::Error::other("the disk gives other bytes back"))?;
            }
            Ok(())
        };
        put().map_err(|error| self.broken(error))
    }

    /// Whether a file is there.
    pub(super) fn has(&self, digest: Digest) -> Result<bool, AcquireError> {
        Ok(self.open(digest)?.is_some())
    }

    /// A file, if it is there and sound.
    pub(super) fn open(&self, digest: Digest) -> Result<Option<File>, AcquireError> {
        self.cache.package(digest).map_err(|error| self.broken(error))
    }

    /// Copies a file, which nobody can change here by changing it there.
    pub(super) fn copy(&self, digest: Digest, to: &Path) -> Result<(), AcquireError> {
        let gone = || self.broken(io::ErrorKind::NotFound.into());
        let mut file = self.open(digest)?.ok_or_else(gone)?;
        let copied = File::create_new(to).and_then(|mut to| io::copy(&mut file, &mut to));
        copied.map(drop).map_err(|error| AcquireError::Disk(to.to_owned(), error))
    }

    /// What was resolved to what before.
    pub(super) fn resolved(&self, question: &str) -> Option<Vec<Artefact>> {
        let kept = self.cache.answer(&key(question))?;
        serde_json::from_slice(&kept.body).ok()
    }

    /// Keeps what something was resolved to. Where that cannot be kept, it is asked for again next time.
    pub(super) fn keep_resolved(&self, question: &str, artefacts: &[Artefact]) {
        if let Ok(body) = serde_json::to_vec(artefacts) {
            let kept = Kept { tag: None, yanked: None, next: None, body };
            let _asked_again = self.cache.keep_answer(&key(question), &kept);
        }
    }

    fn broken(&self, error: io::Error) -> AcquireError {
        AcquireError::Disk(PathBuf::from(self.cache.folder()), error)
    }
}

/// Hands over a file piece by piece.
fn pieces(path: &Path, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => take(&buffer[..count])?,
        }
    }
}

/// A question may be as long as it likes.
fn key(question: &str) -> String {
    format!("acquire:{}", Digest::of(question.as_bytes()))
}
