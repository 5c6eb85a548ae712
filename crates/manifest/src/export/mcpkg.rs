//! Tool definitions as mcpkg hosts hand them to a model.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::tool::Tool;
use crate::dialect::Dialect;

/// The name a definition would like to have: the id, and the action where a package has several.
pub(super) fn wanted_name(tool: &Tool<'_>) -> String {
    let (id, action) = (&tool.package.id, &tool.action.name);
    match tool.package.dialect {
        Dialect::Mcpkg | Dialect::Capability | Dialect::Jumith => id.clone(),
        Dialect::InstallManifest
        | Dialect::Agentcli
        | Dialect::Mcpb
        | Dialect::ServerJson
        | Dialect::Skill => {
            if id.is_empty() {
                action.clone()
            } else {
                format!("{id}.{action}")
            }
        }
    }
}

/// A definition, with what is known of its package where that is told.
pub(super) fn definition(tool: &Tool<'_>, known: Option<&BTreeMap<String, Context>>) -> Value {
    let known = known.and_then(|known| known.get(&tool.id));
    let mut definition = Map::from_iter([
        ("name".to_owned(), tool.name.as_str().into()),
        ("description".to_owned(), tool.description().unwrap_or_default().into()),
        ("input_schema".to_owned(), tool.input_schema()),
        ("capabilities".to_owned(), json!(tool.package.tags)),
    ]);
    let inputs = tool.action.examples.iter().filter_map(|example| example.input.as_ref());
    let texts = known.iter().flat_map(|known| &known.examples).map(|text| text.as_str().into());
    let examples: Vec<Value> = inputs.map(crate::model::Json::value).chain(texts).collect();
    if !examples.is_empty() {
        definition.insert("examples".into(), examples.into());
    }
    if let Some(tests) = known.and_then(|known| known.tests) {
        definition.insert("test_summary".into(), tests.to_value());
    }
    Value::Object(definition)
}
