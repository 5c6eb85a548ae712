//! From a valid describe document to the model.

use sha2::{Digest, Sha256};

use crate::dialect::Dialect;
use crate::dialect::lowering::{blank, hex, json, text, texts};
use crate::json::Node;
use crate::model::{
    Acquire, Action, Entry, Implementation, Input, Invocation, OutputFormat, Package, Person,
};

/// Lowers a manifest that has passed its checks.
pub(crate) fn lower(manifest: &Node<'_>, source: &str) -> Package {
    let mut package = blank(Dialect::Jumith, text(manifest, "id").unwrap_or_default(), source);
    package.version = text(manifest, "version");
    package.name = text(manifest, "name");
    package.summary = text(manifest, "summary");
    package.description = text(manifest, "description");
    package.tags = texts(manifest, "tags");
    package.publisher =
        text(manifest, "provider").map(|name| Person { name: Some(name), ..Person::default() });
    package.acquire = Acquire::Bundle;
    package.inputs = texts(manifest, "requiredSecrets").into_iter().map(Input::secret).collect();
    package.uses_payment = manifest.get("usesPayment").and_then(Node::as_bool);
    let entry = manifest.get("entry");
    package.implementations.push(Implementation {
        id: "node".into(),
        language: Some("javascript".into()),
        runtime: Some("node".into()),
        platforms: Vec::new(),
        entry: Entry::NodeModule {
            main: entry.and_then(|entry| text(entry, "main")).unwrap_or_default(),
            export: entry.and_then(|entry| text(entry, "export")),
        },
        timeout_ms: None,
        requirements: None,
    });
    let schema = manifest.get("schema");
    package.actions.push(Action {
        summary: package.summary.clone(),
        description: package.description.clone(),
        input: schema.and_then(|schema| json(schema, "input", source)),
        output_format: Some(OutputFormat::Json),
        output: schema.and_then(|schema| json(schema, "output", source)),
        requires_approval: manifest.get("requiresApproval").and_then(Node::as_bool),
        ..Action::new(package.name.clone().unwrap_or_default(), Invocation::NodeExecute)
    });
    package
}

/// Lowers a bundle that has passed its checks.
pub(crate) fn lower_bundle(bundle: &Node<'_>, source: &str) -> Option<Package> {
    let mut package = lower(bundle.get("manifest")?, source);
    let mut digest = Sha256::new();
    for file in bundle.list_at("files") {
        for field in ["path", "encoding", "content"] {
            let text = file.text_at(field).unwrap_or_default();
            // The length before each text keeps one from running into the next.
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text.as_bytes());
        }
    }
    package.files_sha256 = Some(hex(&digest.finalize()));
    Some(package)
}
