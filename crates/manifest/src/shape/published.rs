//! Writes a shape as a JSON Schema (2020-12).

use serde_json::{Map, Value, json};

use super::{Bounds, Choice, Field, Object, Presence, Rule, Shape, Unknown};

/// The JSON Schema of a shape, with a title and the address it is known by.
pub fn json_schema(shape: &Shape, id: &str, title: &str) -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("$id".into(), id.into());
    schema.insert("title".into(), title.into());
    schema.extend(of_shape(shape));
    Value::Object(schema)
}

fn of_shape(shape: &Shape) -> Map<String, Value> {
    let schema = match shape {
        Shape::Anything => json!({}),
        Shape::Text(limits) => {
            let mut schema = json!({"type": "string"});
            if limits.min > 0 {
                schema["minLength"] = limits.min.into();
            }
            if let Some(max) = limits.max {
                schema["maxLength"] = max.into();
            }
            if let Some(pattern) = limits.pattern {
                schema["pattern"] = pattern.text.into();
            }
            if let Some(format) = limits.format {
                schema["format"] = format.keyword().into();
            }
            schema
        }
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Integer(bounds) => of_number("integer", *bounds),
        Shape::Number(bounds) => of_number("number", *bounds),
        Shape::Word(words) => json!({"type": "string", "enum": words}),
        Shape::List(limits) => {
            let mut schema = json!({"type": "array", "items": of_shape(&limits.item)});
            if limits.min > 0 {
                schema["minItems"] = limits.min.into();
            }
            if let Some(max) = limits.max {
                schema["maxItems"] = max.into();
            }
            schema
        }
        Shape::Object(object) => of_object(object, None),
        Shape::Map(inner) => json!({"type": "object", "additionalProperties": of_shape(inner)}),
        Shape::Choice(choice) => of_choice(choice),
        Shape::Schema => json!({"type": "object"}),
        Shape::Nullable(inner) => json!({"anyOf": [of_shape(inner), {"type": "null"}]}),
        Shape::Ruled(inner) => Value::Object(of_shape(inner)),
    };
    match schema {
        Value::Object(schema) => schema,
        _ => unreachable!("every shape is written as an object"),
    }
}

fn of_number(kind: &str, bounds: Bounds) -> Value {
    let mut schema = json!({"type": kind});
    for (keyword, bound) in
        [("minimum", bounds.min), ("maximum", bounds.max), ("exclusiveMinimum", bounds.above)]
    {
        if let Some(bound) = bound {
            schema[keyword] = of_bound(bound);
        }
    }
    schema
}

/// Whole bounds are written without a fraction.
#[expect(clippy::cast_possible_truncation, reason = "bounds are small whole numbers or fractions")]
fn of_bound(bound: f64) -> Value {
    if bound.fract() == 0.0 { (bound as i64).into() } else { bound.into() }
}

fn of_object(object: &Object, tag: Option<(&str, &str, &str)>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some((tag, about, name)) = tag {
        properties.insert(tag.into(), json!({"const": name, "description": about}));
        required.push(tag);
    }
    for field in &object.fields {
        properties.insert(field.name.into(), of_field(field));
        if field.presence != Presence::Optional {
            required.push(field.name);
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if object.unknown == Unknown::Refuse {
        schema["additionalProperties"] = false.into();
    }
    let rules: Vec<_> = object.rules.iter().map(of_rule).collect();
    if !rules.is_empty() {
        schema["allOf"] = rules.into();
    }
    schema
}

fn of_field(field: &Field) -> Value {
    let mut schema = Map::new();
    schema.insert("description".into(), field.about.into());
    schema.extend(of_shape(&field.shape));
    Value::Object(schema)
}

fn of_choice(choice: &Choice) -> Value {
    let branches: Vec<_> = choice
        .branches
        .iter()
        .map(|branch| of_object(&branch.object, Some((choice.tag, choice.about, branch.name))))
        .collect();
    json!({"type": "object", "oneOf": branches})
}

fn of_rule(rule: &Rule) -> Value {
    let present = |name: &&str| json!({"required": [name]});
    match rule {
        Rule::ExactlyOne(names) => {
            json!({"oneOf": names.iter().map(present).collect::<Vec<_>>()})
        }
        Rule::Excludes(name, others) => json!({
            "if": {"required": [name]},
            "then": {"not": {"anyOf": others.iter().map(present).collect::<Vec<_>>()}},
        }),
        Rule::AnyOf(names, ..) => {
            let filled =
                |name: &&str| json!({"required": [name], "properties": {*name: {"minItems": 1}}});
            json!({"anyOf": names.iter().map(filled).collect::<Vec<_>>()})
        }
        Rule::Needs(field, word, other) => json!({
            "if": {"required": [field], "properties": {*field: {"const": word}}},
            "then": {"required": [other]},
        }),
        Rule::NeedsList { path, among, field, .. } => {
            let condition = path.iter().rev().fold(json!({"enum": among}), |inner, key| {
                json!({"type": "object", "required": [key], "properties": {*key: inner}})
            });
            json!({
                "if": condition,
                "then": {"required": [field], "properties": {*field: {"minItems": 1}}},
            })
        }
    }
}
