//! Manifests and documents that agree, or leave it open; and documents made to hurt.

use serde_json::{Value, json};

use super::contradictions;
use crate::dialect::Dialect;
use crate::json::parse;

/// A manifest that posts a note.
fn manifest() -> Value {
    json!({
        "toolId": "demo.notes.add",
        "endpoint": {"type": "http", "method": "POST", "url": "https://api.example.com/v1/notes"},
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "output_schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    })
}

/// A document with that operation.
fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Notes", "version": "1"},
        "servers": [{"url": "https://api.example.com/v1"}],
        "paths": {"/notes": {"post": {
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
                "additionalProperties": false,
            }}}},
            "responses": {"200": {"description": "d", "content": {"application/json": {"schema": {
                "type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": false,
            }}}}},
        }}},
    })
}

fn told(manifest: &Value, document: &Value) -> Vec<String> {
    let (manifest, document) = (manifest.to_string(), document.to_string());
    let (manifest, document) = (parse(&manifest).root.unwrap(), parse(&document).root.unwrap());
    let findings = contradictions(&manifest, Dialect::Mcpkg, &document);
    findings.into_iter().map(|finding| format!("{} {}", finding.pointer, finding.message)).collect()
}

/// What is told when the pointers are set to these values in manifest and document.
fn told_with(ours: &[(&str, Value)], theirs: &[(&str, Value)]) -> Vec<String> {
    let set = |mut tree: Value, changes: &[(&str, Value)]| {
        for (pointer, value) in changes {
            let (holder, key) = pointer.rsplit_once('/').unwrap();
            let key = key.replace("~1", "/");
            tree.pointer_mut(holder).unwrap()[key.as_str()] = value.clone();
        }
        tree
    };
    told(&set(manifest(), ours), &set(document(), theirs))
}

fn url(url: &str) -> (&'static str, Value) {
    ("/endpoint/url", url.into())
}

fn servers(urls: &[&str]) -> (&'static str, Value) {
    ("/servers", urls.iter().map(|url| json!({"url": url})).collect())
}

const BODY: &str = "/paths/~1notes/post/requestBody/content/application~1json/schema";
const POST: &str = "/paths/~1notes/post";

#[test]
fn the_same_address_may_be_written_in_many_ways() {
    for address in [
        "https://api.example.com/v1/notes",
        "https://api.example.com/v1/notes/",
        "https://API.example.com:443/v1/notes?draft=1#top",
        "http://api.example.com/v1/notes",
        "https://api.example.com//v1/%6eotes",
        "https://user@api.example.com/v1/notes",
    ] {
        assert_eq!(told_with(&[url(address)], &[]), [""; 0], "{address}");
    }
}

#[test]
fn where_servers_leave_it_open_the_end_of_the_path_decides() {
    let here = |server: &str, address: &str| told_with(&[url(address)], &[servers(&[server])]);
    for (server, address) in [
        ("/", "https://anywhere.example/notes"),
        ("/", "https://anywhere.example/below/this/notes"),
        ("/v1", "https://anywhere.example/v1/notes"),
        ("./v1", "https://anywhere.example/v1/notes"),
        ("https://{place}.example.com/{base}", "https://eu.example.com/v3/notes"),
        ("http://localhost:8000", "https://api.example.com/notes"),
        ("https://api.example.com/v1/", "https://api.example.com/v1/notes"),
    ] {
        assert_eq!(here(server, address), [""; 0], "{server} {address}");
    }
    assert_eq!(here("/v1", "https://anywhere.example/v2/notes").len(), 1);
    assert_eq!(here("https://{place}.example.com", "https://eu.example.com/note").len(), 1);
}

#[test]
fn any_of_several_servers_will_do() {
    let both = servers(&["https://test.example.com", "https://api.example.com/v1"]);
    assert_eq!(told_with(&[], &[both]), [""; 0]);
    let neither = servers(&["https://test.example.com", "https://api.example.com/v2"]);
    assert_eq!(
        told_with(&[], &[neither]),
        ["/endpoint/url openapi.json does not have `/v1/notes` on this server"]
    );
}

#[test]
fn the_servers_of_an_operation_stand_for_those_of_the_document() {
    let own = |at: &'static str| (at, json!([{"url": "https://write.example.com"}]));
    for at in ["/paths/~1notes/servers", "/paths/~1notes/post/servers"] {
        assert_eq!(told_with(&[url("https://write.example.com/notes")], &[own(at)]), [""; 0]);
        assert_eq!(told_with(&[], &[own(at)]).len(), 1);
    }
}

