//! `/openapi.json`: what can be asked for without MCP.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::plain::json_of;

/// The document.
pub(super) async fn document() -> Response {
    json_of(StatusCode::OK, &described())
}

fn described() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Haft gateway",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The tools that are installed, for whoever speaks no MCP. `/mcp` is for those who do.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths(),
        "components": {
            "securitySchemes": { "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "`haft token new NAME` makes one. Its role says what it may do: agent, installer or owner.",
            } },
            "schemas": schemas(),
            "responses": responses(),
        },
    })
}

fn paths() -> Value {
    let all = [of_tools(), of_capabilities(), of_the_gateway()];
    Value::Object(
        all.into_iter().flat_map(|one| one.as_object().cloned().unwrap_or_default()).collect(),
    )
}

/// What came of a call.
fn result() -> Value {
    answer(
        "What came of the call",
        &json!({
            "type": "object", "properties": { "result": {} }, "required": ["result"],
        }),
    )
}

fn of_tools() -> Value {
    json!({
        "/v1/tools.json": { "get": operation("listTools", "The definitions of all tools, as a model takes them", json!({
            "parameters": [
                { "name": "format", "in": "query", "schema": {
                    "enum": ["openai", "openai-responses", "anthropic", "mcp", "agentcli", "mcpkg"], "default": "openai",
                } },
                { "name": "profile", "in": "query", "schema": { "type": "string" },
                    "description": "Only what belongs to this profile of the policy" },
                { "name": "context", "in": "query", "schema": { "type": "boolean", "default": false },
                    "description": "For mcpkg: with the examples of each, and how its tests went the last time" },
                { "name": "budget", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": u64::MAX },
                    "description": "Only the best whose definitions together take about so many tokens; the header `Haft-Left-Out` says how many are not among them" },
            ],
            "responses": with_refusals(answer("Definitions", &json!({ "type": ["array", "object"] })), &["400", "404", "503"]),
        })) },
        "/v1/tools/{name}/call": { "post": operation("callTool", "Calls a tool; the body is what it takes", json!({
            "parameters": [tool_name()],
            "requestBody": body(&json!({ "type": "object" })),
            "responses": with_refusals(result(), &["400", "404", "409", "429", "502", "503", "504"]),
        })) },
    })
}

fn of_capabilities() -> Value {
    let capabilities = answer(
        "Capabilities",
        &json!({
            "type": "object",
            "properties": { "capabilities": { "type": "array", "items": { "$ref": "#/components/schemas/Capability" } } },
            "required": ["capabilities"],
        }),
    );
    let anything = || answer("What was done", &json!({ "type": "object" }));
    let id =
        json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
    json!({
        "/capability/list": { "get": operation("listCapabilities", "Everything that is installed", json!({
            "responses": with_refusals(capabilities.clone(), &[]),
        })) },
        "/capability/get/{id}": { "get": operation("getCapability", "One of them", json!({
            "parameters": [id],
            "responses": with_refusals(answer("The capability", &json!({ "$ref": "#/components/schemas/Capability" })), &["404"]),
        })) },
        "/capability/search": { "post": operation("searchCapabilities", "Those that words describe, the best first", json!({
            "requestBody": body(&json!({
                "type": "object",
                "properties": { "query": { "type": "string" }, "limit": { "type": ["integer", "null"], "minimum": 1, "maximum": 100, "default": 20 } },
                "required": ["query"],
            })),
            "responses": with_refusals(capabilities, &["400"]),
        })) },
        "/capability/resolve": { "post": operation("resolveCapability", "The one that is meant, by its id or by words", json!({
            "requestBody": body(&json!({
                "type": "object",
                "properties": { "id": { "type": ["string", "null"] }, "query": { "type": ["string", "null"] } },
            })),
            "responses": with_refusals(answer("The capability", &json!({
                "type": "object",
                "properties": { "capability": { "$ref": "#/components/schemas/Capability" } },
                "required": ["capability"],
            })), &["400", "404"]),
        })) },
        "/capability/run": { "post": operation("runCapability", "Calls a capability", json!({
            "requestBody": body(&json!({
                "type": "object",
                "properties": { "id": { "type": "string" }, "action": { "type": ["string", "null"] }, "input": {} },
                "required": ["id"],
            })),
            "responses": with_refusals(result(), &["400", "404", "409", "429", "502", "503", "504"]),
        })) },
        "/capability/install": { "post": operation("installCapability", "Installs a package of a registry; takes the role `installer`", json!({
            "requestBody": body(&json!({
                "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"],
            })),
            "responses": with_refusals(anything(), &["400", "404", "409"]),
        })) },
        "/capability/remove/{id}": { "delete": operation("removeCapability", "Removes a package; takes the role `installer`", json!({
            "parameters": [id],
            "responses": with_refusals(anything(), &["400", "404", "409"]),
        })) },
        "/capability/oauth/start": { "post": operation("startSignIn", "Begins to sign in for a capability; takes the role `owner`", json!({
            "requestBody": body(&sign_in()),
            "responses": with_refusals(answer("The page for the browser of the owner", &sign_in_page()), &["400", "404", "409"]),
        })) },
        "/capability/oauth/complete": { "post": operation("completeSignIn", "Goes on with what the browser was sent back with, by the token that began it; takes the role `owner`", json!({
            "requestBody": body(&json!({
                "type": "object",
                "properties": {
                    "state": { "type": "string" },
                    "code": { "type": "string" },
                    "iss": { "type": "string", "description": "Where the browser was sent back with one" },
                    "error": { "type": "string", "description": "In place of a code, where there is none" },
                },
                "required": ["state"],
            })),
            "responses": with_refusals(answer("What was granted; the tokens are kept, and not told", &json!({ "type": "object" })), &["400", "404", "409"]),
        })) },
        "/capability/factory_reset": { "post": operation("resetCapabilities", "Takes away everything that was installed; takes the role `owner`", json!({
            "responses": with_refusals(anything(), &["400", "409"]),
        })) },
    })
}

