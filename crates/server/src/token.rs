//! Tokens: what somebody shows to be let in.
//!
//! A token is random and says nothing. Only its hash is kept, so whoever reads the database has none.

use std::fmt;

use package::digest::Digest;
use registry::access::EVERYBODY;

/// What every token begins with, so that people and programs that look for leaked secrets know it.
const PREFIX: &str = "haft_";
/// How many digits follow, two for each random byte.
const DIGITS: usize = 64;

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
    /// Saying what leaves the quarantine, and reading.
    Review,
    /// Everything, and saying who else may do what.
    Admin,
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read what is offered.
    Read,
    /// Publish a version or take one back.
    Publish,
    /// Approve or refuse a version.
    Review,
    /// Make and revoke tokens, and say whose identities are trusted.
    Administer,
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
        let mut bytes = [0; DIGITS / 2];
        getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(format!("{PREFIX}{digits}")))
    }

    /// A token that somebody shows; none where it cannot be one of ours.
    pub fn shown(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == DIGITS && digits.bytes().all(is_digit)).then(|| Self(text.to_owned()))
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
    pub const ALL: [(Role, &'static str); 4] = [
        (Role::Read, "read"),
        (Role::Publish, "publish"),
        (Role::Review, "review"),
        (Role::Admin, "admin"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The role of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(role, _)| *role)
    }

    /// Whether it is for this. Who publishes does not review, so that four eyes see what is approved.
    pub fn allows(self, action: Action) -> bool {
        match (self, action) {
            (Role::Admin, _) | (_, Action::Read) => true,
            (Role::Publish, Action::Publish) | (Role::Review, Action::Review) => true,
            (Role::Read | Role::Publish | Role::Review, _) => false,
        }
    }
}

impl Scope {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Scope::All => EVERYBODY,
            Scope::Namespace(namespace) => namespace,
        }
    }

    /// The scope of that name.
    pub fn named(name: &str) -> Self {
        if name == EVERYBODY { Scope::All } else { Scope::Namespace(name.to_owned()) }
    }

    /// Whether these names are among them.
    pub fn covers(&self, namespace: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Namespace(own) => own == namespace,
        }
    }

    /// Whether all names of another scope are among them.
    pub fn holds(&self, other: &Scope) -> bool {
        match other {
            Scope::All => *self == Scope::All,
            Scope::Namespace(namespace) => self.covers(namespace),
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
        assert_eq!(format!("{a:?}"), "Secret");
        assert!(!a.hash().contains(&a.reveal()[PREFIX.len()..]));
        assert_eq!(Secret::shown(a.reveal()), Some(a.clone()));
        let (text, upper) = (a.reveal(), a.reveal().to_uppercase());
        let long = format!("{text}0");
        for other in ["", PREFIX, &text[1..], &text[..text.len() - 1], &long, &upper] {
            assert_eq!(Secret::shown(other), None, "{other}");
        }
    }

    #[test]
    fn a_role_is_for_what_it_says_and_no_more() {
        use Action::{Administer, Publish, Read, Review};
        for (role, allowed) in [
            (Role::Read, &[Read][..]),
            (Role::Publish, &[Read, Publish]),
            (Role::Review, &[Read, Review]),
            (Role::Admin, &[Read, Publish, Review, Administer]),
        ] {
            for action in [Read, Publish, Review, Administer] {
                assert_eq!(role.allows(action), allowed.contains(&action), "{role:?} {action:?}");
            }
        }
        for (role, name) in Role::ALL {
            assert_eq!((role.name(), Role::named(name)), (name, Some(role)));
        }
    }

    #[test]
    fn a_scope_holds_no_wider_one() {
        let (all, acme) = (Scope::named("*"), Scope::named("acme"));
        assert!(all.holds(&acme) && all.holds(&all) && acme.holds(&acme));
        assert!(!acme.holds(&all) && !acme.holds(&Scope::named("other")));
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
