//! Digests: of one file, of all files of a package, of the archive itself.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha256:{self}")
    }
}

/// A digest in the making.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything added.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Hasher")
    }
}

/// One file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// Its path.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its digest.
    pub sha256: Digest,
}

/// The files of a package with their digests, in the order of their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing(Vec<FileDigest>);

impl Listing {
    /// A list of files, put in order.
    pub fn new(mut files: Vec<FileDigest>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self(files)
    }

    /// The files.
    pub fn files(&self) -> &[FileDigest] {
        &self.0
    }

    /// The file at a path.
    pub fn get(&self, path: &str) -> Option<&FileDigest> {
        let at = self.0.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.0.get(at)
    }

    /// The same files but for one.
    pub fn without(&self, path: &str) -> Self {
        Self(self.0.iter().filter(|file| file.path != path).cloned().collect())
    }

    /// How large the files are together.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|file| file.size).sum()
    }

    /// The one text that stands for these files: a line each, digest, size and path.
    /// No path has a line break, so no two lists have the same text.
    pub fn canonical(&self) -> String {
        let line = |file: &FileDigest| format!("{} {} {}\n", file.sha256, file.size, file.path);
        self.0.iter().map(line).collect()
    }

    /// The digest of that text: it stays the same whatever the files travel in.
    pub fn digest(&self) -> Digest {
        Digest::of(self.canonical().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = Digest::of(b"abc");
        assert_eq!(
            digest.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse(&digest.to_string().to_uppercase()), None);
        assert_eq!(Digest::parse("ab"), None);
    }

    #[test]
    fn a_listing_does_not_depend_on_the_order_of_its_files() {
        let file = |path: &str| FileDigest {
            path: path.into(),
            size: 3,
            sha256: Digest::of(path.as_bytes()),
        };
        let (a, b) = (file("a"), file("b/c"));
        let listing = Listing::new(vec![b.clone(), a.clone()]);
        assert_eq!(listing, Listing::new(vec![a.clone(), b]));
        assert_eq!(listing.get("a"), Some(&a));
        assert_eq!(listing.get("c"), None);
        assert_eq!(listing.without("b/c").files(), [a]);
        assert_ne!(listing.digest(), listing.without("a").digest());
    }
}
