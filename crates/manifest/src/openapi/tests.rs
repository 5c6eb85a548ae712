//! Documents that are as they should be, and documents made to hurt.

use serde_json::{Value, json};

use crate::dialect::Form;
use crate::document::{Options, Report, check};
use crate::finding::Code;

fn report(document: &Value) -> Report {
    let options = Options { form: Some(Form::OpenApi), ..Options::default() };
    check(document.to_string().as_bytes(), &options)
}

#[track_caller]
fn assert_clean(document: &Value) {
    let report = report(document);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

fn codes(document: &Value) -> Vec<Code> {
    report(document).findings.into_iter().map(|finding| finding.code).collect()
}

/// A document of 3.1 with these paths and components.
fn with(paths: &Value, components: &Value) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Notes", "version": "1"},
        "paths": paths,
        "components": components,
    })
}

#[test]
fn the_smallest_documents_are_valid() {
    let info = json!({"title": "", "version": ""});
    assert_clean(&json!({"openapi": "3.0.0", "info": info, "paths": {}}));
    for field in ["paths", "components", "webhooks"] {
        assert_clean(&json!({"openapi": "3.1.1", "info": info, field: {}}));
    }
}

#[test]
fn a_document_of_the_older_version_may_use_all_it_has() {
    assert_clean(&json!({
        "openapi": "3.0.4",
        "info": {
            "title": "Notes", "version": "1", "termsOfService": "https://example.com/terms",
            "contact": {"name": "a", "url": "https://example.com", "email": "a@example.com"},
            "license": {"name": "MIT", "url": "https://example.com/mit"}, "x-note": 1,
        },
        "servers": [
            {"url": "/"},
            {"url": "https://{place}.example.com/{base}", "variables": {
                "place": {"default": "eu", "enum": ["eu", "us"]}, "base": {"default": "v1"},
            }},
        ],
        "tags": [{"name": "n", "externalDocs": {"url": "https://example.com"}}],
        "security": [{}, {"key": []}, {"oauth": ["read"], "oidc": []}],
        "paths": {
            "x-anything": 3,
            "/notes/{id}.{kind}": {
                "summary": "A note.",
                "parameters": [
                    {"$ref": "#/components/parameters/id"},
                    {"name": "kind", "in": "path", "required": true, "style": "simple", "schema": {}},
                ],
                "get": {
                    "tags": ["n"], "operationId": "get", "deprecated": false,
                    "parameters": [
                        {"name": "q", "in": "query", "style": "deepObject", "explode": true,
                            "schema": {"type": "object"}, "examples": {"a": {"$ref": "#/components/examples/a"}}},
                        {"name": "id", "in": "query", "content": {"application/json": {"schema": {}}}},
                    ],
                    "responses": {
                        "200": {"$ref": "#/components/responses/Note"},
                        "4XX": {"description": "No."},
                        "default": {"description": "Other.", "links": {"l": {"$ref": "#/components/links/l"}}},
                        "x-note": {},
                    },
                },
            },
            "/again": {"$ref": "#/paths/~1notes"},
            "/notes": {"post": {
                "operationId": "add",
                "requestBody": {"$ref": "#/components/requestBodies/Note"},
                "callbacks": {"done": {"$ref": "#/components/callbacks/done"}},
                "responses": {"201": {"description": "Added.", "headers": {
                    "Location": {"schema": {"type": "string"}}, "X": {"$ref": "#/components/headers/X"},
                }}},
            }},
        },
        "components": {
            "parameters": {"id": {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}},
            "headers": {"X": {"content": {"text/plain": {"schema": {"type": "string"}}}}},
            "examples": {"a": {"value": {"b": 1}}},
            "links": {"l": {"operationId": "add", "parameters": {"id": "$response.body#/id"}}},
            "callbacks": {"done": {"{$request.body#/url}": {
                "post": {"responses": {"200": {"description": "Heard."}}},
            }}},
            "requestBodies": {"Note": {"required": true, "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/Note"}},
                "multipart/form-data": {"schema": {"type": "object"}, "encoding": {
                    "a": {"contentType": "text/plain", "headers": {"X": {"$ref": "#/components/headers/X"}}},
                }},
            }}},
            "responses": {"Note": {"description": "A note.", "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/Note"}},
            }}},
            "schemas": {
                "Note": {
                    "type": "object", "required": ["text"], "additionalProperties": false,
                    "discriminator": {"propertyName": "text"}, "xml": {"name": "note"},
                    "properties": {
                        "text": {"type": "string", "nullable": true, "example": "a", "readOnly": true},
                        "stars": {"type": "integer", "minimum": 0, "exclusiveMinimum": true},
                        "replies": {"type": "array", "items": {"$ref": "#/components/schemas/Note"}},
                        "more": {"allOf": [{"$ref": "#/components/schemas/Note/properties/text"}]},
                        "$ref": {"type": "string"},
                        "beside": {"$ref": "#/components/schemas/Note", "type": ["not", "read"]},
                    },
                },
            },
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
                "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://example.com"},
                "oauth": {"type": "oauth2", "flows": {
                    "implicit": {"authorizationUrl": "https://example.com/a", "scopes": {}},
                    "authorizationCode": {
                        "authorizationUrl": "https://example.com/a", "tokenUrl": "https://example.com/t",
                        "refreshUrl": "https://example.com/r", "scopes": {"read": "Read."},
                    },
                }},
            },
        },
    }));
}

