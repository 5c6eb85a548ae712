//! A JSON Schema as a table that people read.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::inert::short;

/// How deep objects in objects are shown, and how many lines in all.
const DEEPEST: usize = 6;
const LINES: usize = 200;
/// How many schemas are looked at for one table: they may refer to one another in every way.
const STEPS: usize = 5_000;
/// The most letters of a value, and the most values of a list, that are shown.
const LETTERS: usize = 120;
const VALUES: usize = 24;
/// The most letters of what an author says about a value.
const ABOUT: usize = 600;

/// A schema as lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) lines: Vec<Line>,
    /// Whether there is more than is shown.
    pub(super) is_cut: bool,
    /// What the whole is, where it is no object with named parts.
    pub(super) whole: Option<Line>,
}

/// One value that goes in or comes out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// How far it is inside others.
    pub(super) depth: usize,
    pub(super) name: String,
    /// What it is: `text`, `list of numbers`.
    pub(super) kind: String,
    pub(super) is_required: bool,
    /// What its author says about it.
    pub(super) about: String,
    /// The values it may have, where they are named.
    pub(super) choices: Vec<String>,
    /// What it is when nothing is given.
    pub(super) default: Option<String>,
    /// Its bounds, in words.
    pub(super) bounds: Vec<String>,
}

/// Makes the table of a schema.
pub(super) fn table(schema: &Value) -> Table {
    let mut reader = Reader { root: schema, table: Table::default(), steps: Cell::new(STEPS) };
    let resolved = reader.resolve(schema);
    reader.inside(resolved, 0, 0);
    if reader.table.lines.is_empty() {
        let line = reader.line("", resolved, 0, false);
        let says_anything = line != Line { kind: line.kind.clone(), ..Line::default() }
            || !["object", "anything"].contains(&line.kind.as_str());
        reader.table.whole = says_anything.then_some(line);
    }
    reader.table
}

struct Reader<'s> {
    root: &'s Value,
    table: Table,
    /// How many more schemas are looked at.
    steps: Cell<usize>,
}

impl<'s> Reader<'s> {
    /// What a schema refers to, in the same document; a few steps far.
    fn resolve(&self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        for _ in 0..DEEPEST {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { break };
            let Some(target) = reference.strip_prefix('#').and_then(|at| self.root.pointer(at))
            else {
                break;
            };
            schema = target;
        }
        schema
    }

    /// Whether enough was looked at.
    fn is_tired(&self) -> bool {
        self.steps.set(self.steps.get().saturating_sub(1));
        self.steps.get() == 0
    }

