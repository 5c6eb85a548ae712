//! What can be called.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::Class;
use super::changes::{Changes, Topic};
use super::limits;
use super::schema::{self, Side, Site};
use super::words::{gained, listed, quoted};
use crate::concept::Concept;
use crate::dialect::Dialect;
use crate::dialect::mcpkg::join_command;
use crate::json::Pointer;
use crate::model::{Action, Invocation, Json, OutputFormat, Package, SideEffects};
use crate::schema::Unknowns;
use crate::shape::clip;

/// What an action is compared in the light of.
struct Versions<'p> {
    old: &'p Package,
    new: &'p Package,
    /// The variables the old package was given.
    variables: BTreeSet<&'p str>,
}

/// Compares what can be called; actions are matched by name.
pub(super) fn compare(changes: &mut Changes, old: &Package, new: &Package) {
    let by_name = |package| -> BTreeMap<&str, &Action> {
        let package: &Package = package;
        package.actions.iter().map(|action| (action.name.as_str(), action)).collect()
    };
    let (before, after) = (by_name(old), by_name(new));
    let variables = old.inputs.iter().map(|input| input.name.as_str()).collect();
    let versions = Versions { old, new, variables };
    for (name, action) in &before {
        match after.get(name) {
            Some(now) => changed(changes, &versions, action, now),
            None => changes.about_action(subject(name), action).tell(
                Class::Breaking,
                Concept::Actions,
                "is gone",
            ),
        }
    }
    let known: BTreeSet<&str> = old.scopes.iter().map(|scope| scope.resource.as_str()).collect();
    for (name, action) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        let mut topic = changes.about_action(subject(name), action);
        added(&mut topic, action, &known);
    }
}

fn subject(name: &str) -> String {
    format!("action {name}")
}

/// A new action harms nobody who does not call it, unless an agent might.
fn added(topic: &mut Topic<'_>, action: &Action, known_scopes: &BTreeSet<&str>) {
    let is_harmless = action.side_effects.is_some_and(|effects| effects <= SideEffects::Read);
    let new_scopes: Vec<&str> = action
        .scopes_used
        .iter()
        .map(String::as_str)
        .filter(|scope| !known_scopes.contains(scope))
        .collect();
    let class =
        if is_harmless && new_scopes.is_empty() { Class::Additive } else { Class::NeedsReview };
    let scopes = match new_scopes.as_slice() {
        [] => String::new(),
        _ => format!(", and uses the new scopes {}", listed(new_scopes)),
    };
    let effects = effects(action.side_effects);
    topic.tell(class, Concept::Actions, format!("is new, with side effects {effects}{scopes}"));
}

