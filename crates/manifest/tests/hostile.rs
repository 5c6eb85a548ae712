//! Documents made to hurt: each is refused or read in bounded stack, memory and work.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use manifest::dialect::Dialect;
use manifest::document::{Options, Report, check};
use manifest::finding::Code;
use manifest::json::parse;
use manifest::schema;
use serde_json::{Value, json};

/// Checks a document on a thread with a stack far smaller than any face would use.
fn check_on_a_small_stack(bytes: Vec<u8>, dialect: Option<Dialect>) -> Report {
    std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(move || check(&bytes, &Options { dialect, ..Options::default() }))
        .unwrap()
        .join()
        .expect("no document makes the reader panic")
}

fn codes(report: &Report) -> Vec<Code> {
    report.findings.iter().map(|finding| finding.code).collect()
}

/// A tools.json with one tool of this schema, checked.
fn with_schema(schema: &Value) -> Report {
    let document = json!({"tools": [{"name": "x", "command": ["/bin/x"], "schema": schema}]});
    check_on_a_small_stack(document.to_string().into_bytes(), None)
}

/// An install-manifest whose action has this schema and this example, checked.
fn with_example(schema: &Value, example: &Value) -> Report {
    let document = json!({
        "manifest_version": "0.2",
        "tool": {"id": "abc", "version": "1.0.0", "name": "n", "summary": "s", "homepage": "https://example.com"},
        "runtime": {"kind": "shell-binary", "install": {"method": "pip", "package": "p"}, "entrypoint": {"command": ["x"]}},
        "actions": [{"name": "a", "summary": "s", "side_effects": "none", "invocation": {"kind": "stdin-json"},
            "input": schema, "examples": [{"description": "d", "input": example}]}],
        "smoke": {"kind": "shell", "command": ["x"], "success": {}},
        "kill_switch": {"kind": "url", "url": "https://example.com"},
    });
    check_on_a_small_stack(document.to_string().into_bytes(), None)
}

#[test]
fn nesting_never_overflows_the_stack() {
    for text in ["[".repeat(1_000_000), "{\"a\":".repeat(200_000), "[{\"a\":".repeat(100_000)] {
        assert_eq!(codes(&check_on_a_small_stack(text.into_bytes(), None)), [Code::TooDeep]);
    }
    let deepest = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    let report = check_on_a_small_stack(deepest.into_bytes(), None);
    assert_eq!(codes(&report), [Code::UnknownDialect]);
}

#[test]
fn a_schema_nested_to_the_limit_is_read() {
    let mut schema = json!({"type": "string"});
    for _ in 0..60 {
        schema = json!({"items": schema});
    }
    assert!(with_schema(&schema).is_valid());
}

#[test]
fn a_tree_that_doubles_at_every_step_is_refused() {
    let mut parts = serde_json::Map::new();
    for level in 0..26 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        parts.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    parts.insert("d26".into(), json!({"type": "string"}));
    let report = with_schema(&json!({"$ref": "#/$defs/d0", "$defs": parts}));
    assert_eq!(codes(&report), [Code::SchemaTooCostly]);
}

#[test]
fn a_tree_that_doubles_with_every_level_of_the_value_is_called_off() {
    let twice = json!({"$ref": "#/$defs/a"});
    let schema = json!({"$defs": {"a": {"items": {"allOf": [twice, twice]}}}, "$ref": "#/$defs/a"});
    let mut value = json!([]);
    for _ in 0..60 {
        value = json!([value]);
    }
    assert!(with_schema(&schema).is_valid(), "by itself it harms nobody");
    assert_eq!(codes(&with_example(&schema, &value)), [Code::SchemaTooCostly]);
}

#[test]
fn a_schema_that_circles_is_refused_and_one_that_recurs_is_not() {
    let circles = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
    assert_eq!(codes(&with_schema(&circles)), [Code::SchemaTooCostly]);
    assert_eq!(codes(&with_schema(&json!({"$ref": "#"}))), [Code::SchemaTooCostly]);
    let recurs = json!({"type": "object", "properties": {"child": {"$ref": "#"}}});
    assert!(with_schema(&recurs).is_valid());
    assert!(with_example(&recurs, &json!({"child": {"child": {}}})).is_valid());
}

