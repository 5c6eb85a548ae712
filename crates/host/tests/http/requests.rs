//! What is sent.

use host::{Call, Kind, Output, Tool, TraceContext, Warmth};
use serde_json::{Value, json};

use super::kit;
use super::kit::call_of;
use super::site::{Site, auth};

#[test]
fn the_input_is_a_body_or_a_query_as_the_method_has_it() {
    let site = Site::open();
    let input = json!({ "text": "a b&c=d", "n": 3, "on": true, "tags": ["x", "y"], "deep": { "k": [1] }, "gone": null });
    for method in ["POST", "PUT", "PATCH"] {
        let said = site.json(&site.mcpkg(method, "/echo?v=1", json!({})), input.clone());
        assert_eq!((&said["method"], &said["body"]), (&json!(method), &input));
        assert_eq!(said["query"], json!([["v", "1"]]));
        assert_eq!(said["headers"]["content-type"], "application/json");
    }
    for method in ["GET", "DELETE", "OPTIONS"] {
        let said = site.json(&site.mcpkg(method, "/echo?v=1", json!({})), input.clone());
        assert_eq!((&said["method"], &said["body"]), (&json!(method), &json!(null)));
        let pairs = json!([
            ["v", "1"],
            ["text", "a b&c=d"],
            ["n", "3"],
            ["on", "true"],
            ["tags", "x"],
            ["tags", "y"],
            ["deep", "{\"k\":[1]}"]
        ]);
        assert_eq!(said["query"], pairs);
    }
    assert_eq!(site.json(&site.mcpkg("HEAD", "/echo", json!({})), input), json!(null));
}

#[test]
fn a_server_is_told_where_a_call_belongs_unless_the_package_says_so_itself() {
    let site = Site::open();
    let (parent, state) = ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1");
    let asked = |tool: &Tool, state: Option<&str>| {
        let context = TraceContext { parent: parent.to_owned(), state: state.map(str::to_owned) };
        let call = Call { context: Some(context), ..call_of(tool, &json!({})) };
        let made = site.runtime.block_on(async {
            kit::set_grants(&site.records, &tool.package.canonical_id(), &site.grants).await;
            site.host.call(tool, &call, Warmth::Cold).await
        });
        let headers = made.reply.unwrap().into_value()["headers"].clone();
        (headers["traceparent"].clone(), headers["tracestate"].clone())
    };
    let echo = |headers: Value| {
        site.manifest(&json!({ "method": "GET", "path": "/echo", "headers": headers }), json!({}))
    };
    assert_eq!(asked(&echo(json!({})), Some(state)), (json!(parent), json!(state)));
    assert_eq!(asked(&echo(json!({})), None), (json!(parent), json!(null)));
    let own = echo(json!({ "traceparent": "its own" }));
    assert_eq!(asked(&own, Some(state)), (json!("its own"), json!(null)));
    let said = site.json(&echo(json!({})), json!({}));
    assert_eq!(said["headers"]["traceparent"], json!(null), "{said}");
}

#[test]
fn an_action_fills_its_path_its_headers_and_its_body() {
    let site = Site::open();
    let invocation = json!({
        "method": "POST",
        "path": "/echo/items/${input.id}/${input.who.name}",
        "headers": {
            "Authorization": "Bearer ${env.DEMO_KEY}",
            "X-Trace": "t-${input.trace}",
            "X-Left-Out": "${input.gone}",
        },
    });
    let demo = site.manifest(&invocation, json!({
        "input": {
            "type": "object",
            "properties": {
                "id": { "type": "string" }, "trace": { "type": "integer" }, "gone": { "type": "string" },
                "who": { "type": "object", "properties": { "name": {}, "age": {} } }, "text": { "type": "string", "default": "by default" },
            },
        },
    }));
    let input = json!({ "id": "a/../b?c#d", "who": { "name": "x y", "age": 3 }, "trace": 7 });
    let said = site.json(&demo, input);
    assert_eq!(said["path"], "/echo/items/a%2F..%2Fb%3Fc%23d/x%20y");
    assert_eq!(said["headers"]["authorization"], "Bearer [secret DEMO_KEY]");
    assert_eq!(
        (&said["headers"]["x-trace"], &said["headers"]["x-left-out"]),
        (&json!("t-7"), &json!(null))
    );
    assert_eq!(said["body"], json!({ "who": { "age": 3 }, "trace": 7, "text": "by default" }));
    let get = site.manifest(&json!({ "method": "GET", "path": "/echo/${input.id}" }), json!({}));
    let said = site.json(&get, json!({ "id": 5, "q": "x" }));
    assert_eq!((&said["path"], &said["query"]), (&json!("/echo/5"), &json!([["q", "x"]])));
    for id in ["..", "."] {
        assert_eq!(site.error(&get, json!({ "id": id })).kind, Kind::BadInput, "{id}");
    }
    let lacking = site.error(&demo, json!({ "who": { "name": "x" } }));
    assert_eq!(lacking.kind, Kind::BadInput);
    assert_eq!(lacking.message, "the input has no `id`, which the request needs");
    let id = json!({ "name": "id", "type": "string", "required": true });
    assert_eq!(lacking.details["takes"][0], id);
    let odd = site.error(&demo, json!({ "id": "a\nb", "who": { "name": "x" } }));
    assert_eq!(odd.kind, Kind::BadInput);
    let smuggling = site.manifest(
        &json!({ "method": "GET", "path": "/echo", "headers": { "Host": "evil.test" } }),
        json!({}),
    );
    assert_eq!(site.error(&smuggling, json!({})).kind, Kind::Denied);
}

