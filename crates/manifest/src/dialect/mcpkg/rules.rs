//! What an mcpkg manifest and its tests must hold beyond their shape.

use std::collections::HashSet;

use super::{OPERATORS, split_command};
use crate::chain::Path as JsonPath;
use crate::chain::path::root_of;
use crate::chain::step::SHAPE;
use crate::dialect::rules::{Judge, check_regex_at, path_escapes};
use crate::finding::{Code, Finding, Severity};
use crate::json::{Node, Path, Pointer};
use crate::schema::Unknowns;
use crate::shape::clip;

/// The systems an implementation can name.
const PLATFORMS: [&str; 5] = ["linux-x64", "linux-arm64", "win-x64", "darwin-x64", "darwin-arm64"];

/// Finds what is wrong with a manifest beyond its shape.
pub(crate) fn check_rules(document: &Node<'_>, judge: &mut Judge<'_>) {
    let root = Path::ROOT;
    if let Some(id) = document.get("toolId")
        && let Some(text) = id.as_text()
        && text.split('.').count() == 2
    {
        let message =
            format!("`{}` has two segments; the convention is publisher.domain.name", clip(text));
        judge.push(Finding::new(Code::ShortId, root.key("toolId").pointer(), id.span, message));
    }
    if let Some(endpoint) = document.get("endpoint") {
        check_endpoint(endpoint, root.key("endpoint"), judge);
    }
    check_implementations(document, judge);
    check_chain(document, judge);
    check_paths(document, judge);
}

fn check_endpoint(endpoint: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    if let Some(command) = endpoint.get("command")
        && let Some(text) = command.as_text()
        && let Err(error) = split_command(text)
    {
        judge.push(Finding::new(
            Code::BadCommand,
            path.key("command").pointer(),
            command.span,
            error.to_string(),
        ));
    }
}

fn check_implementations(document: &Node<'_>, judge: &mut Judge<'_>) {
    let mut seen = HashSet::new();
    for (index, implementation) in document.list_at("implementations").iter().enumerate() {
        let root = Path::ROOT;
        let list = root.key("implementations");
        let path = list.index(index);
        if let Some(id) = implementation.get("id")
            && let Some(text) = id.as_text()
            && !seen.insert(text)
        {
            let message = format!("two implementations have the id `{}`", clip(text));
            judge.push(Finding::new(
                Code::DuplicateImplementation,
                path.key("id").pointer(),
                id.span,
                message,
            ));
        }
        for (at, platform) in implementation.list_at("platforms").iter().enumerate() {
            let Some(text) = platform.as_text() else { continue };
            if !PLATFORMS.contains(&text) {
                let message =
                    format!("`{}` is no platform known here, so it never matches", clip(text));
                let mut finding = Finding::new(
                    Code::UnknownPlatform,
                    path.key("platforms").index(at).pointer(),
                    platform.span,
                    message,
                );
                finding = finding.help(match crate::shape::suggest(text, PLATFORMS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("known: {}", PLATFORMS.map(|name| format!("`{name}`")).join(", "))
                    }
                });
                judge.push(finding);
            }
        }
        if let Some(endpoint) = implementation.get("endpoint") {
            check_endpoint(endpoint, path.key("endpoint"), judge);
        }
    }
}

fn check_chain(document: &Node<'_>, judge: &mut Judge<'_>) {
    let own_id = document.text_at("toolId");
    let mut names = HashSet::new();
    let mut roots = HashSet::from(["input"]);
    for (index, step) in document.list_at("chain").iter().enumerate() {
        let root = Path::ROOT;
        let list = root.key("chain");
        let path = list.index(index);
        if let Some(name) = step.get("step")
            && let Some(text) = name.as_text()
            && !names.insert(text)
        {
            let message = format!("two steps are called `{}`", clip(text));
            judge.push(Finding::new(
                Code::DuplicateStep,
                path.key("step").pointer(),
                name.span,
                message,
            ));
        }
        if let Some(tool) = step.get("tool")
            && tool.as_text().is_some()
            && tool.as_text() == own_id
        {
            judge.push(Finding::new(
                Code::ChainSelf,
                path.key("tool").pointer(),
                tool.span,
                "the chain calls itself",
            ));
        }
        let loops = step.get("forEach").is_some();
        for field in ["when", "forEach"] {
            if let Some(node) = step.get(field) {
                check_source(
                    node,
                    path.key(field).pointer(),
                    &roots,
                    field == "when" && loops,
                    judge,
                );
            }
        }
        for member in step.get("inputMapping").map(Node::members).unwrap_or_default() {
            let pointer = path.key("inputMapping").key(&member.key).pointer();
            check_source(&member.value, pointer, &roots, loops, judge);
        }
        if let Some(key) = step.get("outputKey")
            && let Some(text) = key.as_text()
            && !roots.insert(text)
        {
            let message = format!("the key `{}` is already taken", clip(text));
            judge.push(Finding::new(
                Code::DuplicateStep,
                path.key("outputKey").pointer(),
                key.span,
                message,
            ));
        }
    }
}

