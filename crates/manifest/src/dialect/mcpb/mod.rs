//! MCPB: the manifest of an MCP bundle, which was called DXT before. It is read, never written.
//!
//! A bundle is a stranger's work that is already in the world: its author is seldom at hand. So an
//! error is what the format's own tool refuses, and what could not be run or would be unsafe; the
//! rest is told as a warning, for the owner to see.

mod files;
mod rules;
mod shape;
mod variable;

pub(crate) mod lower;

pub(crate) use files::files;
pub(crate) use rules::check_rules;
pub use shape::shape;

use crate::json::Node;

/// The keys under which a manifest names its version, the key of today first.
pub const VERSION_KEYS: [&str; 2] = ["manifest_version", "dxt_version"];

/// The systems a manifest can speak of.
pub const PLATFORMS: [&str; 3] = ["darwin", "win32", "linux"];

/// The versions of the format. Each only adds to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 0.1.
    V0_1,
    /// 0.2: privacy policies.
    V0_2,
    /// 0.3: several icons, translations, notes for particular hosts.
    V0_3,
    /// 0.4: servers that uv starts.
    V0_4,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Version; 4] = [Version::V0_1, Version::V0_2, Version::V0_3, Version::V0_4];

    /// As it is written in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Version::V0_1 => "0.1",
            Version::V0_2 => "0.2",
            Version::V0_3 => "0.3",
            Version::V0_4 => "0.4",
        }
    }

    /// The version of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// The version a manifest names, under either key; none when it names no known one.
    pub fn of(document: &Node<'_>) -> Option<Self> {
        VERSION_KEYS.iter().find_map(|key| document.text_at(key).and_then(Self::named))
    }
}
