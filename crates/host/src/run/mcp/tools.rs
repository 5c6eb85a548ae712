//! The tools a server lists, as actions.

use manifest::finding::Severity;
use manifest::json::{self, Node, Pointer};
use manifest::model::{Action, Invocation, Json};
use manifest::schema::{Budget, check};
use serde_json::{Value, json};

use super::answer::odd;
use crate::error::CallError;

/// The longest name of a tool.
const LONGEST_NAME: usize = 256;

/// Reads a list of tools. What a server says about the harm its tools do is not believed, so what they
/// change stays undeclared.
pub(super) fn read(tools: &[Value]) -> Result<Vec<Action>, CallError> {
    let mut actions: Vec<Action> = Vec::with_capacity(tools.len());
    for tool in tools {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let is_name = (1..=LONGEST_NAME).contains(&name.len())
            && !name.contains(|c: char| c.is_control() || c.is_whitespace());
        if !is_name {
            return Err(odd("it lists a tool without a proper name"));
        }
        if actions.iter().any(|one| one.name == name) {
            return Err(odd(&format!("it lists the tool `{name}` twice")));
        }
        actions.push(action(name, tool));
    }
    Ok(actions)
}

/// An action that is a tool of a server.
pub(super) fn action(name: &str, tool: &Value) -> Action {
    let words = |key: &str| {
        let words = tool.get(key).and_then(Value::as_str);
        words.filter(|words| !words.trim().is_empty()).map(str::to_owned)
    };
    Action {
        name: name.to_owned(),
        summary: words("title"),
        description: words("description"),
        invocation: Invocation::McpTool { tool_name: name.to_owned() },
        // Where we cannot judge the arguments, the server does.
        input: tool.get("inputSchema").and_then(schema).or_else(|| schema(&json!({}))),
        output_format: None,
        output: tool.get("outputSchema").and_then(schema),
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

/// A schema that values can be held against, as it was sent.
fn schema(value: &Value) -> Option<Json> {
    let text = value.to_string();
    let parsed = json::parse(&text);
    let root = parsed.root.filter(Node::is_object)?;
    let findings = check(&root, &Pointer::root(), &Budget::default());
    let is_sound = findings.iter().all(|finding| finding.severity != Severity::Error);
    is_sound.then(|| Json::of(&root, &text))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
