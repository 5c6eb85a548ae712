//! What the whole API looks like, for programs: OpenAPI 3.1.
//!
//! The shapes of bodies are made from the wire types themselves, which are what is written and read. The routes
//! are a table here, in [`access`] and in [`doors`]; a test holds it against the router. Left out are the pages for
//! people, which are no API, and what only says that there is nothing.

mod access;
mod doors;

use std::sync::OnceLock;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use package::digest::Digest;
use registry::mcp::Problem;
use registry::{
    Bundle, Describe, ErrorBody, Page, Providers, Published, Tags, TestReport, Versions, Yank,
};
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::answer::{self, Keep};

/// One thing that can be asked.
#[derive(Clone, Copy)]
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
    /// The statuses of the others, beside those of the door.
    refusals: &'static [u16],
    words: Words,
    deprecated: bool,
}

/// In whose words it is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    /// In the error model.
    Ours,
    /// As the MCP world has it.
    Mcp,
}

/// Something that everybody reads.
const PLAIN: Operation = Operation {
    method: "get",
    path: "",
    name: "",
    summary: "",
    parameters: &[],
    body: None,
    token: false,
    answers: |_| Vec::new(),
    refusals: &[400, 405, 500, 503],
    words: Words::Ours,
    deprecated: false,
};

/// What the door refuses: without a token that is good, with one that is for something else, and too often.
const DOOR: [u16; 3] = [401, 403, 429];
/// What is told to whoever changes something for which there is no room.
const ROOM: [u16; 1] = [507];
/// What the door does not stand before.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

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

    /// A body of this type, which must be there.
    fn body<T: JsonSchema>(&mut self) -> Value {
        let schema = self.read.subschema_for::<T>();
        json!({"required": true, "content": {"application/json": {"schema": schema}}})
    }

    fn of(mut self) -> Map<String, Value> {
        let mut all = self.sent.take_definitions(true);
        for (name, schema) in self.read.take_definitions(true) {
            all.entry(name).or_insert(schema);
        }
        all
    }
}

/// A parameter: what it is called here, what it is called in a request, where it is, what it may be, and about it.
type Parameter = (&'static str, &'static str, &'static str, May, &'static str);

/// What a parameter may be. What is asked for is written in the address, so all of it is text.
#[derive(Clone, Copy)]
enum May {
    /// Anything but a NUL; what is wrong counts as not said.
    BeText,
    /// The same, so long at most.
    BeShort(u16),
    /// One of these.
    BeOne(&'static [&'static str]),
    /// What is matched by this.
    Match(&'static str),
}

const PARAMETERS: [Parameter; 32] = [
    ("id", "id", "path", May::BeText, "The id of a tool, or its name"),
    ("version", "version", "path", May::BeText, "A version, or `latest`"),
    ("token", "id", "path", May::BeText, "The id of a token"),
    ("publisher", "id", "path", May::BeText, "The id of a publisher"),
    ("owner", "namespace", "path", May::BeText, "A namespace"),
    (
        "serverName",
        "serverName",
        "path",
        May::BeText,
        "The name of a server; its `/` may be encoded",
    ),
    ("q", "q", "query", May::BeText, "Words to search for; without them there must be `tags`"),
    (
        "limit",
        "limit",
        "query",
        May::BeText,
        "How many results at most; anything else is as many as are usual",
    ),
    (
        "offset",
        "offset",
        "query",
        May::BeText,
        "How many results are left out at the beginning; anything else is 0",
    ),
    ("tags", "tags", "query", May::BeText, "Tags, with commas between them; one of them is enough"),
    ("tag", "tag", "query", May::BeText, "The same as `tags`"),
    ("capability", "capability", "query", May::BeText, "Capabilities, with commas between them"),
    ("language", "language", "query", May::BeText, "Languages, with commas between them"),
    ("platform", "platform", "query", May::BeText, "Platforms, with commas between them"),
    ("runtime", "runtime", "query", May::BeText, "Runtimes, with commas between them"),
    ("kind", "kind", "query", May::BeText, "Kinds, with commas between them"),
    ("trust", "trust", "query", May::BeText, "Levels of trust, with commas between them"),
    ("dialect", "dialect", "query", May::BeText, "Dialects, with commas between them"),
    ("namespace", "namespace", "query", May::BeText, "Namespaces, with commas between them"),
    ("provider", "provider", "query", May::BeText, "Providers, with commas between them"),
    ("uses", "uses", "query", May::BeText, "Tools that a chain calls, with commas between them"),
    (
        "prefix",
        "prefix",
        "query",
        May::BeText,
        "`true` while somebody types: the last word is the beginning of one",
    ),
    ("as", "id", "query", May::BeText, "The id of a manifest that has none of its own"),
    (
        "channel",
        "channel",
        "query",
        May::BeOne(&["", "stable", "beta"]),
        "Up to which channel versions are meant",
    ),
    ("after", "after", "query", May::BeShort(256), "The id that comes before"),
    ("one namespace", "namespace", "query", May::BeShort(256), "Of this namespace alone"),
    ("cursor", "cursor", "query", May::BeText, "Where a list goes on"),
    (
        "servers",
        "limit",
        "query",
        May::Match("^(|[1-9][0-9]?|100)$"),
        "How many servers; 30, at most 100",
    ),
    ("search", "search", "query", May::BeShort(200), "A part of the name"),
    (
        "since",
        "updated_since",
        "query",
        May::BeText,
        "What has changed since then, as RFC 3339 writes it",
    ),
    ("asked version", "version", "query", May::BeText, "A version, or `latest`"),
    (
        "include_deleted",
        "include_deleted",
        "query",
        May::BeOne(&["", "true", "false", "1", "0"]),
        "Those that were taken back too",
    ),
];