#[test]
fn a_document_of_the_newer_version_may_use_all_it_has() {
    let mut document = with(
        &json!({"/notes": {"get": {}, "summary": "No responses are needed."}}),
        &json!({
            "pathItems": {"p": {"put": {"responses": {"2XX": {"description": "d"}}}}},
            "responses": {"r": {"$ref": "#/components/responses/s", "description": "Another word."}, "s": {"description": "s"}},
            "schemas": {
                "yes": true,
                "Note": {
                    "$defs": {"name": {"type": ["string", "null"], "$anchor": "name"}},
                    "type": "object",
                    "properties": {
                        "a": {"$ref": "#name"},
                        "b": {"$ref": "#/components/schemas/Note/$defs/name", "description": "beside"},
                        "c": {"$ref": "#/components/schemas/yes"},
                        "d": {"prefixItems": [{"const": 1}], "exclusiveMinimum": 0},
                        "e": {"$ref": "https://example.com/e"},
                        "f": {"$ref": "#/x-parts/f"},
                    },
                    "discriminator": {"propertyName": "a"},
                },
                "E": {
                    "$id": "https://example.com/e",
                    "$schema": "https://spec.openapis.org/oas/3.1/dialect/base",
                    "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}},
                },
            },
            "securitySchemes": {"t": {"type": "mutualTLS"}},
        }),
    );
    document["x-parts"] = json!({"f": {"type": "string"}});
    document["jsonSchemaDialect"] = "https://spec.openapis.org/oas/3.1/dialect/base".into();
    document["info"]["summary"] = "s".into();
    document["info"]["license"] = json!({"name": "MIT", "identifier": "MIT"});
    document["webhooks"] = json!({"new": {"$ref": "#/components/pathItems/p"}});
    document["security"] = json!([{"t": ["a role"]}]);
    assert_clean(&document);
}

#[test]
fn schemas_in_words_of_others_are_only_followed() {
    let mut document =
        with(&json!({}), &json!({"schemas": {"Old": {"items": [{}], "exclusiveMinimum": true}}}));
    document["jsonSchemaDialect"] = "http://json-schema.org/draft-04/schema#".into();
    assert_clean(&document);
    document["components"]["schemas"]["Old"]["not"] = json!({"$ref": "#/nowhere"});
    assert_eq!(codes(&document), [Code::UnresolvedRef]);
}

#[test]
fn a_document_is_known_by_its_content_and_shown() {
    let document = with(
        &json!({"/a": {"get": {}, "post": {}, "summary": "s"}, "/b": {"trace": {}}}),
        &json!({}),
    );
    let report = check(document.to_string().as_bytes(), &Options::default());
    assert_eq!((report.dialect, report.form), (None, Some(Form::OpenApi)));
    assert_eq!(report.version, Some("3.1"));
    assert_eq!(report.title.as_deref(), Some("Notes 1, 3 operations"));
    let swagger = json!({"swagger": "2.0", "info": {"title": "Old", "version": "1"}, "paths": {"/a": {"get": {}}}});
    let report = check(swagger.to_string().as_bytes(), &Options::default());
    assert_eq!(report.form, Some(Form::OpenApi));
    assert_eq!(report.title.as_deref(), Some("Old 1, 1 operation"));
    assert_eq!(
        report.findings[0].message,
        "Swagger `2.0` is not read here; OpenAPI 3.0 and 3.1 are"
    );
    assert_eq!(report.findings.len(), 1, "what is not read is not judged");
}

