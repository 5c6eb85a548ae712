//! A schema of a document as one of JSON Schema 2020-12 that stands for itself.
//!
//! What it refers to is put in its place; what refers to itself is left open there. Everything is counted: a document of a
//! few lines can stand for more than any memory holds.

use std::collections::HashSet;

use manifest::schema::{Budget, check_regex};
use serde_json::{Map, Value, json};

/// The most values of all schemas of a document together.
const MOST: usize = 60_000;
/// How deep a schema may be nested.
const DEEPEST: usize = 24;
/// How many references are followed from one to the next.
const MOST_HOPS: usize = 32;
/// The longest description that is kept.
const LONGEST: usize = 1000;

/// Keywords whose value is a schema.
const ONE: [&str; 8] =
    ["items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"];
/// Keywords whose value is a list of schemas.
const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords that are kept as they are.
const PLAIN: [&str; 20] = [
    "type",
    "enum",
    "const",
    "default",
    "format",
    "title",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "required",
    "minContains",
    "maxContains",
    "deprecated",
];

/// Which words a document has for schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Revision {
    /// Its own, older ones.
    V3_0,
    /// Those of JSON Schema 2020-12.
    V3_1,
}

/// A document whose references are followed.
pub(super) struct Document<'d> {
    pub(super) root: &'d Value,
    revision: Revision,
    /// How many values schemas have taken so far.
    spent: usize,
    /// What may still be spent on patterns.
    patterns: Budget,
    /// What was left open, and dropped.
    pub(super) notes: HashSet<&'static str>,
}

impl<'d> Document<'d> {
    pub(super) fn new(root: &'d Value, revision: Revision) -> Self {
        Self { root, revision, spent: 0, patterns: Budget::default(), notes: HashSet::new() }
    }

    /// What a part of the document stands for, which may be a reference.
    pub(super) fn part(&self, mut part: &'d Value) -> Result<&'d Value, String> {
        for _ in 0..MOST_HOPS {
            let Some(reference) = part.get("$ref").and_then(Value::as_str) else { return Ok(part) };
            part = self.target(reference)?;
        }
        Err("references lead in a circle".to_owned())
    }

    fn target(&self, reference: &str) -> Result<&'d Value, String> {
        let shown: String = reference.chars().take(80).collect();
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(format!("`{shown}` lies outside of the document, and nothing is fetched"));
        };
        let pointer = percent_decoded(pointer);
        self.root.pointer(&pointer).ok_or_else(|| format!("`{shown}` leads nowhere"))
    }

    /// A schema of what is sent that stands for itself; what only the server sets is left out.
    pub(super) fn schema(&mut self, schema: &'d Value) -> Result<Value, String> {
        self.plain(schema, 0, &mut Vec::new())
    }

    fn plain(
        &mut self,
        schema: &'d Value,
        depth: usize,
        inside: &mut Vec<&'d str>,
    ) -> Result<Value, String> {
        self.spent += 1;
        if self.spent > MOST || depth > DEEPEST {
            self.notes
                .insert("schemas that are larger or deeper than is carried are left open there");
            return Ok(json!({}));
        }
        let object = match schema {
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Object(object) => object,
            _ => return Err("a schema is neither an object nor true or false".to_owned()),
        };
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            if inside.contains(&reference) {
                self.notes.insert("schemas that hold themselves are left open there");
                return Ok(json!({}));
            }
            let target = self.target(reference)?;
            inside.push(reference);
            let plain = self.plain(target, depth + 1, inside);
            inside.pop();
            return plain;
        }
        let mut plain = Map::new();
        for (key, value) in object {
            let key = key.as_str();
            if ONE.contains(&key) {
                plain.insert(key.to_owned(), self.plain(value, depth + 1, inside)?);
            } else if SEVERAL.contains(&key) {
                let Some(items) = value.as_array() else { continue };
                let items = items.iter().map(|one| self.plain(one, depth + 1, inside));
                plain.insert(key.to_owned(), items.collect::<Result<Vec<_>, _>>()?.into());
            } else if key == "properties" {
                let Some(members) = value.as_object() else { continue };
                let mut properties = Map::new();
                for (name, one) in members {
                    if !self.is_set_by_server(one) {
                        properties.insert(name.clone(), self.plain(one, depth + 1, inside)?);
                    }
                }
                plain.insert("properties".to_owned(), properties.into());
            } else if key == "pattern" {
                match value.as_str() {
                    Some(pattern) if check_regex(pattern, &self.patterns).is_ok() => {
                        plain.insert(key.to_owned(), value.clone());
                    }
                    _ => {
                        self.notes.insert("patterns of another flavour are dropped");
                    }
                }
            } else if key == "description" {
                let text: String =
                    value.as_str().unwrap_or_default().chars().take(LONGEST).collect();
                plain.insert(key.to_owned(), text.into());
            } else if PLAIN.contains(&key) {
                self.spent += weight(value);
                plain.insert(key.to_owned(), value.clone());
            }
        }
        self.bounds(object, &mut plain);
        require_known(&mut plain);
        Ok(Value::Object(plain))
    }

    /// Bounds and `nullable`, which 3.0 writes in its own way.
    fn bounds(&self, object: &Map<String, Value>, plain: &mut Map<String, Value>) {
        for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            match object.get(flag) {
                Some(Value::Bool(true)) if self.revision == Revision::V3_0 => {
                    if let Some(value) = plain.remove(bound) {
                        plain.insert(flag.to_owned(), value);
                    }
                }
                Some(value @ Value::Number(_)) if self.revision == Revision::V3_1 => {
                    plain.insert(flag.to_owned(), value.clone());
                }
                _ => {}
            }
        }
        if self.revision == Revision::V3_0 && object.get("nullable") == Some(&Value::Bool(true)) {
            if let Some(Value::String(kind)) = plain.get("type") {
                let kinds = json!([kind, "null"]);
                plain.insert("type".to_owned(), kinds);
            }
            if let Some(Value::Array(values)) = plain.get_mut("enum")
                && !values.contains(&Value::Null)
            {
                values.push(Value::Null);
            }
        }
    }

    fn is_set_by_server(&self, schema: &'d Value) -> bool {
        self.part(schema).is_ok_and(|schema| schema.get("readOnly") == Some(&Value::Bool(true)))
    }
}

