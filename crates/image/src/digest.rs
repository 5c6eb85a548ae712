//! What stands for bytes, and bytes that are held against it while they pass.

use std::fmt;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use crate::refusal::{Code, ImageError, Refusal, carried};

/// A SHA-256. Whoever has one knows that it is well formed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(String);

impl Digest {
    /// Reads `sha256:` and 64 digits, small letters only: one digest has one spelling.
    pub fn parse(text: &str) -> Result<Self, ImageError> {
        let refused = || ImageError::refused(Code::UnknownDigest, text);
        let digits = text.strip_prefix("sha256:").ok_or_else(refused)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_whole = digits.len() == 64 && digits.bytes().all(is_digit);
        is_whole.then(|| Self(digits.to_owned())).ok_or_else(refused)
    }

    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut counted = Counted::new(bytes);
        // Reading from memory does not fail.
        let _ = io::copy(&mut counted, &mut io::sink());
        counted.finish().0
    }

    /// Its 64 digits.
    pub fn digits(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha256:{}", self.0)
    }
}

/// Bytes that are hashed and counted while they pass.
pub(crate) struct Counted<R> {
    inner: R,
    hasher: Sha256,
    passed: u64,
}

impl<R: Read> Counted<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hasher: Sha256::new(), passed: 0 }
    }

    /// The digest and the number of all that has passed.
    pub(crate) fn finish(self) -> (Digest, u64) {
        let digits = self.hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        (Digest(digits), self.passed)
    }

    /// How much has passed.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.passed += count as u64;
        Ok(count)
    }
}

/// Bytes that end with an error when they are not those that were promised: at their end, or as soon as there are
/// too many of them.
pub(crate) struct Promised<R> {
    counted: Option<Counted<R>>,
    digest: Digest,
    size: u64,
}

impl<R: Read> Promised<R> {
    pub(crate) fn new(inner: R, digest: &Digest, size: u64) -> Self {
        Self { counted: Some(Counted::new(inner)), digest: digest.clone(), size }
    }

    fn refusal(&self, code: Code) -> io::Error {
        carried(Refusal { code, what: self.digest.to_string() })
    }
}

impl<R: Read> Read for Promised<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(counted) = &mut self.counted else { return Ok(0) };
        let count = counted.read(buffer)?;
        if counted.passed() > self.size {
            return Err(self.refusal(Code::SizeMismatch));
        }
        if count == 0 && !buffer.is_empty() {
            let Some((digest, passed)) = self.counted.take().map(Counted::finish) else {
                return Ok(0);
            };
            if passed != self.size {
                return Err(self.refusal(Code::SizeMismatch));
            }
            if digest != self.digest {
                return Err(self.refusal(Code::DigestMismatch));
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::uncarried;

    #[test]
    fn a_digest_has_one_spelling() {
        let digits = "0123456789abcdef".repeat(4);
        assert!(Digest::parse(&format!("sha256:{digits}")).is_ok());
        for text in [
            digits.clone(),
            format!("sha256:{}", digits.to_uppercase()),
            format!("sha256:{}", &digits[1..]),
            format!("sha512:{digits}{digits}"),
            format!("sha256:../{}", &digits[3..]),
        ] {
            assert_eq!(Digest::parse(&text).unwrap_err().code(), Some(Code::UnknownDigest));
        }
    }

    #[test]
    fn bytes_that_were_not_promised_end_with_an_error() {
        let read = |bytes: &[u8], digest: &Digest, size| {
            let mut all = Vec::new();
            Promised::new(bytes, digest, size).read_to_end(&mut all).map(|_| all)
        };
        let digest = Digest::of(b"hello");
        assert_eq!(read(b"hello", &digest, 5).unwrap(), b"hello");
        let code = |result: io::Result<Vec<u8>>| uncarried(&result.unwrap_err()).unwrap().code;
        assert_eq!(code(read(b"hullo", &digest, 5)), Code::DigestMismatch);
        assert_eq!(code(read(b"hell", &digest, 5)), Code::SizeMismatch);
        assert_eq!(code(read(b"hello, world", &digest, 5)), Code::SizeMismatch);
    }
}
