//! Which schemas `OpenAI` can hold a model to.
//!
//! With `strict` one keyword too many makes the API refuse the whole request,
//! so this is a list of what is known to be carried as it stands; a schema
//! with anything else goes without.

use serde_json::{Map, Value};

/// Beside a type. `pattern` is absent: its regular expressions are not those of JSON Schema.
const TYPED: [&str; 17] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "enum",
    "const",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

/// Beside a choice.
const CHOICE: [&str; 3] = ["anyOf", "title", "description"];

/// At the root, beside the others.
const ROOT: [&str; 3] = ["$schema", "$defs", "definitions"];

const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

// The smallest limits that a host of this API documents.
const MOST_LEVELS: usize = 5;
const MOST_PROPERTIES: usize = 100;
const MOST_CHOICES: usize = 500;
const MOST_CHARACTERS: usize = 15_000;

/// Whether a schema of parameters is carried without loss, and so may be strict.
pub(super) fn is_carried(schema: &Value) -> bool {
    let Some(root) = schema.as_object() else { return false };
    let mut walk = Walk { root, properties: 0, choices: 0, characters: 0 };
    root.get("type").is_some_and(|kind| kind == "object")
        && walk.definitions()
        && walk.fits(schema, 0)
        && walk.properties <= MOST_PROPERTIES
        && walk.choices <= MOST_CHOICES
        && walk.characters <= MOST_CHARACTERS
}

/// One look at every part of a schema, with what the limits count.
struct Walk<'s> {
    root: &'s Map<String, Value>,
    properties: usize,
    choices: usize,
    characters: usize,
}

impl Walk<'_> {
    fn definitions(&mut self) -> bool {
        ["$defs", "definitions"].into_iter().filter_map(|key| self.root.get(key)).all(|defined| {
            defined.as_object().is_some_and(|defined| {
                defined.iter().all(|(name, schema)| {
                    self.characters += name.len();
                    // A reference to a reference could go round for ever.
                    schema.get("$ref").is_none() && self.fits(schema, 1)
                })
            })
        })
    }

    /// Whether a schema beneath so many objects is carried; only the root is beneath none.
    fn fits(&mut self, schema: &Value, level: usize) -> bool {
        let Some(members) = schema.as_object() else { return false };
        if let Some(reference) = members.get("$ref") {
            return members.len() == 1 && reference.as_str().is_some_and(|to| self.leads(to));
        }
        if let Some(choices) = members.get("anyOf") {
            return has_only(members, &CHOICE, &[])
                && choices
                    .as_array()
                    .is_some_and(|choices| choices.iter().all(|choice| self.fits(choice, level)));
        }
        self.count_values(members);
        let more: &[&str] = if level == 0 { &ROOT } else { &[] };
        has_only(members, &TYPED, more)
            && members.get("format").is_none_or(|format| is_among(format, &FORMATS))
            && members.get("type").is_some_and(|kind| match kind {
                Value::Array(kinds) => {
                    kinds.iter().all(|kind| self.fits_type(kind, members, level))
                }
                only => self.fits_type(only, members, level),
            })
    }

    fn fits_type(&mut self, kind: &Value, members: &Map<String, Value>, level: usize) -> bool {
        match kind.as_str() {
            Some("object") => level < MOST_LEVELS && self.is_closed(members, level),
            Some("array") => members.get("items").is_some_and(|items| self.fits(items, level)),
            _ => is_among(kind, &TYPES),
        }
    }

    /// Whether an object has its properties, all of them, and no others.
    fn is_closed(&mut self, members: &Map<String, Value>, level: usize) -> bool {
        let part = |key| members.get(key);
        let (Some(Value::Object(properties)), Some(Value::Array(required)), Some(false)) = (
            part("properties"),
            part("required"),
            part("additionalProperties").and_then(Value::as_bool),
        ) else {
            return false;
        };
        let is_required = |name: &str| required.iter().any(|entry| entry == name);
        let is_there =
            |entry: &Value| entry.as_str().is_some_and(|name| properties.contains_key(name));
        self.properties += properties.len();
        required.iter().all(is_there)
            && properties.iter().all(|(name, schema)| {
                self.characters += name.len();
                is_required(name) && self.fits(schema, level + 1)
            })
    }

    fn count_values(&mut self, members: &Map<String, Value>) {
        let listed = members.get("enum").and_then(Value::as_array).into_iter().flatten();
        self.choices += listed.clone().count();
        let texts = listed.chain(members.get("const")).filter_map(Value::as_str);
        self.characters += texts.map(str::len).sum::<usize>();
    }

    /// Whether a reference leads to the root or to one of its definitions.
    fn leads(&self, to: &str) -> bool {
        let defined =
            |key: &str, name: &str| self.root.get(key).is_some_and(|of| of.get(name).is_some());
        to == "#"
            || to.strip_prefix("#/$defs/").is_some_and(|name| defined("$defs", name))
            || to.strip_prefix("#/definitions/").is_some_and(|name| defined("definitions", name))
    }
}

