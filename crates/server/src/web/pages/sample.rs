//! An input that has the shape of what an action takes, for people to begin with.

use manifest::model::Action;
use serde_json::{Map, Value, json};

use super::inert;

/// The most bytes of an input that is shown in a command.
const LONGEST: usize = 240;
/// How deep objects are filled in.
const DEPTH: u32 = 3;

/// What the author gives as an example, else what the schema demands; none where nothing is demanded, or where it
/// is too much for a command or could not be seen.
pub(super) fn input(action: &Action) -> Option<String> {
    let given = action.examples.iter().find_map(|example| example.input.as_ref());
    let value = match given {
        Some(example) => example.value(),
        None => {
            let schema = action.input.as_ref()?.value();
            of_schema(&schema, &schema, DEPTH)
        }
    };
    let is_something = value.as_object().is_some_and(|members| !members.is_empty());
    let text = value.to_string();
    let is_seen = !text.chars().any(inert::is_hidden);
    (is_something && is_seen && text.len() <= LONGEST).then_some(text)
}

/// A value that such a schema may take, a part of `whole`: it shows names and types, and promises no more.
fn of_schema(schema: &Value, whole: &Value, depth: u32) -> Value {
    let elsewhere = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    if let Some(found) = elsewhere.and_then(|pointer| whole.pointer(pointer)).filter(|_| depth > 0)
    {
        return of_schema(found, whole, depth - 1);
    }
    let first = |key: &str| schema[key].as_array().and_then(|list| list.first()).cloned();
    let said = [schema.get("const").cloned(), schema.get("default").cloned()];
    if let Some(value) = said.into_iter().flatten().next() {
        return value;
    }
    if let Some(value) = first("enum").or_else(|| first("examples")) {
        return value;
    }
    let kind = schema["type"].as_str().map(str::to_owned);
    let kind = kind.or_else(|| first("type")?.as_str().map(str::to_owned)).unwrap_or_default();
    match kind.as_str() {
        "string" => json!("..."),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(true),
        "array" => json!([]),
        _ if depth > 0 && schema["required"].is_array() => {
            let required = schema["required"].as_array().into_iter().flatten();
            let member = |name: &Value| {
                let name = name.as_str()?;
                Some((name.to_owned(), of_schema(&schema["properties"][name], whole, depth - 1)))
            };
            Value::Object(required.filter_map(member).collect::<Map<_, _>>())
        }
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_demanded_is_there_with_its_type() {
        let schema = json!({"type": "object", "required": ["text", "count", "unit", "deep", 7], "properties": {
            "text": {"type": "string"}, "count": {"type": "integer", "minimum": 3}, "more": {"type": "string"},
            "unit": {"$ref": "#/$defs/unit"},
            "deep": {"type": ["object", "null"], "required": ["x"], "properties": {"x": {"type": "boolean"}}}
        }, "$defs": {"unit": {"enum": ["km", "mi"]}}});
        assert_eq!(
            of_schema(&schema, &schema, DEPTH),
            json!({"text": "...", "count": 3, "unit": "km", "deep": {"x": true}})
        );
        assert_eq!(of_schema(&json!(true), &json!(true), DEPTH), json!({}));
        assert_eq!(of_schema(&json!({"type": "object"}), &json!({}), DEPTH), json!({}));
    }

    #[test]
    fn a_schema_within_itself_ends() {
        let mut schema = json!({"type": "string"});
        for _ in 0..60 {
            schema = json!({"required": ["a"], "properties": {"a": schema}});
        }
        assert_eq!(of_schema(&schema, &schema, DEPTH), json!({"a": {"a": {"a": {}}}}));
        let circle = json!({"$ref": "#"});
        assert_eq!(of_schema(&circle, &circle, DEPTH), json!({}));
    }
}
