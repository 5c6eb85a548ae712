//! What the manifest of a bundle must hold beyond its shape.

mod settings;
mod templates;

use std::collections::HashSet;

use super::PLATFORMS;
use super::files::{Role, files};
use super::variable::{Variable, variables};
use crate::dialect::rules::{Judge, check_license};
use crate::finding::{Code, Finding, Severity};
use crate::json::{Node, Path};
use crate::path::check_path;
use crate::shape::{clip, patterns, suggest};
use settings::Settings;

/// Finds what is wrong beyond the shape. The document may be broken in any way.
pub(crate) fn check_rules(document: &Node<'_>, judge: &mut Judge<'_>) {
    check_version(document, judge);
    if let Some(license) = document.get("license") {
        check_license(license, Path::ROOT.key("license").pointer(), judge);
    }
    check_files(document, judge);
    let settings = Settings::of(document);
    settings.check(judge);
    templates::check_server(document, &settings, judge);
    check_platforms(document, judge);
    check_tools(document, judge);
    check_prompts(document, judge);
}

/// The same finding as a warning: the bundle works, and only its author could mend it.
fn warning(mut finding: Finding) -> Finding {
    finding.severity = Severity::Warning;
    finding
}

/// The format asks for a semantic version, but its tools take any text.
fn check_version(document: &Node<'_>, judge: &mut Judge<'_>) {
    if let Some(version) = document.get("version")
        && let Some(text) = version.as_text().filter(|text| !text.is_empty())
        && !(patterns::SEMVER.matches)(text)
    {
        let message = format!(
            "`{}` is no semantic version, so it cannot be told whether another is newer",
            clip(text)
        );
        let pointer = Path::ROOT.key("version").pointer();
        let finding = Finding::new(Code::BadVersion, pointer, version.span, message);
        judge.push(warning(finding.help(format!("write {}", patterns::SEMVER.words))));
    }
}

fn check_files(document: &Node<'_>, judge: &mut Judge<'_>) {
    for file in files(document) {
        let shown = clip(file.path);
        let find =
            |message| Finding::new(Code::BadPath, file.pointer.clone(), file.node.span, message);
        if file.is_address() {
            let message = format!("`{shown}` is not in the bundle, and nothing is fetched for it");
            judge.push(warning(find(message).help("put the picture into the bundle")));
        } else if file.path.contains("${") {
            let message =
                format!("the path `{shown}` holds a variable, and none is filled in here");
            let finding = find(message).help("write the path as seen from the bundle's folder");
            // The server is started by `mcp_config`, whatever this says.
            judge.push(if file.role == Role::Icon { finding } else { warning(finding) });
        } else if let Err(fault) = check_path(file.plain()) {
            judge.push(find(format!("the path `{shown}` {}", fault.words())));
        }
    }
}

fn check_platforms(document: &Node<'_>, judge: &mut Judge<'_>) {
    let path = Path::ROOT.key("server");
    let path = path.key("mcp_config");
    let path = path.key("platform_overrides");
    let overrides = document.at(&["server", "mcp_config", "platform_overrides"]);
    let served: Vec<&str> = document
        .get("compatibility")
        .map_or(&[][..], |needs| needs.list_at("platforms"))
        .iter()
        .filter_map(Node::as_text)
        .collect();
    for member in overrides.map_or(&[][..], Node::members) {
        let key = member.key.as_ref();
        let (message, help) = if !PLATFORMS.contains(&key) {
            let help = match suggest(key, PLATFORMS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known: {}", PLATFORMS.map(|name| format!("`{name}`")).join(", ")),
            };
            (format!("`{}` is no platform known here, so it never matches", clip(key)), help)
        } else if !served.is_empty() && !served.contains(&key) {
            let message =
                format!("`{key}` is not among `compatibility.platforms`, so it never matches");
            (message, format!("add `{key}` there, or drop it here"))
        } else {
            continue;
        };
        let pointer = path.key(key).pointer();
        judge.push(
            Finding::new(Code::UnknownPlatform, pointer, member.key_span, message).help(help),
        );
    }
}

/// The list only announces what the server will say, so twins harm nobody.
fn check_tools(document: &Node<'_>, judge: &mut Judge<'_>) {
    let mut seen = HashSet::new();
    for (index, tool) in document.list_at("tools").iter().enumerate() {
        if let Some(name) = tool.get("name")
            && let Some(text) = name.as_text()
            && !seen.insert(text)
        {
            let message = format!("the tool `{}` is listed twice; the first counts", clip(text));
            let pointer = Path::ROOT.key("tools").index(index).key("name").pointer();
            judge.push(warning(Finding::new(Code::DuplicateTool, pointer, name.span, message)));
        }
    }
}

fn check_prompts(document: &Node<'_>, judge: &mut Judge<'_>) {
    for (index, prompt) in document.list_at("prompts").iter().enumerate() {
        let Some(text) = prompt.get("text") else { continue };
        let arguments = prompt.list_at("arguments").iter().filter_map(Node::as_text);
        let known: HashSet<_> = arguments.clone().collect();
        for variable in variables(text.as_text().unwrap_or_default()) {
            let Variable::Argument(name) = variable else { continue };
            if known.contains(name) || judge.is_beyond(Severity::Warning) {
                continue;
            }
            let message = format!("the prompt has no argument `{}`", clip(name));
            let pointer = Path::ROOT.key("prompts").index(index).key("text").pointer();
            let finding = Finding::new(Code::BadTemplate, pointer, text.span, message);
            judge.push(warning(match suggest(name, arguments.clone()) {
                Some(near) => finding.help(format!("did you mean `${{arguments.{near}}}`?")),
                None => finding.help("list it in `arguments`"),
            }));
        }
    }
}
