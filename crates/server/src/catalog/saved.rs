//! The index in a file, so that a start need not make it again.
//!
//! It is a copy of what is in the store, and may be removed at any time. It is taken where it fits: written by this
//! version, for this very database, at a moment that this database remembers. What has changed since is taken in as
//! always.

use std::io::Write;
use std::path::Path;

use package::digest::Digest;
use search::{Index, Snapshot};
use serde::{Deserialize, Serialize};

/// What stands before the index, on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// Whose it is.
    pub(super) registry: String,
    /// The number of the last change that is in it.
    pub(super) number: i64,
    /// The package that was changed then.
    pub(super) package: String,
    sha256: String,
}

/// A file that was read, and what it says of itself.
pub(super) struct Saved {
    pub(super) head: Head,
    bytes: Vec<u8>,
    /// Where the index begins.
    at: usize,
}

impl Saved {
    /// Reads a file; none where there is none of ours.
    pub(super) fn read(file: &Path) -> Option<Self> {
        let bytes = std::fs::read(file).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head = serde_json::from_slice(&bytes[..end]).ok()?;
        Some(Self { head, bytes, at: end + 1 })
    }

    /// The index; none where it is not whole.
    pub(super) fn index(&self) -> Option<Index> {
        let bytes = &self.bytes[self.at..];
        let is_whole = Digest::of(bytes).to_string() == self.head.sha256;
        is_whole.then(|| Index::from_bytes(bytes).ok()).flatten()
    }
}

/// Puts an index into a file, in one step.
pub(super) fn write(
    file: &Path,
    registry: &str,
    number: i64,
    package: &str,
    index: &Snapshot,
) -> std::io::Result<()> {
    let bytes = index.to_bytes();
    let sha256 = Digest::of(&bytes).to_string();
    let head = Head { registry: registry.into(), number, package: package.into(), sha256 };
    let folder = file.parent().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut unfinished = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut unfinished, &head)?;
    unfinished.write_all(b"\n")?;
    unfinished.write_all(&bytes)?;
    unfinished.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_whole_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("index");
        assert!(Saved::read(&file).is_none());
        let read = || Saved::read(&file).and_then(|saved| saved.index());
        let index = Index::default();
        index.put(search::Entry::new("a").unwrap().text(search::Field::Name, "pdf")).unwrap();
        write(&file, "r", 7, "tool:a", &index.snapshot()).unwrap();
        let Head { registry, number, package, .. } = Saved::read(&file).unwrap().head;
        assert_eq!((registry.as_str(), number, package.as_str()), ("r", 7, "tool:a"));
        assert!(read().unwrap().snapshot().contains("a"));
        let whole = std::fs::read(&file).unwrap();
        for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&file, &whole[..cut]).unwrap();
            assert!(read().is_none(), "{cut} bytes");
        }
        let mut other = whole.clone();
        *other.last_mut().unwrap() ^= 1;
        std::fs::write(&file, other).unwrap();
        assert!(read().is_none());
    }
}
