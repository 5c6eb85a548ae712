//! The ways to run the tool.

use std::collections::{BTreeMap, BTreeSet};

use super::Class;
use super::changes::{Changes, Topic};
use super::limits;
use super::words::{listed, quoted};
use crate::concept::Concept;
use crate::dialect::Dialect;
use crate::dialect::mcpkg::join_command;
use crate::model::{Entry, Implementation, Package};

/// Compares the ways to run; they are matched by id.
pub(super) fn compare(changes: &mut Changes, old: &Package, new: &Package) {
    let (before, after) = (by_id(old), by_id(new));
    // Where each action has a way of its own, a new or lost one is told with its action.
    let is_own = |package: &Package| package.dialect == Dialect::Agentcli;
    for (id, way) in &before {
        let mut topic = changes.about(format!("implementation {id}"));
        match after.get(id) {
            Some(now) => changed(&mut topic, (old, way), (new, now)),
            None if is_own(old) => {}
            None => {
                let message = format!("is gone: {}", entry_words(&way.entry));
                topic.tell(Class::NeedsReview, concept_of(old, way), message);
            }
        }
    }
    for (id, way) in after.iter().filter(|(id, _)| !before.contains_key(*id)) {
        if !is_own(new) {
            let message = format!("is new: {}", entry_words(&way.entry));
            let mut topic = changes.about(format!("implementation {id}"));
            topic.tell(Class::NeedsReview, concept_of(new, way), message);
        }
    }
    platforms(changes, &old.implementations, &new.implementations);
    let order = |ways: &[Implementation], others: &BTreeMap<&str, &Implementation>| {
        let ids = ways.iter().map(|way| way.id.clone());
        ids.filter(|id| others.contains_key(id.as_str())).collect::<Vec<_>>()
    };
    let (was, is) = (order(&old.implementations, &after), order(&new.implementations, &before));
    if was != is && !is_own(new) {
        let ids = |ids: &[String]| listed(ids.iter().map(String::as_str));
        let message = format!("the order was {} and is now {}", ids(&was), ids(&is));
        changes.about("implementations").tell(Class::Cosmetic, Concept::Implementations, message);
    }
}

fn by_id(package: &Package) -> BTreeMap<&str, &Implementation> {
    package.implementations.iter().map(|way| (way.id.as_str(), way)).collect()
}

/// Which field of the document a way to run was read from.
fn concept_of(package: &Package, way: &Implementation) -> Concept {
    match &way.entry {
        _ if package.dialect == Dialect::Mcpkg && way.id != "endpoint" => Concept::Implementations,
        Entry::Http { .. } | Entry::McpHttp { .. } | Entry::A2a { .. } => Concept::Endpoint,
        _ => Concept::Run,
    }
}

fn changed(
    topic: &mut Topic<'_>,
    (old_package, old): (&Package, &Implementation),
    (new_package, new): (&Package, &Implementation),
) {
    let Implementation {
        id: _,
        language,
        runtime,
        platforms: _, // by `platforms`, over all ways to run
        entry,
        timeout_ms,
        requirements,
    } = old;
    let concept = concept_of(new_package, new);
    for (class, noun, was, is) in [
        (Class::Cosmetic, "language", language, &new.language),
        (Class::NeedsReview, "runtime", runtime, &new.runtime),
    ] {
        if was != is {
            let show = |text: &Option<String>| quoted(text.as_deref().unwrap_or("undeclared"));
            let message = format!("its {noun} was {} and is now {}", show(was), show(is));
            topic.tell(class, concept, message);
        }
    }
    if *entry != new.entry {
        let message =
            format!("ran {} and now runs {}", entry_words(entry), entry_words(&new.entry));
        topic.tell(Class::NeedsReview, concept, message);
    }
    // The limit of a way to run is often the package's or its own action's, and told there.
    let of_package = (old_package.timeout_ms, new_package.timeout_ms);
    let is_told =
        new_package.dialect == Dialect::Agentcli || (*timeout_ms, new.timeout_ms) == of_package;
    if !is_told {
        limits::timeout(topic, *timeout_ms, new.timeout_ms);
    }
    match (requirements, &new.requirements) {
        (Some(was), Some(is)) if was.value() != is.value() => {
            topic.replaced(Class::NeedsReview, Concept::Requirements, was.text(), is.text());
        }
        (None, Some(is)) => topic.added(Class::NeedsReview, Concept::Requirements, is.text()),
        (Some(was), None) => topic.removed(Class::Additive, Concept::Requirements, was.text()),
        (Some(_), Some(_)) | (None, None) => {}
    }
}