/// Checks where a step takes a value from.
fn check_source(
    node: &Node<'_>,
    pointer: Pointer,
    roots: &HashSet<&str>,
    loops: bool,
    judge: &mut Judge<'_>,
) {
    let (text, pointer) = match node.get("path") {
        Some(path)
            if node.members().iter().all(|one| one.key == "path" || one.key == "default") =>
        {
            (path.as_text(), pointer.key("path"))
        }
        _ if node.members().len() == 1 && node.get("value").is_some() => return,
        _ => (node.as_text(), pointer),
    };
    let Some(text) = text else {
        return judge.push(Finding::new(Code::BadJsonPath, pointer, node.span.first_byte(), SHAPE));
    };
    if let Err(message) = JsonPath::read(text) {
        return judge.push(Finding::new(Code::BadJsonPath, pointer, node.span, message));
    }
    if let Some(root) = root_of(text)
        && !roots.contains(root)
        && !(loops && root == "item")
    {
        let message = format!("nothing before this step has written `{}`", clip(root));
        let known = roots.iter().copied().collect::<Vec<_>>();
        let mut finding = Finding::new(Code::UnknownRoot, pointer, node.span, message);
        finding = finding.help(match crate::shape::suggest(root, known.iter().copied()) {
            Some(near) => format!("did you mean `$.{near}`?"),
            None => "a path begins with `$.input` or the `outputKey` of an earlier step".to_owned(),
        });
        judge.push(finding);
    }
}

fn check_paths(document: &Node<'_>, judge: &mut Judge<'_>) {
    for field in ["tests", "examples"] {
        for (index, entry) in document.list_at(field).iter().enumerate() {
            if let Some(text) = entry.as_text()
                && path_escapes(text)
            {
                let pointer = Path::ROOT.key(field).index(index).pointer();
                let message = format!("`{}` is no path inside the package", clip(text));
                judge.push(Finding::new(Code::PathEscapes, pointer, entry.span, message));
            }
        }
    }
}

/// Finds what is wrong with a test beyond its shape.
pub(crate) fn check_test_rules(
    test: &Node<'_>,
    input_schema: Option<&Node<'_>>,
    judge: &mut Judge<'_>,
) {
    let root = Path::ROOT;
    if let (Some(schema), Some(input)) =
        (input_schema, test.get("input").filter(|input| input.is_object()))
    {
        let pointer = root.key("input").pointer();
        judge.instance(schema, input, &pointer, Code::InputMismatch, Unknowns::AsTheSchemaSays);
    }
    let asks_nothing = test.get("expected").is_none() && test.list_at("assertions").is_empty();
    if asks_nothing {
        let message =
            "the test has neither `expected` nor `assertions`: it passes whenever the tool answers";
        let finding =
            Finding::new(Code::AsksNothing, root.pointer(), test.span.first_byte(), message);
        debug_assert_eq!(finding.severity, Severity::Warning);
        judge.push(finding);
    }
    for (index, assertion) in test.list_at("assertions").iter().enumerate() {
        let list = root.key("assertions");
        let path = list.index(index);
        let used: Vec<_> =
            OPERATORS.into_iter().filter(|name| assertion.get(name).is_some()).collect();
        if used.len() != 1 && assertion.is_object() {
            let message = if used.is_empty() {
                "the assertion asks nothing".to_owned()
            } else {
                format!("the assertion asks {} things at once: {}", used.len(), used.join(", "))
            };
            let help = format!(
                "use exactly one of {}",
                OPERATORS.map(|name| format!("`{name}`")).join(", ")
            );
            judge.push(
                Finding::new(
                    Code::AssertionOperator,
                    path.pointer(),
                    assertion.span.first_byte(),
                    message,
                )
                .help(help),
            );
        }
        if let Some(node) = assertion.get("path")
            && let Some(text) = node.as_text()
            && let Err(message) = JsonPath::read(text)
        {
            judge.push(Finding::new(
                Code::BadJsonPath,
                path.key("path").pointer(),
                node.span,
                message,
            ));
        }
        if let Some(pattern) = assertion.get("matches") {
            check_regex_at(pattern, path.key("matches").pointer(), judge);
        }
    }
}
