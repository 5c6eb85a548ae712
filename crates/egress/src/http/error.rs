//! Why a request got no response.

use std::error::Error;
use std::fmt;
use std::io;

use crate::attempt::Outcome;
use crate::dial::DialError;
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
    /// What went wrong before there was a response to a request for `asked`, a host with its port.
    pub fn before(error: reqwest::Error, asked: &str) -> Self {
        // The library's words would show the URL, and a URL may hold a secret.
        let error = error.without_url();
        match find::<DialError>(&error) {
            Some(DialError::Refused(refusal)) => {
                return Self::Refused { asked: asked.to_owned(), refusal: *refusal };
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
    pub fn within(error: reqwest::Error) -> Self {
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
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// An error and all that it was caused by, also what an error of the system's kind only carries.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'e (dyn Error + 'static) = *error;
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(carried) => Some(carried),
            None => error.source(),
        }
    })
}

/// Whether somebody listened, and TLS was not agreed on: what came is no sound part of it, or not trusted.
fn is_about_tls(error: &reqwest::Error) -> bool {
    causes(error).any(|cause| {
        let system = cause.downcast_ref::<io::Error>();
        system.is_some_and(|system| system.kind() == io::ErrorKind::InvalidData)
    })
}

impl fmt::Display for SendError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { asked, .. } => write!(out, "`{asked}` is refused"),
            Self::Unresolved(_) => out.write_str("the host has no address"),
            Self::NotConnected(error) if is_about_tls(error) => {
                out.write_str("no secure connection (TLS) was made")
            }
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
