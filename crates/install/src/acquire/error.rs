//! Why something could not be acquired.

use std::fmt;
use std::io;
use std::path::PathBuf;

use image::Code;
use package::digest::Digest;
use registry::client::FetchError;
use sandbox::runtime::FindError;
use sandbox::{Exit, SpawnError};

use super::requirement::BadRequirement;

/// Why something could not be acquired. Nothing of it is left but what is kept for the next time.
#[derive(Debug)]
pub enum AcquireError {
    /// The manifest names a package that none can be.
    Requirement(BadRequirement),
    /// The manifest names a place that nothing is acquired from.
    Place {
        /// The place, as it is written there.
        place: String,
        /// Why not.
        why: &'static str,
    },
    /// A program that is needed is not there.
    Program(FindError),
    /// A program could not be started inside the walls.
    Walls(String, Box<SpawnError>),
    /// A program failed.
    Failed {
        /// What was run.
        command: String,
        /// How it ended.
        exit: Exit,
        /// The end of what it said.
        said: String,
        /// Hosts that it reached for in vain.
        refused: Vec<String>,
    },
    /// A program answered what cannot be read.
    Unreadable {
        /// Which answer.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A file could not be fetched.
    Fetch {
        /// Which one, and from where.
        what: String,
        /// Why not.
        cause: Box<FetchError>,
    },
    /// A file is not the one that was described.
    Digest {
        /// Which one.
        what: String,
        /// What was described.
        described: String,
        /// What arrived.
        arrived: String,
    },
    /// An image is refused.
    Image {
        /// Which one.
        what: String,
        /// Why.
        cause: Box<image::ImageError>,
    },
    /// Nobody is asked, and these are not among what is kept.
    Offline(Vec<String>),
    /// The lock has nothing of this.
    NotLocked(String),
    /// What arrived holds what is not put on a disk.
    Hostile {
        /// What arrived.
        what: String,
        /// The file in it.
        file: String,
        /// Why it is refused.
        why: &'static str,
    },
    /// What should be here already is not.
    Absent {
        /// What.
        what: String,
        /// How that was seen.
        why: &'static str,
    },
    /// A file or folder of ours cannot be used.
    Disk(PathBuf, io::Error),
    /// The way to the network could not be opened.
    Proxy(io::Error),
}

/// What kind of failure it is. Each face maps it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The manifest asks for what is never done.
    Invalid,
    /// There is no such thing.
    NotFound,
    /// What arrived is not what was described, or harmful.
    Untrustworthy,
    /// Later, or elsewhere, it may work.
    Unavailable,
}

impl AcquireError {
    /// What kind of failure it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Requirement(_) | Self::Place { .. } => Kind::Invalid,
            Self::Program(_) | Self::Absent { .. } => Kind::NotFound,
            Self::Digest { .. } | Self::Hostile { .. } | Self::NotLocked(_) => Kind::Untrustworthy,
            Self::Image { cause, .. } => match cause.code() {
                Some(Code::NotPinned | Code::BadReference | Code::UnknownDigest) => Kind::Invalid,
                // On another machine it may work.
                Some(Code::WrongPlatform) | None => Kind::Unavailable,
                Some(_) => Kind::Untrustworthy,
            },
            Self::Fetch { cause, .. } => match cause.kind() {
                registry::client::Kind::Untrustworthy => Kind::Untrustworthy,
                registry::client::Kind::NotFound => Kind::NotFound,
                registry::client::Kind::Denied
                | registry::client::Kind::Conflict
                | registry::client::Kind::Invalid
                | registry::client::Kind::Unavailable => Kind::Unavailable,
            },
            Self::Walls(..)
            | Self::Failed { .. }
            | Self::Unreadable { .. }
            | Self::Offline(_)
            | Self::Disk(..)
            | Self::Proxy(_) => Kind::Unavailable,
        }
    }

    /// Another digest than the one that was described.
    pub(super) fn digest(what: String, described: Digest, arrived: Digest) -> Self {
        Self::Digest { what, described: described.to_string(), arrived: arrived.to_string() }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requirement(bad) => bad.fmt(out),
            Self::Place { place, why } => write!(out, "nothing is acquired from `{place}`: {why}"),
            Self::Program(error) => error.fmt(out),
            Self::Walls(command, _) => write!(out, "failed to start `{command}`"),
            Self::Failed { command, exit, said, refused } => {
                write!(out, "`{command}` {exit}")?;
                if !refused.is_empty() {
                    write!(out, "; it was not let to {}", refused.join(", "))?;
                }
                if said.is_empty() { Ok(()) } else { write!(out, ": {said}") }
            }
            Self::Unreadable { what, why } => write!(out, "{what} cannot be read: {why}"),
            Self::Fetch { what, .. } => write!(out, "failed to fetch {what}"),
            Self::Digest { what, described, arrived } => {
                write!(out, "{what} has the digest {arrived}, and {described} was described")
            }
            Self::Image { what, .. } => write!(out, "the image `{what}` is refused"),
            Self::Offline(missing) => {
                write!(out, "nobody is asked, and not kept are: {}", missing.join(", "))
            }
            Self::NotLocked(what) => write!(out, "{what} is not in the lock"),
            Self::Hostile { what, file, why } => write!(out, "{what} holds `{file}`, {why}"),
            Self::Absent { what, why } => write!(out, "{what} should be here already: {why}"),
            Self::Disk(path, _) => write!(out, "failed to use `{}`", path.display()),
            Self::Proxy(_) => out.write_str("failed to open a way to the network"),
        }
    }
}

impl std::error::Error for AcquireError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Walls(_, error) => Some(error.as_ref()),
            Self::Fetch { cause, .. } => Some(cause.as_ref()),
            Self::Image { cause, .. } => Some(cause.as_ref()),
            Self::Disk(_, error) | Self::Proxy(error) => Some(error),
            Self::Requirement(_)
            | Self::Program(_)
            | Self::Place { .. }
            | Self::Failed { .. }
            | Self::Unreadable { .. }
            | Self::Digest { .. }
            | Self::Offline(_)
            | Self::NotLocked(_)
            | Self::Hostile { .. }
            | Self::Absent { .. } => None,
        }
    }
}

impl From<BadRequirement> for AcquireError {
    fn from(bad: BadRequirement) -> Self {
        Self::Requirement(bad)
    }
}

impl From<FindError> for AcquireError {
    fn from(error: FindError) -> Self {
        Self::Program(error)
    }
}
