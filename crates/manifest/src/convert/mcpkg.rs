//! Writes an mcpkg manifest.

use serde_json::{Value, json};

use super::draft::Draft;
use super::run::{self, Run};
use crate::concept::Weight;
use crate::dialect::Dialect;
use crate::dialect::mcpkg::join_command;
use crate::json::Pointer;
use crate::model::{Action, AuthKind, Entry, Implementation, Json, Package, SideEffects};
use crate::shape::patterns;

pub(super) fn write(package: &Package, draft: &mut Draft) {
    let action = package.actions.first();
    let id = super::jumith::plain_id(&package.id);
    let fits = (patterns::DOTTED_ID.matches)(id);
    draft.put_or_ask(
        "/toolId",
        fits.then_some(id),
        "an id of dotted segments like `publisher.domain.name`",
    );
    let name = package.name.as_deref().or_else(|| action.map(|action| action.name.as_str()));
    draft.put_or_ask("/name", name.filter(|name| !name.is_empty()), "the name people see");
    let version = package.version.as_deref().filter(|version| (patterns::SEMVER.matches)(version));
    draft.put_or_ask("/version", version, "a semantic version");
    let description = description(package, action);
    draft.put_or_ask("/description", description, "what the tool does, in short");
    lose_other_texts(package, action, draft);
    draft.put("/capabilities", package.tags.clone());
    match &package.chain {
        Some(chain) => {
            let steps: Vec<Value> =
                chain.steps.iter().map(|step| step.definition.value()).collect();
            draft.put("/chain", steps);
        }
        None => write_run(package, action, draft),
    }
    let schema = |schema: Option<&Json>| schema.map(Json::value);
    draft.put_or_ask(
        "/input_schema",
        schema(action.and_then(|action| action.input.as_ref())),
        "a JSON Schema of the input",
    );
    draft.put_or_ask(
        "/output_schema",
        schema(action.and_then(|action| action.output.as_ref())),
        "a JSON Schema of the answer",
    );
    write_auth(package, draft);
    let effects = action.and_then(|action| action.side_effects);
    draft.put_some("/sideEffects", effects.map(SideEffects::name));
    draft.put_some("/idempotent", action.and_then(|action| action.idempotent).filter(|is| *is));
    if !package.tests.is_empty() {
        draft.put("/tests", package.tests.clone());
    }
    if !package.examples.is_empty() {
        draft.put("/examples", package.examples.clone());
    }
    if let Some(person) = package.publisher.as_ref() {
        draft.put_some("/meta/publisher/id", person.id.clone());
        draft.put_some("/meta/publisher/name", person.name.clone());
        draft.put_some("/meta/publisher/website", person.url.clone());
    }
    draft.put_some("/meta/license", package.license.clone());
    draft.put_some("/meta/homepage", package.homepage.clone());
}

/// The best text there is; the summary counts as one.
pub(super) fn description<'p>(package: &'p Package, action: Option<&'p Action>) -> Option<&'p str> {
    let of_action =
        action.and_then(|action| action.description.as_deref().or(action.summary.as_deref()));
    let of_package = package.description.as_deref().or(package.summary.as_deref());
    let has_one = package.actions.len() == 1;
    let best = if has_one { of_package.or(of_action) } else { of_action.or(of_package) };
    best.filter(|text| !text.is_empty())
}

/// Says which texts found no place beside the one that [`description`] chose.
pub(super) fn lose_other_texts(package: &Package, action: Option<&Action>, draft: &mut Draft) {
    let chosen = description(package, action);
    let [summary, description] = places_of_texts(package);
    let of_package = [(summary, &package.summary), (description, &package.description)];
    let of_action = action.filter(|action| action.pointer != Pointer::root());
    let of_action = of_action.into_iter().flat_map(|action| {
        [
            (action.pointer.key("summary"), &action.summary),
            (action.pointer.key("description"), &action.description),
        ]
    });
    for (pointer, text) in of_package.into_iter().chain(of_action) {
        if let Some(text) = text
            && Some(text.as_str()) != chosen
        {
            draft.lose(pointer, Weight::Cosmetic, "there is place for one description only");
        }
    }
}

/// Where the summary and the description of a package stand in its document.
pub(super) fn places_of_texts(package: &Package) -> [Pointer; 2] {
    let root = Pointer::root();
    match package.dialect {
        Dialect::InstallManifest => {
            [root.key("tool").key("summary"), root.key("tool").key("description")]
        }
        Dialect::Mcpb => [root.key("description"), root.key("long_description")],
        Dialect::ServerJson => [root.key("description"), root.key("description")],
        _ => [root.key("summary"), root.key("description")],
    }
}

fn write_run(package: &Package, action: Option<&Action>, draft: &mut Draft) {
    let Some(action) = action else {
        return draft.ask("/endpoint", "where a call goes: an http endpoint, or a local command");
    };
    match run::of(package, action) {
        Run::Request { method, url, implementation } => {
            draft.put("/endpoint", json!({"type": "http", "method": method, "url": url}));
            draft.put_some("/endpoint/timeoutMs", implementation.timeout_ms.or(action.timeout_ms));
        }
        Run::Command { argv, implementation } => {
            draft.put("/implementations/0", local(&argv, implementation, action));
        }
        Run::Other => {
            draft.ask("/endpoint", "where a call goes: `{\"type\":\"http\",\"method\":…,\"url\":…}` or `{\"type\":\"local\",\"command\":…}`");
            let reason = "how the tool is run cannot be said in mcpkg";
            draft.lose(action.pointer.clone(), Weight::Behaviour, reason);
        }
    }
}

fn local(argv: &[String], implementation: &Implementation, action: &Action) -> Value {
    let runtime = match &implementation.entry {
        Entry::Argv { runtime, .. } => runtime.clone(),
        _ => None,
    };
    let mut value = json!({"id": implementation.id});
    if let Some(language) = &implementation.language {
        value["language"] = language.as_str().into();
    }
    if let Some(runtime) = implementation.runtime.clone().or(runtime) {
        value["runtime"] = runtime.into();
    }
    value["endpoint"] = json!({"type": "local", "command": join_command(argv)});
    if let Some(timeout) = implementation.timeout_ms.or(action.timeout_ms) {
        value["endpoint"]["timeoutMs"] = timeout.into();
    }
    value
}

fn write_auth(package: &Package, draft: &mut Draft) {
    let Some(auth) = &package.auth else { return };
    draft.put("/auth/type", auth.kind.name());
    if !auth.scopes.is_empty() {
        draft.put("/auth/scopes", auth.scopes.clone());
    }
    if auth.kind != AuthKind::None && !auth.env.is_empty() {
        draft.put("/auth/configHints/env", auth.env.clone());
    }
}
