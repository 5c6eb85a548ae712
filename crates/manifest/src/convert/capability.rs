//! Writes a capability manifest.

use serde_json::json;

use super::draft::Draft;
use super::jumith::lose_plain_variables;
use super::mcpkg::{description, lose_other_texts};
use super::run::{self, Run};
use crate::concept::Weight;
use crate::json::Pointer;
use crate::model::{Entry, Input, InputSource, Json, Package};
use crate::shape::patterns;

pub(super) fn write(package: &Package, draft: &mut Draft) {
    let action = package.actions.first();
    draft.put_or_ask("/id", Some(package.id.as_str()).filter(|id| !id.is_empty()), "an id");
    draft.put("/type", package.kind.name());
    let version =
        package.version.as_deref().filter(|version| (patterns::EXACT_VERSION.matches)(version));
    draft.put_or_ask("/version", version, "an exact semantic version");
    draft.put_or_ask("/description", description(package, action), "what it does");
    lose_other_texts(package, action, draft);
    let origin = package.origin.as_ref().map(Json::value);
    draft.put_or_ask(
        "/origin",
        origin,
        "where it comes from: `{\"source\":\"url\"|\"local\",\"digest\":…}`; 64 zeros mean unknown",
    );
    let schema = |schema: Option<&Json>| schema.map(Json::value);
    draft.put_or_ask(
        "/interfaces/inputs",
        schema(action.and_then(|action| action.input.as_ref())),
        "a JSON Schema of the input",
    );
    draft.put_or_ask(
        "/interfaces/outputs",
        schema(action.and_then(|action| action.output.as_ref())),
        "a JSON Schema of the answer",
    );
    draft.ask("/permissions", "what it may touch: `{\"network\":\"deny\"|\"allowlist\",\"filesystem\":\"none\"|\"read\"|\"write\",\"devices\":[]}`");
    draft.ask("/runtime/sandbox", "`process` or `container`");
    draft.ask("/runtime/resources", "its limits: `{\"cpu\":\"500m\",\"memory\":\"256Mi\"}`");
    let timeout = action.and_then(|action| action.timeout_ms).or(package.timeout_ms);
    draft.put_some("/runtime/timeout_seconds", timeout.map(|timeout| timeout.div_ceil(1000)));
    draft.ask(
        "/trust_level",
        "`local`, `verified`, `community` or `untrusted`; a conversion cannot vouch for anything",
    );
    write_secrets(package, draft);
    lose_plain_variables(package, draft);
    if let Some(action) = action {
        match run::of(package, action) {
            Run::Command { argv, .. } => {
                draft.put("/implementation", json!({"kind": "command", "command": {"argv": argv}}));
            }
            _ => draft.lose(
                action.pointer.clone(),
                Weight::Behaviour,
                "how the tool is run cannot be said in a capability manifest",
            ),
        }
    }
    let others = package
        .implementations
        .iter()
        .filter(|other| matches!(other.entry, Entry::Http { .. }))
        .count();
    if others > 0 && package.implementations.len() > 1 {
        draft.lose(
            Pointer::root().key("endpoint"),
            Weight::Behaviour,
            "the http endpoint has no place in a capability manifest",
        );
    }
}

/// Secrets are references there; what has no reference yet is asked for.
fn write_secrets(package: &Package, draft: &mut Draft) {
    let secrets: Vec<&Input> = package
        .inputs
        .iter()
        .filter(|input| input.secret && input.source == InputSource::Owner)
        .collect();
    for (index, secret) in secrets.iter().enumerate() {
        draft.put(&format!("/secrets/{index}/name"), secret.name.as_str());
        let what =
            format!("where the secret `{}` is kept, for example `vault://path#key`", secret.name);
        draft.put_or_ask(&format!("/secrets/{index}/ref"), secret.reference.clone(), &what);
    }
}
