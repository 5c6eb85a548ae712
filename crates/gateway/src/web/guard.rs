//! Who may speak to a gateway at all: requests for another host, and pages of other origins, are refused before anything is read.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue};

/// The names that a gateway is known by.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// Those of the place that it listens at, without ports.
    own: Vec<String>,
    /// Those that its owner names, in small letters. Somebody may speak TLS before them.
    named: Vec<String>,
    /// Further origins that are let in, as browsers write them.
    origins: Vec<String>,
    /// Whether it listens at every address of the machine: whoever names an address means it. No page can be led astray by an
    /// address, as it can by a name.
    has_every_address: bool,
}

impl Guard {
    /// Those of a place that it listens at, and those that its owner names.
    pub(crate) fn new(listening: SocketAddr, named: &[String]) -> Self {
        let small = named.iter().map(|name| name.to_ascii_lowercase());
        let (origins, named) = small.partition(|name| name.contains("://"));
        let address = listening.ip();
        let has_every_address = address.is_unspecified();
        let mut own = Vec::new();
        if address.is_loopback() {
            own.extend(["localhost", "127.0.0.1", "[::1]"].map(str::to_owned));
        }
        own.push(match address {
            _ if has_every_address => "localhost".to_owned(),
            IpAddr::V6(address) => format!("[{address}]"),
            IpAddr::V4(address) => address.to_string(),
        });
        Self { own, named, origins, has_every_address }
    }

    /// Refuses what is meant for somebody else, or comes from a page of another origin.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let mut said = headers.get_all(HOST).iter();
        let host = said.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        let host = host.to_ascii_lowercase();
        if said.next().is_some() || !self.is_ours(&host) {
            return Err(
                "the request is for another name than this gateway has; its owner adds one with `haft serve --host NAME`",
            );
        }
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
            if !self.is_let_in(&origin, &host) {
                return Err(
                    "pages of this origin are not let in; the gateway's owner lets them in with `haft serve --host ORIGIN`",
                );
            }
        }
        Ok(())
    }

    /// The origin of the page that asks, where its owner named it: browsers let such a page read only what names it.
    pub(crate) fn named_page<'h>(&self, headers: &'h HeaderMap) -> Option<&'h HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        self.check(headers).ok()?;
        let written = origin.to_str().ok()?.to_ascii_lowercase();
        let is_of_name =
            || written.strip_prefix("https://").is_some_and(|place| self.is_named(place));
        (self.origins.contains(&written) || is_of_name()).then_some(origin)
    }

    /// Whether pages of an origin may ask a host that is ours: those of that very host and port, of which only we have any; those
    /// of a name of ours with TLS before it; and those that the owner lets in.
    fn is_let_in(&self, origin: &str, host: &str) -> bool {
        let has_tls = origin.strip_prefix("https://").is_some_and(|place| {
            self.is_named(place) && (place == host || place == without_port(place))
        });
        has_tls
            || origin.strip_prefix("http://") == Some(host)
            || self.origins.iter().any(|known| known == origin)
    }

    /// Whether a place has a name that its owner gave.
    fn is_named(&self, place: &str) -> bool {
        self.named.iter().any(|known| known == without_port(place))
    }

    fn is_ours(&self, host: &str) -> bool {
        let name = without_port(host);
        let is_address =
            || name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        self.own.iter().chain(&self.named).any(|known| known == name)
            || (self.has_every_address && is_address())
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address are inside brackets.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
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
            &[
                "tools.example".to_owned(),
                "https://app.example".to_owned(),
                "https://tools.example:8443".to_owned(),
            ],
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
            ("Tools.Example:7171", Some("http://tools.example:7171")),
            ("tools.example:8443", Some("https://tools.example:8443")),
            // Who speaks TLS before it may ask for it by another name of it.
            ("127.0.0.1:7171", Some("https://tools.example")),
            ("localhost", Some("https://app.example")),
            // An origin that was named is let in whatever else is.
            ("tools.example", Some("https://tools.example:8443")),
            ("127.0.0.1:7171", Some("https://tools.example:8443")),
        ] {
            assert!(checked(host, origin), "{host} {origin:?}");
        }
        for (host, origin) in [
            ("evil.example.com", None),
            ("localhost.evil.example", None),
            ("localhost:7171", Some("http://evil.example")),
            ("localhost:7171", Some("null")),
            ("localhost:7171", Some("")),
            // Another program of this machine has pages too.
            ("localhost:7171", Some("http://localhost:3000")),
            ("localhost:7171", Some("http://localhost")),
            ("localhost:7171", Some("https://localhost:7171")),
            ("localhost:7171", Some("http://127.0.0.1:7171")),
            ("tools.example:7171", Some("http://tools.example:3000")),
            ("tools.example", Some("https://tools.example:3000")),
            ("localhost", Some("https://app.example:444")),
            ("localhost:7171", Some("http://localhost.evil.example")),
            ("127.0.0.1.nip.io", None),
            ("", None),
        ] {
            assert!(!checked(host, origin), "{host} {origin:?}");
        }
        let opened = |origins: &[&'static str]| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost:7171"));
            for origin in origins {
                headers.append(ORIGIN, HeaderValue::from_static(origin));
            }
            guard.named_page(&headers).is_some()
        };
        for origin in ["https://app.example", "https://tools.example"] {
            assert!(opened(&[origin]), "{origin}");
            assert!(!opened(&[origin, "http://evil.example"]), "{origin}");
        }
        // Pages of our own need nobody to open anything.
        for origins in [&[][..], &["http://localhost:7171"], &["http://evil.example"], &["null"]] {
            assert!(!opened(origins), "{origins:?}");
        }
        assert!(guard.check(&HeaderMap::new()).is_err());
        let mut twice = HeaderMap::new();
        for host in ["localhost:7171", "localhost:7171"] {
            twice.append(HOST, HeaderValue::from_static(host));
        }
        assert!(guard.check(&twice).is_err());
        let everywhere = Guard::new("0.0.0.0:7171".parse().unwrap(), &["tools.example".to_owned()]);
        let named = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_str(host).unwrap());
            everywhere.check(&headers).is_ok()
        };
        let opened = |host: &str, origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_str(host).unwrap());
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
            everywhere.check(&headers).is_ok()
        };
        assert!(opened("192.0.2.7:7171", "http://192.0.2.7:7171"));
        for origin in
            ["http://198.51.100.1:7171", "http://192.0.2.7:3000", "https://192.0.2.7:7171"]
        {
            assert!(!opened("192.0.2.7:7171", origin), "{origin}");
        }
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
