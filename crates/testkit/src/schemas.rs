//! JSON Schemas, patterns, and values to hold against them.

use proptest::strategy::Strategy;
use serde_json::{Map, Value, json};

use crate::draws::{Draws, made};
use crate::mutations::{Vocabulary, mutate};

/// A schema and a value to hold against it; the few keys and words are shared, so that they meet.
pub fn schemas_and_values() -> impl Strategy<Value = (Value, Value)> {
    made(140, |draws| {
        let value = value(draws, 3);
        (root(draws), value)
    })
}

/// Schemas with up to three faults in them, and values.
pub fn mutants() -> impl Strategy<Value = (Value, Value)> {
    let vocabulary = Vocabulary::from_words(&WORDS);
    made(160, move |draws| {
        let value = value(draws, 3);
        let faults = 1 + draws.below(3);
        let mut schema = root(draws);
        for _ in 0..faults {
            mutate(&mut schema, &vocabulary, draws);
        }
        (schema, value)
    })
}

/// Schemas that are little but addresses and references to them, and values.
pub fn tangles() -> impl Strategy<Value = (Value, Value)> {
    made(100, |draws| {
        let value = value(draws, 2);
        let mut schema = tangle(draws, 3);
        aim(&mut schema, draws);
        (schema, value)
    })
}

/// Patterns, of which about half are ECMAScript, and texts to look into.
pub fn patterns_and_texts() -> impl Strategy<Value = (String, String)> {
    made(40, |draws| {
        let text = (0..draws.below(8)).map(|_| draws.pick(&LETTERS)).collect();
        (pattern(draws), text)
    })
}

/// Points most references of a schema at something that is there.
fn aim(schema: &mut Value, draws: &mut Draws<'_>) {
    let mut there = Vec::new();
    list_targets(schema, &mut String::from("#"), &mut there);
    if !there.is_empty() {
        aim_at(schema, &there, draws);
    }
}

fn aim_at(value: &mut Value, there: &[String], draws: &mut Draws<'_>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text) if key == "$ref" || key == "$dynamicRef" => {
                        if !draws.once_in(6) {
                            *text = draws.pick(there);
                        }
                    }
                    other => aim_at(other, there, draws),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| aim_at(item, there, draws)),
        _ => {}
    }
}

/// The ends of paths to what holds schemas and is none.
const MAPS: [&str; 4] = ["/properties", "/$defs", "/definitions", "/dependencies"];

/// The ways to refer to the parts of a schema: by path, by address, by name.
fn list_targets(value: &Value, path: &mut String, there: &mut Vec<String>) {
    let length = path.len();
    let mut beneath = |step: &str, inner: &Value| {
        path.push('/');
        path.push_str(&step.replace('~', "~0").replace('/', "~1"));
        list_targets(inner, path, there);
        path.truncate(length);
    };
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, inner)| beneath(key, inner));
            let text = |key| members.get(key).and_then(Value::as_str);
            let id = text("$id").unwrap_or_default().trim_end_matches('#');
            let is_map = MAPS.iter().any(|keyword| path.ends_with(keyword));
            if !is_map {
                there.push(path.clone());
            }
            if !id.is_empty() {
                there.extend([id.to_owned(), format!("{id}#/$defs/a")]);
            }
            for name in [text("$anchor"), text("$dynamicAnchor")].into_iter().flatten() {
                there.extend([format!("#{name}"), format!("{id}#{name}")]);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| beneath(&at.to_string(), item));
        }
        _ => {}
    }
}

/// A schema with definitions.
pub fn root(draws: &mut Draws<'_>) -> Value {
    let mut root = schema(draws, 3);
    if let Value::Object(members) = &mut root
        && draws.once_in(2)
    {
        let definitions: Map<String, Value> =
            ["a", "b", "a/b"].iter().map(|name| ((*name).to_owned(), schema(draws, 2))).collect();
        members.insert("$defs".to_owned(), definitions.into());
        if draws.once_in(6) {
            members.insert("$schema".to_owned(), draws.pick(&DRAFTS).into());
        }
    }
    aim(&mut root, draws);
    root
}

