//! Values that a Vault server keeps: one GET to its key-value store.
//!
//! The connection is the caller's: [`Fetch`] makes it, so that it follows the rules for every outgoing
//! connection. The token goes to the configured address and nowhere else.

mod answer;

use std::fmt;

use zeroize::Zeroizing;

use crate::secret::{Secret, SecretError};

/// The longest answer, in bytes.
pub const MAX_ANSWER: usize = 1024 * 1024;

/// Makes one GET request. A redirect is handed back like any other answer, never followed.
pub trait Fetch: Sync {
    /// Why there was no answer.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Sends the headers to the address, and reads the answer: a body of more than `limit` bytes is an error.
    fn get(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        limit: usize,
    ) -> impl Future<Output = Result<Answer, Self::Error>> + Send;
}

/// What a server answered.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body; it holds secrets, and is cleared.
    pub body: Zeroizing<Vec<u8>>,
}

/// Which kind of key-value store it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// One value for each path.
    V1,
    /// Versions of each value; the latest is read.
    #[default]
    V2,
}

/// Where the server is, and who we are there.
#[derive(Debug)]
pub struct Settings {
    /// Its address, such as `https://vault.example.com:8200`.
    pub address: String,
    /// The token that says who we are.
    pub token: Secret,
    /// The namespace, where the server has several.
    pub namespace: Option<String>,
    /// Which kind of store it is.
    pub version: Version,
}

/// A Vault server's key-value store.
#[derive(Debug)]
pub struct VaultKv<F> {
    settings: Settings,
    fetch: F,
}

/// Why there is no value.
#[derive(Debug)]
pub enum KvError<E> {
    /// The address is none that a token may be sent to.
    Address(String),
    /// The token or the namespace has a character that no header can carry.
    Header(&'static str),
    /// The request was not answered.
    Fetch(E),
    /// The server refused the token.
    Denied,
    /// There is no such entry, or its latest version was deleted.
    Missing,
    /// The entry has no such field.
    NoField(String),
    /// The field is a number, a list or the like.
    NotText(String),
    /// The server answered with a status that is none of these.
    Status(u16),
    /// The answer is not what a key-value store of this version says.
    Malformed,
    /// What is there is no secret value.
    Value(SecretError),
}

impl<E> fmt::Display for KvError<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KvError::Address(address) => write!(
                out,
                "`{address}` is no address of a Vault server: https://host[:port], or http:// to this machine"
            ),
            KvError::Header(what) => write!(out, "the {what} has a character that cannot be sent"),
            KvError::Fetch(_) => out.write_str("failed to ask the Vault server"),
            KvError::Denied => out.write_str("the Vault server refused the token"),
            KvError::Missing => out.write_str("the Vault server has no such entry"),
            KvError::NoField(field) => write!(out, "the entry has no field `{field}`"),
            KvError::NotText(field) => write!(out, "the field `{field}` is no text"),
            KvError::Status(503) => out.write_str("the Vault server is sealed or not ready"),
            KvError::Status(status) => write!(out, "the Vault server answered {status}"),
            KvError::Malformed => out.write_str("the answer is none of a key-value store"),
            KvError::Value(error) => error.fmt(out),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for KvError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            KvError::Fetch(error) => Some(error),
            _ => None,
        }
    }
}

impl<F: Fetch> VaultKv<F> {
    /// A store that is asked through `fetch`.
    pub fn new(settings: Settings, fetch: F) -> Result<Self, KvError<F::Error>> {
        if !is_address(&settings.address) {
            return Err(KvError::Address(settings.address.escape_debug().take(80).collect()));
        }
        let is_sendable = |text: &str| text.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
        if !is_sendable(settings.token.expose()) {
            return Err(KvError::Header("token"));
        }
        if !settings.namespace.as_deref().is_none_or(is_sendable) {
            return Err(KvError::Header("namespace"));
        }
        Ok(Self { settings, fetch })
    }

    /// A field of an entry, as `vault://mount/path#field` names them.
    pub async fn get(
        &self,
        mount: &str,
        path: &str,
        field: &str,
    ) -> Result<Secret, KvError<F::Error>> {
        let Settings { address, token, namespace, version } = &self.settings;
        let between = match version {
            Version::V1 => "",
            Version::V2 => "data/",
        };
        let address = address.trim_end_matches('/');
        let url = format!("{address}/v1/{}/{between}{}", encoded(mount), encoded(path));
        let mut headers = vec![("X-Vault-Token", token.expose()), ("X-Vault-Request", "true")];
        headers.extend(namespace.as_deref().map(|namespace| ("X-Vault-Namespace", namespace)));
        let answer = self.fetch.get(&url, &headers, MAX_ANSWER).await.map_err(KvError::Fetch)?;
        match answer.status {
            200 => answer::read(&answer.body, *version, field),
            403 => Err(KvError::Denied),
            404 => Err(KvError::Missing),
            status => Err(KvError::Status(status)),
        }
    }
}

/// Whether a token may be sent there: over TLS, or without leaving this machine.
pub fn is_address(address: &str) -> bool {
    let (authority, must_be_here) = match address.split_once("://") {
        Some(("https", rest)) => (rest, false),
        Some(("http", rest)) => (rest, true),
        _ => return false,
    };
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    if authority.is_empty() || !authority.bytes().all(is_plain) {
        return false;
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    let is_host = !host.is_empty() && (host.starts_with('[') || !host.contains(':'));
    is_host && port.is_none_or(|port| port.parse::<u16>().is_ok()) && (is_here || !must_be_here)
}

/// A path as it stands in an address: its parts stay parts, and nothing else has a meaning there.
fn encoded(path: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_over_tls_or_stays_on_this_machine() {
        for address in [
            "https://vault.example.com",
            "https://vault.example.com:8200/",
            "https://10.0.0.1",
            "https://[fd00::1]:8200",
            "http://127.0.0.1:8200",
            "http://[::1]",
            "http://localhost:8200",
        ] {
            assert!(is_address(address), "{address}");
        }
        for address in [
            "",
            "vault.example.com",
            "http://vault.example.com",
            "http://localhost.example.com",
            "http://127.0.0.1@example.com",
            "https://user:password@example.com",
            "https://example.com/v1?x",
            "https://example.com:port",
            "https://example.com\r\nHost: x",
            "https://",
            "https://:443",
            "file:///etc/passwd",
        ] {
            assert!(!is_address(address), "{address}");
        }
    }

    #[test]
    fn a_path_cannot_leave_its_place_in_the_address() {
        assert_eq!(encoded("team a/b?c#d%2e"), "team%20a/b%3Fc%23d%252e");
    }
}
