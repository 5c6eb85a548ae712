//! Package files, by their digest, and the beginnings of such.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::SystemTime;

use package::digest::{Digest, Hasher};

use super::{Cache, make, open_to_write};

/// The longest tag that is kept.
const LONGEST_TAG: u64 = 256;

/// What there is to begin with when a package is to be fetched.
#[derive(Debug)]
pub enum Begun {
    /// All of it: somebody else has fetched it meanwhile.
    Whole(File),
    /// As much as there is, perhaps nothing.
    Part(Part),
}

/// The beginning of a package file. Nobody else works on it as long as this is there.
#[derive(Debug)]
pub struct Part {
    file: File,
    path: PathBuf,
    target: PathBuf,
    digest: Digest,
    length: u64,
}

impl Cache {
    /// The package file of a digest, from its beginning; none where there is none, or it is damaged.
    pub fn package(&self, digest: Digest) -> io::Result<Option<File>> {
        let path = self.packages().join(digest.to_string());
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if digest_of(&mut file)? != digest {
            // Somebody may have put a good one there meanwhile; then it is fetched once too often.
            let _gone_already = fs::remove_file(&path);
            return Ok(None);
        }
        // It counts as used now, where that can be noted.
        let _still_as_old = file.set_modified(SystemTime::now());
        Ok(Some(file))
    }

    /// Begins to fetch a package; waits for whoever is at it.
    pub fn begin(&self, digest: Digest) -> io::Result<Begun> {
        let folder = self.packages();
        make(&folder)?;
        let path = folder.join(format!("{digest}.part"));
        loop {
            let file = open_to_write(&path)?;
            file.lock()?;
            if let Some(whole) = self.package(digest)? {
                // Ours may be a new file in the place of the one that was moved away.
                if is_at(&file, &path) {
                    let _gone_already = fs::remove_file(&path);
                }
                return Ok(Begun::Whole(whole));
            }
            // While we waited it may have become a package, or been removed.
            if is_at(&file, &path) {
                let length = file.metadata()?.len();
                let target = folder.join(digest.to_string());
                let mut part = Part { file, path, target, digest, length };
                part.file.seek(SeekFrom::Start(length))?;
                return Ok(Begun::Part(part));
            }
        }
    }
}

impl Part {
    /// How many bytes there are.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// What the registry calls the version that they are the beginning of.
    pub fn tag(&self) -> Option<String> {
        let mut text = String::new();
        File::open(self.tag_path()).ok()?.take(LONGEST_TAG).read_to_string(&mut text).ok()?;
        Some(text).filter(|tag| is_strong(tag))
    }

    /// Begins anew, with what the registry calls this version; without a tag that is strong it cannot be gone on with.
    pub fn restart(&mut self, tag: Option<&str>) -> io::Result<()> {
        let path = self.tag_path();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.length = 0;
        match tag.filter(|tag| is_strong(tag) && tag.len() as u64 <= LONGEST_TAG) {
            Some(tag) => fs::write(path, tag),
            None => Ok(()),
        }
    }

    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Makes a package of it, where the bytes are the right ones; else it is gone, and their digest is told.
    pub fn finish(mut self) -> io::Result<Result<File, Digest>> {
        let arrived = digest_of(&mut self.file)?;
        if arrived != self.digest {
            self.discard()?;
            return Ok(Err(arrived));
        }
        self.file.sync_all()?;
        let _is_as_good = fs::remove_file(self.tag_path());
        fs::rename(&self.path, &self.target)?;
        Ok(Ok(self.file))
    }

    /// Removes it.
    pub fn discard(self) -> io::Result<()> {
        let _is_as_good = fs::remove_file(self.tag_path());
        fs::remove_file(&self.path)
    }

    fn tag_path(&self) -> PathBuf {
        self.path.with_extension("tag")
    }
}

/// Whether a tag says that all bytes are the same, and can be sent back.
fn is_strong(tag: &str) -> bool {
    let inside = tag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.is_some_and(|inside| inside.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"'))
}

/// The digest of a whole file, which is then at its beginning.
fn digest_of(file: &mut File) -> io::Result<Digest> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..count]);
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(hasher.finish())
}

/// Whether an open file is still the one that has this name.
#[cfg(unix)]
pub(super) fn is_at(file: &File, path: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => same(ours, there),
        _ => false,
    }
}

/// Elsewhere a file that is open keeps its name.
#[cfg(not(unix))]
pub(super) fn is_at(_file: &File, path: &std::path::Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(cache: &Cache, digest: Digest) -> Part {
        match cache.begin(digest).unwrap() {
            Begun::Part(part) => part,
            Begun::Whole(_) => panic!("it is all there"),
        }
    }

    fn read(mut file: File) -> Vec<u8> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_beginning_is_gone_on_with_and_becomes_a_package() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), super::super::MOST);
        let digest = Digest::of(b"first second");
        let mut first = part(&cache, digest);
        first.restart(Some("\"tag\"")).unwrap();
        first.write(b"first ").unwrap();
        drop(first);
        assert!(cache.package(digest).unwrap().is_none());
        let mut second = part(&cache, digest);
        assert_eq!((second.length(), second.tag().as_deref()), (6, Some("\"tag\"")));
        second.write(b"second").unwrap();
        assert_eq!(read(second.finish().unwrap().unwrap()), b"first second");
        assert_eq!(read(cache.package(digest).unwrap().unwrap()), b"first second");
        assert!(matches!(cache.begin(digest).unwrap(), Begun::Whole(_)));
        let names = fs::read_dir(cache.packages()).unwrap().count();
        assert_eq!(names, 1, "nothing is left beside it");
    }

    #[test]
    fn other_bytes_never_become_a_package() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), super::super::MOST);
        let digest = Digest::of(b"right");
        let mut wrong = part(&cache, digest);
        wrong.write(b"wrong").unwrap();
        assert_eq!(wrong.finish().unwrap().unwrap_err(), Digest::of(b"wrong"));
        assert!(cache.package(digest).unwrap().is_none());
        assert_eq!(part(&cache, digest).length(), 0);
    }

    #[test]
    fn a_package_that_was_damaged_is_not_given_out() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), super::super::MOST);
        let digest = Digest::of(b"right");
        let mut whole = part(&cache, digest);
        whole.write(b"right").unwrap();
        whole.finish().unwrap().unwrap();
        let path = cache.packages().join(digest.to_string());
        fs::write(&path, b"wrung").unwrap();
        assert!(cache.package(digest).unwrap().is_none());
        assert!(!path.exists());
    }

    #[test]
    fn whoever_comes_second_waits_and_finds_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), super::super::MOST);
        let digest = Digest::of(b"bytes");
        let mut first = part(&cache, digest);
        let others: Vec<_> = (0..4)
            .map(|_| {
                let cache = cache.clone();
                std::thread::spawn(move || match cache.begin(digest).unwrap() {
                    Begun::Whole(file) => read(file),
                    Begun::Part(part) => panic!("somebody else is at it: {part:?}"),
                })
            })
            .collect();
        first.write(b"bytes").unwrap();
        first.finish().unwrap().unwrap();
        for other in others {
            assert_eq!(other.join().unwrap(), b"bytes");
        }
    }

    #[test]
    fn a_weak_tag_is_none_to_go_on_with() {
        for (tag, strong) in
            [("\"a\"", true), ("W/\"a\"", false), ("a", false), ("\"a b\"", false), ("\"", false)]
        {
            assert_eq!(is_strong(tag), strong, "{tag}");
        }
    }
}
