//! Writes an install-manifest, in the newest version.

use serde_json::{Value, json};

use super::draft::Draft;
use super::jumith::plain_id;
use super::mcpkg::places_of_texts;
use super::run;
use crate::concept::Weight;
use crate::json::Pointer;
use crate::model::{
    Action, AuthKind, Entry, Input, InputSource, Invocation, Json, OutputFormat, Package,
};
use crate::shape::patterns;

pub(super) fn write(package: &Package, draft: &mut Draft) {
    draft.put("/manifest_version", "0.4");
    write_tool(package, draft);
    write_runtime(package, draft);
    write_env(package, draft);
    for (index, action) in package.actions.iter().enumerate() {
        write_action(package, action, index, draft);
    }
    let passed_on = |json: Option<&Json>| json.map(Json::value);
    draft.put_or_ask(
        "/smoke",
        passed_on(package.smoke.as_ref()),
        "a test that the installed tool works; nobody can make one up",
    );
    draft.put_or_ask(
        "/kill_switch",
        passed_on(package.kill_switch.as_ref()),
        "how the tool is revoked: kind `url`, `shell`, `manual` or `none`",
    );
}

fn write_tool(package: &Package, draft: &mut Draft) {
    let id = plain_id(&package.id);
    let fits = (patterns::KEBAB_ID.matches)(id);
    draft.put_or_ask(
        "/tool/id",
        fits.then_some(id),
        &format!("3 to 64 lower-case letters, digits and hyphens; the source has `{}`", package.id),
    );
    let version =
        package.version.as_deref().filter(|version| (patterns::TOOL_VERSION.matches)(version));
    draft.put_or_ask("/tool/version", version, "MAJOR.MINOR.PATCH");
    let name = package
        .name
        .as_deref()
        .or_else(|| package.actions.first().map(|action| action.name.as_str()));
    draft.put_or_ask(
        "/tool/name",
        name.filter(|name| (1..=80).contains(&name.chars().count())),
        "the name people see, at most 80 characters",
    );
    let is_short = |text: &&str| (1..=280).contains(&text.chars().count()) && !text.contains('\n');
    let summary = package.summary.as_deref().or(package.description.as_deref());
    let summary = summary
        .or_else(|| package.actions.first().and_then(|action| action.description.as_deref()));
    draft.put_or_ask(
        "/tool/summary",
        summary.filter(is_short),
        "one sentence, at most 280 characters",
    );
    let description =
        package.description.as_deref().filter(|text| Some(*text) != summary || !is_short(text));
    match description.filter(|text| text.chars().count() > 4000) {
        Some(_) => draft.lose(
            places_of_texts(package)[1].clone(),
            Weight::Cosmetic,
            "the description has more than 4,000 characters",
        ),
        None => draft.put_some("/tool/description", description),
    }
    draft.put_or_ask("/tool/homepage", package.homepage.clone(), "the tool's page");
    if let Some(author) = &package.author {
        draft.put_some("/tool/author/name", author.name.clone());
        draft.put_some("/tool/author/email", author.email.clone());
        draft.put_some("/tool/author/url", author.url.clone());
    }
    draft.put_some("/tool/license", package.license.clone());
    let (tags, other): (Vec<_>, Vec<_>) =
        package.tags.iter().partition(|tag| (patterns::TAG.matches)(tag));
    if !tags.is_empty() {
        draft.put("/tool/tags", tags.iter().take(16).map(|tag| tag.as_str()).collect::<Vec<_>>());
    }
    if !other.is_empty() || tags.len() > 16 {
        draft.lose(
            Pointer::root(),
            Weight::Cosmetic,
            "tags that are not lower-case words, or beyond sixteen, are left out",
        );
    }
    if let Some(Value::String(page)) = package.support.as_ref().map(Json::value) {
        draft.put("/support/issues_url", page);
    }
}