fn has_only(members: &Map<String, Value>, known: &[&str], more: &[&str]) -> bool {
    members.keys().all(|key| known.contains(&key.as_str()) || more.contains(&key.as_str()))
}

fn is_among(value: &Value, words: &[&str]) -> bool {
    value.as_str().is_some_and(|text| words.contains(&text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A closed object with one property.
    fn with(schema: &Value) -> Value {
        json!({
            "type": "object",
            "properties": { "x": schema },
            "required": ["x"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn a_closed_object_with_everything_required_is_carried() {
        assert!(is_carried(&with(&json!({ "type": "string", "description": "D" }))));
        assert!(is_carried(&with(&json!({ "type": ["string", "null"], "enum": ["a", null] }))));
        assert!(is_carried(&with(
            &json!({ "type": "array", "items": with(&json!({ "type": "integer", "minimum": 1 })) })
        )));
        assert!(is_carried(&with(
            &json!({ "anyOf": [{ "type": "string", "format": "date" }, { "type": "null" }] })
        )));
    }

    #[test]
    fn an_open_or_partly_optional_object_is_not() {
        for (key, value) in [
            ("required", json!([])),
            ("required", json!(["x", "y"])),
            ("additionalProperties", json!(true)),
            ("additionalProperties", json!({ "type": "string" })),
        ] {
            let mut schema = with(&json!({ "type": "string" }));
            assert!(is_carried(&schema));
            schema[key] = value;
            assert!(!is_carried(&schema), "{schema}");
            assert!(!is_carried(&with(&schema)), "{schema}");
        }
        for key in ["type", "properties", "required", "additionalProperties"] {
            let mut schema = with(&json!({ "type": "string" }));
            schema.as_object_mut().unwrap().remove(key);
            assert!(!is_carried(&schema), "without {key}");
        }
    }

    #[test]
    fn a_keyword_that_is_not_carried_makes_it_loose() {
        for (key, value) in [
            ("allOf", json!([{}])),
            ("oneOf", json!([{}])),
            ("not", json!({})),
            ("if", json!({})),
            ("then", json!({})),
            ("else", json!({})),
            ("patternProperties", json!({})),
            ("dependentRequired", json!({})),
            ("dependentSchemas", json!({})),
            ("default", json!("a")),
            ("minLength", json!(1)),
            ("pattern", json!("^a$")),
            ("format", json!("uri")),
            ("$defs", json!({})),
            ("$ref", json!("#")),
            ("anyOf", json!([{ "type": "string" }])),
        ] {
            let schema = with(&json!({ "type": "string", key: value }));
            assert!(!is_carried(&schema), "{schema}");
        }
        for schema in [
            json!({}),
            json!(true),
            json!({ "type": "array" }),
            json!({ "type": "any" }),
            json!({ "enum": [1] }),
        ] {
            assert!(!is_carried(&with(&schema)), "{schema}");
        }
    }

    #[test]
    fn a_reference_stands_alone_and_leads_to_a_definition() {
        let mut schema = with(&json!({ "$ref": "#/$defs/text" }));
        assert!(!is_carried(&schema));
        schema["$defs"] = json!({ "text": { "type": "string" } });
        assert!(is_carried(&schema));
        schema["$defs"]["text"] = json!({ "type": "string", "minLength": 1 });
        assert!(!is_carried(&schema));
        schema["$defs"]["text"] = json!({ "$ref": "#/$defs/text" });
        assert!(!is_carried(&schema));
        assert!(is_carried(&with(&json!({ "anyOf": [{ "$ref": "#" }, { "type": "null" }] }))));
        assert!(!is_carried(&with(&json!({ "$ref": "https://example.com/schema" }))));
    }

    #[test]
    fn a_schema_beyond_the_limits_is_loose() {
        let nested =
            |levels| (1..levels).fold(with(&json!({ "type": "null" })), |inner, _| with(&inner));
        assert!(is_carried(&nested(5)));
        assert!(!is_carried(&nested(6)));
        let choices = |count: u32| {
            with(&json!({ "type": "integer", "enum": (0..count).collect::<Vec<_>>() }))
        };
        assert!(is_carried(&choices(500)));
        assert!(!is_carried(&choices(501)));
        let long = |length| with(&json!({ "type": "string", "const": "a".repeat(length) }));
        assert!(is_carried(&long(14_999)));
        assert!(!is_carried(&long(15_000)));
    }
}
