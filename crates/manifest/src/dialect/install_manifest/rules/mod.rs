//! What an install-manifest must hold beyond its shape.

mod acquire;
mod templates;
mod trial;

use std::collections::HashSet;

use crate::dialect::rules::{Judge, check_license, check_regex_at};
use crate::finding::{Code, Finding};
use crate::json::{Node, Path};
use crate::schema::{Unknowns, matches_once};
use crate::shape::clip;
use templates::{Site, Variables};

/// Scopes of private data: with one of these, a data boundary must be declared.
const PRIVATE: &[&str] = &[
    "gmail", "calendar", "drive", "contacts", "messages", "sms", "files", "photos", "location",
    "health", "finance", "payments", "stripe", "plaid",
];

/// How many examples of an action are held against its schema; a manifest may have four.
const MAX_EXAMPLES: usize = 16;

/// Finds what is wrong beyond the shape. The document may be broken in any way.
pub(crate) fn check_rules(document: &Node<'_>, judge: &mut Judge<'_>) {
    let rules = Rules { document, variables: Variables::of(document) };
    rules.tool(judge);
    rules.runtime(judge);
    rules.env(judge);
    rules.scopes(judge);
    rules.actions(judge);
    rules.smoke(judge);
    rules.kill_switch(judge);
}

struct Rules<'n, 't> {
    document: &'n Node<'t>,
    variables: Variables<'n>,
}

impl Rules<'_, '_> {
    fn tool(&self, judge: &mut Judge<'_>) {
        if let Some(license) = self.document.at(&["tool", "license"])
            && license.as_text() != Some("PROPRIETARY")
        {
            check_license(license, Path::ROOT.key("tool").key("license").pointer(), judge);
        }
    }

    fn runtime(&self, judge: &mut Judge<'_>) {
        let Some(runtime) = self.document.get("runtime") else { return };
        let root = Path::ROOT;
        let path = root.key("runtime");
        let entrypoint = runtime.member("entrypoint");
        let endpoint = runtime.member("endpoint_url");
        let kind = runtime.text_at("kind").unwrap_or_default();
        if let (Some(_), Some(endpoint)) = (entrypoint, endpoint) {
            judge.push(Finding::new(Code::EntrypointAndEndpoint, path.key("endpoint_url").pointer(), endpoint.key_span, "`entrypoint` and `endpoint_url` exclude each other").help("a tool that runs here has an entrypoint, one that is reached over the network an endpoint URL"));
        }
        let span = runtime.span.first_byte();
        match kind {
            "mcp-http" if endpoint.is_none() => {
                judge.push(Finding::new(
                    Code::MissingEndpoint,
                    path.pointer(),
                    span,
                    "runtime kind `mcp-http` needs `endpoint_url`",
                ));
            }
            "mcp-stdio" if entrypoint.is_none() && !self.is_known_server() => {
                judge.push(Finding::new(Code::MissingEntrypoint, path.pointer(), span, "runtime kind `mcp-stdio` needs `entrypoint`, the command that starts the server"));
            }
            "python-module" | "node-module" | "shell-binary" | "container"
                if entrypoint.is_none()
                    && (endpoint.is_none() || self.runs_commands())
                    && self.needs_entrypoint()
                    && !self.is_image() =>
            {
                judge.push(Finding::new(
                    Code::MissingEntrypoint,
                    path.pointer(),
                    span,
                    format!(
                        "runtime kind `{kind}` needs `entrypoint`, the command its actions extend"
                    ),
                ));
            }
            _ => {}
        }
        if let Some(command) = runtime.at(&["entrypoint", "command"]) {
            self.argv(command, path.key("entrypoint").key("command"), Site::PlainArgv, None, judge);
        }
        if let Some(install) = runtime.get("install") {
            acquire::check(install, path.key("install"), judge);
        }
    }

    /// Whether the server is one the host already runs, so that nothing has to be started.
    fn is_known_server(&self) -> bool {
        let locator = self.document.at(&["runtime", "install", "locator", "kind"]);
        locator.and_then(Node::as_text) == Some("mcp-server-id")
    }

