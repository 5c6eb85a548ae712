//! What a package is granted together with its card: what has to be read so that a program of this machine starts, and a host
//! of a private network that the owner wrote down.

use host::records::now;
use ledger::state::grants::{Grant, GrantKind};

use crate::exit::Failure;
use crate::home::Home;
use crate::owner;

/// One such thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lent {
    /// A host, as a rule.
    Host(String),
    /// A file or folder, to read.
    Read(String),
}

impl Lent {
    /// As a grant that counts for one try.
    pub(super) fn given(&self) -> policy::Grant {
        let (kind, value) = match self {
            Self::Host(rule) => (policy::GrantKind::Host, rule),
            Self::Read(path) => (policy::GrantKind::Read, path),
        };
        policy::Grant { kind, value: value.clone() }
    }
}

/// Grants it to a package that is installed now.
pub(super) fn grant(package: &str, things: &[Lent], home: &Home) -> Result<(), Failure> {
    if things.is_empty() {
        return Ok(());
    }
    let runtime = owner::runtime()?;
    let records = owner::records(home, &runtime)?;
    for thing in things {
        let (kind, value) = match thing {
            Lent::Host(rule) => (GrantKind::Host, rule),
            Lent::Read(path) => (GrantKind::Read, path),
        };
        let grant = Grant {
            package: package.to_owned(),
            kind,
            value: value.clone(),
            by: "import".to_owned(),
            created: now(),
        };
        let granted = runtime.block_on(records.state.grant(&grant));
        granted.map_err(|error| owner::of_state(&error))?;
    }
    Ok(())
}
