//! Why there is no answer from a registry.

use std::fmt;
use std::io;
use std::path::PathBuf;

use egress::http::SendError;
use package::digest::Digest;
use package::refusal::ReadError;

use crate::error::{ErrorCode, ErrorDetail};
use crate::read::Unreadable;

/// Why there is no answer from a registry. Which registry it was is known to whoever asked.
#[derive(Debug)]
pub enum FetchError {
    /// It cannot be reached, or its answer does not arrive.
    Unreachable(Box<SendError>),
    /// It says no.
    Refused {
        /// The status.
        status: u16,
        /// What it says, where that can be read.
        said: Option<Box<ErrorDetail>>,
        /// After how many seconds it wants to be asked again.
        again: Option<u64>,
    },
    /// It points elsewhere, where nobody goes.
    Redirected(String),
    /// It answers what cannot be read.
    Unreadable(&'static str, Unreadable),
    /// It answers with more than it may.
    TooMuch(&'static str),
    /// It answers about something else.
    Other {
        /// What should be the same.
        what: &'static str,
        /// What was asked for.
        asked: String,
        /// What was answered.
        answered: String,
    },
    /// The bytes are not those that were described.
    Digest {
        /// The digest that was described.
        described: Digest,
        /// The digest of what arrived.
        arrived: Digest,
    },
    /// It does not say what the digest of the package is.
    NoDigest,
    /// The package has more bytes than one may.
    TooLarge {
        /// How many it has.
        bytes: u64,
        /// How many it may have.
        most: u64,
    },
    /// What was fetched is no sound package.
    Package(Box<ReadError>),
    /// Nobody is asked, and it is not among what is kept.
    Offline(String),
    /// This needs a token, and there is none.
    NoToken,
    /// Everybody on the way could read the token.
    TokenInPlain,
    /// This cannot be asked for.
    Unaskable(&'static str, String),
    /// What is kept on the disk cannot be used.
    Cache(PathBuf, io::Error),
    /// This can only be asked of a registry, not of a catalog.
    NoRegistry,
    /// A catalog cannot be used.
    Catalog(String),
}

/// What kind of failure it is. Each face maps it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no such thing.
    NotFound,
    /// It is not allowed.
    Denied,
    /// Something else is there already.
    Conflict,
    /// What was asked for, or sent, is wrong.
    Invalid,
    /// Later, or elsewhere, it may work.
    Unavailable,
    /// The registry does not keep to what it should.
    Untrustworthy,
}

impl FetchError {
    /// What kind of failure it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Refused { status: 401 | 403, .. } | Self::TokenInPlain => Kind::Denied,
            Self::Refused { status: 404 | 410, .. } => Kind::NotFound,
            Self::Refused { status: 409, .. } => Kind::Conflict,
            Self::Refused { status: 429, .. } => Kind::Unavailable,
            Self::Refused { status: 400..500, .. }
            | Self::Unaskable(..)
            | Self::NoToken
            | Self::NoRegistry
            | Self::Catalog(_) => Kind::Invalid,
            Self::Unreachable(_) | Self::Refused { .. } | Self::Offline(_) | Self::Cache(..) => {
                Kind::Unavailable
            }
            Self::Redirected(_)
            | Self::Unreadable(..)
            | Self::TooMuch(_)
            | Self::Other { .. }
            | Self::Digest { .. }
            | Self::NoDigest
            | Self::TooLarge { .. }
            | Self::Package(_) => Kind::Untrustworthy,
        }
    }

    /// The code that the registry named, where it is a known one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { said: Some(said), .. } => ErrorCode::named(&said.code),
            _ => None,
        }
    }

    /// Whether the same may well work in a moment, so far as nothing is changed by asking twice.
    pub(super) fn passes(&self) -> bool {
        match self {
            Self::Unreachable(error) => {
                error.is_transient()
                    || matches!(**error, SendError::TimedOut | SendError::Interrupted(_))
            }
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 502 | 503 | 504),
            _ => false,
        }
    }

    /// Whether the registry has certainly not heard of it.
    pub(super) fn was_not_heard(&self) -> bool {
        match self {
            Self::Unreachable(error) => {
                matches!(**error, SendError::NotConnected(_)) && error.is_transient()
            }
            // It says itself that it did nothing.
            Self::Refused { status, again, .. } => {
                matches!(status, 429) || (*status == 503 && again.is_some())
            }
            _ => false,
        }
    }
}

impl From<SendError> for FetchError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::TooLarge { .. } => Self::TooMuch("answer"),
            error => Self::Unreachable(Box::new(error)),
        }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(_) => out.write_str("it cannot be reached"),
            Self::Refused { said: Some(said), .. } => out.write_str(&said.message),
            Self::Refused { status, said: None, .. } => write!(out, "it answers with {status}"),
            Self::Redirected(to) => write!(out, "it points to `{to:.300}`, where nobody goes"),
            Self::Unreadable(what, _) => write!(out, "its {what} is not as it should be"),
            Self::TooMuch(what) => write!(out, "its {what} holds more than it may"),
            Self::Other { what, asked, answered } => {
                write!(out, "it was asked for the {what} `{asked}` and answers with `{answered}`")
            }
            Self::Digest { described, arrived } => {
                write!(out, "the package has the digest {arrived}, and {described} was described")
            }
            Self::NoDigest => {
                out.write_str("it does not say the SHA-256 of the package, so nothing is fetched")
            }
            Self::TooLarge { bytes, most } => {
                write!(out, "the package has {bytes} bytes, and one may have {most}")
            }
            Self::Package(_) => out.write_str("what it sent is no sound package"),
            Self::Offline(what) => {
                write!(out, "{what} is not among what is kept, and nobody is asked")
            }
            Self::NoToken => out.write_str("this needs a token, and there is none for it"),
            Self::TokenInPlain => out.write_str("everybody on the way to it could read the token"),
            Self::Unaskable(what, text) => write!(out, "`{text}` cannot be the {what} of a tool"),
            Self::Cache(path, _) => write!(out, "failed to use `{}`", path.display()),
            Self::NoRegistry => out.write_str("it is a catalog, and only a registry can do that"),
            Self::Catalog(why) => write!(out, "its catalog cannot be used: {why}"),
        }
    }
}

impl std::error::Error for FetchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreachable(error) => Some(error),
            Self::Unreadable(_, error) => Some(error),
            Self::Package(error) => Some(error),
            Self::Cache(_, error) => Some(error),
            _ => None,
        }
    }
}