    /// The parts of an object, of the things in a list, and of what else it may be.
    fn inside(&mut self, schema: &'s Value, depth: usize, within: usize) {
        if self.is_tired() || within >= DEEPEST {
            self.table.is_cut |= has_parts(schema);
            return;
        }
        let required = |name: &str| {
            let names = schema.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|known| known == name))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            self.one(name, property, (depth, within), required(name));
        }
        for more in ["additionalProperties", "patternProperties"] {
            match (more, schema.get(more)) {
                ("additionalProperties", Some(Value::Object(_))) => {
                    self.one("any other name", &schema[more], (depth, within), false);
                }
                ("patternProperties", Some(Value::Object(patterns))) => {
                    for (pattern, property) in patterns {
                        self.one(
                            &format!("names like {pattern}"),
                            property,
                            (depth, within),
                            false,
                        );
                    }
                }
                _ => {}
            }
        }
        for word in ["allOf", "anyOf", "oneOf"] {
            let variants =
                schema.get(word).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            for (at, variant) in variants.iter().enumerate() {
                let variant = self.resolve(variant);
                if !has_parts(variant) {
                    continue;
                }
                if word == "allOf" {
                    self.inside(variant, depth, within + 1);
                } else {
                    let about = text(variant, "description").or_else(|| text(variant, "title"));
                    let choice = format!("choice {}", at + 1);
                    self.push(Line {
                        depth,
                        name: choice,
                        kind: "object".to_owned(),
                        about: about.unwrap_or_default(),
                        ..Line::default()
                    });
                    self.inside(variant, depth + 1, within + 1);
                }
            }
        }
    }

    fn one(
        &mut self,
        name: &str,
        schema: &'s Value,
        (depth, within): (usize, usize),
        is_required: bool,
    ) {
        if self.table.lines.len() >= LINES {
            self.table.is_cut = true;
            return;
        }
        let resolved = self.resolve(schema);
        let mut line = self.line(name, resolved, depth, is_required);
        // What stands beside a reference speaks of this place, and comes first.
        if let Some(about) = text(schema, "description") {
            line.about = about;
        }
        self.push(line);
        let inner = resolved.get("items").map_or(resolved, |items| self.resolve(items));
        if has_parts(inner) {
            self.inside(inner, depth + 1, within + 1);
        }
    }

    fn push(&mut self, line: Line) {
        if self.table.lines.len() < LINES {
            self.table.lines.push(line);
        } else {
            self.table.is_cut = true;
        }
    }

    fn line(&self, name: &str, schema: &'s Value, depth: usize, is_required: bool) -> Line {
        let items = schema.get("items").map(|items| self.resolve(items));
        let choices = schema.get("enum").or_else(|| items.and_then(|items| items.get("enum")));
        let choices = choices.and_then(Value::as_array);
        let mut shown: Vec<String> =
            choices.into_iter().flatten().take(VALUES).map(value).collect();
        let more = choices.map_or(0, Vec::len).saturating_sub(VALUES);
        if more > 0 {
            shown.push(format!("and {more} more"));
        }
        Line {
            depth,
            name: clip(name),
            kind: self.kind(schema, 0),
            is_required,
            about: text(schema, "description")
                .or_else(|| text(schema, "title"))
                .unwrap_or_default(),
            choices: shown,
            default: schema.get("default").map(value),
            bounds: schema.as_object().map(bounds).unwrap_or_default(),
        }
    }

    fn kind(&self, schema: &'s Value, depth: usize) -> String {
        let schema = self.resolve(schema);
        if depth > DEEPEST || self.is_tired() {
            return "anything".to_owned();
        }
        if let Some(only) = schema.get("const") {
            return format!("always {}", value(only));
        }
        let named = |name: &str| match name {
            "string" => match text(schema, "format").as_deref() {
                Some("date-time") => "date and time".to_owned(),
                Some(format @ ("date" | "time" | "email" | "uri" | "uuid" | "hostname")) => {
                    format.to_owned()
                }
                _ => "text".to_owned(),
            },
            "integer" => "whole number".to_owned(),
            "number" => "number".to_owned(),
            "boolean" => "yes or no".to_owned(),
            "null" => "nothing".to_owned(),
            "array" => match schema.get("items") {
                Some(items) => format!("list of {}", self.kind(items, depth + 1)),
                None => "list".to_owned(),
            },
            "object" => "object".to_owned(),
            other => clip(other),
        };
        match schema.get("type") {
            Some(Value::String(name)) => return named(name),
            Some(Value::Array(names)) => {
                let names: Vec<String> =
                    names.iter().filter_map(Value::as_str).take(7).map(named).collect();
                return names.join(" or ");
            }
            _ => {}
        }
        for word in ["oneOf", "anyOf"] {
            if let Some(variants) = schema.get(word).and_then(Value::as_array) {
                let mut kinds: Vec<String> = Vec::new();
                for variant in variants.iter().take(7) {
                    let kind = self.kind(variant, depth + 1);
                    if !kinds.contains(&kind) {
                        kinds.push(kind);
                    }
                }
                return kinds.join(" or ");
            }
        }
        if schema.get("properties").is_some() {
            return "object".to_owned();
        }
        if schema.get("items").is_some() {
            return named("array");
        }
        if schema.get("enum").is_some() { "one of these".to_owned() } else { "anything".to_owned() }
    }
}

fn has_parts(schema: &Value) -> bool {
    ["properties", "patternProperties", "allOf", "anyOf", "oneOf"]
        .iter()
        .any(|word| schema.get(word).is_some_and(|parts| parts.is_object() || parts.is_array()))
        || schema.get("additionalProperties").is_some_and(Value::is_object)
}

