//! What the whole API looks like, for programs: OpenAPI 3.1.
//!
//! The shapes of bodies are made from the wire types themselves, which are what is written and read. The routes
//! are a table here; a test holds it against the router.

use std::sync::OnceLock;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use package::digest::Digest;
use registry::{Bundle, Describe, ErrorBody, Page, Providers, Published, Tags, Versions, Yank};
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::answer::{self, Keep};

/// One thing that can be asked.
struct Operation {
    method: &'static str,
    path: &'static str,
    name: &'static str,
    summary: &'static str,
    parameters: &'static [&'static str],
    body: Option<fn(&mut Shapes) -> Value>,
    /// Whether a token must be shown.
    token: bool,
    /// The answers that are successes.
    answers: fn(&mut Shapes) -> Vec<(u16, Value)>,
    /// The statuses of the others.
    refusals: &'static [u16],
}

/// Shapes of bodies, each named once.
struct Shapes {
    sent: SchemaGenerator,
    read: SchemaGenerator,
}

impl Shapes {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            sent: settings().for_serialize().into_generator(),
            read: settings().for_deserialize().into_generator(),
        }
    }

    /// An answer of this type.
    fn json<T: JsonSchema>(&mut self, status: u16) -> (u16, Value) {
        let schema = self.sent.subschema_for::<T>();
        let content = json!({"application/json": {"schema": schema}});
        (status, json!({"description": described(status), "content": content}))
    }

    fn of(mut self) -> Map<String, Value> {
        let mut all = self.sent.take_definitions(true);
        for (name, schema) in self.read.take_definitions(true) {
            all.entry(name).or_insert(schema);
        }
        all
    }
}

/// What is asked for is written in the address, so everything there is text.
const PARAMETERS: [(&str, &str, &str); 17] = [
    ("id", "path", "The id of a tool, or its name"),
    ("version", "path", "A version, or `latest`"),
    ("q", "query", "Words to search for; without them there must be `tags`"),
    ("limit", "query", "How many results; 20, at least 1, at most 100; anything else is 20"),
    ("offset", "query", "How many results are left out at the beginning; anything else is 0"),
    ("tags", "query", "Tags, with commas between them; one of them is enough"),
    ("capability", "query", "Capabilities, with commas between them"),
    ("language", "query", "Languages, with commas between them"),
    ("platform", "query", "Platforms, with commas between them"),
    ("runtime", "query", "Runtimes, with commas between them"),
    ("kind", "query", "Kinds, with commas between them"),
    ("trust", "query", "Levels of trust, with commas between them"),
    ("dialect", "query", "Dialects, with commas between them"),
    ("namespace", "query", "Namespaces, with commas between them"),
    ("provider", "query", "Providers, with commas between them"),
    ("prefix", "query", "`true` while somebody types: the last word is the beginning of one"),
    ("as", "query", "The id of a manifest that has none of its own"),
];

