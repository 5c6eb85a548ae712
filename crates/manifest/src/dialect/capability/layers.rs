//! Two layers of one catalog: a base that is never written, and a local one above it.

use std::collections::HashMap;

use crate::finding::{Code, Finding};
use crate::json::{Node, Path};
use crate::model::{Package, Trust};
use crate::shape::clip;

/// The view of both layers: a local entry takes the place of the base entry of its id, but never
/// its trust beyond what the base said.
pub fn merge(base: Vec<Package>, local: Vec<Package>) -> Vec<Package> {
    let mut by_id: HashMap<String, Package> =
        local.into_iter().map(|package| (package.id.clone(), package)).collect();
    let mut merged: Vec<Package> = base
        .into_iter()
        .map(|entry| match by_id.remove(&entry.id) {
            Some(mut over) => {
                over.trust = over.trust.min(entry.trust);
                over
            }
            None => entry,
        })
        .collect();
    let mut rest: Vec<_> = by_id.into_values().collect();
    rest.sort_by(|a, b| a.id.cmp(&b.id));
    merged.extend(rest);
    merged
}

/// Finds where local entries claim more than the base entries they override.
pub fn check_layers(base: &Node<'_>, local: &Node<'_>) -> Vec<Finding> {
    let base_entries: HashMap<&str, &Node<'_>> = base
        .list_at("capabilities")
        .iter()
        .filter_map(|entry| Some((entry.text_at("id")?, entry)))
        .collect();
    let mut findings = Vec::new();
    for (index, entry) in local.list_at("capabilities").iter().enumerate() {
        let Some(under) = entry.text_at("id").and_then(|id| base_entries.get(id)) else { continue };
        let root = Path::ROOT;
        let list = root.key("capabilities");
        check_entry(under, entry, list.index(index), &mut findings);
    }
    findings
}

fn check_entry(under: &Node<'_>, over: &Node<'_>, path: Path<'_>, findings: &mut Vec<Finding>) {
    let id = clip(over.text_at("id").unwrap_or_default()).into_owned();
    let trust = |node: &Node<'_>| node.text_at("trust_level").and_then(Trust::named);
    if let (Some(lower), Some(higher)) = (trust(under), trust(over))
        && higher > lower
    {
        let span = over.get("trust_level").unwrap_or(over).span;
        let message = format!(
            "`{id}` claims trust `{}` over a base entry of `{}`; the lower one counts",
            higher.name(),
            lower.name()
        );
        findings.push(Finding::new(
            Code::OverrideRaisesTrust,
            path.key("trust_level").pointer(),
            span,
            message,
        ));
    }
    let (Some(was), Some(now)) = (under.get("permissions"), over.get("permissions")) else {
        return;
    };
    let path = path.key("permissions");
    let rank = |node: &Node<'_>, field: &str, order: &[&str]| {
        node.text_at(field).and_then(|word| order.iter().position(|known| *known == word))
    };
    for (field, order) in
        [("network", &["deny", "allowlist"][..]), ("filesystem", &["none", "read", "write"])]
    {
        if rank(now, field, order) > rank(was, field, order) && rank(was, field, order).is_some() {
            let span = now.get(field).unwrap_or(now).span;
            let message = format!(
                "`{id}` widens `{field}` from `{}` to `{}`",
                was.text_at(field).unwrap_or_default(),
                now.text_at(field).unwrap_or_default()
            );
            findings.push(Finding::new(
                Code::OverrideWidens,
                path.key(field).pointer(),
                span,
                message,
            ));
        }
    }
    for field in ["network_allowlist", "devices"] {
        let before: Vec<_> = was.list_at(field).iter().filter_map(Node::as_text).collect();
        for (at, entry) in now.list_at(field).iter().enumerate() {
            if let Some(text) = entry.as_text().filter(|text| !before.contains(text)) {
                let message = format!("`{id}` adds `{}` to `{field}`", clip(text));
                findings.push(Finding::new(
                    Code::OverrideWidens,
                    path.key(field).index(at).pointer(),
                    entry.span,
                    message,
                ));
            }
        }
    }
}
