//! Where a registry is, as the owner typed it.

use std::borrow::Cow;
use std::fmt;

use egress::Rule;
use egress::http::{Url, is_here};
use egress::rules::RuleError;

/// What stands before everything that a registry answers.
pub(super) const VERSION: &str = "v1";

/// The address of a registry: `https` or `http`, with a host and perhaps a path, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address(Url);

/// Why a text is no address of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// It is no URL.
    NoUrl(String),
    /// It begins with something else than `https` or `http`.
    Scheme(String),
    /// It holds a name or a password.
    Userinfo,
    /// It holds parameters or a fragment.
    Query,
    /// Its host cannot be dialled.
    Host(RuleError),
}

impl fmt::Display for AddressError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::NoUrl(why) => write!(out, "it is no URL: {why}"),
            AddressError::Scheme(scheme) => {
                write!(out, "it begins with `{scheme}:`, not with `https:` or `http:`")
            }
            AddressError::Userinfo => out
                .write_str("it holds a name or a password, which does not belong into an address"),
            AddressError::Query => out.write_str("it holds parameters or a fragment"),
            AddressError::Host(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for AddressError {}

/// A text that may be an address, as it is shown: without the name and the password that stand in it, or might. An
/// `@` that is no part of one stands in the path of a whole address alone.
pub fn shown(text: &str) -> Cow<'_, str> {
    let is_plain = Url::parse(text.trim())
        .is_ok_and(|url| url.has_host() && url.username().is_empty() && url.password().is_none());
    match text.rsplit_once('@') {
        Some((before, rest)) if !is_plain => {
            let scheme = before.split_once("://").map_or("", |(scheme, _)| scheme);
            let between = if scheme.is_empty() { "" } else { "://" };
            Cow::Owned(format!("{scheme}{between}…@{rest}"))
        }
        _ => Cow::Borrowed(text),
    }
}

impl Address {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let mut url =
            Url::parse(text.trim()).map_err(|error| AddressError::NoUrl(error.to_string()))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(AddressError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::Userinfo);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(AddressError::Query);
        }
        // With and without a slash at the end it is one address.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
        }
        let address = Self(url);
        address.rule().map_err(AddressError::Host)?;
        Ok(address)
    }

    /// Reads the address of a registry, which lies before `/v1`: many write that too, for it is in what they copy.
    pub fn of_registry(text: &str) -> Result<Self, AddressError> {
        let mut address = Self::parse(text)?;
        let ends = address.0.path_segments().and_then(|mut segments| segments.next_back());
        if ends == Some(VERSION)
            && let Ok(mut segments) = address.0.path_segments_mut()
        {
            segments.pop();
        }
        Ok(address)
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// What lies below it, a segment each, which may hold anything but nothing and dots alone.
    pub fn below(&self, segments: &[&str]) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Whether another one is this place or lies below it.
    pub fn holds(&self, other: &Address) -> bool {
        let own = self.0.path().trim_end_matches('/');
        let rest = other.0.path().strip_prefix(own);
        self.0.origin() == other.0.origin()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// What lets a connection through to it. The owner typed it, so it may be a private place.
    pub fn rule(&self) -> Result<Rule, RuleError> {
        let host = self.0.host_str().unwrap_or_default();
        let port = self.0.port_or_known_default().unwrap_or_default();
        Ok(Rule::parse(&format!("{host}:{port}"))?.reaching_private())
    }

    /// Whether nobody on the way can read what is sent: it is encrypted, or stays on this machine.
    pub fn is_private_talk(&self) -> bool {
        self.0.scheme() == "https" || is_here(&self.0)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_holds_what_lies_below_it_and_nothing_that_only_begins_alike() {
        let holds = |one: &str, other: &str| {
            Address::parse(one).unwrap().holds(&Address::parse(other).unwrap())
        };
        for below in ["https://a.example", "https://A.example/", "https://a.example:443/v0.1"] {
            assert!(holds("https://a.example", below), "{below}");
        }
        assert!(holds("https://a.example/x/", "https://a.example/x/v0.1"));
        for other in [
            "https://a.example/xy",
            "https://a.example",
            "http://a.example/x",
            "https://b.a.example/x",
        ] {
            assert!(!holds("https://a.example/x", other), "{other}");
        }
        assert!(!holds("https://a.example", "https://a.example.evil.example"));
        assert!(!holds("https://a.example", "https://a.example:8443"));
    }

    #[test]
    fn an_address_is_one_with_and_without_a_slash() {
        let address = Address::parse("https://Tools.example.com/registry/").unwrap();
        assert_eq!(address, Address::parse("https://tools.example.com/registry").unwrap());
        assert_eq!(address.to_string(), "https://tools.example.com/registry");
        let below = address.below(&["v1", "tools", "tool:acme/pdf", "versions", "1.0.0+x"]);
        let expected =
            "https://tools.example.com/registry/v1/tools/tool:acme%2Fpdf/versions/1.0.0+x";
        assert_eq!(below.as_str(), expected);
    }

    #[test]
    fn what_could_be_misread_is_no_address() {
        for text in [
            "",
            "tools.example.com",
            "ftp://tools.example.com",
            "file:///etc/passwd",
            "https://user@tools.example.com",
            "https://:secret@tools.example.com",
            "https://tools.example.com/?token=x",
            "https://tools.example.com/#x",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_version_of_the_api_is_no_part_of_where_a_registry_is() {
        let of = |text: &str| Address::of_registry(text).unwrap();
        for (text, address) in [
            ("https://a.example/v1", "https://a.example"),
            ("https://a.example/v1/", "https://a.example"),
            ("https://a.example/x/v1", "https://a.example/x"),
            ("https://a.example/v1/x", "https://a.example/v1/x"),
            ("https://a.example/xv1", "https://a.example/xv1"),
            ("https://a.example", "https://a.example"),
        ] {
            assert_eq!(of(text), Address::parse(address).unwrap(), "{text}");
            assert_eq!(of(text).to_string(), address);
        }
        let below = of("https://a.example/v1").below(&["v1", "tools"]);
        assert_eq!(below.as_str(), "https://a.example/v1/tools");
    }

    #[test]
    fn a_name_and_a_password_are_not_shown_wherever_they_stand() {
        for (text, seen) in [
            ("https://ci:s3cret@a.example/x", "https://…@a.example/x"),
            ("https://s3cret@a.example", "https://…@a.example"),
            ("https://ci:s3/cret@a.example", "https://…@a.example"),
            ("https://ci:s3@cret@a.example", "https://…@a.example"),
            ("https://ci:s3cret@", "https://…@"),
            ("ci:s3cret@a.example", "…@a.example"),
            ("https://a.example/@acme/x", "https://a.example/@acme/x"),
            ("a.example", "a.example"),
        ] {
            assert_eq!(shown(text), seen, "{text}");
        }
    }

    #[test]
    fn only_this_machine_may_be_told_secrets_in_plain() {
        for (text, is_private) in [
            ("https://tools.example.com", true),
            ("http://127.0.0.1:7070", true),
            ("http://[::1]:7070", true),
            ("http://localhost:7070", true),
            ("http://tools.example.com", false),
            ("http://192.168.1.2", false),
            ("http://127.0.0.1.example.com", false),
        ] {
            assert_eq!(Address::parse(text).unwrap().is_private_talk(), is_private, "{text}");
        }
    }
}
