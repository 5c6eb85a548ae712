//! The example tool of a starter: it counts the words of a text.

use serde_json::{Value, json};

/// What it does, in one sentence.
pub(super) const SUMMARY: &str = "Counts the words of a text.";

/// The program, for dialects that give the input on stdin.
pub(super) const STDIN_TOOL: &str = include_str!("templates/tool_stdin.py");

/// The program, for dialects that give the input as the last argument too.
pub(super) const ARGUMENT_TOOL: &str = include_str!("templates/tool_argument.py");

/// JSON Schema of its input.
pub(super) fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "text": { "type": "string", "description": "The text to measure." } },
        "required": ["text"],
        "additionalProperties": false
    })
}

/// JSON Schema of its answer.
pub(super) fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "words": { "type": "integer", "minimum": 0 },
            "characters": { "type": "integer", "minimum": 0 }
        },
        "required": ["words", "characters"]
    })
}

/// An input.
pub(super) fn input() -> Value {
    json!({ "text": "one two three" })
}

/// What it answers to that input.
pub(super) fn output() -> Value {
    json!({ "words": 3, "characters": 13 })
}
