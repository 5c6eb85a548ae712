//! What a capability manifest must hold beyond its shape.

use std::collections::HashSet;

use crate::dialect::rules::Judge;
use crate::finding::{Code, Finding};
use crate::json::{Node, Path, Value};
use crate::shape::clip;

/// Finds what is wrong with a catalog: each entry, and twins among them.
pub(crate) fn check_catalog_rules(catalog: &Node<'_>, judge: &mut Judge<'_>) {
    let mut seen = HashSet::new();
    for (index, entry) in catalog.list_at("capabilities").iter().enumerate() {
        let root = Path::ROOT;
        let list = root.key("capabilities");
        let path = list.index(index);
        if let Some(id) = entry.get("id")
            && let Some(text) = id.as_text()
            && !seen.insert(text)
        {
            let message = format!("two entries have the id `{}`", clip(text));
            judge.push(Finding::new(Code::DuplicateId, path.key("id").pointer(), id.span, message));
        }
        check_rules(entry, path, judge);
    }
}

/// Finds what is wrong with the manifest at a path.
pub(crate) fn check_rules(manifest: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    check_network(manifest, path, judge);
    if let Some(digest) = manifest.at(&["origin", "digest"])
        && manifest.at(&["origin", "source"]).and_then(Node::as_text) == Some("url")
        && let Some(text) = digest.as_text()
    {
        let hex = text.strip_prefix("sha256:").unwrap_or(text);
        if !hex.is_empty() && hex.bytes().all(|b| b == b'0') {
            let pointer = path.key("origin").key("digest").pointer();
            let message =
                "the digest is all zeros, which means unknown: what is fetched cannot be checked";
            judge.push(Finding::new(Code::UnknownDigest, pointer, digest.span, message));
        }
    }
    check_oauth(manifest, path, judge);
    if let Some(implementation) = manifest.get("implementation") {
        check_implementation(implementation, path.key("implementation"), judge);
    }
}

fn check_network(manifest: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    let Some(permissions) = manifest.get("permissions") else { return };
    let path = path.key("permissions");
    let allowlist = permissions.member("network_allowlist");
    if allowlist.is_some_and(|member| !matches!(member.value.value, Value::List(_))) {
        return;
    }
    let is_empty = allowlist.is_none_or(|member| member.value.items().is_empty());
    match permissions.get("network") {
        Some(network) if network.as_text() == Some("deny") => {
            if let Some(member) = allowlist.filter(|_| !is_empty) {
                let message = "`network` is `deny`, so the allowlist allows nothing";
                let pointer = path.key("network_allowlist").pointer();
                judge.push(
                    Finding::new(Code::AllowlistUnused, pointer, member.key_span, message)
                        .help("set `network` to `allowlist`, or drop the list"),
                );
            }
        }
        Some(network) if network.as_text() == Some("allowlist") && is_empty => {
            let message = "the allowlist is empty, so every host is denied";
            judge.push(
                Finding::new(
                    Code::EmptyAllowlist,
                    path.key("network").pointer(),
                    network.span,
                    message,
                )
                .help("name the hosts in `network_allowlist`"),
            );
        }
        _ => {}
    }
}

/// Whether the owner would have to sign in for what runs here, and has no secret that a token could be given as.
fn check_oauth(manifest: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    let kind = manifest.at(&["implementation", "kind"]).and_then(Node::as_text);
    if let Some(oauth) = manifest.get("requires_oauth")
        && oauth.as_bool() == Some(true)
        && let Some(kind @ ("command" | "python")) = kind
        && manifest.list_at("secrets").is_empty()
    {
        let pointer = path.key("requires_oauth").pointer();
        let message = format!(
            "kind `{kind}` is given the token of a sign-in as one of its `secrets`, and there are none; a call would be refused"
        );
        judge.push(
            Finding::new(Code::OauthUnavailable, pointer, oauth.span, message)
                .help("declare the secret that it takes its token as"),
        );
    }
}

fn check_implementation(implementation: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    let Some(kind) = implementation.get("kind") else { return };
    let own = match kind.as_text() {
        Some("command") => "command",
        Some("python") => "python",
        Some("mcp_tool") => "mcp",
        Some("a2a_rpc") => "a2a",
        _ => return,
    };
    if implementation.get(own).is_none() {
        let message = format!(
            "kind `{}` needs the object `{own}`; a call would be refused",
            kind.as_text().unwrap_or_default()
        );
        judge.push(Finding::new(
            Code::MissingImplementation,
            path.key("kind").pointer(),
            kind.span,
            message,
        ));
    }
}
