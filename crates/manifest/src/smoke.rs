//! The smoke test of a package: what is tried once it is there, and what must come of it.

use std::time::Duration;

use serde_json::Value;

use crate::dialect::lowering::{millis, pairs, text, texts};
use crate::json::{self, Node, Number, Pointer};
use crate::model::Package;

/// How long a smoke test may take unless its author says otherwise.
const WITHIN: Duration = Duration::from_secs(30);

/// A smoke test, as its author wrote it: texts may hold `${…}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Smoke {
    /// What is tried.
    pub way: Way,
    /// How long that may take.
    pub within: Duration,
    /// What must all hold of it.
    pub conditions: Vec<Condition>,
}

/// What a smoke test tries.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// A command.
    Shell {
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// A request.
    Http {
        /// GET or POST.
        method: String,
        /// Where to.
        url: String,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// What is sent along.
        body: Option<String>,
    },
    /// A tool of the MCP server that the package is.
    McpToolCall {
        /// Its name there.
        tool: String,
        /// What it is given: an object.
        arguments: Value,
    },
    /// An action of the package.
    ActionCall {
        /// Its name.
        action: String,
        /// What it is given: an object.
        arguments: Value,
    },
}

impl Way {
    /// Its name in manifests.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Shell { .. } => "shell",
            Self::Http { .. } => "http",
            Self::McpToolCall { .. } => "mcp-tool-call",
            Self::ActionCall { .. } => "action-call",
        }
    }
}

/// Something that must hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The command ends with this code.
    ExitCode(i64),
    /// The server answers with this status; with one of success, where the author names none.
    HttpStatus(Option<i64>),
    /// An ECMAScript pattern is found in the output.
    StdoutRegex(String),
    /// An ECMAScript pattern is found in the body.
    BodyRegex(String),
    /// A place has a value.
    Equals(Pointer, Value),
    /// A place has one of several values.
    In(Pointer, Vec<Value>),
    /// There is something at a place.
    Exists(Pointer),
    /// There is something at a place that is neither null nor blank.
    Present(Pointer),
    /// The whole has no member `error`.
    NoErrorField,
}

impl Condition {
    /// Its name in manifests.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ExitCode(_) => "exit_code",
            Self::HttpStatus(_) => "http_status",
            Self::StdoutRegex(_) => "stdout_regex",
            Self::BodyRegex(_) => "body_regex",
            Self::Equals(..) => "json_pointer_equals",
            Self::In(..) => "json_pointer_in",
            Self::Exists(_) => "json_pointer_exists",
            Self::Present(_) => "json_pointer_present",
            Self::NoErrorField => "no_error_field",
        }
    }
}

impl Smoke {
    /// The smoke test of a package, where it has one.
    pub fn of(package: &Package) -> Option<Self> {
        let written = package.smoke.as_ref()?;
        let parsed = json::parse(written.text());
        let smoke = parsed.root?;
        let arguments =
            || smoke.get("arguments").map_or_else(|| serde_json::json!({}), Node::to_value);
        let way = match smoke.text_at("kind")? {
            "shell" => Way::Shell { command: texts(&smoke, "command") },
            "http" => Way::Http {
                method: text(&smoke, "method").unwrap_or_else(|| "GET".to_owned()),
                url: text(&smoke, "url")?,
                headers: pairs(&smoke, "headers"),
                body: text(&smoke, "body"),
            },
            "mcp-tool-call" => {
                Way::McpToolCall { tool: text(&smoke, "tool_name")?, arguments: arguments() }
            }
            "action-call" => {
                Way::ActionCall { action: text(&smoke, "action")?, arguments: arguments() }
            }
            _ => return None,
        };
        let within = millis(smoke.get("timeout_seconds"), 1000.0);
        let conditions = conditions(&way, smoke.get("success")?);
        Some(Self { way, within: within.map_or(WITHIN, Duration::from_millis), conditions })
    }
}

fn conditions(way: &Way, success: &Node<'_>) -> Vec<Condition> {
    let whole = |key: &str| success.get(key).and_then(Node::as_number).and_then(whole);
    let pointer = |key: &str| success.text_at(key).and_then(Pointer::parse);
    let members = |key: &str| success.get(key).map(Node::members).unwrap_or_default();
    let places = |key| {
        let place =
            |one: &json::Member<'_>| Some((Pointer::parse(&one.key)?, one.value.to_value()));
        members(key).iter().filter_map(place).collect::<Vec<_>>()
    };
    let exit = match way {
        Way::Shell { .. } => whole("exit_code").or(Some(0)),
        _ => whole("exit_code"),
    };
    let status = match (way, whole("http_status")) {
        (Way::Http { .. }, said) => Some(Condition::HttpStatus(said)),
        (_, said) => said.map(|said| Condition::HttpStatus(Some(said))),
    };
    let mut all: Vec<_> = exit.map(Condition::ExitCode).into_iter().chain(status).collect();
    all.extend(text(success, "stdout_regex").map(Condition::StdoutRegex));
    all.extend(text(success, "body_regex").map(Condition::BodyRegex));
    let equals = places("json_pointer_equals").into_iter();
    all.extend(equals.map(|(at, value)| Condition::Equals(at, value)));
    let one_of = places("json_pointer_in").into_iter();
    all.extend(one_of.map(|(at, values)| match values {
        Value::Array(values) => Condition::In(at, values),
        one => Condition::In(at, vec![one]),
    }));
    all.extend(pointer("json_pointer_exists").map(Condition::Exists));
    all.extend(pointer("json_pointer_present").map(Condition::Present));
    let no_error = success.get("no_error_field").and_then(Node::as_bool) == Some(true);
    all.extend(no_error.then_some(Condition::NoErrorField));
    all
}

