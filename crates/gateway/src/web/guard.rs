//! Who may speak to a gateway at all: requests for another host, and pages of other origins, are refused before anything is read.

use std::net::SocketAddr;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

/// The names that a gateway is known by.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// Without ports, in small letters.
    hosts: Vec<String>,
    /// Further origins that are let in, as browsers write them.
    origins: Vec<String>,
    /// Whether it listens at every address of the machine: whoever names an address means it. No page can be led astray by an
    /// address, as it can by a name.
    has_every_address: bool,
}

impl Guard {
    /// Those of a place that it listens at, and those that its owner names.
    pub(crate) fn new(listening: SocketAddr, named: &[String]) -> Self {
        let address = listening.ip();
        let mut hosts: Vec<String> = named
            .iter()
            .filter(|name| !name.contains("://"))
            .map(|name| name.to_ascii_lowercase())
            .collect();
        let origins = named
            .iter()
            .filter(|name| name.contains("://"))
            .map(|name| name.to_ascii_lowercase())
            .collect();
        if address.is_loopback() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(str::to_owned));
        }
        if !address.is_unspecified() {
            let written =
                if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
            hosts.push(written);
        }
        let has_every_address = address.is_unspecified();
        if has_every_address {
            hosts.push("localhost".to_owned());
        }
        Self { hosts, origins, has_every_address }
    }

    /// Refuses what is meant for somebody else, or comes from a page of another origin.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let mut named = headers.get_all(HOST).iter();
        let host = named.next().and_then(|host| host.to_str().ok());
        let is_alone = named.next().is_none();
        if !is_alone || !host.is_some_and(|host| self.is_ours(host)) {
            return Err("this is no name of this gateway; `haft serve --host NAME` adds one");
        }
        for origin in headers.get_all(ORIGIN) {
            let text = origin.to_str().unwrap_or_default().to_ascii_lowercase();
            let host = text.strip_prefix("http://").or(text.strip_prefix("https://"));
            let is_let_in =
                host.is_some_and(|host| self.is_ours(host)) || self.origins.contains(&text);
            if !is_let_in {
                return Err("pages of this origin are not let in");
            }
        }
        Ok(())
    }

    fn is_ours(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let without_port = match host.rsplit_once(':') {
            // The colons of an IPv6 address are inside brackets.
            Some((before, port)) if port.bytes().all(|b| b.is_ascii_digit()) => before,
            _ => &host,
        };
        let is_address = || {
            let bare = without_port.trim_start_matches('[').trim_end_matches(']');
            bare.parse::<std::net::IpAddr>().is_ok()
        };
        self.hosts.iter().any(|known| known == without_port)
            || (self.has_every_address && is_address())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_own_names_and_own_pages_are_let_in() {
        let guard = Guard::new(
            "127.0.0.1:7171".parse().unwrap(),
            &["tools.example".to_owned(), "https://app.example".to_owned()],
        );
        let checked = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_str(host).unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            guard.check(&headers).is_ok()
        };
        for (host, origin) in [
            ("localhost:7171", None),
            ("127.0.0.1", None),
            ("[::1]:7171", Some("http://[::1]:7171")),
            ("LOCALHOST:7171", Some("http://localhost:7171")),
            ("tools.example", Some("https://tools.example")),
            ("localhost", Some("https://app.example")),
        ] {
            assert!(checked(host, origin), "{host} {origin:?}");
        }
        for (host, origin) in [
            ("evil.example.com", None),
            ("localhost.evil.example", None),
            ("localhost:7171", Some("http://evil.example")),
            ("localhost:7171", Some("null")),
            ("localhost:7171", Some("http://localhost.evil.example")),
            ("127.0.0.1.nip.io", None),
            ("", None),
        ] {
            assert!(!checked(host, origin), "{host} {origin:?}");
        }
        assert!(guard.check(&HeaderMap::new()).is_err());
        let everywhere = Guard::new("0.0.0.0:7171".parse().unwrap(), &["tools.example".to_owned()]);
        let named = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_str(host).unwrap());
            everywhere.check(&headers).is_ok()
        };
        for host in
            ["192.0.2.7:7171", "10.1.2.3", "[2001:db8::1]:7171", "localhost:7171", "tools.example"]
        {
            assert!(named(host), "{host}");
        }
        for host in ["evil.example", "192.0.2.7.evil.example:7171", ""] {
            assert!(!named(host), "{host}");
        }
    }
}
