//! Where a secret belongs: whose it is, and its name.
//!
//! The two are kept apart everywhere. A joined text such as `tool-name` would let the secret `b-c` of
//! `a` stand for the secret `c` of `a-b`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest name, in characters.
pub const MAX_NAME: usize = 256;
/// The longest id of a package, in characters.
pub const MAX_ID: usize = 512;

/// Whose secret it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// One package's, by its canonical id; no other package is given it.
    Package(String),
    /// Shared between packages.
    Shared,
}

/// An owner and a name, both well formed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    owner: Owner,
    name: String,
}

/// Why a place is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// The name is empty, longer than [`MAX_NAME`], or has a control character.
    Name,
    /// The package's id is empty, longer than [`MAX_ID`], or has a control character.
    Package,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, most) = match self {
            PlaceError::Name => ("name of a secret", MAX_NAME),
            PlaceError::Package => ("id of a package", MAX_ID),
        };
        write!(out, "a {what} has 1 to {most} characters, and no control characters")
    }
}

impl std::error::Error for PlaceError {}

impl Place {
    /// The secret of that name of that owner.
    pub fn new(owner: Owner, name: &str) -> Result<Self, PlaceError> {
        if !is_plain(name, MAX_NAME) {
            return Err(PlaceError::Name);
        }
        if matches!(&owner, Owner::Package(id) if !is_plain(id, MAX_ID)) {
            return Err(PlaceError::Package);
        }
        Ok(Self { owner, name: name.to_owned() })
    }

    /// Whose it is.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// For messages; two places may read the same.
impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Owner::Package(id) => write!(out, "`{}` of `{id}`", self.name),
            Owner::Shared => write!(out, "`{}`", self.name),
        }
    }
}

/// Whether a text has so many characters at most, at least one, and no control character.
pub(crate) fn is_plain(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.chars().count()) && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_and_name_are_never_one_text() {
        let of = |id: &str, name| Place::new(Owner::Package(id.to_owned()), name).unwrap();
        assert_ne!(of("a", "b-c"), of("a-b", "c"));
        assert_ne!(of("a", "b"), Place::new(Owner::Shared, "b").unwrap());
    }

    #[test]
    fn names_and_ids_are_bounded_and_plain() {
        let place = |name: &str| Place::new(Owner::Shared, name).err();
        assert_eq!(place(&"ü".repeat(MAX_NAME)), None);
        for name in [String::new(), "a\nb".into(), "\u{7f}".into(), "x".repeat(MAX_NAME + 1)] {
            assert_eq!(place(&name), Some(PlaceError::Name), "{name:?}");
        }
        let nobody = Place::new(Owner::Package(String::new()), "name");
        assert_eq!(nobody, Err(PlaceError::Package));
    }
}