#[test]
fn a_chain_of_references_is_followed_only_so_far() {
    let mut parts = serde_json::Map::new();
    for index in 0..900 {
        let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
        parts.insert(format!("d{index}"), json!({"properties": {"x": next}}));
    }
    parts.insert("d900".into(), json!({}));
    let report = with_schema(&json!({"$ref": "#/$defs/d0", "$defs": parts}));
    assert_eq!(codes(&report), [Code::SchemaTooCostly]);
}

#[test]
fn patterns_that_grow_or_are_many_are_refused() {
    for pattern in ["(a{1000}){1000}", "((a{100}){100}){100}", "(\\w{500}){500}"] {
        assert_eq!(
            codes(&with_schema(&json!({"pattern": pattern}))),
            [Code::BadRegex],
            "{pattern}"
        );
    }
    let costly = |n: usize| (format!("p{n}"), json!({"pattern": format!("(?=a{{20}})(b)\\1{n}")}));
    let many: serde_json::Map<_, _> = (0..500).map(costly).collect();
    let report = with_schema(&json!({"properties": many}));
    assert!(codes(&report).contains(&Code::BadRegex));
}

#[test]
fn a_pattern_that_runs_away_gives_up() {
    let schema =
        json!({"type": "object", "properties": {"x": {"pattern": "^(?=(a+)+$)(a|aa)+\\2$"}}});
    let report = with_example(&schema, &json!({"x": format!("{}b", "a".repeat(60))}));
    assert!(codes(&report).iter().all(|code| *code == Code::ExampleMismatch), "{report:?}");
}

#[test]
fn a_million_faults_are_bounded_and_the_verdict_is_kept() {
    let entries = vec!["{\"id\":1}"; 200_000].join(",");
    let report =
        check_on_a_small_stack(format!("{{\"capabilities\":[{entries}]}}").into_bytes(), None);
    assert!(!report.is_valid());
    assert_eq!(report.findings.len(), 2_001);
    assert_eq!(report.findings.last().unwrap().code, Code::MoreFindings);
    // Warnings come first in the text; the one error at the end still decides.
    let keys: Vec<_> = (0..20_000).map(|n| format!("\"k{n}\":0")).collect();
    let text = format!("{{\"tools\":[],{},\"tools\":[]}}", keys.join(","));
    let report = check_on_a_small_stack(text.into_bytes(), Some(Dialect::Agentcli));
    assert!(!report.is_valid());
    assert!(codes(&report).contains(&Code::DuplicateKey));
}

#[test]
fn twins_among_very_many_keys_are_found() {
    let keys: Vec<_> = (0..50_000).map(|n| format!("\"k{}\":0", n % 49_999)).collect();
    let text = format!("{{{}}}", keys.join(","));
    let report = check_on_a_small_stack(text.into_bytes(), None);
    assert!(codes(&report).contains(&Code::DuplicateKey));
}

#[test]
fn a_path_of_thousands_of_brackets_is_refused() {
    let path = format!("$.input{}", "[?(@.a".repeat(2_000));
    let document = json!({
        "toolId": "a.b.c", "name": "n", "version": "1.0.0", "description": "d", "capabilities": [],
        "chain": [{"step": "s", "tool": "x.y.z", "inputMapping": {"a": path}}],
        "input_schema": {}, "output_schema": {},
    });
    let report = check_on_a_small_stack(document.to_string().into_bytes(), None);
    assert_eq!(codes(&report), [Code::BadJsonPath]);
}

#[test]
fn a_long_name_is_not_repeated_in_full_by_every_finding() {
    let long = "x".repeat(400_000);
    let entries: Vec<_> = (0..2_000).map(|n| format!("BAD-{n}")).collect();
    let document = json!({"tools": [{"name": long, "command": ["/x"], "envPassthrough": entries, long.clone(): {}}]});
    let report = check_on_a_small_stack(document.to_string().into_bytes(), None);
    let told: usize =
        report.findings.iter().map(|f| f.message.len() + f.pointer.as_str().len()).sum();
    assert!(told < 4_000_000, "{told} bytes for a document of one megabyte");
}