fn bounds(schema: &Map<String, Value>) -> Vec<String> {
    let has = |word: &str| schema.get(word).filter(|bound| bound.is_number()).map(value);
    let mut bounds = Vec::new();
    for (least, most, unit) in [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", "character"),
        ("minItems", "maxItems", "item"),
        ("minProperties", "maxProperties", "member"),
    ] {
        let counted = |number: String| match (unit, number.as_str()) {
            ("", _) => number,
            (unit, "1") => format!("1 {unit}"),
            (unit, _) => format!("{number} {unit}s"),
        };
        bounds.extend(match (has(least), has(most)) {
            (Some(least), Some(most)) if least == most => {
                Some(format!("exactly {}", counted(most)))
            }
            (Some(least), Some(most)) => Some(format!("{least} to {}", counted(most))),
            (Some(least), None) => Some(format!("at least {}", counted(least))),
            (None, Some(most)) => Some(format!("at most {}", counted(most))),
            (None, None) => None,
        });
    }
    if let Some(least) = has("exclusiveMinimum") {
        bounds.push(format!("more than {least}"));
    }
    if let Some(most) = has("exclusiveMaximum") {
        bounds.push(format!("less than {most}"));
    }
    if let Some(step) = has("multipleOf") {
        bounds.push(format!("a multiple of {step}"));
    }
    if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
        bounds.push("each item once".to_owned());
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        bounds.push(format!("matches {}", clip(pattern)));
    }
    if schema.get("deprecated") == Some(&Value::Bool(true)) {
        bounds.push("deprecated".to_owned());
    }
    bounds
}

fn text(schema: &Value, word: &str) -> Option<String> {
    schema.get(word).and_then(Value::as_str).map(|text| short(text.trim(), ABOUT))
}

/// A value: a text as it is, anything else as JSON.
fn value(value: &Value) -> String {
    match value {
        Value::String(text) if !text.trim().is_empty() => clip(text),
        other => clip(&other.to_string()),
    }
}

fn clip(text: &str) -> String {
    short(text, LETTERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_read_as_a_person_would() {
        let table = table(&json!({
            "type": "object", "required": ["path", "window"],
            "properties": {
                "path": {"type": "string", "description": "The file", "minLength": 1},
                "pages": {"type": ["string", "null"], "default": "all"},
                "mode": {"enum": ["fast", "exact"], "default": "fast"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
                "window": {"$ref": "#/$defs/window", "description": "From here to there"},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3, "uniqueItems": true}
            },
            "$defs": {"window": {"type": "object", "required": ["to"], "properties": {
                "from": {"type": "string", "format": "date-time"}, "to": {"$ref": "#/$defs/window"}}}}
        }));
        let told: Vec<(usize, &str, &str, bool)> = table
            .lines
            .iter()
            .take(8)
            .map(|line| (line.depth, line.name.as_str(), line.kind.as_str(), line.is_required))
            .collect();
        assert_eq!(
            told[..7],
            [
                (0, "path", "text", true),
                (0, "pages", "text or nothing", false),
                (0, "mode", "one of these", false),
                (0, "limit", "whole number", false),
                (0, "window", "object", true),
                (1, "from", "date and time", false),
                (1, "to", "object", true),
            ]
        );
        assert_eq!(table.lines[2].choices, ["fast", "exact"]);
        assert_eq!(
            (&table.lines[0].bounds[0][..], &table.lines[3].bounds[0][..]),
            ("at least 1 character", "1 to 100")
        );
        assert_eq!(table.lines[4].about, "From here to there");
        let last = table.lines.last().unwrap();
        assert_eq!((last.kind.as_str(), last.bounds.len()), ("list of text", 2));
        assert!(table.is_cut, "it goes on for ever");
        let mut deep = json!({"allOf": [{"properties": {"x": {}}}]});
        for _ in 0..DEEPEST {
            deep = json!({"properties": {"a": deep}});
        }
        assert!(super::table(&deep).is_cut, "what is in it in another way is in it too");
    }

    #[test]
    fn schemas_without_names_and_odd_ones_are_told_too() {
        assert_eq!(table(&json!({"type": "object"})), Table::default());
        assert_eq!(table(&json!(true)).lines, []);
        let whole = table(&json!({"type": "string", "description": "The text"})).whole.unwrap();
        assert_eq!((whole.kind.as_str(), whole.about.as_str()), ("text", "The text"));
        let choices = table(&json!({"oneOf": [
            {"properties": {"a": {"const": 1}}}, {"type": "object", "properties": {"b": {}}}]}));
        let names: Vec<&str> = choices.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["choice 1", "a", "choice 2", "b"]);
        assert_eq!(choices.lines[1].kind, "always 1");
        assert_eq!(table(&json!({"$ref": "#"})).lines, []);
        let again: Vec<Value> = (0..200).map(|_| json!({"$ref": "#"})).collect();
        for word in ["allOf", "anyOf", "oneOf"] {
            assert!(table(&json!({ word: again.clone() })).lines.len() <= LINES);
        }
        let wide: Map<String, Value> = (0..1_000).map(|n| (format!("p{n}"), json!({}))).collect();
        let wide = table(&json!({"properties": wide}));
        assert_eq!((wide.lines.len(), wide.is_cut), (LINES, true));
    }
}
