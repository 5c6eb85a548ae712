//! Other tools for a step of a chain: which could take its place, and the chain in which they do. Whether they may is for the
//! tests to say, run on both.

use std::collections::BTreeMap;

use manifest::chain::Step;
use manifest::model::{Action, Json, Package, SideEffects};
use serde_json::{Map, Value};

/// What a step calls instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instead {
    /// The id of the tool.
    pub tool: String,
    /// Its action, where it has several.
    pub action: Option<String>,
}

/// Whether a tool looks like one that could take the place of another in a step: they share a capability, it takes what
/// the step gives, it promises what the other promises, and it does not change more.
pub fn fits(
    step: &Step,
    (package, action): (&Package, &Action),
    (other_package, other): (&Package, &Action),
) -> bool {
    let lower = |tags: &[String]| tags.iter().map(|tag| tag.to_lowercase()).collect::<Vec<_>>();
    let (own, others) = (lower(&package.tags), lower(&other_package.tags));
    let changes_more = match (action.side_effects, other.side_effects) {
        (Some(own), Some(other)) => other > own,
        (Some(own), None) => own < SideEffects::Write,
        (None, _) => false,
    };
    own.iter().any(|tag| others.contains(tag))
        && !changes_more
        && takes(step, &schema(action.input.as_ref()), &schema(other.input.as_ref()))
        && promises(&schema(action.output.as_ref()), &schema(other.output.as_ref()))
}

fn schema(json: Option<&Json>) -> Value {
    json.map(Json::value).unwrap_or_default()
}

/// Whether a schema takes what a step gives.
fn takes(step: &Step, own: &Value, other: &Value) -> bool {
    let given: Vec<&str> = step.takes.iter().map(|(member, _)| member.as_str()).collect();
    let properties = other["properties"].as_object();
    let has_room = other["additionalProperties"] != false
        || given.iter().all(|name| properties.is_some_and(|all| all.contains_key(*name)));
    let is_given = texts(&other["required"]).all(|name| given.contains(&name));
    has_room && is_given && agree(own, other)
}

/// Whether what one answer surely has is known to the other.
fn promises(own: &Value, other: &Value) -> bool {
    let named = other["properties"].as_object().filter(|all| !all.is_empty());
    let has = |name: &str| named.is_none_or(|all| all.contains_key(name));
    texts(&own["required"]).all(has) && agree(own, other)
}

