//! What an install-manifest must hold beyond its shape.

use std::collections::HashSet;

use super::template::{Piece, Reference, pieces};
use crate::dialect::rules::{Judge, check_license, check_regex_at};
use crate::finding::{Code, Finding};
use crate::json::{Node, Path, Pointer};
use crate::schema::{Unknowns, matches_once};
use crate::shape::clip;

/// Scopes of private data: with one of these, a data boundary must be declared.
const PRIVATE: &[&str] = &[
    "gmail", "calendar", "drive", "contacts", "messages", "sms", "files", "photos", "location",
    "health", "finance", "payments", "stripe", "plaid",
];

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

/// The declared variables.
struct Variables<'n> {
    all: HashSet<&'n str>,
    secret: HashSet<&'n str>,
}

impl<'n> Variables<'n> {
    fn of(document: &'n Node<'_>) -> Self {
        let mut variables = Variables { all: HashSet::new(), secret: HashSet::new() };
        for entry in document.list_at("env") {
            let Some(name) = entry.text_at("name") else { continue };
            variables.all.insert(name);
            if entry.get("secret").and_then(Node::as_bool) != Some(false) {
                variables.secret.insert(name);
            }
        }
        variables
    }
}

/// Where a template stands, which decides what it may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Site {
    /// On a command line that has an input.
    Argv,
    /// On a command line without an input.
    PlainArgv,
    /// In a request that has an input.
    Request,
    /// In a request without an input; `${VAR}` is a variable there.
    PlainRequest,
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
                    && self.needs_entrypoint() =>
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
            acquisition(install, path.key("install"), judge);
        }
    }

    /// Whether the server is one the host already runs, so that nothing has to be started.
    fn is_known_server(&self) -> bool {
        let locator = self.document.at(&["runtime", "install", "locator", "kind"]);
        locator.and_then(Node::as_text) == Some("mcp-server-id")
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
            if let Some(name) = entry.get("name")
                && let Some(text) = name.as_text()
                && !seen.insert(text)
            {
                let message = format!("the variable `{}` is declared twice", clip(text));
                judge.push(Finding::new(
                    Code::DuplicateEnv,
                    path.key("name").pointer(),
                    name.span,
                    message,
                ));
            }
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
            if let Some(name) = action.get("name")
                && let Some(text) = name.as_text()
                && !seen.insert(text)
            {
                let message = format!("the action `{}` is declared twice", clip(text));
                judge.push(Finding::new(
                    Code::DuplicateAction,
                    path.key("name").pointer(),
                    name.span,
                    message,
                ));
            }
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
            for (at, example) in action.list_at("examples").iter().enumerate() {
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
        let span = invocation.get("kind").unwrap_or(invocation).span;
        match kind {
            "subcommand" | "stdin-json" => {
                if let Some(argv) = invocation.get("argv_template") {
                    self.argv(argv, path.key("argv_template"), Site::Argv, input, judge);
                }
                if matches!(runtime_kind, "mcp-http" | "mcp-stdio") {
                    let message = format!(
                        "runtime kind `{runtime_kind}` is spoken to over MCP and cannot be called as a command"
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
                let message = format!(
                    "runtime kind `{runtime_kind}` is no MCP server, so it has no MCP tools"
                );
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

    fn smoke(&self, judge: &mut Judge<'_>) {
        let Some(smoke) = self.document.get("smoke") else { return };
        let root = Path::ROOT;
        let path = root.key("smoke");
        match smoke.text_at("kind") {
            Some("shell") => {
                if let Some(command) = smoke.get("command") {
                    self.argv(command, path.key("command"), Site::PlainArgv, None, judge);
                }
            }
            Some("http") => {
                for field in ["url", "body"] {
                    if let Some(at) = smoke.get(field)
                        && let Some(text) = at.as_text()
                    {
                        self.template(text, at, path.key(field), Site::PlainRequest, None, judge);
                    }
                }
                self.headers(smoke, path, Site::PlainRequest, None, judge);
            }
            Some("action-call") => self.smoke_action(smoke, path, judge),
            Some("mcp-tool-call") => {
                let runtime = self.document.at(&["runtime", "kind"]).and_then(Node::as_text);
                if let Some(runtime) = runtime.filter(|kind| !kind.starts_with("mcp-")) {
                    let span = smoke.get("kind").unwrap_or(smoke).span;
                    let message = format!(
                        "runtime kind `{runtime}` is no MCP server, so it has no MCP tools"
                    );
                    judge.push(Finding::new(
                        Code::InvocationMismatch,
                        path.key("kind").pointer(),
                        span,
                        message,
                    ));
                }
            }
            _ => {}
        }
        if let Some(success) = smoke.get("success") {
            self.success(success, path.key("success"), judge);
        }
    }

    fn smoke_action(&self, smoke: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
        let Some(named) = smoke.get("action") else { return };
        let Some(name) = named.as_text() else { return };
        let pointer = path.key("action").pointer();
        let actions = self.document.list_at("actions");
        let Some(action) = actions.iter().find(|action| action.text_at("name") == Some(name))
        else {
            let message = format!("there is no action `{}`", clip(name));
            let names = actions.iter().filter_map(|action| action.text_at("name"));
            let mut finding = Finding::new(Code::UnresolvedAction, pointer, named.span, message);
            if let Some(near) = crate::shape::suggest(name, names) {
                finding = finding.help(format!("did you mean `{near}`?"));
            }
            return judge.push(finding);
        };
        if let Some(effects @ ("write" | "destructive")) = action.text_at("side_effects") {
            let message = format!(
                "the smoke test would run `{}`, whose side effects are `{effects}`",
                clip(name)
            );
            judge.push(
                Finding::new(Code::UnsafeSmoke, pointer, named.span, message)
                    .help("name an action whose side effects are `none` or `read`"),
            );
        }
        let nothing =
            Node { span: smoke.span.first_byte(), value: crate::json::Value::Object(Vec::new()) };
        if let Some(schema) = action.get("input") {
            let arguments = smoke.get("arguments");
            if arguments.is_some_and(|arguments| !arguments.is_object()) {
                return;
            }
            let pointer =
                if arguments.is_some() { path.key("arguments").pointer() } else { path.pointer() };
            judge.instance(
                schema,
                arguments.unwrap_or(&nothing),
                &pointer,
                Code::ArgumentsMismatch,
                Unknowns::Refused,
            );
        }
    }

    fn success(&self, success: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
        for field in ["stdout_regex", "body_regex"] {
            if let Some(pattern) = success.get(field) {
                check_regex_at(pattern, path.key(field).pointer(), judge);
            }
        }
        for field in ["json_pointer_equals", "json_pointer_in"] {
            for member in success.get(field).map(Node::members).unwrap_or_default() {
                let path = path.key(field);
                let path = path.key(&member.key);
                if Pointer::parse(&member.key).is_none() {
                    let message = format!("`{}` is no JSON pointer", clip(&member.key));
                    judge.push(
                        Finding::new(Code::BadPointer, path.pointer(), member.key_span, message)
                            .help("write `/key/0`; the empty text is the whole result"),
                    );
                }
                for text in std::iter::once(&member.value).chain(member.value.items()) {
                    if let Some(value) = text.as_text() {
                        self.template(value, text, path, Site::PlainRequest, None, judge);
                    }
                }
            }
        }
        for field in ["json_pointer_exists", "json_pointer_present"] {
            if let Some(node) = success.get(field)
                && let Some(text) = node.as_text()
                && Pointer::parse(text).is_none()
            {
                let message = format!("`{}` is no JSON pointer", clip(text));
                judge.push(Finding::new(
                    Code::BadPointer,
                    path.key(field).pointer(),
                    node.span,
                    message,
                ));
            }
        }
    }

    fn kill_switch(&self, judge: &mut Judge<'_>) {
        let Some(switch) = self.document.get("kill_switch") else { return };
        let root = Path::ROOT;
        let path = root.key("kill_switch");
        match switch.text_at("kind") {
            Some("shell") => {
                if let Some(command) = switch.get("command") {
                    self.argv(command, path.key("command"), Site::PlainArgv, None, judge);
                }
            }
            Some("url") => {
                if let Some(url) = switch.get("url")
                    && let Some(text) = url.as_text()
                {
                    self.template(text, url, path.key("url"), Site::PlainRequest, None, judge);
                }
            }
            Some("none") => {
                let persists = self
                    .document
                    .at(&["data_boundary", "persists"])
                    .map(Node::items)
                    .unwrap_or_default();
                let reason = if !self.document.list_at("env").is_empty() {
                    "the tool asks for environment variables"
                } else if !persists.is_empty() {
                    "the tool keeps data"
                } else {
                    return;
                };
                let span = switch.get("kind").unwrap_or(switch).span;
                let message =
                    format!("kill switch `none` is for tools with nothing to revoke, but {reason}");
                judge.push(
                    Finding::new(
                        Code::UnearnedKillSwitchNone,
                        path.key("kind").pointer(),
                        span,
                        message,
                    )
                    .help("use `url`, `shell` or `manual`"),
                );
            }
            _ => {}
        }
    }

    fn headers(
        &self,
        holder: &Node<'_>,
        path: Path<'_>,
        site: Site,
        input: Option<&Node<'_>>,
        judge: &mut Judge<'_>,
    ) {
        for member in holder.get("headers").map(Node::members).unwrap_or_default() {
            if let Some(text) = member.value.as_text() {
                let headers = path.key("headers");
                self.template(text, &member.value, headers.key(&member.key), site, input, judge);
            }
        }
    }

    fn argv(
        &self,
        argv: &Node<'_>,
        path: Path<'_>,
        site: Site,
        input: Option<&Node<'_>>,
        judge: &mut Judge<'_>,
    ) {
        for (index, element) in argv.items().iter().enumerate() {
            if let Some(text) = element.as_text() {
                self.template(text, element, path.index(index), site, input, judge);
            }
        }
    }

    fn template(
        &self,
        text: &str,
        node: &Node<'_>,
        path: Path<'_>,
        site: Site,
        input: Option<&Node<'_>>,
        judge: &mut Judge<'_>,
    ) {
        if !text.contains("${") {
            return;
        }
        let is_argv = matches!(site, Site::Argv | Site::PlainArgv);
        for piece in pieces(text) {
            let finding = match piece {
                Piece::Literal(_) => continue,
                Piece::Nonsense(what) => {
                    let message = format!("`{}` means nothing", clip(what));
                    Finding::new(Code::BadTemplate, path.pointer(), node.span, message)
                        .help("write `${input.name}` or `${env.NAME}`")
                }
                Piece::Reference(Reference::Input(name)) => match site {
                    Site::Argv | Site::Request => match undeclared(input, name) {
                        None => continue,
                        Some(message) => {
                            Finding::new(Code::UndeclaredInput, path.pointer(), node.span, message)
                        }
                    },
                    Site::PlainArgv | Site::PlainRequest => {
                        let message =
                            format!("`${{input.{}}}` stands where there is no input", clip(name));
                        Finding::new(Code::UndeclaredInput, path.pointer(), node.span, message)
                    }
                },
                Piece::Reference(Reference::Env(name) | Reference::Bare(name)) => {
                    if is_argv && self.variables.secret.contains(name) {
                        let message =
                            format!("`{name}` is a secret and would be visible to other processes");
                        Finding::new(Code::SecretInArgv, path.pointer(), node.span, message)
                            .help("the tool finds it in its environment; leave it out here, or use invocation kind `stdin-json`")
                    } else if self.variables.all.contains(name) {
                        continue;
                    } else {
                        let message =
                            format!("the variable `{}` is not declared in `env`", clip(name));
                        let near = crate::shape::suggest(name, self.variables.all.iter().copied());
                        let finding =
                            Finding::new(Code::UndeclaredEnv, path.pointer(), node.span, message);
                        match near {
                            Some(near) => finding.help(format!("did you mean `{near}`?")),
                            None => finding,
                        }
                    }
                }
            };
            judge.push(finding);
        }
    }
}

/// Why an input path is not declared; nothing when it is.
fn undeclared(input: Option<&Node<'_>>, path: &str) -> Option<String> {
    let shown = clip(path);
    let Some(mut schema) = input else {
        return Some(format!("`${{input.{shown}}}` is used, but the action has no input schema"));
    };
    for segment in path.split('.') {
        let is_open = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"]
            .iter()
            .any(|keyword| schema.get(keyword).is_some());
        match schema.get("properties").and_then(|properties| properties.get(segment)) {
            Some(next) => schema = next,
            // What is declared by reference or under alternatives is not chased further.
            None if is_open => return None,
            None if schema.get("items").is_some()
                && segment.bytes().all(|b| b.is_ascii_digit()) =>
            {
                schema = schema.get("items")?;
            }
            None if !schema.is_object() => return None,
            None => {
                return Some(format!(
                    "`${{input.{shown}}}` is used, but the input schema has no property `{}`",
                    clip(segment)
                ));
            }
        }
    }
    None
}

fn acquisition(install: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    match install.text_at("method") {
        Some("container") => {
            if let Some(image) = install.get("image")
                && let Some(text) = image.as_text()
            {
                let digest = text.rsplit_once("@sha256:").map(|(_, digest)| digest);
                let is_pinned = digest.is_some_and(|digest| {
                    digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit())
                });
                if text.is_empty() || text.starts_with('-') || text.contains(char::is_whitespace) {
                    bad_source(image, path.key("image").pointer(), "image reference", judge);
                } else if !is_pinned {
                    let message = format!("the image `{}` is not pinned by digest", clip(text));
                    judge.push(
                        Finding::new(
                            Code::UnpinnedImage,
                            path.key("image").pointer(),
                            image.span,
                            message,
                        )
                        .help("append `@sha256:` and the digest of the image you tested"),
                    );
                }
            }
        }
        Some("git") => {
            if let Some(reference) = install.get("ref")
                && let Some(text) = reference.as_text()
            {
                let is_sha =
                    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
                if text.starts_with('-') {
                    bad_source(reference, path.key("ref").pointer(), "git reference", judge);
                } else if !is_sha {
                    let message = format!(
                        "`{}` is no commit SHA: what is installed can change under the same name",
                        clip(text)
                    );
                    judge.push(
                        Finding::new(
                            Code::UnpinnedRef,
                            path.key("ref").pointer(),
                            reference.span,
                            message,
                        )
                        .help("name the 40-digit commit"),
                    );
                }
            }
            if let Some(url) = install.get("url")
                && let Some(text) = url.as_text()
                && (text.starts_with('-') || text.starts_with("ext::") || text.starts_with("file:"))
            {
                bad_source(url, path.key("url").pointer(), "repository address", judge);
            }
            if let Some(subpath) = install.get("subpath")
                && let Some(text) = subpath.as_text()
                && crate::dialect::rules::path_escapes(text)
            {
                let message = format!("the path `{}` leaves the repository", clip(text));
                judge.push(Finding::new(
                    Code::PathEscapes,
                    path.key("subpath").pointer(),
                    subpath.span,
                    message,
                ));
            }
        }
        Some("pip" | "npm") => {
            if let Some(package) = install.get("package")
                && let Some(text) = package.as_text()
                && !text.is_empty()
                && is_no_package_name(text)
            {
                bad_source(package, path.key("package").pointer(), "package name", judge);
            }
            if let Some(spec) = install.get("version_spec")
                && let Some(text) = spec.as_text()
                && is_no_version_spec(text)
            {
                bad_source(spec, path.key("version_spec").pointer(), "version", judge);
            }
        }
        _ => {}
    }
}

/// Options and addresses are no versions.
fn is_no_version_spec(text: &str) -> bool {
    let words = text.split([' ', '\t', '\n', ',', ';']);
    text.contains("://")
        || text.contains('@')
        || words.into_iter().any(|word| word.starts_with('-') && word.len() > 1)
}

/// Options, addresses and paths are no package names.
fn is_no_package_name(text: &str) -> bool {
    let scoped = text.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    let names = scoped.map_or(vec![text], |(scope, name)| vec![scope, name]);
    names.iter().any(|name| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-[],~".contains(&b);
        !name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
            || !name.bytes().all(plain)
    })
}

fn bad_source(node: &Node<'_>, pointer: Pointer, what: &str, judge: &mut Judge<'_>) {
    let text = node.as_text().unwrap_or_default();
    let message = format!("`{}` is no plain {what}", clip(text));
    judge.push(Finding::new(Code::BadSource, pointer, node.span, message));
}
