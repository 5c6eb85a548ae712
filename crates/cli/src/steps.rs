//! What the steps of chains call: what lies beside a chain, what --with names, and what is installed, in this order.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::chain::link;
use host::surface::Surface;
use host::ticket::step_words;
use host::{CallError, Kind, Tool};
use manifest::model::Action;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::load::Loading;
use crate::printer::{Printer, line};
use crate::tools::{self, Found};
use crate::{disk, installed, owner, shell};

/// How long what was approved of a server may be read.
const READING: Duration = Duration::from_secs(10);

/// Looks up what the steps of the chains among these tools call. A chain that cannot be followed says so when it is
/// called, so that its refusal is written down like any other.
pub(crate) fn link_all(found: &mut Found, with: &[Found], home: &Home, printer: Printer) {
    if found.tools.iter().all(|tool| tool.package.chain.is_none()) {
        return;
    }
    let beside: Vec<Tool> =
        found.tools.iter().chain(with.iter().flat_map(|one| &one.tools)).cloned().collect();
    for tool in &mut found.tools {
        link_one(tool, &beside, home, printer);
    }
}

/// The same for one tool.
pub(crate) fn link_one(tool: &mut Tool, beside: &[Tool], home: &Home, printer: Printer) {
    tool.links = link(tool, &mut |id| find(id, beside, home, printer));
}

/// The tools at the paths that --with names.
pub(crate) fn with(
    paths: &[PathBuf],
    home: &Home,
    printer: Printer,
) -> Result<Vec<Found>, Failure> {
    let loading = Loading { dialect: None, id: None };
    let mut all = Vec::new();
    for path in paths {
        match tools::at(path, loading, home, Printer::silent()) {
            Ok(found) => all.push(found),
            Err(_) => match each_below(path, home, printer) {
                Some(found) => all.extend(found),
                // What is wrong with it is told.
                None => all.push(tools::at(path, loading, home, printer)?),
            },
        }
    }
    Ok(all)
}

/// The packages in the folders of a folder, one of which cannot be read: that one may be nobody's concern. Nothing where none can.
fn each_below(path: &Path, home: &Home, printer: Printer) -> Option<Vec<Found>> {
    let loading = Loading { dialect: None, id: None };
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(path).ok()?.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    let (mut all, mut passed_over) = (Vec::new(), Vec::new());
    for folder in folders.iter().filter(|folder| disk::manifest_in(folder).is_ok()) {
        match tools::at(folder, loading, home, Printer::silent()) {
            Ok(found) => all.push(found),
            Err(failure) => passed_over.push((folder, failure)),
        }
    }
    if all.is_empty() {
        return None;
    }
    for (folder, failure) in passed_over {
        let (folder, why) = (line(&folder.to_string_lossy()), line(&failure.message));
        printer.warn(&format!("`{folder}` is passed over: {why}"));
    }
    Some(all)
}

/// A step of a chain as it is told: what it calls with what, and why the owner is asked or what was decided.
pub(crate) fn words(step: &Value) -> String {
    let name = step["step"].as_str().unwrap_or_default();
    let decision = step["decision"].as_str().map(|decision| format!(": {decision}"));
    let because = step["because"].as_str().map(|why| format!(", because {why}"));
    let (decision, because) = (decision.unwrap_or_default(), because.unwrap_or_default());
    line(&format!("{name}: {}{decision}{because}", step_words(step)))
}

/// The tool that a step calls by an id.
pub(crate) fn find(
    id: &str,
    beside: &[Tool],
    home: &Home,
    printer: Printer,
) -> Result<Tool, CallError> {
    let mut called: Vec<&Tool> = Vec::new();
    for tool in beside.iter().filter(|tool| tool.is_called(id)) {
        // One that was found in two ways is one.
        let is_same = |one: &&Tool| {
            one.place == tool.place && one.package.canonical_id() == tool.package.canonical_id()
        };
        if !called.iter().any(is_same) {
            called.push(tool);
        }
    }
    let mut tool = match called.as_slice() {
        [] => match installed::unlinked(id, home, printer) {
            Ok(mut found) => found.tools.remove(0),
            Err(failure) => return Err(told(failure, id)),
        },
        [one] => (*one).clone(),
        several => {
            let message = format!("{} packages are called that", several.len());
            return Err(CallError::new(Kind::BadChain, message));
        }
    };
    // A server's own tools are those that were approved.
    if let Some(surface) = tool.surface.as_ref().filter(|_| tool.package.actions.is_empty()) {
        tool.package.actions = approved(surface, id)?;
    }
    Ok(tool)
}

/// The actions that were approved of a server. Whoever asks may be within a runtime already, so this is done beside it.
fn approved(surface: &Surface, id: &str) -> Result<Vec<Action>, CallError> {
    let read = || {
        let runtime = owner::runtime().map_err(|failure| told(failure, id))?;
        runtime.block_on(host::actions_of(surface, Instant::now() + READING))
    };
    let gone = || CallError::new(Kind::Unavailable, "what was approved of it could not be read");
    std::thread::scope(|scope| scope.spawn(read).join().unwrap_or_else(|_| Err(gone())))
}

/// Why a tool is not found, as a chain that calls it tells it.
fn told(failure: Failure, id: &str) -> CallError {
    let word = shell::word(id);
    let (kind, message, hints) = match failure.exit {
        Exit::NotFound => {
            let hint =
                format!("`haft install {word}` installs it; --with PATH takes it from there");
            (Kind::Unknown, "it is not installed".to_owned(), vec![hint])
        }
        Exit::Denied => (Kind::Denied, failure.message, failure.hints),
        Exit::Invalid | Exit::Conflict => (Kind::BadChain, failure.message, failure.hints),
        _ => (Kind::Unavailable, failure.message, failure.hints),
    };
    CallError::new(kind, message).with("hints", hints)
}
