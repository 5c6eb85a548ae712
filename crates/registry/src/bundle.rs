//! A version with its files, as one JSON text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use package::contents::Contents;
use package::digest::{Digest, FileDigest, Listing};
use package::refusal::ReadError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::describe::Describe;
use crate::read::{Checked, Fault};

/// A version with its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    /// What describing the version says.
    pub manifest: Describe,
    /// All files, the manifest of its dialect among them.
    pub files: Vec<BundleFile>,
    /// SHA-256 of the package file, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BundleFile {
    /// Its path, relative and plain.
    pub path: String,
    /// Its content, in that encoding.
    pub content: String,
    /// How the content is written.
    #[serde(default)]
    pub encoding: Encoding,
    /// Whether it can be run; ours, others pass over it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// How the content of a file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As text.
    #[default]
    Utf8,
    /// In base64.
    Base64,
}

impl BundleFile {
    /// A file. It travels as text only when it is valid UTF-8 without NUL.
    pub fn new(path: &str, content: Vec<u8>, executable: bool) -> Self {
        let (content, encoding) = match String::from_utf8(content) {
            Ok(text) if !text.contains('\0') => (text, Encoding::Utf8),
            Ok(text) => (STANDARD.encode(text), Encoding::Base64),
            Err(error) => (STANDARD.encode(error.as_bytes()), Encoding::Base64),
        };
        Self { path: path.to_owned(), content, encoding, executable }
    }
}

impl BundleFile {
    /// Its content; nothing where it is not in its encoding.
    pub fn bytes(&self) -> Vec<u8> {
        match self.encoding {
            Encoding::Utf8 => self.content.clone().into_bytes(),
            Encoding::Base64 => STANDARD.decode(&self.content).unwrap_or_default(),
        }
    }
}

impl Bundle {
    /// The list that stands for all its files.
    pub fn listing(&self) -> Listing {
        let digest = |file: &BundleFile| {
            let content = file.bytes();
            let (size, sha256) = (content.len() as u64, Digest::of(&content));
            FileDigest { path: file.path.clone(), size, sha256 }
        };
        Listing::new(self.files.iter().map(digest).collect())
    }

    /// The bundle of a version, from its files.
    pub fn new(manifest: Describe, contents: &dyn Contents) -> Result<Self, ReadError> {
        let mut files = Vec::new();
        for path in contents.paths() {
            let content = contents.read(path)?;
            files.push(BundleFile::new(path, content, contents.is_executable(path)));
        }
        let sha256 = manifest.sha256.clone();
        Ok(Self { manifest, files, sha256 })
    }
}

impl Checked for Bundle {
    fn check(&self) -> Result<(), Fault> {
        self.manifest.check()?;
        for file in &self.files {
            if manifest::path::check_path(&file.path).is_err() {
                return Err(Fault::Path(file.path.clone()));
            }
            let is_readable = match file.encoding {
                Encoding::Utf8 => true,
                Encoding::Base64 => STANDARD.decode(&file.content).is_ok(),
            };
            if !is_readable {
                return Err(Fault::Content(file.path.clone()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_text_only_when_nothing_of_it_would_be_lost() {
        for (content, encoding, written) in [
            (&b"caf\xc3\xa9"[..], Encoding::Utf8, "caf\u{e9}"),
            (b"a\0b", Encoding::Base64, "YQBi"),
            (b"\xff\xfe", Encoding::Base64, "//4="),
        ] {
            let file = BundleFile::new("a", content.to_vec(), false);
            assert_eq!((file.encoding, file.content.as_str()), (encoding, written));
        }
    }
}