#[test]
fn thousands_of_settings_nobody_declared_are_told_in_bounded_work() {
    let args: Vec<_> = (0..20_000).map(|n| format!("${{user_config.s{n}}}")).collect();
    let mut settings: serde_json::Map<String, Value> =
        (0..40).map(|n| (format!("t{n}"), json!(0))).collect();
    settings.insert("s".repeat(100_000), json!(0));
    settings.sort_keys();
    let document = json!({
        "manifest_version": "0.2", "name": "a", "version": "1.0.0", "description": "",
        "author": {"name": ""}, "user_config": settings,
        "server": {"type": "node", "entry_point": "a", "mcp_config": {"command": "a", "args": args}},
        "prompts": [{"name": "p", "text": "${arguments.x}".repeat(5_000)}],
    });
    let report = check_on_a_small_stack(document.to_string().into_bytes(), None);
    assert_eq!(report.dialect, Some(Dialect::Mcpb));
    assert!(codes(&report).contains(&Code::MoreFindings));
}

/// An OpenAPI document with these components, checked.
fn with_components(components: &Value) -> Report {
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "components": components,
    });
    check_on_a_small_stack(document.to_string().into_bytes(), None)
}

#[test]
fn an_openapi_document_nested_to_the_limit_is_read() {
    let mut schema = json!({"type": "string"});
    for _ in 0..120 {
        schema = json!({"not": schema});
    }
    assert!(with_components(&json!({"schemas": {"S": schema}})).is_valid());
    let mut callback = json!({});
    for _ in 0..28 {
        callback = json!({"e": {"post": {"callbacks": {"c": callback}}}});
    }
    assert!(with_components(&json!({"callbacks": {"C": callback}})).is_valid());
}

#[test]
fn references_of_an_openapi_document_may_circle_and_double() {
    let mut schemas = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/components/schemas/s{}", (level + 1) % 40)});
        schemas.insert(format!("s{level}"), json!({"allOf": [next, next], "items": next}));
    }
    assert!(with_components(&json!({"schemas": schemas})).is_valid(), "they are never run");
    let mut strays = serde_json::Map::new();
    for at in 0..20_000 {
        let next = json!({"$ref": format!("#/components/x-parts/s{}", (at + 1) % 20_000)});
        strays.insert(format!("s{at}"), json!({"not": next}));
    }
    let first = json!({"$ref": "#/components/x-parts/s0"});
    assert!(with_components(&json!({"schemas": {"S": first}, "x-parts": strays})).is_valid());
    let endless = json!({"a": {"$ref": "#/components/headers/a"}});
    assert_eq!(codes(&with_components(&json!({"headers": endless}))), [Code::UnresolvedRef]);
}

#[test]
fn a_deep_place_with_very_many_faults_is_told_in_bounds() {
    let long = "x".repeat(200);
    let faults: Vec<_> = (0..20_000).map(|n| json!({"type": n})).collect();
    let mut schema = json!({"allOf": faults});
    for _ in 0..55 {
        schema = json!({"properties": {long.as_str(): schema}});
    }
    let report = with_components(&json!({"schemas": {"S": schema}}));
    assert!(!report.is_valid());
    assert_eq!(report.findings.len(), 2_001);
}

/// How much work it is said to be, and how long it took to say so.
fn effort(schema: &Value, value: &Value) -> schema::Effort {
    let (schema, value) = (schema.to_string(), value.to_string());
    let (schema, value) = (parse(&schema).root.unwrap(), parse(&value).root.unwrap());
    let began = std::time::Instant::now();
    let effort = schema::effort(&schema, &value);
    assert!(began.elapsed().as_secs() < 2, "counting took {:?}", began.elapsed());
    effort
}