/// A schema of addresses and references.
pub fn tangle(draws: &mut Draws<'_>, depth: usize) -> Value {
    const IDS: [&str; 7] = [
        "part",
        "https://example.com/part",
        "https://example.com/other",
        "urn:a:b",
        "a/part",
        "/part",
        "",
    ];
    const ANCHORS: [&str; 2] = ["name", "node"];
    let mut members = Map::new();
    for _ in 0..draws.below(5) {
        let (keyword, value): (&str, Value) = match draws.below(if depth == 0 { 7 } else { 14 }) {
            0 => ("type", draws.pick(&["string", "object"]).into()),
            1 => ("$id", draws.pick(&IDS).into()),
            2 => ("$anchor", draws.pick(&ANCHORS).into()),
            3 => ("$dynamicAnchor", draws.pick(&ANCHORS).into()),
            4 => ("$ref", draws.pick(&REFERENCES).into()),
            5 => ("$dynamicRef", draws.pick(&REFERENCES).into()),
            6 => ("$schema", draws.pick(&DRAFTS).into()),
            7 => ("properties", json!({draws.pick(&["a", "b"]): tangle(draws, depth - 1)})),
            8 => ("allOf", json!([tangle(draws, depth - 1)])),
            9 => ("items", tangle(draws, depth - 1)),
            10 => ("x-part", tangle(draws, depth - 1)),
            11 => ("dependencies", json!({"a": tangle(draws, depth - 1)})),
            12 => ("definitions", json!({"a": tangle(draws, depth - 1)})),
            _ => {
                let definitions =
                    ["a", "b"].map(|name| (name.to_owned(), tangle(draws, depth - 1)));
                ("$defs", definitions.into_iter().collect())
            }
        };
        members.insert(keyword.to_owned(), value);
    }
    members.into()
}

/// A value of the kind the schemas here speak of.
pub fn value(draws: &mut Draws<'_>, depth: usize) -> Value {
    match draws.below(if depth == 0 { 4 } else { 8 }) {
        0 => draws.pick(&[
            json!(1),
            json!(1.0),
            json!(0),
            json!(-0.0),
            json!(2),
            json!(-1),
            json!(1.5),
            json!(0.1),
            json!(1e20),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(9_007_199_254_740_993_u64),
            json!(9_007_199_254_740_992.0),
        ]),
        1 => draws.pick(&["a", "", "b", "ab", "aaa", "1", "a b", "é", "\u{1f600}", "a\n"]).into(),
        2 => draws.once_in(2).into(),
        3 => Value::Null,
        4 | 5 => (0..draws.below(4)).map(|_| value(draws, depth - 1)).collect(),
        _ => (0..draws.below(4))
            .map(|_| (draws.pick(&KEYS).to_owned(), value(draws, depth - 1)))
            .collect(),
    }
}

const KEYS: [&str; 5] = ["a", "b", "c", "ab", "é"];

const DRAFTS: [&str; 4] = [
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://example.com/own",
];

const TYPES: [&str; 7] = ["string", "integer", "number", "object", "array", "boolean", "null"];

const REFERENCES: [&str; 27] = [
    "#/$defs/a",
    "#/$defs/b",
    "#",
    "#/$defs/a~1b",
    "#/%24defs/a",
    "#/properties/a",
    "#/allOf/0",
    "#/x-part",
    "#/dependencies/a",
    "#/definitions/a",
    "#/$defs/a/$defs/b",
    "json-schema:///",
    "#name",
    "#node",
    "part",
    "part#name",
    "part#",
    "other#node",
    "a/part",
    "/part",
    "urn:a:b#name",
    "",
    "part#/$defs/a",
    "#/$defs/nowhere",
    "https://example.com/part",
    "https://elsewhere.example/x",
    "#/$defs/a%",
];

/// Words of JSON Schema that mutations put in the wrong place.
const WORDS: [&str; 40] = [
    "type",
    "properties",
    "required",
    "items",
    "enum",
    "const",
    "default",
    "additionalProperties",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "uniqueItems",
    "prefixItems",
    "contains",
    "minContains",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "allOf",
    "not",
    "if",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$id",
    "$ref",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$defs",
    "$vocabulary",
    "$recursiveRef",
    "$recursiveAnchor",
    "string",
];

