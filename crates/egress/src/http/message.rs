//! A request of ours, and the response to it.

use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use reqwest::{Method, StatusCode, Url};

use super::error::SendError;
use crate::watch::Watch;

/// A request of ours. Headers whose values are marked as sensitive are secrets: no other origin is told them.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is to be done.
    pub method: Method,
    /// Where.
    pub url: Url,
    /// What is said about it.
    pub headers: HeaderMap,
    /// What is sent along.
    pub body: Option<Vec<u8>>,
    /// Is told of that as it is sent.
    pub watch: Option<Watch>,
    /// How long all of it may take, redirects and the response's body included.
    pub within: Duration,
    /// The largest body that is read.
    pub most: u64,
    /// How many redirects are followed. With none, a redirect is a response like any other.
    pub redirects: u32,
}

/// What a server answered.
#[derive(Clone, Debug)]
pub struct Response {
    /// How it went.
    pub status: StatusCode,
    /// What is said about it.
    pub headers: HeaderMap,
    /// The body, as it was sent.
    pub body: Vec<u8>,
    /// Who answered, after all redirects.
    pub url: Url,
    /// How many redirects were followed.
    pub redirects: u32,
}

impl Request {
    /// How long a request may take unless somebody says otherwise.
    const WITHIN: Duration = Duration::from_secs(30);
    /// The largest body that is read unless somebody says otherwise.
    const MOST: u64 = 16 << 20;
    /// How many redirects are followed unless somebody says otherwise.
    const REDIRECTS: u32 = 5;

    /// A request without a body.
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            // Nothing here unpacks a body, so nobody need send one packed.
            headers: HeaderMap::from_iter([(
                ACCEPT_ENCODING,
                HeaderValue::from_static("identity"),
            )]),
            body: None,
            watch: None,
            within: Self::WITHIN,
            most: Self::MOST,
            redirects: Self::REDIRECTS,
        }
    }

    /// The headers a connection is run by. Who could write them could reach another site than the rules
    /// were asked about, or smuggle a second request.
    pub(super) fn check_headers(&self) -> Result<(), SendError> {
        const OURS: [HeaderName; 6] =
            [CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE];
        let is_ours = |name: &&HeaderName| {
            OURS.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
        };
        match self.headers.keys().find(is_ours) {
            Some(name) => Err(SendError::Header(name.to_string())),
            None => Ok(()),
        }
    }
}

impl Response {
    /// The value of a header, where it is plain text.
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}