fn changed(changes: &mut Changes, versions: &Versions<'_>, old: &Action, new: &Action) {
    let Action {
        name,
        summary,
        description,
        invocation,
        input,
        output_format,
        output,
        side_effects,
        idempotent,
        scopes_used,
        standard_errors,
        requires_approval,
        timeout_ms,
        environment,
        examples,
        docs,
        pointer: _, // an action may stand elsewhere
    } = old;
    let (package, now) = (versions.old, versions.new);
    let mut topic = changes.about_action(subject(name), new);
    // Where a package has one action, both say the same, and the package has told it.
    if (summary, &new.summary) != (&package.summary, &now.summary) {
        topic.prose(Concept::Summary, summary.as_deref(), new.summary.as_deref());
    }
    if (description, &new.description) != (&package.description, &now.description) {
        topic.prose(Concept::Description, description.as_deref(), new.description.as_deref());
    }
    if *docs != new.docs {
        topic.tell(Class::Cosmetic, Concept::Docs, "its notes changed; agents read them");
    }
    if (*timeout_ms, new.timeout_ms) != (package.timeout_ms, now.timeout_ms) {
        limits::timeout(&mut topic, *timeout_ms, new.timeout_ms);
    }
    // Of an action that is the whole package, the ways to run have told where to look.
    let place = if new.pointer == Pointer::root() { Concept::Part } else { Concept::Run };
    compare_invocation(&mut topic, place, invocation, &new.invocation);
    compare_format(&mut topic, *output_format, new.output_format);
    compare_effects(&mut topic, *side_effects, new.side_effects);
    compare_repeats(&mut topic, *idempotent, new.idempotent);
    compare_approval(&mut topic, *requires_approval, new.requires_approval);
    for scope in gained(scopes_used, &new.scopes_used) {
        let message = format!("uses the scope {} now", quoted(scope));
        topic.tell(Class::NeedsReview, Concept::ScopesUsed, message);
    }
    for scope in gained(&new.scopes_used, scopes_used) {
        let message = format!("no longer uses the scope {}", quoted(scope));
        topic.tell(Class::Additive, Concept::ScopesUsed, message);
    }
    match (*standard_errors, new.standard_errors) {
        (true, false) => {
            let message = "errors no longer have the standard shape";
            topic.tell(Class::Breaking, Concept::ErrorEnvelope, message);
        }
        (false, true) => {
            let message = "errors have the standard shape now";
            topic.tell(Class::Additive, Concept::ErrorEnvelope, message);
        }
        (true, true) | (false, false) => {}
    }
    // A variable that the package did not have before is told with its inputs.
    for variable in gained(environment, &new.environment) {
        if versions.variables.contains(variable) {
            let message = format!("is given the variable {} now", quoted(variable));
            topic.tell(Class::NeedsReview, Concept::EnvPassthrough, message);
        }
    }
    for variable in gained(&new.environment, environment) {
        let message = format!("is no longer given the variable {}", quoted(variable));
        topic.tell(Class::Additive, Concept::EnvPassthrough, message);
    }
    if *examples != new.examples {
        topic.tell(Class::Cosmetic, Concept::Examples, "its examples changed; agents read them");
    }
    compare_schema(changes, versions, new, Side::Input, (input.as_ref(), new.input.as_ref()));
    compare_schema(changes, versions, new, Side::Output, (output.as_ref(), new.output.as_ref()));
}

fn compare_schema(
    changes: &mut Changes,
    versions: &Versions<'_>,
    action: &Action,
    side: Side,
    (old, new): (Option<&Json>, Option<&Json>),
) {
    let (word, concept) = match side {
        Side::Input => ("input", Concept::Input),
        Side::Output => ("output", Concept::Output),
    };
    let subject = format!("{word} schema of {}", clip(&action.name));
    let requires = |schema: &Json| {
        schema.value()["required"].as_array().is_some_and(|names| !names.is_empty())
    };
    let (class, message) = match (old, new, side) {
        (Some(old), Some(new), _) => {
            let is_strict = side == Side::Input && versions.new.dialect == Dialect::InstallManifest;
            let unknowns = if is_strict { Unknowns::Refused } else { Unknowns::AsTheSchemaSays };
            let pointer = changes.place_in(action, concept);
            let place = Site { side, subject, pointer, unknowns };
            return changes.extend(schema::compare(old, new, &place));
        }
        (None, None, _) => return,
        (None, Some(new), Side::Input) if requires(new) => {
            (Class::Breaking, "is new and has required properties")
        }
        (None, Some(_), Side::Input) => {
            (Class::NeedsReview, "is new; what was accepted before is not known")
        }
        (Some(_), None, Side::Input) => {
            (Class::NeedsReview, "is gone; what is accepted now is not known")
        }
        (None, Some(_), Side::Output) => (Class::Additive, "is new"),
        (Some(_), None, Side::Output) => (Class::Breaking, "is gone; nothing is promised any more"),
    };
    changes.about_action(subject, action).tell(class, concept, message);
}

fn compare_invocation(topic: &mut Topic<'_>, place: Concept, old: &Invocation, new: &Invocation) {
    let sorted = |invocation: &Invocation| {
        let mut invocation = invocation.clone();
        if let Invocation::Http { headers, .. } = &mut invocation {
            headers.sort();
        }
        invocation
    };
    if sorted(old) != sorted(new) {
        let (was, is) = (invocation_words(old), invocation_words(new));
        let message = format!("was called {was} and is now called {is}");
        topic.tell(Class::NeedsReview, place, message);
    }
}

