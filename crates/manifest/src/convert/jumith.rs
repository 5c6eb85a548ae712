//! Writes a Jumith describe document.

use super::draft::Draft;
use super::mcpkg::description;
use super::run;
use crate::concept::Weight;
use crate::model::{Entry, InputSource, Json, Package, SideEffects};
use crate::shape::patterns;

pub(super) fn write(package: &Package, draft: &mut Draft) {
    let action = package.actions.first();
    draft.put_or_ask("/id", Some(package.id.as_str()).filter(|id| !id.is_empty()), "an id");
    let name = package.name.as_deref().or_else(|| action.map(|action| action.name.as_str()));
    draft.put_or_ask("/name", name.filter(|name| !name.is_empty()), "the name people type");
    let version = package.version.as_deref().filter(|version| (patterns::SEMVER.matches)(version));
    draft.put_or_ask("/version", version, "a semantic version");
    let one_line = |text: &&str| !text.contains('\n') && text.chars().count() <= 280;
    let summary =
        package.summary.as_deref().or_else(|| action.and_then(|action| action.summary.as_deref()));
    let summary = summary.or_else(|| description(package, action).filter(one_line));
    draft.put_or_ask("/summary", summary, "one line on what it does");
    draft.put_some("/description", package.description.clone());
    if !package.tags.is_empty() {
        draft.put("/tags", package.tags.clone());
    }
    let provider = package
        .publisher
        .as_ref()
        .and_then(|person| person.name.clone().or_else(|| person.id.clone()));
    draft.put_some("/provider", provider);
    match package.implementations.first().map(|implementation| &implementation.entry) {
        Some(Entry::NodeModule { main, export }) => {
            draft.put("/entry/runtime", "node");
            draft.put("/entry/main", main.as_str());
            draft.put_some("/entry/export", export.clone());
        }
        _ => {
            draft.put("/entry/runtime", "node");
            draft.ask("/entry/main", "the path of a JavaScript module that exports a Tool object");
        }
    }
    let schema = |schema: Option<&Json>| schema.map(Json::value);
    draft.put_some("/schema/input", schema(action.and_then(|action| action.input.as_ref())));
    draft.put_some("/schema/output", schema(action.and_then(|action| action.output.as_ref())));
    let approval = action.and_then(|action| {
        action
            .requires_approval
            .or_else(|| (action.side_effects == Some(SideEffects::Destructive)).then_some(true))
    });
    draft.put_some("/requiresApproval", approval);
    lose_plain_variables(package, draft);
    let secrets: Vec<_> = package
        .inputs
        .iter()
        .filter(|input| input.secret && input.source == InputSource::Owner)
        .map(|input| input.name.clone())
        .collect();
    if !secrets.is_empty() {
        draft.put("/requiredSecrets", secrets);
    }
}

/// Says that variables which are no secrets have no place.
pub(super) fn lose_plain_variables(package: &Package, draft: &mut Draft) {
    for (index, input) in package.inputs.iter().enumerate() {
        if !input.secret && input.source == InputSource::Owner {
            let reason = format!("the variable `{}` has no place: only secrets have", input.name);
            draft.lose(run::place_of_input(package, index), Weight::Behaviour, reason);
        }
    }
}

/// An id without the prefix that registries put before it.
pub(super) fn plain_id(id: &str) -> &str {
    id.strip_prefix("tool:").unwrap_or(id)
}
