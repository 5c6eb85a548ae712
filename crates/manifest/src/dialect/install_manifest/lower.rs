//! From a valid install-manifest to the model.

use super::Version;
use crate::dialect::Dialect;
use crate::dialect::lowering::{blank, json, pairs, text, texts};
use crate::json::{Node, Pointer};
use crate::model::{
    Acquire, Action, Entry, Example, Implementation, Input, Invocation, Json, Kind, OutputFormat,
    Package, Person, Scope, SideEffects,
};

/// Lowers a document that has passed its checks.
pub(crate) fn lower(document: &Node<'_>, source: &str) -> Package {
    let nothing = Node { span: document.span, value: crate::json::Value::Null };
    let tool = document.get("tool").unwrap_or(&nothing);
    let runtime = document.get("runtime").unwrap_or(&nothing);
    let mut package = blank(Dialect::InstallManifest, text(tool, "id").unwrap_or_default(), source);
    package.format_version =
        document.text_at("manifest_version").and_then(Version::named).map(Version::name);
    package.namespace = text(tool, "namespace");
    package.version = text(tool, "version");
    package.name = text(tool, "name");
    package.summary = text(tool, "summary");
    package.description = text(tool, "description");
    package.homepage = text(tool, "homepage");
    package.license = text(tool, "license");
    package.tags = texts(tool, "tags");
    package.author = tool.get("author").map(|author| Person {
        id: None,
        name: text(author, "name"),
        email: text(author, "email"),
        url: text(author, "url"),
    });
    package.publisher = document
        .get("publisher")
        .map(|publisher| Person { id: text(publisher, "did"), ..Person::default() });
    package.kind = match runtime.text_at("kind") {
        Some("mcp-stdio" | "mcp-http") => Kind::McpServer,
        _ => Kind::Tool,
    };
    package.acquire =
        runtime.get("install").map_or(Acquire::Nothing, |install| acquire(install, source));
    package.implementations = vec![implementation(runtime)];
    package.inputs = document.list_at("env").iter().map(input).collect();
    package.scopes = document.list_at("scopes").iter().map(scope).collect();
    package.actions = document
        .list_at("actions")
        .iter()
        .enumerate()
        .map(|(index, node)| action(node, source, Pointer::root().key("actions").index(index)))
        .collect();
    package.smoke = json(document, "smoke", source);
    package.kill_switch = json(document, "kill_switch", source);
    package.cost = json(document, "cost", source);
    package.data_boundary = json(document, "data_boundary", source);
    package.verify = json(document, "verify", source);
    package.support = json(document, "support", source);
    package.permissions.domains = recipients(document);
    package.permissions.hosts = hosts(document, &package.permissions.domains);
    package
}

fn acquire(install: &Node<'_>, source: &str) -> Acquire {
    let required = |key| text(install, key).unwrap_or_default();
    match install.text_at("method") {
        Some("pip") => Acquire::Pip {
            package: required("package"),
            version_spec: text(install, "version_spec"),
        },
        Some("npm") => Acquire::Npm {
            package: required("package"),
            version_spec: text(install, "version_spec"),
        },
        Some("git") => Acquire::Git {
            url: required("url"),
            reference: required("ref"),
            subpath: text(install, "subpath"),
            layout: text(install, "layout"),
        },
        Some("container") => Acquire::Container { image: required("image") },
        Some("url") => Acquire::Url { url: required("url"), sha256: required("sha256") },
        Some("preinstalled") => match install.get("locator") {
            Some(locator) => Acquire::Preinstalled { locator: Json::of(locator, source) },
            None => Acquire::Nothing,
        },
        _ => Acquire::Nothing,
    }
}

