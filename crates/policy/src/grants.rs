//! What the owner allowed one package.

use std::fmt;

/// Everything the owner allowed one package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(Vec<Grant>);

/// One thing the owner allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What kind of thing.
    pub kind: Kind,
    /// The thing itself: a host rule, a path, a device, the name of a variable.
    pub value: String,
}

/// What kind of thing is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// To reach a host.
    Host,
    /// To read a file or folder.
    Read,
    /// To read and write a file or folder.
    Write,
    /// To use a device.
    Device,
    /// To be given a variable of the caller.
    Environment,
}

impl Kind {
    /// Every kind, with the flag of `haft grant` that names it.
    pub const ALL: [(Kind, &'static str); 5] = [
        (Kind::Host, "host"),
        (Kind::Read, "read"),
        (Kind::Write, "write"),
        (Kind::Device, "device"),
        (Kind::Environment, "env"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl Grants {
    /// The grants, in the order they were made.
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    /// The values of one kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |grant| grant.kind == kind).map(|grant| &*grant.value)
    }
}

impl FromIterator<Grant> for Grants {
    fn from_iter<I: IntoIterator<Item = Grant>>(grants: I) -> Self {
        Self(grants.into_iter().collect())
    }
}
