//! mcpkg: the portable package with tests, examples, implementations and chains.

mod command;
mod rules;
mod shape;
mod tests_format;

pub(crate) mod lower;

pub(crate) use command::join_command;
pub use command::{CommandError, split_command};
pub(crate) use rules::{check_rules, check_test_rules};
pub use shape::{shape, test_shape};
pub use tests_format::OPERATORS;

use crate::json::Node;

/// The versions of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// One http endpoint.
    V0_1,
    /// Local endpoints, implementations and chains.
    V0_2,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Version; 2] = [Version::V0_1, Version::V0_2];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Version::V0_1 => "0.1",
            Version::V0_2 => "0.2",
        }
    }

    /// The version of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// The version whose means a manifest uses; it does not name one itself.
    pub fn of(document: &Node<'_>) -> Self {
        let is_local = document.at(&["endpoint", "type"]).and_then(Node::as_text) == Some("local");
        let is_later = document.get("implementations").is_some() || document.get("chain").is_some();
        if is_local || is_later { Version::V0_2 } else { Version::V0_1 }
    }
}
