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
    if host.is_empty() { Vec::new() } else { vec![host.to_ascii_lowercase()] }
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