/// Whether members that both name can be of one type.
fn agree(own: &Value, other: &Value) -> bool {
    let types = |schema: &Value| -> Vec<String> {
        match &schema["type"] {
            Value::String(one) => vec![one.clone()],
            all => texts(all).map(str::to_owned).collect(),
        }
    };
    let is_alike = |one: &Value, other: &Value| {
        let (one, other) = (types(one), types(other));
        let is_number = |name: &String| name == "number" || name == "integer";
        one.is_empty()
            || other.is_empty()
            || one.iter().any(|name| other.contains(name))
            || (one.iter().any(is_number) && other.iter().any(is_number))
    };
    let own = own["properties"].as_object().into_iter().flatten();
    own.into_iter()
        .all(|(name, one)| other["properties"].get(name).is_none_or(|other| is_alike(one, other)))
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The manifest of a chain whose steps call other tools, by the names of the steps. It is the next version of it.
pub fn replaced(manifest: &Value, instead: &BTreeMap<String, Instead>) -> Value {
    let mut manifest = manifest.clone();
    for step in manifest["chain"].as_array_mut().into_iter().flatten() {
        let Some(one) = step["step"].as_str().and_then(|name| instead.get(name)) else { continue };
        if let Some(step) = step.as_object_mut() {
            put(step, one);
        }
    }
    if let Some(next) = manifest["version"].as_str().and_then(next_version) {
        manifest["version"] = next.into();
    }
    manifest
}

fn put(step: &mut Map<String, Value>, instead: &Instead) {
    step.insert("tool".to_owned(), instead.tool.as_str().into());
    match &instead.action {
        Some(action) => drop(step.insert("action".to_owned(), action.as_str().into())),
        None => drop(step.remove("action")),
    }
}

/// The next version with the same promises.
fn next_version(version: &str) -> Option<String> {
    let core = version.split(['-', '+']).next()?;
    let (before, last) = core.rsplit_once('.')?;
    let last: u64 = last.parse().ok()?;
    Some(format!("{before}.{}", last.checked_add(1)?))
}

#[cfg(test)]
mod tests {
    use manifest::document::{Options, read};
    use serde_json::json;

    use super::*;

    fn tool(more: &Value) -> Package {
        let mut manifest = json!({
            "toolId": "demo.text.clean", "name": "Clean", "version": "1.0.0", "description": "d",
            "capabilities": ["text", "clean"], "endpoint": {"type": "local", "command": "x"},
            "input_schema": {
                "type": "object", "required": ["text"],
                "properties": {"text": {"type": "string"}, "width": {"type": "integer"}},
            },
            "output_schema": {
                "type": "object", "required": ["text"], "properties": {"text": {"type": "string"}},
            },
        });
        manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let read = read(manifest.to_string().as_bytes(), &Options::default());
        read.unwrap_or_else(|report| panic!("{:?}", report.findings)).1.remove(0)
    }

    fn fit(own: &Value, other: &Value) -> bool {
        let step = json!({
            "step": "clean", "tool": "demo.text.clean",
            "inputMapping": {"text": "$.input.text", "width": {"value": 80}},
        });
        let (own, other) = (tool(own), tool(other));
        let step = Step::read(&step).unwrap();
        fits(&step, (&own, &own.actions[0]), (&other, &other.actions[0]))
    }

    #[test]
    fn a_tool_that_takes_gives_and_changes_the_same_could_take_its_place() {
        let any = json!({});
        assert!(fit(&any, &json!({"capabilities": ["Clean", "fast"]})));
        assert!(fit(&any, &json!({"input_schema": {"type": "object"}, "output_schema": {}})));
        for other in [
            json!({"capabilities": ["pdf"]}),
            json!({"input_schema": {"type": "object", "required": ["text", "language"]}}),
            json!({"input_schema": {
                "type": "object", "additionalProperties": false,
                "properties": {"text": {"type": "string"}},
            }}),
            json!({"input_schema": {"type": "object", "properties": {"text": {"type": "array"}}}}),
            json!({"output_schema": {"type": "object", "properties": {"lines": {}}}}),
            json!({"output_schema": {"properties": {"text": {"type": ["null", "object"]}}}}),
        ] {
            assert!(!fit(&any, &other), "{other}");
        }
        let number =
            json!({"output_schema": {"required": ["n"], "properties": {"n": {"type": "number"}}}});
        let integer = json!({"output_schema": {"properties": {"n": {"type": "integer"}}}});
        assert!(fit(&number, &integer));
        let effects = |own: &str, other: Value| fit(&json!({"sideEffects": own}), &other);
        assert!(effects("read", json!({"sideEffects": "none"})));
        assert!(!effects("read", json!({"sideEffects": "write"})));
        assert!(!effects("none", json!({})));
        assert!(effects("write", json!({})));
    }

    #[test]
    fn the_chain_with_other_tools_is_its_next_version() {
        let chain = json!({"version": "1.2.3-rc.1", "chain": [
            {"step": "a", "tool": "x", "action": "run", "outputKey": "o"}, {"step": "b", "tool": "y"},
        ]});
        let instead = |tool: &str, action: Option<&str>| Instead {
            tool: tool.into(),
            action: action.map(str::to_owned),
        };
        let all =
            [("a".to_owned(), instead("z", None)), ("b".to_owned(), instead("w", Some("go")))];
        assert_eq!(
            replaced(&chain, &all.into_iter().collect()),
            json!({"version": "1.2.4", "chain": [
                {"step": "a", "tool": "z", "outputKey": "o"},
                {"step": "b", "tool": "w", "action": "go"},
            ]})
        );
    }
}
