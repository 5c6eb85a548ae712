//! From a valid capability manifest to the model.

use crate::dialect::Dialect;
use crate::dialect::lowering::{blank, json, millis, text, texts};
use crate::json::Node;
use crate::model::{
    Acquire, Action, Channel, Entry, Implementation, Input, Invocation, Kind, OutputFormat,
    Package, Permissions, Resources, Sandbox, Trust,
};

/// Lowers a manifest that has passed its checks.
pub(crate) fn lower(manifest: &Node<'_>, source: &str) -> Package {
    let id = text(manifest, "id").unwrap_or_default();
    let mut package = blank(Dialect::Capability, id.clone(), source);
    package.format_version = Some("0.1");
    package.version = text(manifest, "version");
    package.kind = manifest.text_at("type").and_then(Kind::named).unwrap_or(Kind::Tool);
    package.description = text(manifest, "description");
    package.origin = json(manifest, "origin", source);
    let origin = manifest.get("origin");
    package.acquire = match origin.and_then(|origin| origin.text_at("source")) {
        Some("url") => {
            match origin.and_then(|origin| Some((text(origin, "url")?, text(origin, "digest")?))) {
                Some((url, digest)) => Acquire::Url { url, sha256: known_digest(&digest) },
                None => Acquire::Nothing,
            }
        }
        _ => Acquire::LocalPath { path: origin.and_then(|origin| text(origin, "path")) },
    };
    if let Some(permissions) = manifest.get("permissions") {
        let allows = permissions.text_at("network") == Some("allowlist");
        let hosts = if allows { texts(permissions, "network_allowlist") } else { Vec::new() };
        package.permissions = Permissions {
            declared: true,
            domains: hosts.clone(),
            hosts,
            read: Vec::new(),
            write: Vec::new(),
            devices: texts(permissions, "devices"),
            filesystem: text(permissions, "filesystem"),
        };
    }
    if let Some(runtime) = manifest.get("runtime") {
        package.sandbox = match runtime.text_at("sandbox") {
            Some("container") => Some(Sandbox::Container),
            _ => Some(Sandbox::Process),
        };
        if let Some(resources) = runtime.get("resources") {
            package.resources =
                Resources { cpu: text(resources, "cpu"), memory: text(resources, "memory") };
        }
        package.timeout_ms = millis(runtime.get("timeout_seconds"), 1000.0);
    }
    package.trust =
        manifest.text_at("trust_level").and_then(Trust::named).unwrap_or(Trust::Untrusted);
    package.inputs = manifest
        .list_at("secrets")
        .iter()
        .map(|secret| Input {
            reference: text(secret, "ref"),
            ..Input::secret(text(secret, "name").unwrap_or_default())
        })
        .collect();
    package.enabled = manifest.get("enabled").and_then(Node::as_bool).unwrap_or(true);
    package.requires_oauth =
        manifest.get("requires_oauth").and_then(Node::as_bool).unwrap_or(false);
    package.channel = match manifest.at(&["execution", "channel"]).and_then(Node::as_text) {
        Some("vdi_vpn") => Channel::VdiVpn,
        _ => Channel::Programmatic,
    };
    let (entry, invocation) =
        manifest.get("implementation").map_or((Entry::Undeclared, Invocation::Undeclared), run);
    package.implementations.push(Implementation {
        id: "main".into(),
        language: matches!(entry, Entry::PythonCallable { .. }).then(|| "python".into()),
        runtime: None,
        platforms: Vec::new(),
        entry,
        timeout_ms: package.timeout_ms,
        requirements: None,
    });
    let interfaces = manifest.get("interfaces");
    package.actions.push(Action {
        description: package.description.clone(),
        input: interfaces.and_then(|interfaces| json(interfaces, "inputs", source)),
        output_format: Some(OutputFormat::Json),
        output: interfaces.and_then(|interfaces| json(interfaces, "outputs", source)),
        timeout_ms: package.timeout_ms,
        ..Action::new(id, invocation)
    });
    package
}

/// A digest in small letters; nothing but zeros says that it is not known.
fn known_digest(digest: &str) -> String {
    let digest = digest.trim_start_matches("sha256:").to_ascii_lowercase();
    if digest.bytes().all(|digit| digit == b'0') { String::new() } else { digest }
}

fn run(implementation: &Node<'_>) -> (Entry, Invocation) {
    let part = |key: &str, field: &str| implementation.get(key).and_then(|node| text(node, field));
    match implementation.text_at("kind") {
        Some("command") if implementation.get("command").is_some() => {
            let argv = implementation
                .get("command")
                .map(|command| texts(command, "argv"))
                .unwrap_or_default();
            (
                Entry::Argv { argv, cwd: None, runtime: None },
                Invocation::StdinJson { argv_template: Vec::new() },
            )
        }
        Some("python") => match part("python", "callable") {
            Some(callable) => (Entry::PythonCallable { callable }, Invocation::PythonCall),
            None => (Entry::Undeclared, Invocation::Undeclared),
        },
        Some("mcp_tool") => match (part("mcp", "registry_url"), part("mcp", "tool_name")) {
            (Some(registry_url), Some(tool_name)) => (
                Entry::McpTool {
                    registry_url,
                    server_id: part("mcp", "server_id"),
                    tool_name: tool_name.clone(),
                },
                Invocation::McpTool { tool_name },
            ),
            _ => (Entry::Undeclared, Invocation::Undeclared),
        },
        Some("a2a_rpc") => match part("a2a", "endpoint") {
            Some(endpoint) => (Entry::A2a { endpoint }, Invocation::A2aSend),
            None => (Entry::Undeclared, Invocation::Undeclared),
        },
        _ => (Entry::Undeclared, Invocation::Undeclared),
    }
}
