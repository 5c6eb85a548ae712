//! Where a tool is reached that runs elsewhere, and whether it may be.

use egress::Rules;
use egress::http::{Url, allowed};
use manifest::model::{Action, Entry, Implementation, Package};
use policy::{Allowance, denies_network};

use crate::confine;
use crate::error::{CallError, Kind};
use crate::request::{check_private, needs_secret};
use crate::run::place_of;

/// The hosts of all endpoints of a package.
pub fn endpoints(package: &Package) -> Vec<String> {
    package.implementations.iter().flat_map(hosts).collect()
}

/// Hosts of its own endpoints.
pub(crate) fn hosts(implementation: &Implementation) -> Vec<String> {
    let Some(url) = address(&implementation.entry) else { return Vec::new() };
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.to_ascii_lowercase();
    match host.rsplit_once('}') {
        None if host.is_empty() => Vec::new(),
        None => vec![host],
        // What the owner is asked for stands before a name that the author wrote: it leads below that.
        Some((_, rest)) => match rest.strip_prefix('.') {
            Some(name) if name.contains('.') => vec![format!("*.{name}")],
            // Else it may lead anywhere, and its owner grants where.
            _ => Vec::new(),
        },
    }
}

/// Refuses a tool that runs elsewhere, where that may not be reached: nothing is sent then, and nothing is spent.
/// An address that is none is told of when the call is planned.
pub(crate) fn check(
    package: &Package,
    implementation: &Implementation,
    allowance: &Allowance,
) -> Result<(), CallError> {
    let entry = &implementation.entry;
    let is_elsewhere = address(entry).is_some() || matches!(entry, Entry::KnownServer { .. });
    if is_elsewhere && denies_network(package) {
        return Err(CallError::new(Kind::Denied, "network denied by capability permissions"));
    }
    let Some(url) = address(entry).and_then(|url| Url::parse(url).ok()) else { return Ok(()) };
    check_url(&url, &confine::rules(allowance)?)
}

/// Refuses an action that cannot do without telling a secret, to everybody on the way. No grant changes that, so this
/// comes before one is asked for.
pub(crate) fn check_secrecy(
    package: &Package,
    implementation: &Implementation,
    action: &Action,
) -> Result<(), CallError> {
    let entry = &implementation.entry;
    let tells_secret = match entry {
        Entry::Http { .. } | Entry::McpHttp { .. } => needs_secret(package, action),
        Entry::A2a { .. } => package.inputs.iter().any(|input| input.secret && input.required),
        _ => false,
    };
    let url = address(entry).filter(|_| tells_secret).and_then(|url| Url::parse(url).ok());
    url.as_ref().map_or(Ok(()), check_private)
}

/// Refuses an address that may not be reached.
pub(crate) fn check_url(url: &Url, rules: &Rules) -> Result<(), CallError> {
    match allowed(rules, url) {
        Ok(_) => Ok(()),
        Err(refusal) => Err(CallError::refused(&place_of(url), refusal)),
    }
}

/// The address of a tool that runs elsewhere.
fn address(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Http { base: url, .. }
        | Entry::McpHttp { url, .. }
        | Entry::A2a { endpoint: url }
        | Entry::McpTool { registry_url: url, .. } => Some(url),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_something_to_be_filled_in_leads_below_the_name_after_it() {
        let hosts = |url: &str| {
            super::hosts(&Implementation {
                id: "x".into(),
                language: None,
                runtime: None,
                platforms: Vec::new(),
                entry: Entry::McpHttp { url: url.into(), headers: Vec::new() },
                timeout_ms: None,
                requirements: None,
            })
        };
        for (url, expected) in [
            ("https://Api.Example.com/mcp", vec!["api.example.com"]),
            ("https://api.example.com:8443/{x}", vec!["api.example.com:8443"]),
            ("https://{region}.example.com/mcp", vec!["*.example.com"]),
            ("https://a-{region}.eu.example.com:444/mcp", vec!["*.eu.example.com:444"]),
            ("https://{host}/mcp", vec![]),
            ("https://{a}.com/mcp", vec![]),
            ("https://example.{tld}/mcp", vec![]),
        ] {
            assert_eq!(hosts(url), expected, "{url}");
        }
    }
}