#[test]
fn a_plan_shows_the_request_and_no_secret() {
    let site = Site::open();
    let shown = |tool: &Tool, input: Value| {
        let plan = site.runtime.block_on(async {
            kit::set_grants(&site.records, &tool.package.canonical_id(), &site.grants).await;
            site.host.plan(tool, &call_of(tool, &input)).await.unwrap()
        });
        assert!(!format!("{plan:?}").contains("s3cret-key"));
        plan.to_value()
    };
    let invocation = json!({
        "method": "GET",
        "path": "/echo/${input.id}",
        "headers": { "Authorization": "Bearer ${env.DEMO_KEY}" },
    });
    let plan = shown(
        &site.manifest(&invocation, json!({})),
        json!({ "id": "own-words", "q": "own-words" }),
    );
    assert_eq!((&plan["decision"], &plan["method"]), (&json!("allowed"), &json!("GET")));
    assert_eq!(plan["url"], format!("{}/echo/${{input.id}}?q=…", site.origin));
    assert_eq!(plan["headers"], json!(["accept", "authorization"]));
    let text = plan.to_string();
    assert!(!text.contains("s3cret-key") && !text.contains("own-words"), "{text}");
    let names = ["ME_TOKEN_URL", "ME_CLIENT_ID", "ME_CLIENT_SECRET"];
    let plan = shown(&site.mcpkg("POST", "/echo", auth("oauth2", &names)), json!({}));
    assert_eq!(plan["headers"], json!(["accept", "content-type", "authorization"]));
    assert!(!plan.to_string().contains("p@ss"), "{plan}");
}

#[test]
fn servers_of_others_understand_us() {
    let Some(site) = Site::peers() else { return };
    let said = site.json(&site.mcpkg("POST", "/anything", json!({})), json!({ "a": [1, "ü"] }));
    assert_eq!(said["json"], json!({ "a": [1, "ü"] }));
    let said =
        site.json(&site.mcpkg("GET", "/get", json!({})), json!({ "a": ["x", "y"], "b": "ü &" }));
    assert_eq!(said["args"], json!({ "a": ["x", "y"], "b": "ü &" }));
    let bearer = site.mcpkg("GET", "/bearer", auth("bearer", &["DEMO_KEY"]));
    assert_eq!(site.json(&bearer, json!({}))["token"], "[secret DEMO_KEY]");
    assert_eq!(
        site.error(&site.mcpkg("GET", "/bearer", json!({})), json!({})).details["status"],
        401
    );
    let chunked = site.manifest(
        &json!({ "method": "GET", "path": "/stream/3" }),
        json!({ "output": { "format": "ndjson-stream" } }),
    );
    let Output::Records(records) = site.ok(&chunked, json!({})) else { panic!("no records") };
    assert_eq!(records.len(), 3);
    let image = site.manifest(
        &json!({ "method": "GET", "path": "/image/png" }),
        json!({ "output": { "format": "binary" } }),
    );
    let Output::Binary { bytes, media_type } = site.ok(&image, json!({})) else {
        panic!("no bytes")
    };
    assert!(bytes.starts_with(b"\x89PNG") && media_type.as_deref() == Some("image/png"));
    let redirected = site.json(&site.mcpkg("GET", "/redirect/3", json!({})), json!({}));
    assert!(redirected["url"].as_str().unwrap().ends_with("/get"), "{redirected}");
    assert_eq!(
        site.error(&site.mcpkg("GET", "/redirect/9", json!({})), json!({})).kind,
        Kind::Failed
    );
    assert_eq!(site.error(&site.mcpkg("GET", "/gzip", json!({})), json!({})).kind, Kind::BadOutput);
    assert_eq!(
        site.error(&site.mcpkg("GET", "/status/418", json!({})), json!({})).details["status"],
        418
    );
    for (prefix, more) in [("BASIC", None), ("POST", None), ("BASIC", Some("BASIC_REFRESH_TOKEN"))]
    {
        let names =
            ["TOKEN_URL", "CLIENT_ID", "CLIENT_SECRET"].map(|role| format!("{prefix}_{role}"));
        let names: Vec<&str> = names.iter().map(String::as_str).chain(more).collect();
        let private = site.mcpkg("GET", "/oauth/private", auth("oauth2", &names));
        assert_eq!(site.json(&private, json!({})), json!({ "message": "private" }), "{names:?}");
    }
}