    /// Whether the tool is an image, which says itself what is started in it.
    fn is_image(&self) -> bool {
        let runtime = |path: &[&str]| self.document.at(path).and_then(Node::as_text);
        runtime(&["runtime", "kind"]) == Some("container")
            && runtime(&["runtime", "install", "method"]) == Some("container")
    }

    /// Whether any action is a command line.
    fn runs_commands(&self) -> bool {
        self.document.list_at("actions").iter().any(|action| {
            matches!(
                action.at(&["invocation", "kind"]).and_then(Node::as_text),
                Some("subcommand" | "stdin-json")
            )
        })
    }

    /// Whether there is anything that would extend the entrypoint; a 0.1 manifest has no actions.
    fn needs_entrypoint(&self) -> bool {
        self.runs_commands()
            || self.document.list_at("actions").is_empty()
                && self.document.text_at("manifest_version") != Some("0.1")
    }

    fn env(&self, judge: &mut Judge<'_>) {
        let mut seen = HashSet::new();
        for (index, entry) in self.document.list_at("env").iter().enumerate() {
            let root = Path::ROOT;
            let list = root.key("env");
            let path = list.index(index);
            check_twin(entry, path, Code::DuplicateEnv, "variable", &mut seen, judge);
            let is_secret = entry.get("secret").and_then(Node::as_bool) == Some(true);
            let default = entry.member("default");
            if is_secret && let Some(default) = default {
                let message =
                    "a secret must not have a default: it would be published with the manifest";
                judge.push(
                    Finding::new(
                        Code::SecretDefault,
                        path.key("default").pointer(),
                        default.value.span,
                        message,
                    )
                    .help("drop `default`, and say in `prompt` where a value comes from"),
                );
            }
            let Some(pattern) = entry.get("validation_regex") else { continue };
            check_regex_at(pattern, path.key("validation_regex").pointer(), judge);
            if let (false, Some(default)) = (is_secret, default)
                && let (Some(pattern), Some(text)) = (pattern.as_text(), default.value.as_text())
                && matches_once(pattern, text) == Some(false)
            {
                let message = "the default does not match `validation_regex`";
                judge.push(Finding::new(
                    Code::DefaultMismatch,
                    path.key("default").pointer(),
                    default.value.span,
                    message,
                ));
            }
        }
    }

    fn scopes(&self, judge: &mut Judge<'_>) {
        let version = self.document.text_at("manifest_version").unwrap_or_default();
        let has_boundaries = !matches!(version, "0.1" | "0.2");
        let mut seen = HashSet::new();
        let mut private = None;
        for (index, scope) in self.document.list_at("scopes").iter().enumerate() {
            let Some(resource) = scope.get("resource") else { continue };
            let Some(text) = resource.as_text() else { continue };
            let pointer = Path::ROOT.key("scopes").index(index).key("resource").pointer();
            if !seen.insert(text) {
                let message = format!("the resource `{}` is declared twice", clip(text));
                judge.push(
                    Finding::new(Code::DuplicateScope, pointer.clone(), resource.span, message)
                        .help("join the two into one scope"),
                );
            }
            let is_private =
                text.split_once('.').is_some_and(|(prefix, _)| PRIVATE.contains(&prefix));
            if is_private && private.is_none() {
                private = Some((text, pointer, resource.span));
            }
        }
        if let Some((text, pointer, span)) = private
            && has_boundaries
            && self.document.get("data_boundary").is_none()
        {
            let message = format!(
                "the scope `{}` is private data, so `data_boundary` must be declared",
                clip(text)
            );
            judge.push(Finding::new(Code::MissingDataBoundary, pointer, span, message).help("declare what is read, sent away and kept, even if that is nothing: `\"data_boundary\": {}`"));
        }
    }

