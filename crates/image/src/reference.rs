//! An image as manifests name it.

use std::fmt;

use manifest::image_name::is_image_name;

use crate::digest::Digest;
use crate::refusal::{Code, ImageError};

/// A name of an image that can mean one image only: `NAME@sha256:…`. A tag beside the digest says nothing and is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where it is to be had, such as `registry.example.com/tools/echo`.
    pub name: String,
    /// What it is.
    pub digest: Digest,
}

impl Reference {
    /// Reads a name. One without a digest is refused.
    pub fn parse(text: &str) -> Result<Self, ImageError> {
        let bad = || ImageError::refused(Code::BadReference, text);
        let Some((name, digest)) = text.split_once('@') else {
            return Err(if is_image_name(text) {
                ImageError::refused(Code::NotPinned, text)
            } else {
                bad()
            });
        };
        if !is_image_name(name) {
            return Err(bad());
        }
        let name = match name.rsplit_once(':') {
            // What follows a port is a path.
            Some((name, tag)) if !tag.contains('/') => name,
            _ => name,
        };
        Ok(Self { name: name.to_owned(), digest: Digest::parse(digest)? })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}@{}", self.name, self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_has_a_name_and_a_digest() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        for (text, name) in [
            ("echo", "echo"),
            ("example.com:5000/tools/echo", "example.com:5000/tools/echo"),
            ("example.com:5000/tools/echo:1.2", "example.com:5000/tools/echo"),
            ("tools/echo:latest", "tools/echo"),
        ] {
            let read = Reference::parse(&format!("{text}@{digest}")).unwrap();
            assert_eq!((read.name.as_str(), read.digest.to_string()), (name, digest.clone()));
        }
    }

    #[test]
    fn a_tag_alone_and_what_is_no_name_are_refused() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let code = |text: &str| Reference::parse(text).unwrap_err().code();
        assert_eq!(code("acme/echo:1.2"), Some(Code::NotPinned));
        assert_eq!(code("acme/echo"), Some(Code::NotPinned));
        assert_eq!(code("acme/echo@latest"), Some(Code::UnknownDigest));
        for name in ["--privileged", "", "/etc", "docker-archive://x", "a b", "a/../b", "a\nb"] {
            assert_eq!(code(&format!("{name}@{digest}")), Some(Code::BadReference), "{name:?}");
        }
    }

    #[test]
    fn another_kind_of_source_is_no_name() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        for source in
            ["dir", "oci", "oci-archive", "docker-archive", "containers-storage", "docker", "a.b"]
        {
            for rest in [":/x", ":/x/y", "://x", "://x/y/z", ":x/y", ":x/y/z", ":", ":/x:1"] {
                let text = format!("{source}{rest}@{digest}");
                let refused = Reference::parse(&text).map_err(|error| error.code());
                assert_eq!(refused, Err(Some(Code::BadReference)), "{text}");
            }
        }
        // What looks like a port is a folder to an engine that knows the word.
        assert!(Reference::parse(&format!("dir:5000/x@{digest}")).is_err());
        assert!(Reference::parse(&format!("registry:5000/x@{digest}")).is_ok());
        // Without its tag it is a plain name to everybody.
        let read = Reference::parse(&format!("oci:latest@{digest}")).unwrap();
        assert_eq!(read.to_string(), format!("oci@{digest}"));
    }
}