/// Compares where the package runs at all, by any of its ways.
fn platforms(changes: &mut Changes, old: &[Implementation], new: &[Implementation]) {
    if old.is_empty() || new.is_empty() {
        return;
    }
    let (Some(before), after) = (served(old), served(new)) else {
        if let Some(after) = served(new) {
            let message = format!("ran everywhere and now runs on {} only", listed(after));
            let mut topic = changes.about("platforms");
            topic.tell(Class::Breaking, Concept::Implementations, message);
        }
        return;
    };
    let mut topic = changes.about("platforms");
    let Some(after) = after else {
        let message = format!("ran on {} and now runs everywhere", listed(before));
        return topic.tell(Class::Additive, Concept::Implementations, message);
    };
    for platform in before.difference(&after) {
        let message = format!("no longer runs on {}", quoted(platform));
        topic.tell(Class::Breaking, Concept::Implementations, message);
    }
    for platform in after.difference(&before) {
        let message = format!("runs on {} too", quoted(platform));
        topic.tell(Class::Additive, Concept::Implementations, message);
    }
}

/// The systems some way to run serves; none when it is all of them.
fn served(ways: &[Implementation]) -> Option<BTreeSet<&str>> {
    let is_limited = ways.iter().all(|way| !way.platforms.is_empty());
    is_limited.then(|| ways.iter().flat_map(|way| &way.platforms).map(String::as_str).collect())
}

fn entry_words(entry: &Entry) -> String {
    let command = |argv: &[String], cwd: &Option<String>| {
        let command = quoted(&join_command(argv));
        match cwd {
            Some(cwd) => format!("{command} in {}", quoted(cwd)),
            None => command,
        }
    };
    match entry {
        Entry::Argv { argv, cwd, runtime: None } => command(argv, cwd),
        Entry::Argv { argv, cwd, runtime: Some(runtime) } => {
            format!("{} as {}", command(argv, cwd), quoted(runtime))
        }
        Entry::McpStdio { argv, cwd, env } => {
            let set: Vec<_> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let with = if set.is_empty() { "" } else { " with " };
            let set = listed(set.iter().map(String::as_str));
            format!("the MCP server {}{with}{set}", command(argv, cwd))
        }
        Entry::McpHttp { url, headers } => {
            let set: Vec<_> =
                headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            let with = if set.is_empty() { "" } else { " with " };
            let set = listed(set.iter().map(String::as_str));
            format!("the MCP server at {}{with}{set}", quoted(url))
        }
        Entry::Http { base, method: None } => format!("requests to {}", quoted(base)),
        Entry::Http { base, method: Some(method) } => {
            format!("{} requests to {}", quoted(method), quoted(base))
        }
        Entry::NodeModule { main, export: None } => format!("the Node module {}", quoted(main)),
        Entry::NodeModule { main, export: Some(export) } => {
            format!("{} of the Node module {}", quoted(export), quoted(main))
        }
        Entry::PythonCallable { callable } => format!("the Python function {}", quoted(callable)),
        Entry::McpTool { registry_url, server_id, tool_name } => {
            let server = server_id.as_deref().unwrap_or("any server");
            let (tool, registry) = (quoted(tool_name), quoted(registry_url));
            format!("the tool {tool} of {} in the registry {registry}", quoted(server))
        }
        Entry::KnownServer { server_id } => format!("the known server {}", quoted(server_id)),
        Entry::A2a { endpoint } => format!("the agent at {}", quoted(endpoint)),
        Entry::Undeclared => "nothing that is declared".to_owned(),
    }
}