fn schema(draws: &mut Draws<'_>, depth: usize) -> Value {
    if draws.once_in(8) {
        return draws.once_in(2).into();
    }
    let mut members = Map::new();
    for _ in 0..=draws.below(4) {
        let (keyword, value) =
            if depth > 0 && draws.once_in(2) { applicator(draws, depth) } else { assertion(draws) };
        members.insert(keyword.to_owned(), value);
    }
    if members.contains_key("if") {
        members.insert("then".to_owned(), schema(draws, depth - 1));
        if draws.once_in(2) {
            members.insert("else".to_owned(), schema(draws, depth - 1));
        }
    }
    members.into()
}

/// A keyword that looks at the value itself.
fn assertion(draws: &mut Draws<'_>) -> (&'static str, Value) {
    let count =
        |draws: &mut Draws<'_>| draws.pick(&[json!(1), json!(0), json!(2), json!(2.0), json!(3)]);
    let names = |draws: &mut Draws<'_>| -> Value {
        let mut names: Vec<&str> = (0..draws.below(3)).map(|_| draws.pick(&KEYS)).collect();
        names.sort_unstable();
        names.dedup();
        names.into()
    };
    match draws.below(26) {
        0 => ("type", draws.pick(&TYPES).into()),
        1 => {
            let first = draws.below(TYPES.len() - 1);
            ("type", json!([TYPES[first], TYPES[first + 1]]))
        }
        2 => ("enum", (0..draws.below(4)).map(|_| value(draws, 1)).collect()),
        3 => ("const", value(draws, 2)),
        4 => ("minimum", draws.pick(&[json!(1), json!(1.5), json!(-1), json!(1e20)])),
        5 => ("maximum", draws.pick(&[json!(1), json!(0), json!(u64::MAX)])),
        6 => ("exclusiveMinimum", draws.pick(&[json!(1), json!(1.0), json!(0)])),
        7 => ("exclusiveMaximum", draws.pick(&[json!(1), json!(2.0)])),
        8 => ("multipleOf", draws.pick(&[json!(1), json!(2), json!(0.5), json!(0.01)])),
        9 => ("minLength", count(draws)),
        10 => ("maxLength", count(draws)),
        11 => ("pattern", pattern(draws).into()),
        12 => ("minItems", count(draws)),
        13 => ("maxItems", count(draws)),
        14 => ("uniqueItems", draws.once_in(2).into()),
        15 => ("minProperties", count(draws)),
        16 => ("maxProperties", count(draws)),
        17 => ("required", names(draws)),
        18 => ("dependentRequired", json!({draws.pick(&KEYS): names(draws)})),
        19 => ("format", draws.pick(&["email", "uri", "unknown", "regex"]).into()),
        20 => ("default", value(draws, 2)),
        21 => ("$ref", draws.pick(&REFERENCES).into()),
        22 => ("$anchor", draws.pick(&["name", "other", "na me"]).into()),
        23 => ("$id", draws.pick(&["part", "https://example.com/part", "a#", "a##"]).into()),
        24 => ("x-order", value(draws, 1)),
        _ => ("contentEncoding", draws.pick(&["base64", "none"]).into()),
    }
}

/// A keyword with schemas in it.
fn applicator(draws: &mut Draws<'_>, depth: usize) -> (&'static str, Value) {
    let inner = |draws: &mut Draws<'_>| schema(draws, depth - 1);
    let several = |draws: &mut Draws<'_>| -> Value {
        (0..=draws.below(3)).map(|_| schema(draws, depth - 1)).collect()
    };
    let named = |draws: &mut Draws<'_>| -> Value {
        (0..=draws.below(3))
            .map(|_| (draws.pick(&KEYS).to_owned(), schema(draws, depth - 1)))
            .collect()
    };
    match draws.below(22) {
        0 | 1 => ("properties", named(draws)),
        2 => ("items", inner(draws)),
        3 => ("additionalProperties", inner(draws)),
        4 => ("allOf", several(draws)),
        5 => ("anyOf", several(draws)),
        6 => ("oneOf", several(draws)),
        7 => ("not", inner(draws)),
        8 => ("if", inner(draws)),
        9 => ("prefixItems", several(draws)),
        10 => ("contains", inner(draws)),
        11 => ("minContains", draws.pick(&[json!(0), json!(1), json!(2)])),
        12 => ("maxContains", draws.pick(&[json!(0), json!(1), json!(2)])),
        13 => ("propertyNames", inner(draws)),
        14 => {
            let key = pattern(draws);
            ("patternProperties", json!({key: inner(draws)}))
        }
        15 => ("dependentSchemas", named(draws)),
        16 => ("unevaluatedProperties", inner(draws)),
        17 => ("unevaluatedItems", inner(draws)),
        18 => ("$dynamicRef", draws.pick(&["#node", "#/$defs/a", "#name"]).into()),
        19 => ("$dynamicAnchor", "node".into()),
        20 => ("contentSchema", inner(draws)),
        _ => ("dependencies", named(draws)),
    }
}

