//! Why a file was not fetched.

use std::fmt;

use egress::http::{SetupError, Url};
use registry::client::FetchError;

/// Why a file was not fetched.
#[derive(Debug)]
pub enum DownloadError {
    /// Nothing is fetched from there.
    Place {
        /// Where.
        place: String,
        /// Why not.
        why: &'static str,
    },
    /// It is larger than what it is may be.
    TooLarge(&'static str, u64),
    /// What is at this address is no index, for this reason.
    Index(String, String),
    /// What an index points to is no manifest of this id, for this reason.
    Manifest(String, String),
    /// This host did not give it.
    Fetch(String, Box<FetchError>),
    /// No connection can be made at all.
    Setup(SetupError),
}

impl DownloadError {
    pub(super) fn place(place: String, why: &'static str) -> Self {
        Self::Place { place, why }
    }

    /// What became of asking the host of a URL.
    pub(super) fn fetch(url: &Url, error: FetchError) -> Self {
        let host = url.host_str().unwrap_or_default();
        let host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Self::Fetch(host, Box::new(error))
    }
}

impl fmt::Display for DownloadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place { place, why } => write!(out, "nothing is fetched from `{place}`: {why}"),
            Self::TooLarge(noun, most) => {
                write!(out, "it is larger than {noun} may be, {most} bytes")
            }
            Self::Index(place, why) => write!(out, "`{place}` is no index: {why}"),
            Self::Manifest(id, why) => {
                write!(out, "what is listed as `{id}` is not installed: {why}")
            }
            Self::Fetch(host, _) => write!(out, "`{host}` did not give it"),
            Self::Setup(_) => out.write_str("no connection can be made"),
        }
    }
}

impl std::error::Error for DownloadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Fetch(_, error) => Some(error),
            Self::Setup(error) => Some(error),
            Self::Place { .. } | Self::TooLarge(..) | Self::Index(..) | Self::Manifest(..) => None,
        }
    }
}
