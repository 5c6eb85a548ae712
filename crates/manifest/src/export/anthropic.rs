//! Tools of Anthropic's messages.

use serde_json::{Map, Value};

use super::tool::Tool;

/// Keywords for which the API refuses the whole request at the root of a schema.
pub(super) const REFUSED_AT_ROOT: &[&str] = &["oneOf", "anyOf", "allOf"];

/// A tool.
pub(super) fn definition(tool: &Tool<'_>) -> Value {
    let mut definition = Map::from_iter([("name".to_owned(), tool.name.as_str().into())]);
    if let Some(description) = tool.description() {
        definition.insert("description".into(), description.into());
    }
    definition.insert("input_schema".into(), tool.input_schema());
    Value::Object(definition)
}