/// What is required is declared: a property that only the server sets is not asked for.
fn require_known(plain: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = plain.get("properties") else { return };
    let known: HashSet<String> = properties.keys().cloned().collect();
    if let Some(Value::Array(required)) = plain.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(|name| known.contains(name)));
        if required.is_empty() {
            plain.remove("required");
        }
    }
}

/// How many values there are in one.
fn weight(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(weight).sum::<usize>(),
        _ => 1,
    }
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(document: &Value, revision: Revision) -> (Value, usize) {
        let mut reader = Document::new(document, revision);
        let plain = reader.schema(&document["s"]).unwrap();
        (plain, reader.notes.len())
    }

    #[test]
    fn references_are_put_in_their_place_and_circles_left_open() {
        let document = json!({
            "s": {"$ref": "#/components/schemas/A~1b"},
            "components": {"schemas": {"A/b": {"type": "object", "required": ["next", "id"], "properties": {
                "next": {"$ref": "#/components/schemas/A~1b"},
                "id": {"type": "string", "readOnly": true},
                "n": {"type": "integer", "example": 3}}}}},
        });
        let (plain, notes) = schema(&document, Revision::V3_1);
        let expected = json!({"type": "object", "required": ["next"], "properties": {"next": {}, "n": {"type": "integer"}}});
        assert_eq!((plain, notes), (expected, 1));
    }

    #[test]
    fn the_words_of_3_0_become_those_of_json_schema() {
        let document = json!({"s": {"type": "number", "nullable": true, "minimum": 1, "exclusiveMinimum": true, "enum": [2, 3]}});
        let expected =
            json!({"type": ["number", "null"], "exclusiveMinimum": 1, "enum": [2, 3, null]});
        assert_eq!(schema(&document, Revision::V3_0).0, expected);
    }

    #[test]
    fn a_schema_that_doubles_at_every_step_ends() {
        let mut schemas = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/components/schemas/L{}", level + 1)});
            schemas.insert(format!("L{level}"), json!({"allOf": [next, next]}));
        }
        schemas.insert("L40".to_owned(), json!({}));
        let document =
            json!({"s": {"$ref": "#/components/schemas/L0"}, "components": {"schemas": schemas}});
        assert_eq!(schema(&document, Revision::V3_1).1, 1);
    }

    #[test]
    fn nothing_outside_is_referred_to() {
        let document = json!({"s": {"$ref": "https://a.example/x.json"}});
        let mut reader = Document::new(&document, Revision::V3_1);
        assert!(reader.schema(&document["s"]).unwrap_err().contains("outside"));
        let turning = json!({"p": {"$ref": "#/q"}, "q": {"$ref": "#/p"}});
        assert!(
            Document::new(&turning, Revision::V3_1)
                .part(&turning["p"])
                .unwrap_err()
                .contains("circle")
        );
    }
}
