//! What would be run, with what and why.

use std::path::Path;

use host::{Blocked, CallError};
use policy::Surface;
use serde_json::Value;

use super::blocked::{absent_words, blocked_words};
use super::made::Ready;
use super::told::{Unmade, failed};
use super::values;
use super::wanted::{Wanted, choose, has};
use crate::ask::Ask;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::owner::Passphrase;
use crate::printer::{Printer, line};
use crate::steps;

/// What is told of a tool that only its server knows.
const UNASKED: &str = "the server has not been asked whether it has this tool, nor what it takes";

/// Shows what would be run for a caller, with what and why. Nothing is run: to ask a server what it can do
/// would be to run it, so what it does not declare is taken for granted.
pub(crate) fn explain(
    wanted: &Wanted,
    surface: Surface,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Result<Exit, Unmade> {
    let Ready { runtime, host, mut found } = Ready::to_look(wanted, home, ask, printer)?;
    let is_known = found.tools.iter().any(|tool| has(tool, wanted.name()));
    if !is_known && (wanted.name().is_some() || found.tools.len() == 1) {
        // Whether a server can be asked at all is told as for any tool of it.
        let name = wanted.name().unwrap_or("tools/list");
        for tool in found.tools.iter_mut().filter(|tool| tool.package.is_server()) {
            tool.package.actions.push(host::assumed(name));
        }
    }
    let (tool, action) = choose(&found, wanted.name(), &[])?;
    let unmade = |error: CallError| Unmade {
        failure: failed(&error, &Blocked::of(&error), tool, wanted.place(tool)),
        error: Some(Box::new(error)),
    };
    let plan = runtime.block_on(host.plan(tool, &wanted.call(&action, surface)?));
    let plan = plan.map_err(unmade)?;
    if !is_known && wanted.name().is_none() {
        let id = line(&tool.package.canonical_id());
        let message =
            format!("`{id}` has to be asked which tools it has, and --explain runs nothing");
        return Err(Failure::invalid(message).hint("name the tool that you mean").into());
    }
    let mut document = plan.to_value();
    if !is_known {
        document["unasked"] = UNASKED.into();
    }
    let errors: Vec<_> = plan.refusal().into_iter().chain(plan.no_secrets()).collect();
    if !errors.is_empty() {
        let hints =
            |error: &&CallError| failed(error, &Blocked::of(error), tool, wanted.place(tool)).hints;
        document["hints"] = errors.iter().flat_map(hints).collect();
    }
    if !plan.unseen.is_empty() {
        let words = plan.unseen.iter().map(|one| blocked_words(one, tool));
        document["blocked"] = words.collect();
    }
    let absent = plan.absent();
    if !absent.is_empty() {
        document["absent"] = absent
            .into_iter()
            .map(|(kind, value)| absent_words(kind.name(), value, tool))
            .collect();
    }
    let package = tool.package.canonical_id();
    for one in document["missing"].as_array_mut().into_iter().flatten() {
        one["hint"] = values::missing(one, &package, Passphrase::Typed).into();
    }
    // Who stops reading ends us, and nobody would take away what was unpacked.
    drop(found);
    if json_wanted {
        printer.json(&document)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    write_lines(&document, Path::new(""), &mut text);
    printer.result(&text)?;
    Ok(Exit::Done)
}

/// A document as indented lines.
fn write_lines(value: &Value, at: &Path, text: &mut String) {
    let indent = "  ".repeat(at.components().count());
    let Value::Object(members) = value else { return };
    for (name, value) in members {
        match value {
            Value::Object(_) => {
                *text += &format!("{indent}{name}:\n");
                write_lines(value, &at.join(name), text);
            }
            Value::Array(items) => {
                *text +=
                    &format!("{indent}{name}:{}\n", if items.is_empty() { " none" } else { "" });
                for item in items {
                    let words = words_of(item);
                    *text += &format!("{indent}  - {}\n", line(&words));
                }
            }
            Value::Null => {}
            Value::String(words) => *text += &format!("{indent}{name}: {}\n", line(words)),
            other => *text += &format!("{indent}{name}: {other}\n"),
        }
    }
}

/// One of several things; of what is missing, why, and what would give it.
fn words_of(item: &Value) -> String {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    match (item.as_str(), text("name")) {
        (Some(words), _) => words.to_owned(),
        (None, None) if item.get("step").is_some() => steps::words(item),
        (None, Some(name)) => {
            let why = text("why").map(|why| format!(": {why}")).unwrap_or_default();
            let hint = text("hint").map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{name}{why}{hint}")
        }
        (None, None) => item.to_string(),
    }
}
