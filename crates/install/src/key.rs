//! What a package is called on the disk.

use std::fmt;

use manifest::dialect::Dialect;
use manifest::model::Package;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The name of a package's folder: the id of an mcpkg as it is, of any other its dialect and id.
///
/// No two packages have one key, also on systems that take `A` for `a`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

/// An id that cannot be the name of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoKey {
    id: String,
    why: &'static str,
}

impl fmt::Display for NoKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "nothing can be installed as `{}`: {}", self.id, self.why)
    }
}

impl std::error::Error for NoKey {}

impl NoKey {
    pub(crate) fn without_dialect(id: &str) -> Self {
        Self { id: id.to_owned(), why: "it does not say which dialect it is of" }
    }
}

/// The longest key; a version's folder and files beside it have names that are a little longer.
const LONGEST: usize = 200;
/// What is written as it is. Capital letters are not: some systems do not tell them from small ones.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

impl Key {
    /// The key of a package.
    pub fn of(package: &Package) -> Result<Self, NoKey> {
        let id = match &package.namespace {
            Some(namespace) => format!("{namespace}/{}", package.id),
            None => package.id.clone(),
        };
        Self::new(package.dialect, &id)
    }

    /// The key of what a dialect calls by this id.
    pub fn new(dialect: Dialect, id: &str) -> Result<Self, NoKey> {
        let refuse = |why| Err(NoKey { id: id.to_owned(), why });
        let key = match dialect {
            Dialect::Mcpkg => id.to_owned(),
            other => format!("{}~{}", other.name(), encoded(id)),
        };
        if id.is_empty() {
            return refuse("it is empty");
        }
        if key.len() > LONGEST {
            return refuse("it is too long for the name of a folder");
        }
        // The grammar of an mcpkg's id is its dialect's matter; what no folder may be called is ours.
        let is_plain = key.bytes().all(|byte| is_plain(byte) || matches!(byte, b'~' | b'%'));
        if !is_plain || manifest::path::check_path(&key).is_err() {
            return refuse("it cannot be the name of a folder on every system");
        }
        Ok(Self(key))
    }

    /// As it stands on the disk.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn encoded(id: &str) -> String {
    let mut text = String::with_capacity(id.len());
    for letter in id.chars() {
        if letter.is_ascii_uppercase() {
            text.push_str(&format!("%{:02x}", u32::from(letter)));
        } else {
            let mut bytes = [0; 4];
            let parts = utf8_percent_encode(letter.encode_utf8(&mut bytes), PLAIN);
            text.extend(parts.map(str::to_ascii_lowercase));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(dialect: Dialect, id: &str) -> Option<String> {
        Key::new(dialect, id).ok().map(|key| key.0)
    }

    #[test]
    fn an_mcpkg_is_called_by_its_id_and_others_with_their_dialect() {
        assert_eq!(key(Dialect::Mcpkg, "demo.echo").as_deref(), Some("demo.echo"));
        assert_eq!(
            key(Dialect::InstallManifest, "acme/gmail-yep").as_deref(),
            Some("install-manifest~acme%2fgmail-yep")
        );
        assert_eq!(
            key(Dialect::Jumith, "tool:email.send").as_deref(),
            Some("jumith~tool%3aemail.send")
        );
    }

    #[test]
    fn ids_that_a_system_might_take_for_each_other_have_different_keys() {
        let key = |id| key(Dialect::Capability, id).unwrap();
        assert_ne!(key("Tool").to_ascii_lowercase(), key("tool").to_ascii_lowercase());
        assert_ne!(key("a/b"), key("a%2fb"));
        assert_ne!(key("a~b"), key("a%7eb"));
        assert_ne!(key("é"), key("e\u{301}"));
    }

    #[test]
    fn what_no_folder_can_be_called_is_refused() {
        for id in ["", "..", "a/../b", "CON", "a b", "x\u{202e}y"] {
            assert_eq!(key(Dialect::Mcpkg, id), None, "{id}");
        }
        assert_eq!(key(Dialect::Capability, &"x".repeat(300)), None);
        // Whatever an id holds, it stays one name.
        let key = key(Dialect::Capability, "../../etc/passwd").unwrap();
        assert!(!key.contains('/'), "{key}");
    }
}