#[test]
fn what_takes_long_is_much_and_what_is_common_is_little() {
    use schema::Effort::{Little, Much};
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let many: serde_json::Map<_, _> =
        (0..1_900).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let list = object(json!({"list": {"items": object(Value::Object(many.clone()))}}));
    assert_eq!(effort(&list, &json!({"list": vec![json!({}); 20_000]})), Much);
    let wide: serde_json::Map<_, _> = (0..100_000).map(|n| (format!("q{n}"), json!(n))).collect();
    let names: Vec<_> = (0..1_900).map(|n| format!("r{n}")).collect();
    // Names are looked up, not compared one by one.
    assert_eq!(effort(&json!({"required": names}), &Value::Object(wide)), Little);
    let text = |pattern: &str| object(json!({"text": {"type": "string", "pattern": pattern}}));
    let long = json!({"text": "01".repeat(100_000)});
    assert_eq!(effort(&text("[01]*1[01]{400}2"), &long), Much);
    assert_eq!(effort(&text("^[0-9]+$"), &long), Much);
    let lengths = json!({"allOf": vec![json!({"minLength": 1_000_000_000}); 1_000]});
    assert_eq!(effort(&lengths, &json!("x".repeat(1 << 20))), Much);
    let patterns: serde_json::Map<_, _> =
        (0..100).map(|n| (format!("p{n}"), json!({"pattern": "^[a-z]{90}$"}))).collect();
    assert_eq!(effort(&object(Value::Object(patterns)), &json!({"p0": "1"})), Much);
    let deep = json!([vec![0; 20_000]]);
    let other = json!([vec![1; 20_000]]);
    for schema in [json!({"const": deep}), json!({"enum": [deep]})] {
        assert_eq!(effort(&json!({"allOf": [schema, schema, schema]}), &other), Much);
    }
    // What people write, whether it fits or not.
    for value in ["blue-42", "no such name!"] {
        let value = json!({"text": value, "count": "seven"});
        assert_eq!(effort(&text("^[a-z][a-z0-9-]{1,40}$"), &value), Little);
    }
    let rows = json!({"list": vec![json!({"p1": "x", "p2": 7}); 5]});
    assert_eq!(effort(&list, &rows), Little);
}

#[test]
fn unknown_properties_are_told_in_bounds() {
    let schema = json!({"type": "object", "properties": {"a": {}}}).to_string();
    let value: serde_json::Map<_, _> = (0..50_000).map(|n| (format!("q{n}"), json!(n))).collect();
    let value = Value::Object(value).to_string();
    let (schema, value) = (parse(&schema).root.unwrap(), parse(&value).root.unwrap());
    let found = schema::judge(&schema, &value, schema::Unknowns::Refused).unwrap();
    assert_eq!(found.len(), 20);
}

/// What is told of a value that does not fit.
fn told(schema: &Value, value: &Value) -> Vec<String> {
    let (schema, value) = (schema.to_string(), value.to_string());
    let (schema, value) = (parse(&schema).root.unwrap(), parse(&value).root.unwrap());
    let found = schema::judge(&schema, &value, schema::Unknowns::AsTheSchemaSays).unwrap();
    found.into_iter().map(|one| one.message).collect()
}

#[test]
fn a_value_that_would_be_copied_very_often_is_only_said_not_to_fit() {
    const ALL: &str = "the value is not what the schema says, and too much of both to tell where";
    let large = json!([vec![0; 20_000]]);
    // Every alternative that does not fit has a copy of the value.
    for keyword in ["anyOf", "oneOf"] {
        let inner = json!({keyword: vec![json!({"type": "string"}); 30]});
        assert_eq!(told(&json!({keyword: vec![inner; 30]}), &large), [ALL]);
    }
    let length = |text: &str| json!({"anyOf": vec![json!({"maxLength": 1}); 900], "title": text});
    assert_eq!(told(&length("a"), &json!("x".repeat(60_000))), [ALL]);
    // Every mismatch has the names on the way to it.
    let way = json!({"x".repeat(60_000): vec![0; 20_000]});
    assert_eq!(told(&json!({"additionalProperties": {"items": {"type": "string"}}}), &way), [ALL]);
    // One that denies has a copy of what it denies.
    let denied = json!({"items": {"not": {"title": "x".repeat(60_000)}}});
    assert_eq!(told(&denied, &json!(vec![0; 20_000])), [ALL]);
    // What fits, fits; and what people write is told.
    let fits =
        json!({"anyOf": [{"anyOf": vec![json!({"type": "string"}); 900]}, {"type": "array"}]});
    assert!(told(&fits, &large).is_empty());
    let few = json!({"anyOf": [{"type": "string"}, {"required": ["a"], "type": "object"}]});
    assert!(told(&few, &large)[0].contains("anyOf"), "{:?}", told(&few, &large));
    let rows = json!({"items": {"properties": {"name": {"type": "string"}}}});
    assert_eq!(told(&rows, &json!(vec![json!({"name": 7}); 20_000])).len(), 20);
}