#[test]
fn names_in_braces_stand_for_one_segment() {
    let get = json!({"get": {"responses": {"200": {"description": "d"}}}});
    let mut with_paths = document();
    with_paths["paths"] = json!({"/notes/{id}": get, "/notes/all": get, "/files/{name}.json": get});
    let at = |path: &str| {
        let mut manifest = manifest();
        manifest["endpoint"]["method"] = "GET".into();
        manifest["endpoint"]["url"] = format!("https://api.example.com/v1{path}").into();
        told(&manifest, &with_paths)
    };
    for path in ["/notes/7", "/notes/{id}", "/notes/${input.text}", "/notes/all", "/files/a.json"] {
        assert_eq!(at(path), [""; 0], "{path}");
    }
    for path in ["/notes", "/notes/7/8", "/files/a.txt", "/files/.json"] {
        assert_eq!(at(path).len(), 1, "{path}");
    }
}

#[test]
fn a_path_that_is_written_out_comes_before_one_with_names() {
    let of_type = |kind: &str| {
        json!({"get": {"responses": {"200": {"description": "d", "content": {
            "application/json": {"schema": {"type": kind}},
        }}}}})
    };
    let mut document = document();
    document["paths"] = json!({"/notes/{id}": of_type("object"), "/notes/all": of_type("array")});
    let mut manifest = manifest();
    manifest["endpoint"]["method"] = "GET".into();
    manifest["endpoint"]["url"] = "https://api.example.com/v1/notes/all".into();
    assert_eq!(
        told(&manifest, &document),
        [
            "/output_schema the answer is `object` here, but `array` in openapi.json (`GET /notes/all`)"
        ]
    );
    manifest["endpoint"]["url"] = "https://api.example.com/v1/notes/7".into();
    assert_eq!(told(&manifest, &document), [""; 0]);
}

#[test]
fn an_address_that_is_not_known_yet_is_not_judged() {
    for address in ["https://api.example.com/v1/${env.PART}", "nonsense"] {
        assert_eq!(told_with(&[url(address)], &[]), [""; 0], "{address}");
    }
    assert_eq!(told_with(&[url("https://${env.HOST}/v1/notes")], &[]), [""; 0]);
    assert_eq!(told_with(&[url("https://${env.HOST}/v1/other")], &[]).len(), 1);
}

#[test]
fn a_document_without_operations_contradicts_nothing() {
    assert_eq!(told_with(&[], &[("/paths", json!({}))]), [""; 0]);
    assert_eq!(told_with(&[], &[("/openapi", "3.2.0".into())]), [""; 0]);
}

#[test]
fn types_that_have_a_value_in_common_agree() {
    for (ours, theirs) in [
        (json!({"type": "integer"}), json!({"type": "number"})),
        (json!({"enum": [1, "a"]}), json!({"type": "string"})),
        (
            json!({"type": ["string", "null"]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ),
        (json!({}), json!({"type": "string"})),
        (
            json!({"type": "string"}),
            json!({"oneOf": [{"type": "integer"}, {"$ref": "#/components/schemas/S"}]}),
        ),
        (json!({"type": "string"}), json!({"$ref": "other.json"})),
        (json!({"type": "string"}), json!({"not": {"type": "string"}})),
    ] {
        let here = ("/input_schema/properties/text", ours.clone());
        let there = (
            "/paths/~1notes/post/requestBody/content/application~1json/schema/properties/text",
            theirs.clone(),
        );
        let schemas = ("/components", json!({"schemas": {"S": {"type": "string"}}}));
        assert_eq!(told_with(&[here], &[there, schemas]), [""; 0], "{ours} {theirs}");
    }
}

#[test]
fn types_without_a_value_in_common_contradict() {
    let text = format!("{BODY}/properties/text");
    for theirs in [
        json!({"type": "integer"}),
        json!({"type": ["integer", "null"]}),
        json!({"const": 1}),
        json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}),
        json!({"allOf": [{"type": ["integer", "string"]}, {"type": ["integer", "boolean"]}]}),
        json!({"$ref": "#/components/schemas/S"}),
    ] {
        let schemas = ("/components", json!({"schemas": {"S": {"type": "object"}}}));
        let told = told_with(&[], &[(&text, theirs.clone()), schemas]);
        assert_eq!(told.len(), 1, "{theirs}: {told:?}");
        assert!(
            told[0].starts_with("/input_schema/properties/text `text` is `string` here"),
            "{told:?}"
        );
    }
}

#[test]
fn a_property_may_go_elsewhere_than_into_the_body() {
    let more = [("/input_schema/properties/draft", json!({"type": "boolean"}))];
    assert_eq!(told_with(&more, &[]).len(), 1);
    let query = json!([{"name": "draft", "in": "query", "schema": {"type": "boolean"}}]);
    for at in [format!("{POST}/parameters"), "/paths/~1notes/parameters".into()] {
        assert_eq!(told_with(&more, &[(&at, query.clone())]), [""; 0]);
    }
    let in_address = url("https://api.example.com/v1/notes?d=${input.draft}");
    assert_eq!(told_with(&[more[0].clone(), in_address], &[]), [""; 0]);
}