const READ: &[u16] = &[400, 404, 405, 500, 503];

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn operations() -> Vec<Operation> {
    let mut all = vec![
        Operation {
            path: "/v1/tools/search",
            name: "searchTools",
            summary: "The tools that fit some words, best first",
            parameters: &[
                "q",
                "tags",
                "tag",
                "capability",
                "language",
                "platform",
                "runtime",
                "kind",
                "trust",
                "dialect",
                "namespace",
                "provider",
                "uses",
                "prefix",
                "channel",
                "limit",
                "offset",
            ],
            answers: |shapes| vec![shapes.json::<Page>(200)],
            ..PLAIN
        },
        Operation {
            path: "/v1/tools",
            name: "listTools",
            summary: "All tools, by id",
            parameters: &["channel", "limit", "offset"],
            answers: |shapes| vec![shapes.json::<Page>(200)],
            ..PLAIN
        },
        publish("/v1/tools", "publishTool"),
        publish("/v1/tools/upload", "uploadTool"),
        Operation {
            summary: "Says what publishing a package would come to, and publishes nothing",
            answers: |shapes| vec![shapes.json::<Published>(200)],
            ..publish("/v1/foresee", "foreseeTool")
        },
        Operation {
            path: "/v1/tags",
            name: "listTags",
            summary: "All tags, most frequent first",
            answers: |shapes| vec![shapes.json::<Tags>(200)],
            ..PLAIN
        },
        Operation {
            path: "/v1/providers",
            name: "listProviders",
            summary: "Everybody who provides tools, most frequent first",
            answers: |shapes| vec![shapes.json::<Providers>(200)],
            ..PLAIN
        },
        Operation {
            path: "/v1/tools/{id}",
            name: "describeTool",
            summary: "The highest version of a tool that was not yanked",
            parameters: &["id", "channel"],
            answers: |shapes| vec![shapes.json::<Describe>(200), nothing(304)],
            refusals: READ,
            ..PLAIN
        },
        Operation {
            path: "/v1/tools/{id}/versions",
            name: "listVersions",
            summary: "All versions of a tool, highest first",
            parameters: &["id"],
            answers: |shapes| vec![shapes.json::<Versions>(200), nothing(304)],
            refusals: READ,
            ..PLAIN
        },
        Operation {
            path: "/v1/tools/{id}/versions/{version}",
            name: "describeVersion",
            summary: "One version of a tool",
            parameters: &["id", "version", "channel"],
            answers: |shapes| vec![shapes.json::<Describe>(200), nothing(304)],
            refusals: READ,
            ..PLAIN
        },
        Operation {
            path: "/v1/tools/{id}/versions/{version}/bundle",
            name: "bundleVersion",
            summary: "One version of a tool with its files",
            parameters: &["id", "version", "channel"],
            answers: |shapes| vec![shapes.json::<Bundle>(200), nothing(304)],
            refusals: &[400, 404, 405, 422, 500, 503],
            ..PLAIN
        },
        Operation {
            path: "/v1/tools/{id}/versions/{version}/package",
            name: "downloadVersion",
            summary: "The package file of one version, or a part of it",
            parameters: &["id", "version", "channel"],
            answers: |_| vec![file(200), file(206), nothing(304)],
            refusals: &[400, 404, 405, 416, 500, 503],
            ..PLAIN
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
            ..PLAIN
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
            refusals: &[400, 404, 405, 500, 503],
            ..PLAIN
        },
    ];
    all.extend(access::operations());
    all.extend(doors::operations());
    all
}