fn invocation_words(invocation: &Invocation) -> String {
    let arguments = |argv: &[String]| quoted(&join_command(argv));
    match invocation {
        Invocation::Subcommand { argv_template } => format!("as {}", arguments(argv_template)),
        Invocation::StdinJson { argv_template } if argv_template.is_empty() => {
            "with JSON on standard input".to_owned()
        }
        Invocation::StdinJson { argv_template } => {
            format!("as {} with JSON on standard input", arguments(argv_template))
        }
        Invocation::ArgvJson => "with JSON as its last argument".to_owned(),
        Invocation::Http { method, path, headers } => {
            let headers: Vec<String> =
                headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            let with = if headers.is_empty() { "" } else { " with " };
            let headers = listed(headers.iter().map(String::as_str));
            format!("by {}{with}{headers}", quoted(format!("{method} {path}").trim_end()))
        }
        Invocation::McpTool { tool_name } => format!("as the MCP tool {}", quoted(tool_name)),
        Invocation::NodeExecute => "by `execute`".to_owned(),
        Invocation::PythonCall => "as a Python function".to_owned(),
        Invocation::A2aSend => "by a message".to_owned(),
        Invocation::Chain => "through other tools".to_owned(),
        Invocation::Script => "with arguments and standard input".to_owned(),
        Invocation::Undeclared => "in an undeclared way".to_owned(),
    }
}

fn compare_format(topic: &mut Topic<'_>, old: Option<OutputFormat>, new: Option<OutputFormat>) {
    let class = if old.is_none() { Class::Additive } else { Class::Breaking };
    let (was, is) = (old.map(OutputFormat::name), new.map(OutputFormat::name));
    topic.text(class, Concept::OutputFormat, was, is);
}

fn compare_effects(topic: &mut Topic<'_>, old: Option<SideEffects>, new: Option<SideEffects>) {
    // What is not declared may be anything.
    let reach = |effects: Option<SideEffects>| effects.map_or(usize::MAX, |it| it as usize);
    let (class, verb) = match reach(new).cmp(&reach(old)) {
        Ordering::Greater => (Class::NeedsReview, "grew"),
        Ordering::Less => (Class::Additive, "shrank"),
        Ordering::Equal => return,
    };
    let message = format!("the side effects {verb} from {} to {}", effects(old), effects(new));
    topic.tell(class, Concept::SideEffects, message);
}

fn effects(effects: Option<SideEffects>) -> String {
    quoted(effects.map_or("undeclared", SideEffects::name))
}

fn compare_repeats(topic: &mut Topic<'_>, old: Option<bool>, new: Option<bool>) {
    let (class, message) = match (old, new) {
        (Some(true), Some(false) | None) => {
            (Class::NeedsReview, "calling it twice is no longer calling it once")
        }
        (Some(false) | None, Some(true)) => {
            (Class::Additive, "calling it twice is calling it once now")
        }
        (Some(false), None) | (None, Some(false)) => {
            (Class::Cosmetic, "whether it can be repeated is said otherwise")
        }
        (Some(true), Some(true)) | (Some(false), Some(false)) | (None, None) => return,
    };
    topic.tell(class, Concept::Idempotent, message);
}

fn compare_approval(topic: &mut Topic<'_>, old: Option<bool>, new: Option<bool>) {
    // Silence leaves it to the owner's policy; `false` speaks against asking.
    let care = |approval: Option<bool>| match approval {
        Some(false) => (0, "not required"),
        None => (1, "undeclared"),
        Some(true) => (2, "required"),
    };
    let (was, is) = (care(old), care(new));
    if was != is {
        let class = if is < was { Class::NeedsReview } else { Class::Additive };
        let message = format!("approval was `{}` and is now `{}`", was.1, is.1);
        topic.tell(class, Concept::Approval, message);
    }
}