fn of_the_gateway() -> Value {
    json!({
        "/metrics": { "get": operation("countCalls", "What was counted, for Prometheus", json!({
            "responses": with_refusals(json!({ "description": "OpenMetrics", "content": { "application/openmetrics-text": {} } }), &[]),
        })) },
        "/healthz": { "get": open("isAlive", "Whether it runs") },
        "/readyz": { "get": ready() },
        "/version": { "get": open("version", "Which version it is") },
    })
}

/// Whether calls can be made.
fn ready() -> Value {
    let mut told = open("isReady", "Whether calls can be made");
    let words = "Not now: the policy or the state cannot be read";
    told["responses"]["503"] = json!({ "description": words, "content": { "text/plain": {} } });
    told
}

/// What a tool is called in a path.
fn tool_name() -> Value {
    json!({
        "name": "name", "in": "path", "required": true, "schema": { "type": "string" },
        "description": "As any format of `/v1/tools.json` has it, as one part of the path (`/` is written `%2F`)",
    })
}

fn sign_in() -> Value {
    let texts = json!({ "type": ["array", "null"], "items": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" },
            "scopes": texts,
            "allow_hosts": texts,
            "issuer": { "type": ["string", "null"], "description": "The authorization server, where nobody on the network says which one it is" },
            "secret": { "type": ["string", "null"], "description": "The secret that the capability is given the token as" },
            "resource": { "type": ["string", "null"], "description": "What the token is for" },
            "client_id": { "type": ["string", "null"] },
            "client_secret": { "type": ["string", "null"] },
            "redirect_uri": { "type": ["string", "null"], "description": "Where the browser is sent with its answer; a port of the gateway's machine by default, and the address that the browser ends at has what `complete` takes" },
        },
        "required": ["id"],
    })
}

fn sign_in_page() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" },
            "authorization_url": { "type": "string" },
            "state": { "type": "string" },
            "redirect_uri": { "type": "string" },
            "issuer": { "type": "string" },
            "resource": { "type": ["string", "null"] },
            "secret": { "type": ["string", "null"] },
            "scopes": { "type": "array", "items": { "type": "string" } },
            "expires_in": { "type": "integer", "description": "Seconds" },
        },
        "required": ["id", "authorization_url", "state", "redirect_uri", "expires_in"],
    })
}