fn implementation(runtime: &Node<'_>) -> Implementation {
    let kind = runtime.text_at("kind").unwrap_or_default();
    let argv = runtime.at(&["entrypoint", "command"]).map(|command| {
        command.items().iter().filter_map(Node::as_text).map(str::to_owned).collect::<Vec<_>>()
    });
    let cwd = runtime.get("entrypoint").and_then(|entrypoint| text(entrypoint, "cwd"));
    let url = text(runtime, "endpoint_url");
    let server = runtime.at(&["install", "locator"]).and_then(|locator| text(locator, "server_id"));
    let entry = match (kind, argv, url, server) {
        ("mcp-stdio", Some(argv), ..) => Entry::McpStdio { argv, cwd, env: Vec::new() },
        ("mcp-http", _, Some(url), _) => Entry::McpHttp { url, headers: Vec::new() },
        (_, Some(argv), ..) => Entry::Argv { argv, cwd, runtime: Some(kind.to_owned()) },
        (_, None, Some(base), _) => Entry::Http { base, method: None },
        (_, None, None, Some(server_id)) => Entry::KnownServer { server_id },
        (_, None, None, None) => Entry::Undeclared,
    };
    Implementation {
        id: "main".into(),
        language: match kind {
            "python-module" => Some("python".into()),
            "node-module" => Some("javascript".into()),
            _ => None,
        },
        runtime: Some(kind.to_owned()),
        platforms: Vec::new(),
        entry,
        timeout_ms: None,
        requirements: None,
    }
}

fn input(entry: &Node<'_>) -> Input {
    let flag = |key| entry.get(key).and_then(Node::as_bool);
    Input {
        secret: flag("secret").unwrap_or(true),
        required: flag("required").unwrap_or(true),
        prompt: text(entry, "prompt"),
        validation_regex: text(entry, "validation_regex"),
        default: text(entry, "default"),
        obtain_url: text(entry, "obtain_url"),
        ..Input::secret(text(entry, "name").unwrap_or_default())
    }
}

fn scope(entry: &Node<'_>) -> Scope {
    Scope {
        resource: text(entry, "resource").unwrap_or_default(),
        verbs: texts(entry, "actions"),
        rationale: text(entry, "rationale").unwrap_or_default(),
        provider_scope: text(entry, "provider_scope"),
    }
}

fn action(node: &Node<'_>, source: &str, pointer: Pointer) -> Action {
    let output = node.get("output");
    Action {
        name: text(node, "name").unwrap_or_default(),
        summary: text(node, "summary"),
        description: text(node, "description"),
        invocation: node.get("invocation").map_or(Invocation::Undeclared, invocation),
        input: json(node, "input", source),
        output_format: output
            .and_then(|output| output.text_at("format"))
            .and_then(OutputFormat::named),
        output: output.and_then(|output| json(output, "schema", source)),
        side_effects: node.text_at("side_effects").and_then(SideEffects::named),
        idempotent: Some(node.get("idempotent").and_then(Node::as_bool).unwrap_or(false)),
        scopes_used: texts(node, "scopes_used"),
        standard_errors: node.text_at("error_envelope") == Some("standard"),
        requires_approval: None,
        timeout_ms: None,
        environment: Vec::new(),
        examples: node
            .list_at("examples")
            .iter()
            .map(|example| Example {
                description: text(example, "description").unwrap_or_default(),
                input: json(example, "input", source),
                output: json(example, "output", source),
            })
            .collect(),
        docs: json(node, "docs", source),
        pointer,
    }
}

fn invocation(node: &Node<'_>) -> Invocation {
    let required = |key| text(node, key).unwrap_or_default();
    match node.text_at("kind") {
        Some("subcommand") => {
            Invocation::Subcommand { argv_template: texts(node, "argv_template") }
        }
        Some("stdin-json") => Invocation::StdinJson { argv_template: texts(node, "argv_template") },
        Some("http") => Invocation::Http {
            method: required("method"),
            path: required("path"),
            headers: pairs(node, "headers"),
        },
        Some("mcp-tool") => Invocation::McpTool { tool_name: required("tool_name") },
        _ => Invocation::Undeclared,
    }
}

/// The hosts a manifest names: its endpoint and the recipients of its data.
fn hosts(document: &Node<'_>, recipients: &[String]) -> Vec<String> {
    let endpoint =
        document.at(&["runtime", "endpoint_url"]).and_then(Node::as_text).and_then(host_of);
    let mut hosts: Vec<String> = endpoint.into_iter().chain(recipients.iter().cloned()).collect();
    hosts.dedup();
    hosts
}

fn recipients(document: &Node<'_>) -> Vec<String> {
    let transmits =
        document.at(&["data_boundary", "transmits"]).map(Node::items).unwrap_or_default();
    transmits.iter().filter_map(|entry| text(entry, "to")).collect()
}

/// The host of a URL.
pub(in crate::dialect) fn host_of(url: &str) -> Option<String> {
    let uri = fluent_uri::Uri::parse(url).ok()?;
    Some(uri.authority()?.host().to_ascii_lowercase())
}
