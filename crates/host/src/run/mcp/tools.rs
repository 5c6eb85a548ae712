//! The tools a server lists, as actions.

use std::time::Instant;

use manifest::finding::Severity;
use manifest::json::{self, Node, Pointer};
use manifest::model::{Action, Invocation, Json};
use manifest::schema::{Budget, check};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::error::{CallError, Kind};
use crate::surface::{Surface, name_of};

/// Makes actions of tools, on a thread that may block: a list may be made to take long. What a server says about
/// the harm its tools do is not believed, so what they change stays undeclared.
pub(super) fn read(
    surface: &Surface,
    until: Instant,
    unneeded: &CancellationToken,
) -> Result<Vec<Action>, CallError> {
    let mut actions: Vec<Action> = Vec::with_capacity(surface.tools().len());
    let budget = Budget::default();
    for tool in surface.tools() {
        if unneeded.is_cancelled() || Instant::now() >= until {
            let message = "the server's list of tools takes too long to read";
            return Err(CallError::new(Kind::TimedOut, message));
        }
        actions.push(action(name_of(tool), tool, &budget));
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
        summary: words("title"),
        description: words("description"),
        // Where we cannot judge the arguments, the server does.
        input: schema("inputSchema").or_else(|| sound(&json!({}), budget)),
        output: schema("outputSchema"),
        ..Action::new(name, Invocation::McpTool { tool_name: name.to_owned() })
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
        let until = Instant::now() + Duration::from_mins(1);
        super::read(&Surface::of(tools)?, until, &CancellationToken::new())
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
        let tools = Surface::of(&[json!({ "name": "a" })]).unwrap();
        let unneeded = CancellationToken::new();
        let late = super::read(&tools, Instant::now(), &unneeded).unwrap_err();
        assert_eq!(late.kind, Kind::TimedOut);
        unneeded.cancel();
        assert!(super::read(&tools, Instant::now() + Duration::from_mins(1), &unneeded).is_err());
    }
}