    fn actions(&self, judge: &mut Judge<'_>) {
        let mut seen = HashSet::new();
        let resources: HashSet<_> = self
            .document
            .list_at("scopes")
            .iter()
            .filter_map(|scope| scope.text_at("resource"))
            .collect();
        for (index, action) in self.document.list_at("actions").iter().enumerate() {
            let root = Path::ROOT;
            let list = root.key("actions");
            let path = list.index(index);
            check_twin(action, path, Code::DuplicateAction, "action", &mut seen, judge);
            for (at, used) in action.list_at("scopes_used").iter().enumerate() {
                if let Some(text) = used.as_text()
                    && !resources.contains(text)
                {
                    let message = format!("the scope `{}` is not declared in `scopes`", clip(text));
                    judge.push(Finding::new(
                        Code::UndeclaredScope,
                        path.key("scopes_used").index(at).pointer(),
                        used.span,
                        message,
                    ));
                }
            }
            self.invocation(action, path, judge);
            for (at, example) in action.list_at("examples").iter().enumerate().take(MAX_EXAMPLES) {
                let examples = path.key("examples");
                let path = examples.index(at);
                if let (Some(schema), Some(value)) = (action.get("input"), example.get("input")) {
                    judge.instance(
                        schema,
                        value,
                        &path.key("input").pointer(),
                        Code::ExampleMismatch,
                        Unknowns::Refused,
                    );
                }
                if let (Some(schema), Some(value)) =
                    (action.at(&["output", "schema"]), example.get("output"))
                {
                    judge.instance(
                        schema,
                        value,
                        &path.key("output").pointer(),
                        Code::ExampleMismatch,
                        Unknowns::AsTheSchemaSays,
                    );
                }
            }
        }
    }

    fn invocation(&self, action: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
        let Some(invocation) = action.get("invocation") else { return };
        let path = path.key("invocation");
        let input = action.get("input");
        let runtime = self.document.get("runtime");
        let kind = invocation.text_at("kind").unwrap_or_default();
        let runtime_kind = runtime.and_then(|runtime| runtime.text_at("kind")).unwrap_or_default();
        let shown_kind = clip(runtime_kind);
        let span = invocation.get("kind").unwrap_or(invocation).span;
        match kind {
            "subcommand" | "stdin-json" => {
                if let Some(argv) = invocation.get("argv_template") {
                    self.argv(argv, path.key("argv_template"), Site::Argv, input, judge);
                }
                if matches!(runtime_kind, "mcp-http" | "mcp-stdio") {
                    let message = format!(
                        "runtime kind `{shown_kind}` is spoken to over MCP and cannot be called as a command"
                    );
                    judge.push(
                        Finding::new(
                            Code::InvocationMismatch,
                            path.key("kind").pointer(),
                            span,
                            message,
                        )
                        .help("use invocation kind `mcp-tool`"),
                    );
                }
            }
            "http" => {
                if runtime.is_some_and(|runtime| runtime.get("endpoint_url").is_none()) {
                    let message =
                        "an http action needs `runtime.endpoint_url`, to which its path is added";
                    judge.push(Finding::new(
                        Code::MissingEndpoint,
                        path.key("kind").pointer(),
                        span,
                        message,
                    ));
                }
                if let Some(at) = invocation.get("path")
                    && let Some(text) = at.as_text()
                {
                    self.template(text, at, path.key("path"), Site::Request, input, judge);
                }
                self.headers(invocation, path, Site::Request, input, judge);
            }
            "mcp-tool" if !matches!(runtime_kind, "mcp-http" | "mcp-stdio" | "") => {
                let message =
                    format!("runtime kind `{shown_kind}` is no MCP server, so it has no MCP tools");
                judge.push(
                    Finding::new(
                        Code::InvocationMismatch,
                        path.key("kind").pointer(),
                        span,
                        message,
                    )
                    .help("use `subcommand`, `stdin-json` or `http`"),
                );
            }
            _ => {}
        }
    }
}

/// Tells of an element whose name an earlier one has too.
fn check_twin<'d>(
    element: &'d Node<'_>,
    path: Path<'_>,
    code: Code,
    noun: &str,
    seen: &mut HashSet<&'d str>,
    judge: &mut Judge<'_>,
) {
    if let Some(name) = element.get("name")
        && let Some(text) = name.as_text()
        && !seen.insert(text)
    {
        let message = format!("the {noun} `{}` is declared twice", clip(text));
        judge.push(Finding::new(code, path.key("name").pointer(), name.span, message));
    }
}
