//! Which of the packages that are kept were taken back for security: whoever asks nobody must not take those either.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use package::digest::Digest;

use super::{Cache, make, open_to_write};

/// How much of a reason is kept.
const MOST: usize = 4 << 10;

impl Cache {
    /// Keeps in mind why the package of a digest was taken back for security, or that it was not.
    pub fn note_taken_back(&self, digest: Digest, reason: Option<&str>) -> io::Result<()> {
        let path = self.mark(digest);
        let Some(reason) = reason else {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        };
        make(&self.packages())?;
        let file = open_to_write(&path)?;
        file.set_len(0)?;
        let end = reason.floor_char_boundary(MOST.min(reason.len()));
        (&file).write_all(&reason.as_bytes()[..end])?;
        file.sync_all()
    }

    /// Why the package of a digest was taken back for security, where that is known. That it was does not hang on whether
    /// the reason can be read.
    pub fn taken_back(&self, digest: Digest) -> Option<String> {
        let path = self.mark(digest);
        path.symlink_metadata().ok()?;
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MOST as u64).read_to_end(&mut bytes));
        Some(read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default())
    }

    fn mark(&self, digest: Digest) -> PathBuf {
        self.packages().join(format!("{digest}.yanked"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_back_is_kept_in_mind_until_it_is_offered_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), super::super::MOST);
        let digest = Digest::of(b"x");
        assert_eq!(cache.taken_back(digest), None);
        cache.note_taken_back(digest, None).unwrap();
        cache.note_taken_back(digest, Some("it sends keys to its author")).unwrap();
        cache.note_taken_back(digest, Some("leaks")).unwrap();
        assert_eq!(cache.taken_back(digest).as_deref(), Some("leaks"));
        assert_eq!(cache.taken_back(Digest::of(b"y")), None);
        cache.note_taken_back(digest, Some(&"é".repeat(MOST))).unwrap();
        assert_eq!(cache.taken_back(digest).unwrap().len(), MOST);
        cache.note_taken_back(digest, None).unwrap();
        assert_eq!(cache.taken_back(digest), None);
    }
}
