//! Hosts as people type them, and what is said of what is none.

use egress::Rule;
use egress::rules::RuleError;

/// What is wrong with what is no host, and what may have been meant.
pub(crate) struct NoHost {
    pub(crate) wrong: String,
    pub(crate) instead: String,
}

/// Reads a host, or says in one line what is wrong with it and what may have been meant.
pub(crate) fn parse(text: &str) -> Result<Rule, String> {
    read(text).map_err(|NoHost { wrong, instead }| format!("{wrong}; {instead}"))
}

/// Reads a host, or says what is wrong with it and what may have been meant.
pub(crate) fn read(text: &str) -> Result<Rule, NoHost> {
    Rule::parse(text).map_err(|error| {
        let wrong = match &error {
            _ if text.is_empty() => "it is empty".into(),
            RuleError::Url(_) => "it has a scheme or a path, and a host has neither".into(),
            RuleError::Network(_) if !begins_with_address(text) => {
                "it has a path, and a host has none".into()
            }
            RuleError::Network(_) => {
                "a network is its first address, a slash and a length from 1 on, as in 10.0.0.0/8"
                    .into()
            }
            RuleError::Wildcard(_) => {
                "a wildcard stands for what is before two labels or more, as in *.example.com"
                    .into()
            }
            RuleError::Disguise(_) => {
                "it is an IPv4 address written as one of IPv6; write that one".into()
            }
            RuleError::Target(_, wrong) => wrong.to_string(),
        };
        let instead = match host_in(text) {
            Some(host) => format!("write `{host}`"),
            None => {
                "hosts are written api.example.com, *.example.com, example.com:8443, 10.0.0.0/8"
                    .to_owned()
            }
        };
        NoHost { wrong, instead }
    })
}

fn begins_with_address(text: &str) -> bool {
    let first = text.trim_start_matches('[').split('/').next().unwrap_or_default();
    first.parse::<std::net::IpAddr>().is_ok()
}

/// The host in something that is more than one.
fn host_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://").unwrap_or(("", text));
    if begins_with_address(rest) && rest == text {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.trim_end_matches('.');
    Rule::parse(host).ok().map(|rule| rule.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_host_is_said_and_what_was_meant() {
        for (text, words) in [
            (
                "https://api.example.com/v1?x=1",
                "scheme or a path, and a host has neither; write `api.example.com`",
            ),
            ("http://user@localhost:3000/", "write `localhost:3000`"),
            ("example.com/path", "it has a path, and a host has none; write `example.com`"),
            ("example.com.", "does not end with a dot; write `example.com`"),
            ("me@example.com", "nothing before an `@`; write `example.com`"),
            ("a..com", "a label of the name is empty; hosts are written api.example.com"),
            ("example.com:0", "the port is no plain number from 1 to 65535; hosts are"),
            ("example.com:99999", "the port is no plain number from 1 to 65535; hosts are"),
            ("*", "a wildcard stands for what is before two labels or more"),
            ("a.*.com", "a wildcard stands for what is before two labels or more"),
            ("*.com", "a wildcard stands for what is before two labels or more"),
            ("10.0.0.1/8", "a network is its first address, a slash and a length"),
            ("0.0.0.0/0", "a network is its first address, a slash and a length"),
            ("127.1", "an IPv4 address is four decimal numbers"),
            ("", "it is empty; hosts are"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