fn schemas() -> Value {
    json!({
        "Capability": {
            "type": "object",
            "properties": {
                "id": { "type": "string" },
                "version": { "type": ["string", "null"] },
                "enabled": { "type": "boolean" },
                "taken_back": { "type": "boolean", "description": "Whether its registry has taken this version back for security, as far as that is known here" },
                "type": { "type": "string" },
                "description": { "type": ["string", "null"] },
                "trust_level": { "enum": ["local", "verified", "community", "untrusted"] },
                "requires_oauth": { "type": "boolean" },
                "actions": { "type": "array", "items": { "type": "string" } },
                "digest": { "type": "string", "description": "SHA-256 of what it is made of; this and what follows stands where one is asked for" },
                "interfaces": { "type": "object", "description": "What it takes and answers, where it has one action" },
                "described": {
                    "type": "array", "description": "What each of its actions takes and answers",
                    "items": {
                        "type": "object",
                        "properties": {
                            "action": { "type": "string" },
                            "description": { "type": ["string", "null"] },
                            "inputs": { "type": ["object", "boolean"] },
                            "outputs": { "type": ["object", "boolean"] },
                        },
                        "required": ["action", "inputs", "outputs"],
                    },
                },
                "permissions": { "type": "object", "description": "What it says that it needs" },
                "runtime": { "type": "object" },
                "unavailable": { "type": "string", "description": "Why it cannot be called" },
            },
            "required": ["id", "enabled"],
        },
        "Error": {
            "type": "object",
            "properties": { "error": {
                "type": "object",
                "properties": {
                    "code": { "type": "string" },
                    "message": { "type": "string" },
                    "who": { "type": "string", "description": "Who can change that" },
                    "grant": { "type": "string", "description": "How they do" },
                    "retry": { "type": "string", "description": "Whether to try again" },
                    "details": { "type": "object" },
                    "causes": { "type": "array", "items": { "type": "string" } },
                    "hints": { "type": "array", "items": { "type": "string" } },
                },
                "required": ["code", "message"],
            } },
            "required": ["error"],
        },
    })
}

/// What is said of each status that is a refusal.
const REFUSALS: [(&str, &str); 11] = [
    ("400", "The request is not what it should be"),
    ("401", "No token that counts was shown"),
    ("403", "It may not be done, or not without the owner's word"),
    ("404", "There is no such thing"),
    ("408", "The body did not come within a minute"),
    ("409", "It cannot be done as things are"),
    ("413", "The body is too large"),
    ("429", "A budget has none left; Retry-After says when it has"),
    ("502", "The tool failed"),
    (
        "503",
        "The tool cannot be run now, or too much is worked on; Retry-After says when to ask again, where that is known",
    ),
    ("504", "The tool took too long"),
];

fn responses() -> Value {
    let error =
        json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } });
    let one = |(status, words): &(&str, &str)| {
        (format!("Refused{status}"), json!({ "description": words, "content": error }))
    };
    Value::Object(REFUSALS.iter().map(one).collect())
}

fn operation(id: &str, summary: &str, more: Value) -> Value {
    let mut told = json!({ "operationId": id, "summary": summary });
    if let (Value::Object(told), Value::Object(more)) = (&mut told, more) {
        told.extend(more);
    }
    told
}

/// What anybody may ask.
fn open(id: &str, summary: &str) -> Value {
    let text = json!({ "200": { "description": summary, "content": { "text/plain": {} } } });
    operation(id, summary, json!({ "security": [], "responses": text }))
}

fn answer(description: &str, schema: &Value) -> Value {
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

fn body(schema: &Value) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": schema } } })
}

fn with_refusals(well: Value, refusals: &[&str]) -> Value {
    let mut all = serde_json::Map::from_iter([("200".to_owned(), well)]);
    for status in refusals.iter().chain(&["401", "403", "408", "413", "503"]) {
        let reference = format!("#/components/responses/Refused{status}");
        all.insert((*status).to_owned(), json!({ "$ref": reference }));
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere_and_every_operation_has_a_name_of_its_own() {
        let document = described();
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
        let ids: Vec<_> = text
            .split("\"operationId\":\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        let unique: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!((ids.len(), unique.len()), (16, 16));
    }

    #[test]
    fn every_route_without_mcp_is_described() {
        let source = include_str!("mod.rs");
        let document = described();
        let routes = source.split(".route(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let is_described = |route: &&str| !route.starts_with("/mcp") && *route != "/openapi.json";
        let mut count = 0;
        for route in routes
            .filter(is_described)
            .filter(|route| !route.starts_with("/console") && *route != "/")
        {
            let path = route.replace("{*", "{");
            assert!(document["paths"].get(&path).is_some(), "{route}");
            count += 1;
        }
        assert!(count >= 15, "{count}");
    }
}
