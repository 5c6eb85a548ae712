//! Tools of `OpenAI`: chat completions, and responses.

use serde_json::{Map, Value, json};

use super::strict;
use super::tool::Tool;
use crate::dialect::Dialect;

/// Keywords for which the API refuses the whole request at the root of a schema.
pub(super) const REFUSED_AT_ROOT: &[&str] = &["oneOf", "anyOf", "allOf", "enum", "not"];

/// A tool of chat completions. One of a tools.json is what its specification maps it to, exactly.
pub(super) fn chat(tool: &Tool<'_>) -> Value {
    let mut function = function(tool);
    // Absent means loose here.
    if is_strict(tool, &function) {
        function.insert("strict".into(), true.into());
    }
    json!({ "type": "function", "function": function })
}

/// A tool of responses: the same, flat.
pub(super) fn responses(tool: &Tool<'_>) -> Value {
    let mut flat = Map::from_iter([("type".to_owned(), "function".into())]);
    flat.extend(function(tool));
    // Absent means here that the API closes the schema and makes every property required.
    let strict = is_strict(tool, &flat);
    flat.insert("strict".into(), strict.into());
    Value::Object(flat)
}

fn function(tool: &Tool<'_>) -> Map<String, Value> {
    let mut function = Map::from_iter([("name".to_owned(), tool.name.as_str().into())]);
    if let Some(description) = tool.description() {
        function.insert("description".into(), description.into());
    }
    if let Some(parameters) = tool.parameters() {
        function.insert("parameters".into(), parameters);
    }
    function
}

fn is_strict(tool: &Tool<'_>, function: &Map<String, Value>) -> bool {
    tool.package.dialect != Dialect::Agentcli
        && function.get("parameters").is_some_and(strict::is_carried)
}
