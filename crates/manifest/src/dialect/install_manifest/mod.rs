//! install-manifest: how a tool is acquired, what it needs of its owner, how it is tried and revoked.

mod rules;
mod shape;
mod template;

pub(crate) mod lower;

pub(crate) use rules::check_rules;
pub use shape::shape;
pub use template::{Piece, Reference, pieces};

/// The versions of the format. Each only adds to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 0.1: no catalog of actions.
    V0_1,
    /// 0.2: actions.
    V0_2,
    /// 0.3: verification, data boundary, notes for agents.
    V0_3,
    /// 0.3.1: namespaces, kill switch `none`, inline instructions, layouts.
    V0_3_1,
    /// 0.4: preinstalled tools, recipients the agent supplies.
    V0_4,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Version; 5] =
        [Version::V0_1, Version::V0_2, Version::V0_3, Version::V0_3_1, Version::V0_4];

    /// As it is written in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Version::V0_1 => "0.1",
            Version::V0_2 => "0.2",
            Version::V0_3 => "0.3",
            Version::V0_3_1 => "0.3.1",
            Version::V0_4 => "0.4",
        }
    }

    /// The version of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }
}
