//! What can be typed after the flags of `haft sandbox`, and what is said of what cannot.

use egress::Rule;
use egress::rules::RuleError;
use sandbox::Level;

use crate::walls;

/// Below this nothing can be started at all.
const LEAST_MEMORY: u64 = 8 << 20;

pub(super) fn memory(text: &str) -> Result<u64, String> {
    match crate::commands::size(text)? {
        size if size < LEAST_MEMORY => Err("the least is 8M; write a unit, such as 512M".into()),
        size => Ok(size),
    }
}

pub(super) fn processors(text: &str) -> Result<u32, String> {
    let number: f64 = text.parse().map_err(|_| "write a number such as 1.5".to_owned())?;
    if !(0.01..=1024.0).contains(&number) {
        return Err("write a number from 0.01 to 1024".into());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was checked")]
    Ok((number * 100.0).round() as u32)
}

pub(super) fn level(text: &str) -> Result<Level, String> {
    match Level::parse(text) {
        Some(level) if level >= walls::REQUIRED => Ok(level),
        Some(_) => Err("only L2 and L3; no flag lowers the walls".into()),
        None => Err("write L2 or L3".into()),
    }
}

/// Reads a host, or says what is wrong with it and what may have been meant.
pub(super) fn host(text: &str) -> Result<Rule, String> {
    Rule::parse(text).map_err(|error| {
        let wrong = match &error {
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
        match host_in(text) {
            Some(host) => format!("{wrong}; write `{host}`"),
            None => format!(
                "{wrong}; hosts are written api.example.com, *.example.com, example.com:8443, 10.0.0.0/8"
            ),
        }
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
            ("", "there is no host; hosts are"),
        ] {
            let said = host(text).unwrap_err();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
