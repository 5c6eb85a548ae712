//! The heads of HTTP requests and responses, read strictly.
//!
//! A head is accepted only where all readers agree on it: lines end with CRLF, no line is
//! folded, there is one framing for the body. Whoever has a [`Request`] knows its target is
//! parsed and agrees with its `Host` header.

mod fields;
mod request;
mod response;

use std::fmt;

pub use fields::{Field, Fields, Framing};
pub use request::{Request, Wanted};
pub use response::Response;

use crate::host::TargetError;

/// Which HTTP/1 is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// Why a head is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// The head does not end with an empty line.
    Unfinished,
    /// The head is longer, or has more lines, than the limits allow.
    TooLarge,
    /// The head did not arrive in time.
    TimedOut,
    /// A line ends with LF alone, or has a CR within.
    LineEnd,
    /// The first line is not three parts with one space between each.
    FirstLine,
    /// The version is neither HTTP/1.1 nor HTTP/1.0.
    Version,
    /// A header line goes on in the next one.
    Folded,
    /// A header line has no name, or a byte that none may have.
    Field,
    /// The request is for a server, not for a proxy.
    NotForProxy,
    /// The URL is not one of `http://`.
    Scheme,
    /// The `Host` header is missing, or there are two.
    HostCount,
    /// The `Host` header names another host than the URL.
    HostDiffers,
    /// The length of the body is said twice, or in a way that readers may differ on.
    Framing,
    /// The target is spelled oddly.
    Target {
        /// The target, escaped.
        asked: String,
        /// What is odd.
        error: TargetError,
    },
}

/// The lines of a head without its end, or why the end is not where it must be.
fn lines(head: &[u8]) -> Result<Vec<&[u8]>, HeadError> {
    let head = head.strip_suffix(b"\r\n\r\n").ok_or(HeadError::Unfinished)?;
    let mut lines = Vec::new();
    let mut rest = head;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        let (line, end) = rest.split_at(at);
        rest = end.strip_prefix(b"\r\n").ok_or(HeadError::LineEnd)?;
        lines.push(line);
    }
    lines.push(rest);
    Ok(lines)
}

fn version(text: &[u8]) -> Result<Version, HeadError> {
    match text {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        _ => Err(HeadError::Version),
    }
}

impl fmt::Display for HeadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            HeadError::Unfinished => "the head does not end with an empty line",
            HeadError::TooLarge => "the head is too large",
            HeadError::TimedOut => "the head did not arrive in time",
            HeadError::LineEnd => "a line of the head does not end with CR and LF",
            HeadError::FirstLine => "the first line is damaged",
            HeadError::Version => "the version is neither HTTP/1.1 nor HTTP/1.0",
            HeadError::Folded => "a header line is folded",
            HeadError::Field => "a header line is damaged",
            HeadError::NotForProxy => "this is a proxy; ask for a whole URL, or CONNECT",
            HeadError::Scheme => {
                "only `http://` is passed on as such; ask for anything else with CONNECT"
            }
            HeadError::HostCount => "there must be one Host header",
            HeadError::HostDiffers => "the Host header names another host than the URL",
            HeadError::Framing => "how long the body is cannot be told for certain",
            HeadError::Target { .. } => "the target is spelled oddly",
        })
    }
}

impl std::error::Error for HeadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            HeadError::Target { error, .. } => Some(error),
            _ => None,
        }
    }
}
