//! What a tool reached for and was not let.
//!
//! What it wanted of the network goes through us, so we know. What it looked for among the files we do not: to
//! it they are not there. It is told from what the tool complains of (`complaint`).

use std::fmt;
use std::path::{Path, PathBuf};

use egress::Refusal;
use policy::GrantKind;
use sandbox::{Confinement, is_in_every_room};

use crate::error::{CallError, Kind};

/// What a tool reached for and was not let.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What it asked for: a name, perhaps as `host:port`, or a path.
    pub asked: String,
    /// Why not.
    pub why: Why,
}

/// Why a tool was not let.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The rules of the network.
    Network(Refusal),
    /// The path is not inside its walls.
    Hidden,
    /// The same, of a path that was to be written.
    HiddenToWriting,
    /// The same, where nobody says whether it was to be written.
    HiddenPerhapsToWriting,
    /// The path may only be read.
    ReadOnly,
}

impl Blocked {
    /// A place of the network.
    pub(crate) fn host(asked: impl Into<String>, why: Refusal) -> Self {
        Self { asked: asked.into(), why: Why::Network(why) }
    }

    /// What a refusal of ours was about, and what was reached for in vain before something else failed.
    pub fn of(error: &CallError) -> Vec<Self> {
        let refused = match &error.kind {
            Kind::Blocked(place) => Some((**place).clone()),
            _ => None,
        };
        refused.into_iter().chain(error.blocked.clone()).collect()
    }

    /// What would have to be granted.
    pub fn kind(&self) -> GrantKind {
        match self.why {
            Why::Network(_) => GrantKind::Host,
            Why::Hidden => GrantKind::Read,
            Why::HiddenToWriting | Why::HiddenPerhapsToWriting | Why::ReadOnly => GrantKind::Write,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(refusal) => refusal.fmt(out),
            Self::Hidden | Self::HiddenToWriting | Self::HiddenPerhapsToWriting => {
                out.write_str("it is not inside its walls")
            }
            Self::ReadOnly => out.write_str("it may only be read"),
        }
    }
}

/// Whether there is anything of the outside at a path in there. The system's own is always.
pub(crate) fn sees(walls: &Confinement, path: &Path) -> bool {
    const OWN: [&str; 3] = ["/proc", "/dev", "/sys"];
    let is_in = |all: &[PathBuf]| all.iter().any(|one| path.starts_with(one));
    let is_own = OWN.iter().any(|one| path.starts_with(one)) || is_in_every_room(path);
    is_own || ((is_in(&walls.readable) || is_in(&walls.writable)) && !is_in(&walls.hidden))
}

/// The file or folder that it was given to read and that holds a path, where it may not write there.
pub(crate) fn only_readable<'w>(walls: &'w Confinement, path: &Path) -> Option<&'w Path> {
    let holds = |one: &&PathBuf| path.starts_with(one);
    let is_writable = walls.writable.iter().any(|one| holds(&one));
    let given = walls.readable.iter().filter(holds).max_by_key(|one| one.components().count());
    given.filter(|_| !is_writable).map(PathBuf::as_path)
}
