//! The smoke test and the kill switch.

use super::Rules;
use super::templates::Site;
use crate::dialect::rules::{Judge, check_regex_at};
use crate::finding::{Code, Finding};
use crate::json::{Node, Path, Pointer};
use crate::schema::Unknowns;
use crate::shape::clip;

impl Rules<'_, '_> {
    pub(super) fn smoke(&self, judge: &mut Judge<'_>) {
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

    pub(super) fn kill_switch(&self, judge: &mut Judge<'_>) {
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
}