const READ: &[u16] = &[400, 404, 405, 500, 503];

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn operations() -> Vec<Operation> {
    let plain = Operation {
        method: "get",
        path: "",
        name: "",
        summary: "",
        parameters: &[],
        body: None,
        token: false,
        answers: |_| Vec::new(),
        refusals: &[400, 405, 500, 503],
    };
    vec![
        Operation {
            path: "/v1/tools/search",
            name: "searchTools",
            summary: "The tools that fit some words, best first",
            parameters: &[
                "q",
                "tags",
                "capability",
                "language",
                "platform",
                "runtime",
                "kind",
                "trust",
                "dialect",
                "namespace",
                "provider",
                "prefix",
                "limit",
                "offset",
            ],
            answers: |shapes| vec![shapes.json::<Page>(200)],
            ..plain
        },
        Operation {
            path: "/v1/tools",
            name: "listTools",
            summary: "All tools, by id",
            parameters: &["limit", "offset"],
            answers: |shapes| vec![shapes.json::<Page>(200)],
            ..plain
        },
        publish("/v1/tools", "publishTool"),
        publish("/v1/tools/upload", "uploadTool"),
        Operation {
            path: "/v1/tags",
            name: "listTags",
            summary: "All tags, most frequent first",
            answers: |shapes| vec![shapes.json::<Tags>(200)],
            ..plain
        },
        Operation {
            path: "/v1/providers",
            name: "listProviders",
            summary: "Everybody who provides tools, most frequent first",
            answers: |shapes| vec![shapes.json::<Providers>(200)],
            ..plain
        },
        Operation {
            path: "/v1/tools/{id}",
            name: "describeTool",
            summary: "The highest version of a tool that was not yanked",
            parameters: &["id"],
            answers: |shapes| vec![shapes.json::<Describe>(200), nothing(304)],
            refusals: READ,
            ..plain
        },
        Operation {
            path: "/v1/tools/{id}/versions",
            name: "listVersions",
            summary: "All versions of a tool, highest first",
            parameters: &["id"],
            answers: |shapes| vec![shapes.json::<Versions>(200), nothing(304)],
            refusals: READ,
            ..plain
        },
        Operation {
            path: "/v1/tools/{id}/versions/{version}",
            name: "describeVersion",
            summary: "One version of a tool",
            parameters: &["id", "version"],
            answers: |shapes| vec![shapes.json::<Describe>(200), nothing(304)],
            refusals: READ,
            ..plain
        },
        Operation {
            path: "/v1/tools/{id}/versions/{version}/bundle",
            name: "bundleVersion",
            summary: "One version of a tool with its files",
            parameters: &["id", "version"],
            answers: |shapes| vec![shapes.json::<Bundle>(200), nothing(304)],
            refusals: &[400, 404, 405, 422, 500, 503],
            ..plain
        },
        Operation {
            path: "/v1/tools/{id}/versions/{version}/package",
            name: "downloadVersion",
            summary: "The package file of one version, or a part of it",
            parameters: &["id", "version"],
            answers: |_| vec![file(200), file(206), nothing(304)],
            refusals: &[400, 404, 405, 416, 500, 503],
            ..plain
        },
        yank("post", "yankVersion", "Takes back a version", true),
        yank("put", "yankVersionAgain", "Takes back a version", true),
        yank("delete", "unyankVersion", "Offers a version again", false),
        Operation {
            path: "/v1/openapi.json",
            name: "describeApi",
            summary: "This document",
            answers: |_| {
                let content = json!({"application/json": {"schema": {"type": "object"}}});
                vec![(200, json!({"description": "OpenAPI 3.1", "content": content})), nothing(304)]
            },
            ..plain
        },
        state("/healthz", "healthy", "Whether the process is there"),
        state("/readyz", "ready", "Whether it can do its work"),
        Operation {
            path: "/metrics",
            name: "metrics",
            summary: "What is counted, for Prometheus",
            answers: |_| {
                let text = json!({"schema": {"type": "string"}});
                let content = json!({"application/openmetrics-text": text});
                vec![(200, json!({"description": "Metrics", "content": content}))]
            },
            ..plain
        },
    ]
}

fn publish(path: &'static str, name: &'static str) -> Operation {
    Operation {
        method: "post",
        path,
        name,
        summary: "Publishes a package: its file, a bundle, or a form with either",
        parameters: &["as"],
        body: Some(|shapes| {
            let bundle = shapes.read.subschema_for::<Bundle>();
            let binary = json!({"type": "string", "contentMediaType": "application/zip"});
            json!({"required": true, "content": {
                answer::PACKAGE: {"schema": binary},
                "application/json": {"schema": bundle},
                "multipart/form-data": {"schema": {
                    "type": "object",
                    "properties": {"package": {"type": "string", "contentMediaType": "application/octet-stream"}},
                    "required": ["package"],
                }},
            }})
        }),
        token: true,
        answers: |shapes| vec![shapes.json::<Published>(200), shapes.json::<Published>(201)],
        refusals: &[400, 401, 403, 405, 408, 409, 413, 500, 503],
    }
}

fn yank(method: &'static str, name: &'static str, summary: &'static str, body: bool) -> Operation {
    let reason: fn(&mut Shapes) -> Value = |shapes| {
        let yank = shapes.read.subschema_for::<Yank>();
        json!({"required": false, "content": {"application/json": {"schema": yank}}})
    };
    Operation {
        method,
        path: "/v1/tools/{id}/versions/{version}/yank",
        name,
        summary,
        parameters: &["id", "version"],
        body: body.then_some(reason),
        token: true,
        answers: |_| vec![nothing(204)],
        refusals: &[400, 401, 403, 404, 405, 408, 413, 500, 503],
    }
}