fn publish(path: &'static str, name: &'static str) -> Operation {
    Operation {
        method: "post",
        path,
        name,
        summary: "Publishes a package: its file, a bundle, a form with either, or the form of a hub with one file",
        parameters: &["as", "channel"],
        body: Some(|shapes| {
            let bundle = shapes.read.subschema_for::<Bundle>();
            let report = shapes.read.subschema_for::<TestReport>();
            let binary = json!({"type": "string", "contentMediaType": "application/zip"});
            json!({"required": true, "content": {
                answer::PACKAGE: {"schema": binary},
                "application/json": {"schema": bundle},
                "multipart/form-data": {"schema": form(report.as_value())},
            }})
        }),
        token: true,
        answers: |shapes| vec![shapes.json::<Published>(200), shapes.json::<Published>(201)],
        refusals: &[400, 405, 408, 409, 413, 500, 503],
        ..PLAIN
    }
}

/// What a form may hold: a package, or one file with what a hub asks of it.
fn form(report: &Value) -> Value {
    let file = json!({"type": "string", "contentMediaType": "application/octet-stream"});
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "package": file, "bundle": file, "file": file, "report": report,
            "name": text, "description": text, "required_secrets": text,
            "uses_payment": text, "requires_approval": text,
        },
        "anyOf": [
            {"required": ["package"]},
            {"required": ["bundle"]},
            {"required": ["file"]},
            {"required": ["name", "description", "file"]},
        ],
    })
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
        refusals: &[400, 404, 405, 408, 413, 500, 503],
        ..PLAIN
    }
}

fn state(path: &'static str, name: &'static str, summary: &'static str) -> Operation {
    Operation {
        path,
        name,
        summary,
        answers: |_| {
            let status = json!({"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]});
            let content = json!({"application/json": {"schema": status}});
            vec![(200, json!({"description": described(200), "content": content}))]
        },
        ..PLAIN
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
    let problem = shapes.sent.subschema_for::<Problem>();
    let mut paths = Map::new();
    for operation in operations() {
        let mut answers = Map::new();
        for (status, answer) in (operation.answers)(&mut shapes) {
            answers.insert(status.to_string(), answer);
        }
        let door = DOOR.iter().filter(|_| !OPEN.contains(&operation.path));
        let changes = ROOM.iter().filter(|_| operation.method != PLAIN.method);
        for status in operation.refusals.iter().chain(door).chain(changes) {
            // What breaks unforeseen is told in the error model, wherever it breaks.
            let content = if operation.words == Words::Mcp && *status != 500 {
                json!({"application/problem+json": {"schema": problem}})
            } else {
                json!({"application/json": {"schema": error}})
            };
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
        if operation.deprecated {
            written["deprecated"] = true.into();
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
    let (_, name, place, may, description) = PARAMETERS.iter().find(|known| known.0 == name)?;
    let schema = match may {
        // A NUL is in no name, and nothing is no name.
        May::BeText if *place == "path" => {
            json!({"type": "string", "minLength": 1, "pattern": "^[^\\u0000]+$"})
        }
        May::BeText => json!({"type": "string", "pattern": "^[^\\u0000]*$"}),
        May::BeShort(most) => {
            json!({"type": "string", "maxLength": most, "pattern": "^[^\\u0000]*$"})
        }
        May::BeOne(of) => json!({"type": "string", "enum": of}),
        May::Match(pattern) => json!({"type": "string", "pattern": pattern}),
    };
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
        let router = router.replace(".route_service(", ".route(");
        let routes = router.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next());
        // What is beneath these is told apart: tools as the log has them, servers by their two parts.
        let (beneath, named): (Vec<_>, Vec<_>) = routes.partition(|route| route.contains("{*"));
        assert!(named.len() > 15 && beneath.len() == 5, "{named:?} {beneath:?}");
        let watched = include_str!("watch.rs");
        let parts = watched.split("Ok(Part::").skip(1).filter_map(|rest| rest.split('"').nth(1));
        let tools: Vec<_> = parts.map(str::to_owned).collect();
        assert!(tools.len() > 9, "{tools:?}");
        let routes = named.into_iter().map(str::to_owned).chain(tools);
        for route in routes.chain([super::super::door::EXCHANGE.to_owned()]) {
            assert!(document["paths"].get(&route).is_some(), "{route} is not described");
        }
    }

    #[test]
    fn every_parameter_that_is_spoken_of_is_known() {
        let mut names = std::collections::HashSet::new();
        for operation in operations() {
            assert!(names.insert(operation.name), "{} is there twice", operation.name);
            for name in operation.parameters {
                assert!(parameter(name).is_some(), "{name}");
            }
            let places = operation.path.matches('{').count();
            let placed = operation.parameters.iter().filter_map(|name| parameter(name));
            let placed = placed.filter(|parameter| parameter["in"] == "path").count();
            assert_eq!(places, placed, "{}", operation.path);
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
