//! From a valid bundle manifest to the model.

use std::collections::HashSet;

use super::{PLATFORMS, Version};
use crate::dialect::Dialect;
use crate::dialect::lowering::{blank, json, text, texts};
use crate::json::{Node, Pointer, Value};
use crate::model::{
    Acquire, Action, Entry, Implementation, Input, InputKind, Invocation, Kind, Package, Person,
};

/// Lowers a manifest that has passed its checks.
///
/// `${…}` stays as it is written: only the host that starts the server knows what belongs there.
/// Prompts, pictures, translations, notes for particular hosts and `tools_generated` have no place
/// in the model; what a server offers is asked of the server.
pub(crate) fn lower(manifest: &Node<'_>, source: &str) -> Package {
    let id = text(manifest, "name").unwrap_or_default();
    let mut package = blank(Dialect::Mcpb, id, source);
    package.format_version = Version::of(manifest).map(Version::name);
    package.version = text(manifest, "version");
    package.kind = Kind::McpServer;
    package.name = text(manifest, "display_name").or_else(|| text(manifest, "name"));
    package.summary = text(manifest, "description");
    package.description = text(manifest, "long_description");
    package.homepage = text(manifest, "homepage");
    package.license = text(manifest, "license");
    package.author = manifest.get("author").map(|author| Person {
        id: None,
        name: text(author, "name"),
        email: text(author, "email"),
        url: text(author, "url"),
    });
    package.tags = texts(manifest, "keywords");
    package.support = json(manifest, "support", source);
    package.acquire = Acquire::Bundle;
    package.implementations = implementations(manifest, source);
    package.inputs = manifest
        .get("user_config")
        .map_or(&[][..], Node::members)
        .iter()
        .map(|member| input(&member.key, &member.value, source))
        .collect();
    package.actions = actions(manifest);
    package
}

/// One way to run for each system that has its own, and one for the others.
fn implementations(manifest: &Node<'_>, source: &str) -> Vec<Implementation> {
    let Some(server) = manifest.get("server") else { return Vec::new() };
    let Some(config) = server.get("mcp_config") else { return Vec::new() };
    let needs = manifest.get("compatibility");
    let named = needs.map(|needs| texts(needs, "platforms")).unwrap_or_default();
    let is_served = |platform: &str| named.is_empty() || named.iter().any(|name| name == platform);
    let of = |platform| config.get("platform_overrides").and_then(|own| own.get(platform));
    let way = |id: &str, platforms: Vec<String>, own: Option<&Node<'_>>| Implementation {
        id: id.to_owned(),
        language: match server.text_at("type") {
            Some("node") => Some("javascript".into()),
            Some("python" | "uv") => Some("python".into()),
            _ => None,
        },
        runtime: text(server, "type"),
        platforms,
        entry: entry(config, own),
        timeout_ms: None,
        requirements: json(manifest, "compatibility", source),
    };
    let (own, common): (Vec<&str>, Vec<&str>) = PLATFORMS
        .into_iter()
        .filter(|platform| is_served(platform))
        .partition(|platform| of(platform).is_some());
    let mut ways = Vec::new();
    if !common.is_empty() {
        let is_everywhere = own.is_empty() && named.is_empty();
        let platforms = if is_everywhere { Vec::new() } else { systems(&common) };
        ways.push(way("main", platforms, None));
    }
    ways.extend(own.iter().map(|platform| way(platform, systems(&[platform]), of(platform))));
    ways
}

/// Systems by the names the model knows them by.
fn systems(platforms: &[&str]) -> Vec<String> {
    let names = platforms.iter().flat_map(|platform| match *platform {
        "darwin" => &["darwin-x64", "darwin-arm64"][..],
        "win32" => &["win-x64"],
        _ => &["linux-x64", "linux-arm64"],
    });
    names.map(|name| (*name).to_owned()).collect()
}

/// How the server is started; what an override says takes the place of what is said for all.
fn entry(config: &Node<'_>, own: Option<&Node<'_>>) -> Entry {
    let part = |key: &str| own.and_then(|own| own.get(key)).or_else(|| config.get(key));
    let program = own.and_then(|own| text(own, "command")).filter(|command| !command.is_empty());
    let program = program.or_else(|| text(config, "command")).unwrap_or_default();
    let arguments = part("args").map_or(&[][..], Node::items).iter().filter_map(Node::as_text);
    let env = part("env").map_or(&[][..], Node::members).iter();
    Entry::McpStdio {
        argv: std::iter::once(program).chain(arguments.map(str::to_owned)).collect(),
        cwd: None,
        env: env
            .filter_map(|member| Some((member.key.to_string(), member.value.as_text()?.to_owned())))
            .collect(),
    }
}

fn input(name: &str, setting: &Node<'_>, source: &str) -> Input {
    let is = |key| setting.get(key).and_then(Node::as_bool) == Some(true);
    let bound = |key| Some(setting.get(key)?.as_number()?.as_f64());
    let (secret, multiple) = (is("sensitive"), is("multiple"));
    let default = setting.get("default").filter(|_| !secret);
    Input {
        kind: match setting.text_at("type") {
            Some("number") => InputKind::Number { min: bound("min"), max: bound("max") },
            Some("boolean") => InputKind::Flag,
            Some("directory") => InputKind::Folder,
            Some("file") => InputKind::File,
            _ => InputKind::Text,
        },
        multiple,
        secret,
        required: is("required"),
        prompt: prompt(setting),
        default: default.and_then(|default| written(default, multiple, source)),
        ..Input::secret(name)
    }
}

/// What the owner is told: the title, then the description.
fn prompt(setting: &Node<'_>) -> Option<String> {
    let filled = |key| setting.text_at(key).filter(|text| !text.is_empty());
    match (filled("title"), filled("description")) {
        (Some(title), Some(more)) => Some(format!("{title}: {more}")),
        (title, more) => title.or(more).map(str::to_owned),
    }
}

/// A default as the server would be given it.
fn written(default: &Node<'_>, multiple: bool, source: &str) -> Option<String> {
    let verbatim = || source[default.span.range()].to_owned();
    match &default.value {
        Value::Text(_) if multiple => Some(format!("[{}]", verbatim())),
        Value::Text(text) => Some(text.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.as_f64().to_string()),
        Value::List(_) if multiple => Some(verbatim()),
        Value::List(_) | Value::Null | Value::Object(_) => None,
    }
}

/// The tools that are listed, each once; what they change is for the server to say, and for us to doubt.
fn actions(manifest: &Node<'_>) -> Vec<Action> {
    let mut seen = HashSet::new();
    let tools = manifest.list_at("tools").iter().enumerate();
    tools
        .filter_map(|(index, tool)| Some((index, tool, text(tool, "name")?)))
        .filter(|(_, _, name)| seen.insert(name.clone()))
        .map(|(index, tool, name)| Action {
            description: text(tool, "description").filter(|text| !text.is_empty()),
            pointer: Pointer::root().key("tools").index(index),
            ..Action::new(name.clone(), Invocation::McpTool { tool_name: name })
        })
        .collect()
}

#[cfg(test)]
mod tests;
