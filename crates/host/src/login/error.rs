//! Why somebody is not signed in.

use std::error::Error;
use std::fmt;

use egress::http::{SendError, Url};
use vault::VaultError;

use super::address::shown;
use crate::blocked::Blocked;
use crate::error::{CallError, Kind};

/// Why somebody is not signed in.
#[derive(Debug)]
pub enum LoginError {
    /// A URL that is neither of `https` nor of this machine.
    Insecure(String),
    /// Somebody was not reached, or gave no answer.
    NotReached {
        /// Who.
        what: &'static str,
        /// Its host and port.
        place: String,
        /// Why not.
        source: SendError,
    },
    /// The server does not say that it wants anybody to sign in.
    NotWanted {
        /// Who.
        who: &'static str,
        /// What was looked for where, and what came.
        looked: Vec<String>,
    },
    /// The server does not say who signs people in.
    NoServer,
    /// Somebody wants people to sign in, and there is no metadata that says how.
    NoMetadata {
        /// Who.
        what: &'static str,
        /// What was looked for where, and what came.
        looked: Vec<String>,
    },
    /// Metadata that is about another resource.
    Foreign {
        /// The resource it names.
        named: String,
    },
    /// Metadata of an authorization server that says it is another.
    Issuer {
        /// Who was asked.
        asked: String,
        /// Who it says it is.
        said: String,
    },
    /// The authorization server has no protection for codes that others see.
    NoPkce,
    /// The authorization server gives no codes for a browser on any machine.
    NoDevice,
    /// Nobody knows what we are called there.
    NoClient,
    /// An answer that is none.
    Odd {
        /// Whose.
        what: &'static str,
        /// The document that it is, where it is one.
        place: Option<String>,
        /// How.
        how: String,
    },
    /// The authorization server refused a request of ours.
    Answered {
        /// Which one of its endpoints.
        what: &'static str,
        /// The status.
        status: u16,
        /// The code of the error.
        code: Option<String>,
    },
    /// The owner, or the authorization server, said no.
    Denied {
        /// The code of the error.
        code: String,
    },
    /// What came back belongs to another attempt.
    State,
    /// What came back is from another authorization server.
    MixedUp,
    /// Nothing came back in time.
    TimedOut,
    /// The code for a browser on any machine ended before anybody used it.
    Expired,
    /// Tokens are being renewed, here or by another program, for longer than is waited.
    Busy,
    /// This machine does not let us listen.
    Listen(std::io::Error),
    /// Nobody can wait for another's renewal.
    Lock(std::io::Error),
    /// The vault cannot be used.
    Vault(VaultError),
    /// What is kept is no sign-in, or it cannot be kept.
    Unkept(&'static str),
    /// There is no sign-in that could be used, or it has ended.
    Ended,
}

impl LoginError {
    /// An answer that is none.
    pub(super) fn odd(what: &'static str, how: impl Into<String>) -> Self {
        Self::Odd { what, place: None, how: how.into() }
    }

    /// The same of what lies at a URL.
    #[must_use]
    pub(super) fn at(self, url: &Url) -> Self {
        match self {
            Self::Odd { what, how, .. } => Self::Odd { what, place: Some(shown(url)), how },
            other => other,
        }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Insecure(_)
            | Self::Foreign { .. }
            | Self::Issuer { .. }
            | Self::NoPkce
            | Self::Denied { .. }
            | Self::State
            | Self::MixedUp
            | Self::NotReached { source: SendError::Refused { .. }, .. } => Kind::Denied,
            Self::NotReached { .. }
            | Self::Listen(_)
            | Self::Lock(_)
            | Self::Vault(_)
            | Self::Unkept(_) => Kind::Unavailable,
            Self::NotWanted { .. } | Self::NoServer | Self::NoDevice | Self::NoClient => {
                Kind::BadInput
            }
            Self::NoMetadata { .. } | Self::Odd { .. } => Kind::BadOutput,
            Self::Answered { .. } => Kind::Failed,
            Self::TimedOut | Self::Expired | Self::Busy => Kind::TimedOut,
            Self::Ended => Kind::NeedsLogin,
        }
    }

    /// The host that was not reached because nobody allowed it.
    pub fn refused_host(&self) -> Option<&str> {
        match self {
            Self::NotReached { source: SendError::Refused { asked, .. }, .. } => Some(asked),
            _ => None,
        }
    }
}

impl fmt::Display for LoginError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insecure(url) => {
                write!(out, "`{url}` is not safe to sign in with: it must be of `https`")
            }
            Self::NotReached { what, place, source } => {
                let how = match source {
                    SendError::TimedOut | SendError::Lost(_) => "did not answer",
                    SendError::Interrupted(_) | SendError::TooLarge { .. } => {
                        "gave no whole answer"
                    }
                    _ => "was not reached",
                };
                write!(out, "the {what} at `{place}` {how}")
            }
            Self::NotWanted { who, .. } => write!(out, "the {who} does not ask anybody to sign in"),
            Self::NoServer => out.write_str("the server does not say where to sign in"),
            Self::NoMetadata { what, .. } => {
                write!(out, "the {what} wants you to sign in, and has no metadata that says how")
            }
            Self::Foreign { named } => {
                write!(out, "the server's metadata is about another resource, `{named}`")
            }
            Self::Issuer { asked, said } => {
                write!(out, "the authorization server `{asked}` says that it is `{said}`")
            }
            Self::NoPkce => {
                out.write_str("the authorization server does not protect codes by PKCE with S256")
            }
            Self::NoDevice => {
                out.write_str("the authorization server signs nobody in by device code")
            }
            Self::NoClient => out.write_str(
                "the authorization server registers nobody by itself, so it needs a client id",
            ),
            Self::Odd { what, place: None, how } => {
                write!(out, "the {what} gave no proper answer: {how}")
            }
            Self::Odd { what, place: Some(place), how } => {
                write!(out, "what the {what} has at `{place}` is no metadata: {how}")
            }
            Self::Answered { what, status, code } => {
                write!(out, "the {what} answered {status}")?;
                code.as_ref().map_or(Ok(()), |code| write!(out, ": {code}"))
            }
            Self::Denied { code } => write!(out, "signing in was refused: {code}"),
            Self::State => out.write_str("what came back belongs to another attempt to sign in"),
            Self::MixedUp => out.write_str("what came back is of another authorization server"),
            Self::TimedOut => out.write_str("nobody signed in in time"),
            Self::Expired => out.write_str("the code ended before anybody signed in with it"),
            Self::Busy => out.write_str("the renewal of its tokens did not end in time"),
            Self::Listen(_) => out.write_str("failed to listen on this machine"),
            Self::Lock(_) => out.write_str("failed to wait for another renewal"),
            Self::Vault(_) => out.write_str("the vault cannot be used"),
            Self::Unkept(why) => write!(out, "the sign-in cannot be kept: {why}"),
            Self::Ended => out.write_str("the sign-in has ended"),
        }
    }
}

impl Error for LoginError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotReached { source, .. } => Some(source),
            Self::Listen(error) | Self::Lock(error) => Some(error),
            Self::Vault(error) => Some(error),
            _ => None,
        }
    }
}

impl From<VaultError> for LoginError {
    fn from(error: VaultError) -> Self {
        Self::Vault(error)
    }
}

impl From<LoginError> for CallError {
    fn from(error: LoginError) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            message = format!("{message}: {next}");
            cause = next.source();
        }
        match &error {
            LoginError::NotReached { source: SendError::Refused { asked, refusal }, .. } => {
                Self::blocked(message, Blocked::host(&**asked, *refusal))
            }
            _ => Self::new(error.kind(), message),
        }
    }
}
