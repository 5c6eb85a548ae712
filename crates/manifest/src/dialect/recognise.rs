//! Which dialect a document is written in, seen from its content.

use super::{Dialect, server_json};
use crate::json::{Node, Value};

/// What kind of document of its dialect it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A manifest.
    Manifest,
    /// A catalog of manifests.
    Catalog,
    /// A manifest with its files.
    Bundle,
    /// A test of a package.
    Test,
    /// The companion `haft.json`.
    Companion,
    /// A well-known index.
    Index,
    /// An OpenAPI document.
    OpenApi,
    /// Who publishes a package.
    Publisher,
    /// Which source a package was made from.
    Provenance,
}

impl Form {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Form::Manifest => "manifest",
            Form::Catalog => "catalog",
            Form::Bundle => "bundle",
            Form::Test => "test",
            Form::Companion => "companion",
            Form::Index => "index",
            Form::OpenApi => "openapi",
            Form::Publisher => "publisher",
            Form::Provenance => "provenance",
        }
    }

    /// Its name after an article: `a test`.
    pub fn noun(self) -> &'static str {
        match self {
            Form::Manifest => "a manifest",
            Form::Catalog => "a catalog",
            Form::Bundle => "a bundle",
            Form::Test => "a test",
            Form::Companion => "a companion",
            Form::Index => "an index",
            Form::OpenApi => "an OpenAPI document",
            Form::Publisher => "a note on the publisher",
            Form::Provenance => "a note on provenance",
        }
    }
}

/// The keys by which each dialect is known, for the message when none fits.
pub(crate) const LOOKED_FOR: &str = "`manifest_version` (install-manifest), `tools` (agentcli), `toolId` (mcpkg), \
`capabilities` or `trust_level` (capability), `entry` or `manifest` and `files` (jumith), `server` (mcpb), `packages` or `remotes` (server-json)";

/// The dialect and form of a document; none when it fits no dialect.
/// A companion and an OpenAPI document belong to no dialect.
pub fn recognise(document: &Node<'_>) -> Option<(Option<Dialect>, Form)> {
    let has = |key: &str| document.get(key).is_some();
    let is_list =
        |key: &str| document.get(key).is_some_and(|node| matches!(node.value, Value::List(_)));
    if !document.is_object() {
        return None;
    }
    if has("haft") {
        return Some((None, Form::Companion));
    }
    if is_mcpb(document) {
        return Some((Some(Dialect::Mcpb), Form::Manifest));
    }
    if server_json::is_server_json(document) {
        return Some((Some(Dialect::ServerJson), Form::Manifest));
    }
    if has("manifest_version") {
        return Some((Some(Dialect::InstallManifest), Form::Manifest));
    }
    if is_list("manifests") && has("publisher") {
        return Some((Some(Dialect::InstallManifest), Form::Index));
    }
    if has("toolId") {
        return Some((Some(Dialect::Mcpkg), Form::Manifest));
    }
    if has("manifest") && has("files") {
        return Some((Some(Dialect::Jumith), Form::Bundle));
    }
    if (has("openapi") || has("swagger")) && (has("info") || has("paths")) {
        return Some((None, Form::OpenApi));
    }
    if is_catalog(document) {
        return Some((Some(Dialect::Capability), Form::Catalog));
    }
    if is_tools(document) {
        return Some((Some(Dialect::Agentcli), Form::Manifest));
    }
    if has("input") && (has("assertions") || has("expected")) {
        return Some((Some(Dialect::Mcpkg), Form::Test));
    }
    // No one key decides: the dialect that most of the keys belong to does.
    let fit = |keys: &[&str]| keys.iter().filter(|key| has(key)).count();
    let (best, dialect) = [
        (
            fit(&["tool", "runtime", "smoke", "kill_switch", "env", "scopes", "actions"]),
            Dialect::InstallManifest,
        ),
        (
            fit(&[
                "input_schema",
                "output_schema",
                "endpoint",
                "implementations",
                "chain",
                "capabilities",
                "auth",
            ]),
            Dialect::Mcpkg,
        ),
        (
            fit(&[
                "type",
                "origin",
                "interfaces",
                "permissions",
                "runtime",
                "trust_level",
                "implementation",
                "requires_oauth",
            ]),
            Dialect::Capability,
        ),
        (
            fit(&["entry", "requiresApproval", "requiredSecrets", "provider", "summary", "schema"]),
            Dialect::Jumith,
        ),
    ]
    .into_iter()
    .max_by_key(|(count, _)| *count)?;
    let decides = best >= 3
        || (dialect == Dialect::Jumith && document.get("entry").is_some_and(Node::is_object))
        || (dialect == Dialect::Capability && has("trust_level"));
    decides.then_some((Some(dialect), Form::Manifest))
}

