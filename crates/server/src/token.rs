//! Tokens: what somebody shows to be let in.
//!
//! A token is random and says nothing. Only its hash is kept, so whoever reads the database has none.

use std::fmt;

use package::digest::Digest;

/// What every token begins with, so that people and programs that look for leaked secrets know it.
const PREFIX: &str = "haft_";

/// A token itself. It is shown once and never again.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reading, where that needs a token.
    Read,
    /// Publishing and taking back, and reading.
    Publish,
}

/// Whose names a token is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everybody's.
    All,
    /// Those of one namespace.
    Namespace(String),
}

/// The system gives no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRandomness;

impl fmt::Display for NoRandomness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the system gives no randomness for a token")
    }
}

impl std::error::Error for NoRandomness {}

impl Secret {
    /// A new token.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(format!("{PREFIX}{digits}")))
    }

    /// A token that somebody shows.
    pub fn shown(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The token, for the one moment in which it is handed over.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it. It has 256 random bits, so a plain hash cannot be guessed backwards, and finding
    /// it by its hash tells nobody how much of a guess was right.
    pub fn hash(&self) -> String {
        Digest::of(self.0.as_bytes()).to_string()
    }

    /// What it is called where it must not be shown.
    pub fn id(&self) -> String {
        self.hash()[..12].to_owned()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

impl Role {
    /// Every role with its name.
    pub const ALL: [(Role, &'static str); 2] = [(Role::Read, "read"), (Role::Publish, "publish")];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The role of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(role, _)| *role)
    }
}

impl Scope {
    /// What is written for everybody's names.
    const ALL: &'static str = "*";

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Scope::All => Self::ALL,
            Scope::Namespace(namespace) => namespace,
        }
    }

    /// The scope of that name.
    pub fn named(name: &str) -> Self {
        if name == Self::ALL { Scope::All } else { Scope::Namespace(name.to_owned()) }
    }

    /// Whether these names are among them.
    pub fn covers(&self, namespace: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Namespace(own) => own == namespace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_differ_and_do_not_show_themselves() {
        let (a, b) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.reveal().len(), PREFIX.len() + 64);
        assert_eq!(format!("{a:?}"), "Secret");
        assert!(!a.hash().contains(&a.reveal()[PREFIX.len()..]));
        assert_eq!(Secret::shown(a.reveal()).hash(), a.hash());
    }

    #[test]
    fn a_scope_covers_its_own_namespace_alone() {
        assert!(Scope::named("*").covers("acme"));
        assert!(Scope::named("acme").covers("acme"));
        for other in ["acm", "acme2", "ACME", "", "*"] {
            assert!(!Scope::named("acme").covers(other), "{other}");
        }
    }
}