fn write_runtime(package: &Package, draft: &mut Draft) {
    let implementation = package.implementations.first();
    let language = implementation.and_then(|implementation| implementation.language.as_deref());
    let runtime = implementation
        .and_then(|implementation| implementation.runtime.as_deref())
        .unwrap_or_default();
    let entry = implementation.map(|implementation| &implementation.entry);
    let kind = match entry {
        Some(Entry::Argv { .. }) if language == Some("python") || runtime.starts_with("python") => {
            Some("python-module")
        }
        Some(Entry::Argv { .. })
            if language == Some("javascript") || runtime.starts_with("node") =>
        {
            Some("node-module")
        }
        Some(Entry::Argv { .. }) => Some("shell-binary"),
        Some(Entry::McpStdio { .. }) => Some("mcp-stdio"),
        Some(Entry::PythonCallable { .. }) => Some("python-module"),
        Some(Entry::NodeModule { .. }) => Some("node-module"),
        _ => None,
    };
    draft.put_or_ask("/runtime/kind", kind, "what runs the tool: mcp-stdio, mcp-http, python-module, node-module, shell-binary or container");
    draft.ask(
        "/runtime/install",
        "how the tool reaches the machine: method pip, npm, git, container, url or preinstalled",
    );
    match entry {
        Some(Entry::Argv { argv, cwd, .. }) => {
            let shared = if package.actions.len() > 1 {
                argv.iter().take(1).cloned().collect()
            } else {
                argv.clone()
            };
            draft.put("/runtime/entrypoint/command", shared);
            draft.put_some("/runtime/entrypoint/cwd", cwd.clone());
        }
        Some(Entry::Http { base, .. } | Entry::McpHttp { url: base, .. }) => {
            draft.put("/runtime/endpoint_url", base.as_str());
        }
        Some(Entry::McpStdio { argv, .. }) if is_plain(argv) => {
            draft.put("/runtime/entrypoint/command", argv.clone());
        }
        _ => draft
            .ask("/runtime/entrypoint", "the command that starts the tool: `{\"command\": […]}`"),
    }
    if let Some(Entry::McpStdio { argv, env, .. }) = entry {
        let place = Pointer::root().key("server").key("mcp_config");
        if !is_plain(argv) {
            let reason = "the command holds what a host of bundles fills in";
            draft.lose(place.clone(), Weight::Behaviour, reason);
        }
        let is_asked_for =
            |name: &str| package.inputs.iter().any(|input| run::variable(package, input) == name);
        for (name, _) in env.iter().filter(|(name, _)| !is_asked_for(name)) {
            let reason = format!("an install-manifest cannot set the variable `{name}`");
            draft.lose(place.key("env").key(name), Weight::Behaviour, reason);
        }
    }
}

/// Whether there is nothing to fill in.
fn is_plain(argv: &[String]) -> bool {
    argv.iter().all(|element| !element.contains("${"))
}

fn write_env(package: &Package, draft: &mut Draft) {
    let inputs = package.inputs.iter().enumerate();
    let asked = inputs.filter(|(_, input)| input.source == InputSource::Owner);
    for (index, (place, input)) in asked.enumerate() {
        let at = |field: &str| format!("/env/{index}/{field}");
        let name = run::variable(package, input);
        let fits = (patterns::ENV_NAME.matches)(name);
        draft.put_or_ask(
            &at("name"),
            fits.then_some(name),
            &format!("a variable name in upper case for `{}`", input.name),
        );
        draft.put_or_ask(
            &at("prompt"),
            input.prompt.clone().filter(|prompt| prompt.chars().count() <= 800),
            &format!("what the owner is told when asked for `{}`", input.name),
        );
        draft.put(&at("secret"), input.secret);
        if !input.required {
            draft.put(&at("required"), false);
        }
        write_default(input, &at("default"), &run::place_of_input(package, place), draft);
    }
}