const LETTERS: [&str; 20] = [
    "a",
    "b",
    "c",
    "ab",
    "1",
    " ",
    "-",
    "@",
    "_",
    "[",
    "]",
    "^",
    "\n",
    "\r",
    "é",
    "\u{1f600}",
    "٣",
    "\u{2028}",
    "K",
    "\u{85}",
];

/// Pieces of patterns; what they mean beside each other is for the judges to agree on.
const PIECES: [&str; 72] = [
    "a",
    "b",
    "^",
    "$",
    ".",
    "[a-c]",
    "[^a]",
    "*",
    "+",
    "?",
    "|",
    "(",
    ")",
    "(?:",
    "{2}",
    "{1,2}",
    "{0,}",
    "\\d",
    "\\D",
    "\\w",
    "\\W",
    "\\s",
    "\\S",
    "\\b",
    "\\B",
    "\\.",
    "\\/",
    "\\-",
    "\\@",
    "\\_",
    "[\\w.-]",
    "[a-]",
    "[-a]",
    "[a[b]",
    "[[a]",
    "[]",
    "[^]",
    "[a&&b]",
    "[a--b]",
    "[a~~b]",
    "[\\d-x]",
    "[\\]]",
    "[\\b]",
    "(?=",
    "(?!",
    "(?<=",
    "(?<!",
    "(?<n>",
    "\\1",
    "\\k<n>",
    "\\u0061",
    "\\u{61}",
    "\\x61",
    "\\cA",
    "\\0",
    "\\n",
    "\\t",
    "\\v",
    "\\f",
    "\\p{L}",
    "\\p{Lu}",
    "\\a",
    "\\A",
    "\\z",
    "]",
    "}",
    "{",
    "é",
    " ",
    "1",
    "\\ud83d\\ude00",
    "(?i)",
];

/// A pattern, perhaps: one by the grammar, or pieces in any order.
pub fn pattern(draws: &mut Draws<'_>) -> String {
    if draws.once_in(2) {
        return by_grammar(draws, 3);
    }
    (0..=draws.below(6)).map(|_| draws.pick(&PIECES)).collect()
}

fn by_grammar(draws: &mut Draws<'_>, depth: usize) -> String {
    const ATOMS: [&str; 20] = [
        "a", "b", ".", "[a-c]", "[^a]", "\\d", "\\w", "\\W", "\\s", "\\S", "[\\w.-]", "[^\\s@]",
        "é", "1", "-", "_", "\\.", "\\u0061", "(?:)", "()",
    ];
    let repeat = |draws: &mut Draws<'_>| {
        draws.pick(&["", "", "", "*", "+", "?", "*?", "{2}", "{0,2}", "{1,}", "{0}"])
    };
    let part = |draws: &mut Draws<'_>| match draws.below(if depth == 0 { 2 } else { 5 }) {
        0 => format!("{}{}", draws.pick(&ATOMS), repeat(draws)),
        1 => draws.pick(&["^", "$", "\\b", "\\B"]).to_owned(),
        2 => format!("(?:{}){}", by_grammar(draws, depth - 1), repeat(draws)),
        3 => format!("({}){}", by_grammar(draws, depth - 1), repeat(draws)),
        _ => format!("{}|{}", by_grammar(draws, depth - 1), by_grammar(draws, depth - 1)),
    };
    (0..=draws.below(3)).map(|_| part(draws)).collect()
}
