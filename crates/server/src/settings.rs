//! What the operator sets about who may do what, and how often.

use std::collections::BTreeSet;

/// Who may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Everybody.
    #[default]
    Everybody,
    /// Whoever shows a token, what it is for.
    Tokens,
}

/// Where it is told what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// At `/metrics` of the registry itself; to administrators alone where reading needs a token.
    #[default]
    Here,
    /// At an address of its own, and nowhere else.
    Apart,
}

/// Whose versions wait for a reviewer before anybody else sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Quarantine {
    /// Nobody's.
    #[default]
    Nobody,
    /// Everybody's.
    Everybody,
    /// Those of these namespaces.
    Namespaces(BTreeSet<String>),
}

impl Quarantine {
    /// Whether a version among these names waits.
    pub fn holds(&self, namespace: &str) -> bool {
        match self {
            Quarantine::Nobody => false,
            Quarantine::Everybody => true,
            Quarantine::Namespaces(names) => names.contains(namespace),
        }
    }
}

/// How often somebody may ask within a minute; zero is without limit. Whoever is on this machine may
/// always: a proxy that is must be named, so that those behind it are known apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Reads of one token, or of one address that shows none.
    pub reads: u32,
    /// Publishes and other changes of one token.
    pub changes: u32,
    /// Tokens and identities of one address that are not good.
    pub failures: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { reads: 6_000, changes: 600, failures: 30 }
    }
}