fn state(path: &'static str, name: &'static str, summary: &'static str) -> Operation {
    Operation {
        method: "get",
        path,
        name,
        summary,
        parameters: &[],
        body: None,
        token: false,
        answers: |_| {
            let status = json!({"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]});
            let content = json!({"application/json": {"schema": status}});
            vec![(200, json!({"description": described(200), "content": content}))]
        },
        refusals: &[400, 405, 500, 503],
    }
}

fn nothing(status: u16) -> (u16, Value) {
    (status, json!({"description": described(status)}))
}

fn file(status: u16) -> (u16, Value) {
    let content = json!({answer::PACKAGE: {"schema": {"type": "string"}}});
    (status, json!({"description": described(status), "content": content}))
}

fn described(status: u16) -> &'static str {
    let known = StatusCode::from_u16(status).ok();
    known.and_then(|status| status.canonical_reason()).unwrap_or("Another answer")
}

/// All of it.
fn describe() -> Value {
    let mut shapes = Shapes::new();
    let error = shapes.sent.subschema_for::<ErrorBody>();
    let mut paths = Map::new();
    for operation in operations() {
        let mut answers = Map::new();
        for (status, answer) in (operation.answers)(&mut shapes) {
            answers.insert(status.to_string(), answer);
        }
        for status in operation.refusals {
            let content = json!({"application/json": {"schema": error}});
            let answer = json!({"description": described(*status), "content": content});
            answers.insert(status.to_string(), answer);
        }
        let parameters = operation.parameters.iter().filter_map(|name| parameter(name));
        let mut written = json!({
            "operationId": operation.name,
            "summary": operation.summary,
            "parameters": parameters.collect::<Vec<_>>(),
            "responses": answers,
        });
        if let Some(body) = operation.body {
            written["requestBody"] = body(&mut shapes);
        }
        if operation.token {
            written["security"] = json!([{"token": []}]);
        }
        let at = paths.entry(operation.path).or_insert_with(|| json!({}));
        at[operation.method] = written;
    }
    json!({
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "A registry of tools",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Every answer that is no success is in the error model.",
        },
        "paths": paths,
        "components": {
            "schemas": shapes.of(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn parameter(name: &str) -> Option<Value> {
    let (name, place, description) = PARAMETERS.iter().find(|(known, ..)| *known == name)?;
    let schema = match *place {
        // A NUL is in no name, and nothing is no name.
        "path" => json!({"type": "string", "minLength": 1, "pattern": "^[^\\u0000]+$"}),
        _ => json!({"type": "string", "pattern": "^[^\\u0000]*$"}),
    };
    let name = if *name == "as" { "id" } else { name };
    Some(json!({
        "name": name,
        "in": place,
        "required": *place == "path",
        "description": description,
        "schema": schema,
    }))
}

/// The methods of a route, as they are told to whoever asks for them.
pub(super) fn methods(route: &str) -> String {
    let known = operations();
    let known = known.iter().filter(|operation| operation.path == route);
    let mut methods: Vec<String> = known.map(|operation| operation.method.to_uppercase()).collect();
    if methods.is_empty() || methods.iter().any(|method| method == "GET") {
        methods.extend(["GET", "HEAD"].map(str::to_owned));
    }
    methods.push("OPTIONS".to_owned());
    methods.sort();
    methods.dedup();
    methods.join(", ")
}

/// Answers with the document, which is made once.
pub(super) async fn document(headers: HeaderMap) -> Response {
    static MADE: OnceLock<(String, String)> = OnceLock::new();
    let (text, tag) = MADE.get_or_init(|| {
        let text = describe().to_string();
        let tag = format!("W/\"{}\"", Digest::of(text.as_bytes()));
        (text, tag)
    });
    answer::kept(&headers, tag, Keep::Checked, || answer::json(StatusCode::OK, text.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_of_the_api_is_described() {
        let document = describe();
        let router = include_str!("router.rs");
        let routes = router.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next());
        let undescribed = ["/v1/tools/{*rest}"];
        for route in routes.filter(|route| !undescribed.contains(route)) {
            assert!(document["paths"].get(route).is_some(), "{route} is not described");
        }
    }

    #[test]
    fn every_shape_that_is_spoken_of_is_there() {
        let text = describe().to_string();
        let document: Value = serde_json::from_str(&text).unwrap();
        let spoken = text.split("\"#/components/schemas/").skip(1);
        let mut count = 0;
        for name in spoken.filter_map(|rest| rest.split('"').next()) {
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
            count += 1;
        }
        assert!(count > 20, "{count}");
    }
}