/// A default is one plain text there.
fn write_default(input: &Input, at: &str, place: &Pointer, draft: &mut Draft) {
    let Some(default) = &input.default else { return };
    if input.multiple || default.contains("${") {
        let reason = "the default is several values, or holds what a host of bundles fills in";
        draft.lose(place.key("default"), Weight::Behaviour, reason);
    } else {
        draft.put(at, default.as_str());
    }
}

fn write_action(package: &Package, action: &Action, index: usize, draft: &mut Draft) {
    let at = |field: &str| format!("/actions/{index}/{field}");
    let fits = (patterns::ACTION_NAME.matches)(&action.name);
    draft.put_or_ask(
        &at("name"),
        fits.then_some(action.name.as_str()),
        &format!("lower-case letters, digits and underscores; the source has `{}`", action.name),
    );
    let is_short = |text: &&str| (1..=280).contains(&text.chars().count()) && !text.contains('\n');
    let summary =
        action.summary.as_deref().or(action.description.as_deref()).or_else(|| package.blurb());
    draft.put_or_ask(
        &at("summary"),
        summary.filter(is_short),
        "one sentence, at most 280 characters",
    );
    draft.put_or_ask(
        &at("invocation"),
        invocation(package, action),
        "how it is called: kind `subcommand`, `stdin-json`, `http` or `mcp-tool`",
    );
    draft.put_some(&at("input"), action.input.as_ref().map(Json::value));
    if let Some(format) =
        action.output_format.or(action.output.as_ref().map(|_| OutputFormat::Json))
    {
        draft.put(&at("output/format"), format.name());
        draft.put_some(&at("output/schema"), action.output.as_ref().map(Json::value));
    }
    draft.put_or_ask(
        &at("side_effects"),
        action.side_effects.map(super::super::model::SideEffects::name),
        "what it changes: none, read, write or destructive",
    );
    draft.put_some(&at("idempotent"), action.idempotent.filter(|is| *is));
}

fn invocation(package: &Package, action: &Action) -> Option<Value> {
    match &action.invocation {
        Invocation::StdinJson { argv_template } => {
            let own = match package
                .implementations
                .iter()
                .find(|own| own.id == action.name)
                .map(|own| &own.entry)
            {
                Some(Entry::Argv { argv, .. }) if package.actions.len() > 1 => argv[1..].to_vec(),
                _ => Vec::new(),
            };
            let template: Vec<_> = own.iter().chain(argv_template).cloned().collect();
            Some(if template.is_empty() {
                json!({"kind": "stdin-json"})
            } else {
                json!({"kind": "stdin-json", "argv_template": template})
            })
        }
        // The tool takes the input on standard input too, so nothing has to be put on a command line.
        Invocation::ArgvJson => Some(json!({"kind": "stdin-json"})),
        Invocation::Http { method, path, .. } => {
            let known = ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str());
            known.then(|| {
                let mut value = json!({"kind": "http", "method": method, "path": path});
                if let Some(headers) = auth_headers(package) {
                    value["headers"] = headers;
                }
                value
            })
        }
        Invocation::McpTool { tool_name } => {
            Some(json!({"kind": "mcp-tool", "tool_name": tool_name}))
        }
        Invocation::Subcommand { .. }
        | Invocation::NodeExecute
        | Invocation::PythonCall
        | Invocation::A2aSend
        | Invocation::Chain
        | Invocation::Script
        | Invocation::Undeclared => None,
    }
}

/// The header that authenticates a request, filled in from the first variable that may hold the credential.
fn auth_headers(package: &Package) -> Option<Value> {
    let auth = package.auth.as_ref()?;
    let name = auth.credentials().find(|name| (patterns::ENV_NAME.matches)(name))?;
    match auth.kind {
        AuthKind::Bearer | AuthKind::Oauth2 => {
            Some(json!({"Authorization": format!("Bearer ${{env.{name}}}")}))
        }
        AuthKind::ApiKey => Some(json!({"X-API-Key": format!("${{env.{name}}}")})),
        AuthKind::None => None,
    }
}