#[test]
fn what_an_operation_requires_may_be_known_in_many_ways() {
    let user = |place: &str| {
        (
            format!("{POST}/parameters"),
            json!([{"name": "user", "in": place, "required": true, "schema": {}}]),
        )
    };
    let told = |ours: &[(&str, Value)], place: &str| {
        let (at, list) = user(place);
        told_with(ours, &[(&at, list)])
    };
    assert_eq!(told(&[], "query").len(), 1);
    // Headers and cookies may come from the credentials.
    assert_eq!(told(&[], "header"), [""; 0]);
    assert_eq!(told(&[], "cookie"), [""; 0]);
    assert_eq!(told(&[url("https://api.example.com/v1/notes?user=me")], "query"), [""; 0]);
    for (at, value) in [
        ("/input_schema/properties/user", json!({})),
        ("/input_schema/additionalProperties", json!(true)),
        ("/input_schema/patternProperties", json!({"^u": {}})),
        ("/input_schema/allOf", json!([{"$ref": "#/$defs/more"}])),
        ("/input_schema/anyOf", json!([{"properties": {"user": {}}}])),
        ("/input_schema", json!({"type": "object"})),
    ] {
        let defs = ("/input_schema/$defs", json!({"more": {"properties": {"user": {}}}}));
        assert_eq!(told(&[(at, value), defs], "query"), [""; 0], "{at}");
    }
}

#[test]
fn a_body_that_need_not_be_sent_or_is_not_json_requires_nothing() {
    let ours = [("/input_schema/properties", json!({}))];
    assert_eq!(told_with(&ours, &[]).len(), 1);
    let optional = format!("{POST}/requestBody/required");
    assert_eq!(told_with(&ours, &[(&optional, false.into())]), [""; 0]);
    let form = format!("{POST}/requestBody/content/multipart~1form-data");
    assert_eq!(told_with(&ours, &[(&form, json!({}))]), [""; 0]);
    let given = format!("{BODY}/properties/text");
    assert_eq!(told_with(&ours, &[(&given, json!({"readOnly": true}))]), [""; 0]);
}

#[test]
fn a_body_handed_over_as_one_property_is_not_looked_into() {
    let wrapped = ("/input_schema/properties", json!({"body": {"type": "object"}}));
    assert_eq!(told_with(&[wrapped], &[]), [""; 0]);
}

#[test]
fn answers_of_several_kinds_leave_it_open() {
    let ours = [("/output_schema", json!({"type": "array"}))];
    assert_eq!(told_with(&ours, &[]).len(), 1);
    let text = "/paths/~1notes/post/responses/200/content/text~1plain";
    assert_eq!(told_with(&ours, &[(text, json!({}))]), [""; 0]);
    let other =
        json!({"description": "d", "content": {"application/json": {"schema": {"type": "array"}}}});
    assert_eq!(told_with(&ours, &[("/paths/~1notes/post/responses/201", other)]), [""; 0]);
    let nothing = json!({"description": "d"});
    assert_eq!(told_with(&ours, &[("/paths/~1notes/post/responses/204", nothing)]).len(), 1);
}

#[test]
fn an_open_answer_may_have_what_it_does_not_tell() {
    let required = [("/output_schema/required", json!(["id", "at"]))];
    assert_eq!(told_with(&required, &[]).len(), 1);
    let open =
        "/paths/~1notes/post/responses/200/content/application~1json/schema/additionalProperties";
    assert_eq!(told_with(&required, &[(open, true.into())]), [""; 0]);
}

#[test]
fn circles_and_doublings_are_called_off() {
    let twice = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let mut schemas = serde_json::Map::new();
    for level in 0..26 {
        let next = twice(&format!("s{}", level + 1));
        schemas.insert(format!("s{level}"), json!({"allOf": [next, next], "anyOf": [next, next]}));
    }
    schemas
        .insert("s26".into(), json!({"allOf": [twice("s0")], "properties": {"text": twice("s0")}}));
    let told = told_with(&[], &[(BODY, twice("s0")), ("/components", json!({"schemas": schemas}))]);
    assert_eq!(told, [""; 0]);
    let own = json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
    assert_eq!(told_with(&[("/input_schema", own)], &[]), [""; 0]);
}

#[test]
fn very_many_calls_and_paths_are_bounded() {
    let endpoint = |n: usize| {
        json!({"id": n.to_string(), "endpoint": {
            "type": "http", "method": "GET", "url": format!("https://api.example.com/v1/none/{n}"),
        }})
    };
    let implementations = (0..5_000).map(endpoint).collect::<Value>();
    let path = |n: usize| (format!("/a/b/{{c}}/{n}"), json!({"get": {}}));
    let paths: serde_json::Map<_, _> = (0..20_000).map(path).collect();
    let mut manifest = manifest();
    manifest["implementations"] = implementations;
    let mut document = document();
    document["paths"] = paths.into();
    assert!(told(&manifest, &document).len() <= super::MAX_TOLD);
}