#[test]
fn all_findings_come_in_one_run() {
    let document = with(
        &json!({"a": {}, "/b/{c}": {"get": {"responses": {"20": {}}, "security": [{"x": []}]}}}),
        &json!({"schemas": {"S": {"type": "text"}}, "parameters": {"P": {"in": "path"}}}),
    );
    let codes = codes(&document);
    for code in [
        Code::BadPattern,
        Code::PathTemplate,
        Code::MissingField,
        Code::UndeclaredSecurity,
        Code::BadSchema,
    ] {
        assert!(codes.contains(&code), "{code} in {codes:?}");
    }
}

#[test]
fn every_operation_of_a_path_needs_its_parameters() {
    let path = json!({"name": "id", "in": "path", "required": true, "schema": {}});
    let responses = json!({"200": {"description": "d"}});
    let document = with(
        &json!({"/{id}": {
            "get": {"parameters": [path], "responses": responses},
            "put": {"parameters": [{"$ref": "#/components/parameters/id"}], "responses": responses},
            "post": {"responses": responses},
        }}),
        &json!({"parameters": {"id": path}}),
    );
    let report = report(&document);
    let [finding] = report.findings.as_slice() else { panic!("{:#?}", report.findings) };
    assert_eq!(finding.pointer.as_str(), "/paths/~1{id}/post");
    assert_eq!(finding.message, "`post` declares no path parameter `id`");
}

#[test]
fn a_large_document_is_allowed_what_a_manifest_is_not() {
    let text = with(&json!({}), &json!({})).to_string();
    let padded = |length| {
        let mut bytes = text.clone().into_bytes();
        bytes.resize(length, b' ');
        check(&bytes, &Options::default()).findings.into_iter().map(|f| f.code).collect::<Vec<_>>()
    };
    assert_eq!(padded(super::MAX_BYTES), []);
    assert_eq!(padded(super::MAX_BYTES + 1), [Code::TooLarge]);
}

#[test]
fn a_chain_of_references_is_followed_only_so_far() {
    let chain = |length: usize| {
        let mut responses = serde_json::Map::new();
        for at in 0..length {
            let next = json!({"$ref": format!("#/components/responses/r{}", at + 1)});
            responses.insert(format!("r{at}"), next);
        }
        responses.insert(format!("r{length}"), json!({"description": "d"}));
        codes(&with(&json!({}), &json!({"responses": responses})))
    };
    assert_eq!(chain(20), []);
    assert!(chain(2_000).contains(&Code::UnresolvedRef));
}

#[test]
fn very_many_references_among_very_many_parts_are_followed() {
    let count = 20_000;
    let schema = |at: usize| {
        let next = json!({"$ref": format!("#/components/schemas/s{}", (at + 1) % count)});
        (format!("s{at}"), json!({"properties": {"a": next, "b": next}}))
    };
    let schemas: serde_json::Map<_, _> = (0..count).map(schema).collect();
    assert_clean(&with(&json!({}), &json!({"schemas": schemas})));
}

#[test]
fn very_many_faults_are_bounded() {
    let keys: serde_json::Map<_, _> = (0..100_000).map(|n| (format!("k{n}"), json!(0))).collect();
    let mut document = with(&json!({"/a": {"get": keys}}), &json!({}));
    assert!(report(&document).is_valid(), "unknown keys are ignored");
    let names: serde_json::Map<_, _> = (0..50_000).map(|n| (format!("k{n}"), json!([]))).collect();
    document["security"] = json!([names]);
    let report = report(&document);
    assert!(!report.is_valid());
    assert_eq!(report.findings.last().map(|finding| finding.code), Some(Code::MoreFindings));
}