/// A whole number, also where it is written with a point.
fn whole(number: Number) -> Option<i64> {
    match number {
        Number::Unsigned(number) => i64::try_from(number).ok(),
        Number::Negative(number) => Some(number),
        Number::Float(number) => format!("{number:.0}").parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document::{Options, read};

    fn smoke(version: &str, smoke: &Value) -> Smoke {
        let mut manifest = json!({
            "manifest_version": version,
            "tool": {
                "id": "demo-tool", "version": "1.0.0", "name": "Demo", "summary": "A test.",
                "homepage": "https://example.com/", "author": { "name": "Nobody" },
                "license": "MIT", "tags": ["demo"],
            },
            "runtime": {
                "kind": "mcp-stdio",
                "install": { "method": "npm", "package": "demo", "version_spec": "1.0.0" },
                "entrypoint": { "command": ["demo"] },
            },
            "env": [],
            "smoke": smoke,
            "kill_switch": { "kind": "manual", "instructions_url": "https://example.com/" },
            "cost": { "install_fee_cents": 0, "monthly_fee_cents": 0, "usage_model": "none" },
        });
        if version != "0.1" {
            manifest["actions"] = json!([{
                "name": "look", "summary": "Looks.", "side_effects": "read",
                "invocation": { "kind": "mcp-tool", "tool_name": "look" },
            }]);
        }
        let text = manifest.to_string();
        let (_, packages) = read(text.as_bytes(), &Options::default())
            .unwrap_or_else(|report| panic!("{:?}", report.findings));
        Smoke::of(&packages[0]).unwrap()
    }

    #[test]
    fn every_kind_is_read_with_its_defaults() {
        let shell = smoke("0.1", &json!({ "kind": "shell", "command": ["a", "b"], "success": {} }));
        assert_eq!(shell.way, Way::Shell { command: vec!["a".into(), "b".into()] });
        assert_eq!((shell.within, shell.conditions), (WITHIN, vec![Condition::ExitCode(0)]));
        let http = smoke(
            "0.2",
            &json!({
                "kind": "http", "url": "https://example.com/", "timeout_seconds": 5,
                "headers": { "X-A": "1" }, "success": {},
            }),
        );
        let headers = vec![("X-A".to_owned(), "1".to_owned())];
        let (method, url) = ("GET".to_owned(), "https://example.com/".to_owned());
        assert_eq!(http.way, Way::Http { method, url, headers, body: None });
        assert_eq!(http.within, Duration::from_secs(5));
        assert_eq!(http.conditions, [Condition::HttpStatus(None)]);
        let tool =
            smoke("0.1", &json!({ "kind": "mcp-tool-call", "tool_name": "look", "success": {} }));
        assert_eq!(tool.way, Way::McpToolCall { tool: "look".into(), arguments: json!({}) });
        let action =
            smoke("0.4", &json!({ "kind": "action-call", "action": "look", "success": {} }));
        assert_eq!(action.way, Way::ActionCall { action: "look".into(), arguments: json!({}) });
        assert_eq!(action.conditions, []);
    }

    #[test]
    fn every_condition_is_read() {
        let at = |text: &str| Pointer::parse(text).unwrap();
        let read = smoke(
            "0.4",
            &json!({
                "kind": "shell", "command": ["a"],
                "success": {
                    "exit_code": 3.0, "http_status": 204, "stdout_regex": "^a", "body_regex": "b$",
                    "json_pointer_equals": { "/a": 1, "": "x" },
                    "json_pointer_in": { "/b": [1, 2] },
                    "json_pointer_exists": "/c", "json_pointer_present": "/d",
                    "no_error_field": true,
                },
            }),
        );
        assert_eq!(
            read.conditions,
            [
                Condition::ExitCode(3),
                Condition::HttpStatus(Some(204)),
                Condition::StdoutRegex("^a".into()),
                Condition::BodyRegex("b$".into()),
                Condition::Equals(at("/a"), json!(1)),
                Condition::Equals(at(""), json!("x")),
                Condition::In(at("/b"), vec![json!(1), json!(2)]),
                Condition::Exists(at("/c")),
                Condition::Present(at("/d")),
                Condition::NoErrorField,
            ]
        );
        let quiet =
            json!({ "kind": "shell", "command": ["a"], "success": { "no_error_field": false } });
        assert_eq!(smoke("0.4", &quiet).conditions, [Condition::ExitCode(0)]);
    }
}
