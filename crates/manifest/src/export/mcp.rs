//! Tools of an MCP server.

use serde_json::{Map, Value, json};

use super::tool::Tool;
use crate::dialect::Dialect;
use crate::model::{Action, OutputFormat, SideEffects};

/// A tool, its hints all written out.
pub(super) fn definition(tool: &Tool<'_>) -> Value {
    let title = title(tool);
    let mut definition = Map::from_iter([
        ("name".to_owned(), tool.name.as_str().into()),
        ("title".to_owned(), title.as_str().into()),
    ]);
    if let Some(description) = tool.description() {
        definition.insert("description".into(), description.into());
    }
    definition.insert("inputSchema".into(), tool.input_schema());
    if let Some(schema) = output_schema(tool.action) {
        definition.insert("outputSchema".into(), schema);
    }
    definition.insert("annotations".into(), annotations(tool.action, &title));
    let meta = json!({ "haft/id": tool.id, "haft/action": tool.action.name });
    definition.insert("_meta".into(), meta);
    Value::Object(definition)
}

/// What people see: the name its author chose, and the id that nobody else has.
fn title(tool: &Tool<'_>) -> String {
    let (id, action) = (&tool.id, &tool.action.name);
    match (tool.package.dialect, &tool.package.name) {
        (Dialect::Mcpkg | Dialect::Capability | Dialect::Jumith, None) => id.clone(),
        (Dialect::Mcpkg | Dialect::Capability | Dialect::Jumith, Some(name)) => {
            format!("{name} ({id})")
        }
        (
            Dialect::InstallManifest
            | Dialect::Agentcli
            | Dialect::Mcpb
            | Dialect::ServerJson
            | Dialect::Skill,
            None,
        ) => {
            format!("{action} ({id})")
        }
        (
            Dialect::InstallManifest
            | Dialect::Agentcli
            | Dialect::Mcpb
            | Dialect::ServerJson
            | Dialect::Skill,
            Some(name),
        ) => {
            format!("{name}: {action} ({id})")
        }
    }
}

/// What an action does to the world. Nothing is made to look safer than its author said.
fn annotations(action: &Action, title: &str) -> Value {
    let (read_only, destructive, open_world) = match action.side_effects {
        Some(SideEffects::None) => (true, false, false),
        Some(SideEffects::Read) => (true, false, true),
        Some(SideEffects::Write) => (false, false, true),
        Some(SideEffects::Destructive) | None => (false, true, true),
    };
    json!({
        "title": title,
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": action.idempotent == Some(true),
        "openWorldHint": open_world,
    })
}

/// The schema of the answer, where the answer is one object: a server that shows a schema
/// must answer by it.
fn output_schema(action: &Action) -> Option<Value> {
    let is_one_value = match action.output_format {
        None | Some(OutputFormat::Json) => true,
        Some(
            OutputFormat::Text
            | OutputFormat::Binary
            | OutputFormat::NdjsonStream
            | OutputFormat::None,
        ) => false,
    };
    let schema = action.output.as_ref().filter(|_| is_one_value)?.value();
    schema.get("type").is_some_and(|kind| kind == "object").then_some(schema)
}
