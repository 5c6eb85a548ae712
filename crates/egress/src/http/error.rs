//! Why a request got no response.

use std::error::Error;
use std::fmt;
use std::io;

use crate::attempt::Outcome;
use crate::dial::DialError;
use crate::host::Target;
use crate::resolve::ResolveError;
use crate::rules::Refusal;

/// Why a request got no response.
#[derive(Debug)]
pub enum SendError {
    /// The rules refuse the target, or all its addresses.
    Refused {
        /// What was asked for, as `host:port`.
        asked: String,
        /// Why not.
        refusal: Refusal,
    },
    /// The name leads nowhere.
    Unresolved(ResolveError),
    /// No connection was made: nobody listens, or the certificate is not trusted.
    NotConnected(reqwest::Error),
    /// The connection ended before there was a response.
    Lost(reqwest::Error),
    /// The connection ended in the middle of the response.
    Interrupted(reqwest::Error),
    /// It took too long.
    TimedOut,
    /// The body is larger than it may be.
    TooLarge {
        /// Bytes it may have.
        most: u64,
    },
    /// One redirect followed another.
    TooManyRedirects {
        /// How many are followed.
        most: u32,
    },
    /// A redirect whose target cannot be read.
    BadRedirect,
    /// A redirect from `https` to `http`.
    Downgrade,
    /// A header that no caller may set.
    Header(String),
}

impl SendError {
    /// What went wrong before there was a response.
    pub(super) fn before(error: reqwest::Error, target: &Target) -> Self {
        // The library's words would show the URL, and a URL may hold a secret.
        let error = error.without_url();
        match find::<DialError>(&error) {
            Some(DialError::Refused(refusal)) => {
                return Self::Refused { asked: target.to_string(), refusal: *refusal };
            }
            Some(DialError::Unresolved(found)) => return Self::Unresolved(found.again()),
            Some(DialError::Unreachable(..) | DialError::TimedOut) | None => {}
        }
        if error.is_timeout() {
            Self::TimedOut
        } else if error.is_connect() {
            Self::NotConnected(error)
        } else {
            Self::Lost(error)
        }
    }

    /// What went wrong in the middle of a response.
    pub(super) fn within(error: reqwest::Error) -> Self {
        Self::Interrupted(error.without_url())
    }

    /// Whether nothing was answered and the same request may well be next time: nobody listened, or
    /// the connection broke. Whether it may be sent again is for the caller to know.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::NotConnected(error) => find::<io::Error>(error).is_some_and(|error| {
                use io::ErrorKind as Kind;
                matches!(
                    error.kind(),
                    Kind::ConnectionRefused
                        | Kind::ConnectionReset
                        | Kind::ConnectionAborted
                        | Kind::BrokenPipe
                        | Kind::UnexpectedEof
                )
            }),
            _ => false,
        }
    }

    /// What is reported of it.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Refused { refusal, .. } => Outcome::Refused(*refusal),
            Self::Unresolved(error) => Outcome::Unresolved(error.again()),
            Self::Lost(_) | Self::Interrupted(_) => Outcome::ServerLeft,
            other => Outcome::Failed(other.to_string()),
        }
    }
}

/// The first cause of that type.
fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

impl fmt::Display for SendError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { asked, .. } => write!(out, "`{asked}` is refused"),
            Self::Unresolved(_) => out.write_str("the host has no address"),
            Self::NotConnected(_) => out.write_str("no connection was made"),
            Self::Lost(_) => out.write_str("the connection ended before there was a response"),
            Self::Interrupted(_) => {
                out.write_str("the connection ended in the middle of the response")
            }
            Self::TimedOut => out.write_str("it took too long"),
            Self::TooLarge { most } => write!(out, "the response is larger than {most} bytes"),
            Self::TooManyRedirects { most } => {
                write!(out, "more than {most} redirects followed one another")
            }
            Self::BadRedirect => out.write_str("it was redirected to what is no URL"),
            Self::Downgrade => out.write_str("it was redirected from `https` to `http`"),
            Self::Header(name) => write!(out, "the header `{name}` is not the caller's to set"),
        }
    }
}

impl Error for SendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            Self::Unresolved(error) => Some(error),
            // What the system said, where it did: the layers between say nothing more.
            Self::NotConnected(error) | Self::Lost(error) | Self::Interrupted(error) => {
                let said = find::<io::Error>(error).filter(|said| said.raw_os_error().is_some());
                Some(said.map_or(error as &(dyn Error + 'static), |said| said))
            }
            _ => None,
        }
    }
}

/// Why there is no client.
#[derive(Debug)]
pub struct SetupError(reqwest::Error);

impl SetupError {
    pub(super) fn new(error: reqwest::Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the certificates to trust cannot be used")
    }
}

impl Error for SetupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}
