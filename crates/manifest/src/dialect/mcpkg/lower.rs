//! From a valid mcpkg manifest to the model.

use super::{Version, split_command};
use crate::dialect::Dialect;
use crate::dialect::install_manifest::lower::host_of;
use crate::dialect::lowering::{blank, json, millis, text, texts};
use crate::json::Node;
use crate::model::{
    Acquire, Action, Auth, AuthKind, Chain, Entry, Implementation, Input, Invocation, Json,
    OutputFormat, Package, Person, SideEffects, Step,
};

/// Lowers a document that has passed its checks.
pub(crate) fn lower(document: &Node<'_>, source: &str) -> Package {
    let id = text(document, "toolId").unwrap_or_default();
    let mut package = blank(Dialect::Mcpkg, id.clone(), source);
    package.format_version = Some(Version::of(document).name());
    package.version = text(document, "version");
    package.name = text(document, "name");
    package.description = text(document, "description");
    package.tags = texts(document, "capabilities");
    if let Some(meta) = document.get("meta") {
        package.license = text(meta, "license");
        package.homepage = text(meta, "homepage");
        for tag in texts(meta, "tags") {
            if !package.tags.contains(&tag) {
                package.tags.push(tag);
            }
        }
        package.publisher = meta.get("publisher").map(|publisher| Person {
            id: text(publisher, "id"),
            name: text(publisher, "name"),
            email: None,
            url: text(publisher, "website"),
        });
    }
    package.acquire = Acquire::Bundle;
    package.auth = document.get("auth").map(|node| auth(node).named());
    if let Some(auth) = package.auth.as_ref().filter(|auth| auth.kind != AuthKind::None) {
        package.inputs =
            auth.env.iter().map(|name| Input { required: false, ..Input::secret(name) }).collect();
    }
    for node in document.list_at("implementations") {
        package.implementations.push(implementation(node, source));
    }
    if let Some(endpoint) = document.get("endpoint") {
        package.implementations.push(Implementation {
            id: "endpoint".into(),
            language: None,
            runtime: None,
            platforms: Vec::new(),
            entry: entry(endpoint),
            timeout_ms: millis(endpoint.get("timeoutMs"), 1.0),
            requirements: None,
        });
    }
    package.permissions.hosts = package
        .implementations
        .iter()
        .filter_map(|implementation| match &implementation.entry {
            Entry::Http { base, .. } => host_of(base),
            _ => None,
        })
        .collect();
    package.chain = document.get("chain").map(|chain| Chain {
        steps: chain
            .items()
            .iter()
            .map(|step| Step {
                name: text(step, "step").unwrap_or_default(),
                tool: text(step, "tool").unwrap_or_default(),
                definition: Json::of(step, source),
            })
            .collect(),
    });
    package.timeout_ms =
        package.implementations.iter().find_map(|implementation| implementation.timeout_ms);
    package.tests = texts(document, "tests");
    package.examples = texts(document, "examples");
    package.actions = vec![action(document, source, id, &package)];
    package
}

fn action(document: &Node<'_>, source: &str, id: String, package: &Package) -> Action {
    let invocation = if package.chain.is_some() {
        Invocation::Chain
    } else {
        match package.implementations.first().map(|implementation| &implementation.entry) {
            Some(Entry::Http { method, .. }) => Invocation::Http {
                method: method.clone().unwrap_or_else(|| "POST".to_owned()),
                path: String::new(),
                headers: Vec::new(),
            },
            Some(_) => Invocation::ArgvJson,
            None => Invocation::Undeclared,
        }
    };
    Action {
        description: text(document, "description"),
        input: json(document, "input_schema", source),
        output_format: Some(OutputFormat::Json),
        output: json(document, "output_schema", source),
        timeout_ms: package.timeout_ms,
        side_effects: document.text_at("sideEffects").and_then(SideEffects::named),
        idempotent: document.get("idempotent").and_then(Node::as_bool),
        ..Action::new(id, invocation)
    }
}

fn implementation(node: &Node<'_>, source: &str) -> Implementation {
    let endpoint = node.get("endpoint");
    Implementation {
        id: text(node, "id").unwrap_or_default(),
        language: text(node, "language"),
        runtime: text(node, "runtime"),
        platforms: texts(node, "platforms"),
        entry: endpoint.map_or(Entry::Undeclared, entry),
        timeout_ms: millis(endpoint.and_then(|endpoint| endpoint.get("timeoutMs")), 1.0),
        requirements: json(node, "requirements", source),
    }
}

fn entry(endpoint: &Node<'_>) -> Entry {
    match endpoint.text_at("type") {
        Some("http") => Entry::Http {
            base: text(endpoint, "url").unwrap_or_default(),
            method: text(endpoint, "method"),
        },
        Some("local") => {
            let command = endpoint.text_at("command").unwrap_or_default();
            Entry::Argv {
                argv: split_command(command).unwrap_or_default(),
                cwd: None,
                runtime: None,
            }
        }
        _ => Entry::Undeclared,
    }
}

fn auth(node: &Node<'_>) -> Auth {
    let hints = node.get("configHints");
    Auth {
        kind: node.text_at("type").and_then(AuthKind::named).unwrap_or(AuthKind::None),
        scopes: texts(node, "scopes"),
        env: hints.map(|hints| texts(hints, "env")).unwrap_or_default(),
        docs_url: hints.and_then(|hints| text(hints, "docsUrl")),
    }
}
