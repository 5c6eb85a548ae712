//! The tools a server lists, as actions.

use std::time::Instant;

use manifest::finding::Severity;
use manifest::json::{self, Node, Pointer};
use manifest::model::{Action, Invocation, Json};
use manifest::schema::{Budget, check};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::answer::odd;
use crate::error::{CallError, Kind};

/// The longest name of a tool.
const LONGEST_NAME: usize = 256;

/// Reads a list of tools, on a thread that may block: a list may be made to take long. What a server says about
/// the harm its tools do is not believed, so what they change stays undeclared.
pub(super) fn read(
    tools: &[Value],
    until: Instant,
    unneeded: &CancellationToken,
) -> Result<Vec<Action>, CallError> {
    let mut actions: Vec<Action> = Vec::with_capacity(tools.len());
    let budget = Budget::default();
    for tool in tools {
        if unneeded.is_cancelled() || Instant::now() >= until {
            let message = "the server's list of tools takes too long to read";
            return Err(CallError::new(Kind::TimedOut, message));
        }
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let is_name = (1..=LONGEST_NAME).contains(&name.len())
            && !name.contains(|c: char| c.is_control() || c.is_whitespace());
        if !is_name {
            return Err(odd("it lists a tool without a proper name"));
        }
        if actions.iter().any(|one| one.name == name) {
            return Err(odd(&format!("it lists the tool `{name}` twice")));
        }
        actions.push(action(name, tool, &budget));
    }
    Ok(actions)
}

/// An action for a tool of which nothing is known but its name.
pub(super) fn unknown(name: &str) -> Action {
    action(name, &Value::Null, &Budget::default())
}

/// An action that is a tool of a server.
fn action(name: &str, tool: &Value, budget: &Budget) -> Action {
    let words = |key: &str| {
        let words = tool.get(key).and_then(Value::as_str);
        words.filter(|words| !words.trim().is_empty()).map(str::to_owned)
    };
    let schema = |key: &str| tool.get(key).and_then(|schema| sound(schema, budget));
    Action {
        name: name.to_owned(),
        summary: words("title"),
        description: words("description"),
        invocation: Invocation::McpTool { tool_name: name.to_owned() },
        // Where we cannot judge the arguments, the server does.
        input: schema("inputSchema").or_else(|| sound(&json!({}), budget)),
        output_format: None,
        output: schema("outputSchema"),
        side_effects: None,
        idempotent: None,
        scopes_used: Vec::new(),
        standard_errors: false,
        requires_approval: None,
        timeout_ms: None,
        environment: Vec::new(),
        examples: Vec::new(),
        docs: None,
        pointer: Pointer::root(),
    }
}

/// A schema that values can be held against, as it was sent. What its patterns may cost is counted over the whole list.
fn sound(value: &Value, budget: &Budget) -> Option<Json> {
    let text = value.to_string();
    let parsed = json::parse(&text);
    let root = parsed.root.filter(Node::is_object)?;
    let findings = check(&root, &Pointer::root(), budget);
    let is_sound = findings.iter().all(|finding| finding.severity != Severity::Error);
    is_sound.then(|| Json::of(&root, &text))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(tools: &[Value]) -> Result<Vec<Action>, CallError> {
        super::read(tools, Instant::now() + Duration::from_mins(1), &CancellationToken::new())
    }

    #[test]
    fn annotations_lower_no_check_and_schemas_keep_their_order() {
        let tools = [json!({
            "name": "wipe",
            "title": "Wipe",
            "inputSchema": { "type": "object", "properties": { "b": {}, "a": {} } },
            "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true },
        })];
        let actions = read(&tools).unwrap();
        assert_eq!(actions[0].side_effects, None);
        assert_eq!(actions[0].idempotent, None);
        assert_eq!(
            actions[0].input.as_ref().unwrap().text(),
            r#"{"type":"object","properties":{"b":{},"a":{}}}"#
        );
    }

    #[test]
    fn a_schema_that_nothing_can_be_held_against_is_left_to_the_server() {
        let tools = [json!({
            "name": "odd",
            "inputSchema": { "type": "object", "properties": { "a": { "type": 7 } } },
            "outputSchema": { "$ref": "https://example.com/elsewhere" },
        })];
        let actions = read(&tools).unwrap();
        assert_eq!(actions[0].input.as_ref().unwrap().text(), "{}");
        assert_eq!(actions[0].output, None);
    }

    #[test]
    fn names_are_proper_and_each_is_there_once() {
        for tools in [
            vec![json!({ "name": "" })],
            vec![json!({ "description": "no name" })],
            vec![json!({ "name": "a b" })],
            vec![json!({ "name": "x".repeat(257) })],
            vec![json!({ "name": "a" }), json!({ "name": "a" })],
        ] {
            assert!(read(&tools).is_err(), "{tools:?}");
        }
    }

    #[test]
    fn what_patterns_cost_is_counted_over_all_tools() {
        let tool = |number: usize| {
            let pattern = |at: usize| format!(r"^\p{{L}}{{14}}{number}-{at}$");
            let all: Vec<_> = (0..50).map(|at| json!({ "pattern": pattern(at) })).collect();
            json!({ "name": number.to_string(), "inputSchema": { "type": "object", "anyOf": all } })
        };
        let tools: Vec<_> = (0..8).map(tool).collect();
        let actions = read(&tools).unwrap();
        let judged = actions.iter().filter(|one| one.input.as_ref().unwrap().text() != "{}");
        assert_eq!(judged.count(), 1);
    }

    #[test]
    fn a_list_is_not_read_for_longer_than_somebody_waits() {
        let tools = [json!({ "name": "a" })];
        let unneeded = CancellationToken::new();
        let late = super::read(&tools, Instant::now(), &unneeded).unwrap_err();
        assert_eq!(late.kind, Kind::TimedOut);
        unneeded.cancel();
        assert!(super::read(&tools, Instant::now() + Duration::from_mins(1), &unneeded).is_err());
    }
}