/// Whether a text that cannot be read looks like a manifest all the same.
pub fn resembles(text: &str) -> bool {
    let has = |key: &str| text.contains(key);
    has("\"manifest_version\"")
        || has("\"dxt_version\"")
        || has("\"mcp_config\"")
        || has("\"toolId\"")
        || has("\"trust_level\"")
        || (has("\"tools\"") && has("\"command\""))
        || (has("\"entry\"") && has("\"runtime\""))
        || (has("\"assertions\"") && has("\"input\""))
        || has("/server.schema.json\"")
}

/// The manifest of a bundle. Both it and an install-manifest count their versions by
/// `manifest_version`, so the other keys tell them apart.
fn is_mcpb(document: &Node<'_>) -> bool {
    let count = |keys: &[&str]| keys.iter().filter(|key| document.get(key).is_some()).count();
    if document.get("dxt_version").is_some() || document.at(&["server", "mcp_config"]).is_some() {
        return true;
    }
    let own = ["server", "user_config", "display_name", "tools", "author", "compatibility"];
    let of_install = ["tool", "runtime", "smoke", "kill_switch", "env", "scopes", "actions"];
    document.get("manifest_version").is_some() && count(&own) > count(&of_install)
}

fn is_catalog(document: &Node<'_>) -> bool {
    let Some(entries) = document.get("capabilities") else { return false };
    let Value::List(items) = &entries.value else { return false };
    if document.get("input_schema").is_some() || document.get("endpoint").is_some() {
        return false;
    }
    items.iter().any(Node::is_object) || items.is_empty()
}

/// A list of tools with commands; an empty or absent-but-named list counts.
fn is_tools(document: &Node<'_>) -> bool {
    let Some(tools) = document.get("tools") else { return false };
    match &tools.value {
        Value::Null => true,
        Value::List(items) => {
            items.is_empty()
                || items.iter().any(|tool| {
                    tool.get("command").is_some() || tool.get("envPassthrough").is_some()
                })
                || items.iter().all(|tool| {
                    tool.is_object() && tool.get("type").is_none() && tool.get("function").is_none()
                })
        }
        _ => document.members().len() == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    fn dialect(text: &str) -> Option<Dialect> {
        recognise(&parse(text).root.unwrap()).and_then(|(dialect, _)| dialect)
    }

    #[test]
    fn bundles_and_install_manifests_are_told_apart() {
        let table = [
            (r#"{"manifest_version": "0.2", "server": {}}"#, Dialect::Mcpb),
            (r#"{"manifest_version": "0.2", "name": "a", "author": {}}"#, Dialect::Mcpb),
            (r#"{"dxt_version": "0.1"}"#, Dialect::Mcpb),
            (r#"{"server": {"mcp_config": {}}, "tools": [{"name": "a"}]}"#, Dialect::Mcpb),
            (r#"{"manifest_version": "0.2", "user_config": {}, "tools": []}"#, Dialect::Mcpb),
            (r#"{"manifest_version": "0.2", "tool": {}, "runtime": {}}"#, Dialect::InstallManifest),
            (r#"{"manifest_version": "0.4", "tool": {"author": {}}}"#, Dialect::InstallManifest),
            (r#"{"manifest_version": "0.4", "tool": {}, "author": {}}"#, Dialect::InstallManifest),
            (r#"{"manifest_version": "0.4"}"#, Dialect::InstallManifest),
            (r#"{"tools": [{"name": "a", "command": ["b"]}]}"#, Dialect::Agentcli),
            (r#"{"name": "a/b", "remotes": []}"#, Dialect::ServerJson),
            (r#"{"$schema": "https://x/server.schema.json"}"#, Dialect::ServerJson),
        ];
        for (text, expected) in table {
            assert_eq!(dialect(text), Some(expected), "{text}");
        }
    }
}
