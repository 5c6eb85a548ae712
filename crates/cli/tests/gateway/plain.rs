//! Tools without MCP: definitions for models, a request for each call, and capabilities with their roles.

use serde_json::{Value, json};

use crate::common::{Desk, repository, write_below};
use crate::gate::{Gate, OPEN, home, server, speaking};

fn ready() -> (Desk, Desk) {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "plain", "say", "return arguments.get('words')");
    let desk = home(&[("plain", &path)], &format!("{OPEN}[profile.half]\ntools = [\"plain\"]\n"));
    for name in ["echo", "text-stats"] {
        desk.done(&[
            "install",
            repository().join("examples/mcpkg").join(name).to_str().unwrap(),
            "--yes",
        ]);
    }
    (desk, scripts)
}

pub(crate) fn ask(gate: &Gate, method: &str, path: &str, token: &str, body: &str) -> (u16, Value) {
    let token = format!("Bearer {token}");
    let answer = gate.send(method, path, &[("authorization", &token)], body);
    let told = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"));
    (answer.status, told)
}

pub(crate) fn token(desk: &Desk, more: &[&str]) -> String {
    desk.done(&[&["token", "new"], more].concat()).stdout.trim().to_owned()
}

#[test]
fn a_plain_loop_lists_and_calls() {
    let (desk, _scripts) = ready();
    let agent = token(&desk, &["agent"]);
    let gate = Gate::open(&desk, &[]);
    let names = |format: &str| {
        let (status, listed) =
            ask(&gate, "GET", &format!("/v1/tools.json?format={format}"), &agent, "");
        assert_eq!(status, 200);
        let all = listed
            .as_array()
            .cloned()
            .unwrap_or_else(|| listed["tools"].as_array().unwrap().clone());
        let name = |one: &Value| {
            one.pointer("/function/name").or(one.get("name")).unwrap().as_str().unwrap().to_owned()
        };
        all.iter().map(name).collect::<Vec<_>>()
    };
    let by_mcp = gate
        .ask_as(
            "/mcp",
            &[("authorization", &format!("Bearer {agent}"))],
            &json!({}),
            "tools/list",
            json!({}),
        )
        .last();
    let mut expected: Vec<_> = by_mcp["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    expected.sort();
    for format in ["openai", "openai-responses", "anthropic", "mcp", "agentcli"] {
        let mut found = names(format);
        found.sort();
        assert_eq!(found, expected, "{format}");
    }
    // The command line calls them the same.
    let exported = desk.done(&["export", "--format", "anthropic"]).json();
    let mut exported: Vec<_> = exported
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect();
    exported.sort();
    assert_eq!(exported, expected);
    assert_eq!(ask(&gate, "GET", "/v1/tools.json?format=odd", &agent, "").0, 400);
    let call = |name: &str, body: &str| {
        ask(&gate, "POST", &format!("/v1/tools/{name}/call"), &agent, body)
    };
    assert_eq!(call("plain_say", r#"{"words":"hi"}"#), (200, json!({ "result": "hi" })));
    let echo = expected.iter().find(|name| name.contains("echo")).unwrap();
    assert_eq!(call(echo, r#"{"message":"hi"}"#).0, 200);
    let (status, told) = call(echo, "{}");
    assert_eq!((status, told["error"]["code"].as_str()), (400, Some("bad_input")));
    assert_eq!(call(echo, "[]").0, 400);
    assert_eq!(call(echo, "{").0, 400);
    assert_eq!(call("nobody", "{}").0, 404);
    assert_eq!(gate.send("GET", "/v1/tools.json", &[], "").status, 401);
}

#[test]
fn whatever_a_format_calls_a_tool_leads_to_it() {
    let (desk, _scripts) = ready();
    let (agent, half) = (token(&desk, &["agent"]), token(&desk, &["half", "--profile", "half"]));
    let gate = Gate::open(&desk, &[]);
    let listed = |token: &str| {
        let (_, listed) = ask(&gate, "GET", "/v1/tools.json?format=mcpkg", token, "");
        let all = listed.as_array().unwrap().clone();
        let mut names: Vec<_> =
            all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(listed(&agent), ["demo.echo", "demo.text.stats", "plain.say"]);
    assert_eq!(listed(&half), ["plain.say"]);
    let call = |token: &str, name: &str, body: &str| {
        ask(&gate, "POST", &format!("/v1/tools/{name}/call"), token, body)
    };
    let (status, told) = call(&agent, "demo.echo", r#"{"message":"hi"}"#);
    assert_eq!((status, &told["result"]["message"]), (200, &json!("hi")));
    let said = (200, json!({ "result": "hi" }));
    assert_eq!(call(&half, "plain.say", r#"{"words":"hi"}"#), said);
    // What a token does not see it does not call, by any name.
    for name in ["demo.echo", "demo_echo"] {
        assert_eq!(call(&half, name, r#"{"message":"hi"}"#).0, 404, "{name}");
    }
}

#[test]
fn a_budget_that_is_used_up_says_when_it_comes_back() {
    let policy = format!("{OPEN}[budget]\ncalls_per_day = 1\n");
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "plain", "say", "return 'hi'");
    let desk = home(&[("plain", &path)], &policy);
    let gate = Gate::open(&desk, &["--without-token"]);
    let call = || gate.send("POST", "/v1/tools/plain_say/call", &[], "{}");
    assert_eq!(call().status, 200);
    let refused = call();
    assert_eq!(refused.status, 429, "{refused:?}");
    let seconds: u32 = refused.headers["retry-after"].parse().unwrap();
    assert!((1..=86_400).contains(&seconds), "{refused:?}");
    assert!(refused.body.contains("and not before"), "{refused:?}");
}

/// A server with two tools that say what they are called.
fn of_two(scripts: &Desk, name: &str, tools: [&str; 2]) -> String {
    let tools = tools.map(|tool| json!({ "name": tool, "inputSchema": { "type": "object" } }));
    let tools = serde_json::to_string(&tools).unwrap();
    speaking(scripts.0.path(), name, "", &tools, r#"_words(params["name"])"#)
}

#[test]
fn names_that_no_files_could_have_side_by_side_are_told_as_they_are_called() {
    let scripts = Desk::new();
    let path = of_two(&scripts, "plain", ["say", "Say"]);
    let desk = home(&[("plain", &path)], OPEN);
    let agent = token(&desk, &["agent"]);
    let gate = Gate::open(&desk, &[]);
    let (_, listed) = ask(&gate, "GET", "/v1/tools.json?format=agentcli", &agent, "");
    let names: Vec<_> =
        listed["tools"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["plain_say", "plain_Say"]);
    for (name, said) in [("plain_say", "say"), ("plain_Say", "Say"), ("plain.Say", "Say")] {
        let (status, told) = ask(&gate, "POST", &format!("/v1/tools/{name}/call"), &agent, "");
        assert_eq!((status, &told["result"]), (200, &json!(said)), "{name}");
    }
}

#[test]
fn capabilities_are_listed_found_and_run_by_those_who_may() {
    let (desk, _scripts) = ready();
    let (agent, half) = (token(&desk, &["agent"]), token(&desk, &["half", "--profile", "half"]));
    let gate = Gate::open(&desk, &[]);
    let ids = |told: &Value| {
        let all = told["capabilities"].as_array().unwrap_or_else(|| panic!("{told}"));
        all.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (_, listed) = ask(&gate, "GET", "/capability/list", &agent, "");
    assert_eq!(ids(&listed), ["mcpb:plain", "mcpkg:demo.echo", "mcpkg:demo.text.stats"]);
    assert_eq!(ids(&ask(&gate, "GET", "/capability/list", &half, "").1), ["mcpb:plain"]);
    let (status, one) = ask(&gate, "GET", "/capability/get/mcpkg:demo.echo", &agent, "");
    assert_eq!(
        (status, one["enabled"].as_bool(), one["trust_level"].as_str()),
        (200, Some(true), Some("local"))
    );
    assert_eq!(ask(&gate, "GET", "/capability/get/demo.echo", &half, "").0, 404);
    let (_, found) = ask(&gate, "POST", "/capability/search", &agent, r#"{"query":"count words"}"#);
    assert_eq!(ids(&found)[0], "mcpkg:demo.text.stats", "{found}");
    let (_, meant) =
        ask(&gate, "POST", "/capability/resolve", &agent, r#"{"query":"echo a message"}"#);
    assert_eq!(meant["capability"]["id"], "mcpkg:demo.echo");
    let run =
        |token: &str, body: Value| ask(&gate, "POST", "/capability/run", token, &body.to_string());
    let echoed = run(&agent, json!({ "id": "demo.echo", "input": { "message": "hi" } }));
    assert_eq!((echoed.0, &echoed.1["result"]["message"]), (200, &json!("hi")));
    assert_eq!(run(&half, json!({ "id": "demo.echo", "input": { "message": "hi" } })).0, 404);
    let (status, told) = ask(&gate, "POST", "/v1/tools/echo/call", &agent, "{}");
    assert_eq!((status, &told["error"]["code"]), (404, &json!("unknown_tool")), "{told}");
    let near = told["error"]["message"].as_str().unwrap();
    assert!(near.contains("there is no tool `echo`; did you mean `demo_echo`"), "{told}");
    desk.done(&["disable", "demo.echo"]);
    let (status, told) = run(&agent, json!({ "id": "demo.echo" }));
    assert_eq!((status, told["error"]["message"].as_str()), (403, Some("capability disabled")));
    let grant = told["error"]["grant"].as_str().unwrap();
    assert!(grant.contains("`haft enable mcpkg:demo.echo`, or at http://127.0.0.1:"), "{told}");
    let (status, told) = ask(&gate, "POST", "/v1/tools/demo_echo/call", &agent, "{}");
    assert_eq!((status, &told["error"]["code"]), (403, &json!("denied")), "{told}");
    assert_eq!(told["error"]["grant"], grant);
    assert_eq!(ask(&gate, "POST", "/v1/tools/demo_echo/call", &half, "{}").0, 404);
    for body in ["{}", "[]", "{"] {
        assert_eq!(ask(&gate, "POST", "/capability/run", &agent, body).0, 400, "{body}");
    }
    for path in ["/healthz", "/readyz", "/version"] {
        assert_eq!(gate.send("GET", path, &[], "").status, 200);
    }
    // Whoever sends requests elsewhere then learns that none is answered here.
    write_below(&desk.path("home"), "policy.toml", "alow = true\n");
    assert_eq!(gate.send("GET", "/readyz", &[], "").status, 503);
    assert_eq!(gate.send("GET", "/healthz", &[], "").status, 200);
}

#[test]
fn of_a_capability_is_told_what_it_takes_and_may_touch() {
    let (desk, _scripts) = ready();
    let agent = token(&desk, &["agent"]);
    let gate = Gate::open(&desk, &[]);
    let manifest = repository().join("examples/mcpkg/echo/manifest.json");
    let manifest: Value =
        serde_json::from_str(&std::fs::read_to_string(manifest).unwrap()).unwrap();
    let (_, one) = ask(&gate, "GET", "/capability/get/demo.echo", &agent, "");
    let asked = json!({ "id": "demo.echo" }).to_string();
    let (_, meant) = ask(&gate, "POST", "/capability/resolve", &agent, &asked);
    assert_eq!(meant["capability"], one);
    assert_eq!(one["version"], manifest["version"]);
    let interfaces =
        json!({ "inputs": manifest["input_schema"], "outputs": manifest["output_schema"] });
    assert_eq!(one["interfaces"], interfaces);
    assert_eq!(one["described"][0]["inputs"], manifest["input_schema"]);
    assert_eq!(one["permissions"]["network"], "deny");
    assert_eq!(one["runtime"]["sandbox"], "process");
    assert_eq!(one["digest"].as_str().unwrap().len(), 64, "{one}");
    // The list is short.
    let (_, listed) = ask(&gate, "GET", "/capability/list", &agent, "");
    assert_eq!(listed["capabilities"][1].get("interfaces"), None);
}

#[test]
fn what_only_a_catalog_declares_has_the_version_that_it_is_declared_with() {
    let desk = home(&[], OPEN);
    let entry = json!({
        "id": "demo.cat", "type": "tool", "version": "1.2.3", "description": "Gives back what it is given.",
        "origin": { "source": "local", "digest": "0".repeat(64) },
        "interfaces": { "inputs": { "type": "object" }, "outputs": {} },
        "permissions": { "network": "deny", "filesystem": "none", "devices": [] },
        "runtime": { "sandbox": "process", "resources": { "cpu": "1", "memory": "64Mi" } },
        "trust_level": "local",
        "implementation": { "kind": "command", "command": { "argv": ["cat"] } },
    });
    let catalog = json!({ "capabilities": [entry] }).to_string();
    write_below(&desk.path("home"), "manifest.base.json", &catalog);
    let agent = token(&desk, &["agent"]);
    let gate = Gate::open(&desk, &[]);
    let (_, listed) = ask(&gate, "GET", "/capability/list", &agent, "");
    assert_eq!(listed["capabilities"][0]["version"], entry["version"], "{listed}");
}

#[test]
fn a_profile_of_some_actions_tells_of_no_others_and_hides_nothing_that_is_off() {
    let scripts = Desk::new();
    let path = of_two(&scripts, "two", ["say", "wipe"]);
    let policy = format!(
        "{OPEN}[profile.half]\ntools = [\"two#say\"]\n[profile.default]\ntools = [\"demo.echo\"]\n"
    );
    let desk = home(&[("two", &path)], &policy);
    let echo = repository().join("examples/mcpkg/echo");
    desk.done(&["install", echo.to_str().unwrap(), "--yes"]);
    let half = token(&desk, &["half", "--profile", "half"]);
    let installer = token(&desk, &["ci", "--role", "installer"]);
    let gate = Gate::open(&desk, &[]);
    let (_, one) = ask(&gate, "GET", "/capability/get/two", &half, "");
    assert_eq!(one["actions"], json!(["say"]), "{one}");
    assert!(!one.to_string().contains("wipe"), "{one}");
    let run =
        |token: &str, body: Value| ask(&gate, "POST", "/capability/run", token, &body.to_string());
    // There is one that can be meant.
    assert_eq!(run(&half, json!({ "id": "two" })), (200, json!({ "result": "say" })));
    assert_eq!(run(&half, json!({ "id": "two", "action": "wipe" })).0, 404);
    // Nor does it learn what there is elsewhere.
    let bearer = format!("Bearer {half}");
    for path in ["/mcp/default", "/mcp/nothing", "/mcp/raw/two", "/mcp/raw/nothing"] {
        let own = [("authorization", bearer.as_str())];
        assert_eq!(
            gate.ask_as(path, &own, &json!({}), "tools/list", json!({})).status,
            403,
            "{path}"
        );
    }
    // What is shown first is no wall.
    assert_eq!(run(&installer, json!({ "id": "two", "action": "wipe" })).0, 200);
    assert_eq!(ask(&gate, "POST", "/v1/tools/two_say/call", &installer, "{}").0, 200);
    desk.done(&["disable", "mcpb:two"]);
    for token in [&half, &installer] {
        let (status, told) = run(token, json!({ "id": "two", "action": "say" }));
        assert_eq!(
            (status, &told["error"]["message"]),
            (403, &json!("capability disabled")),
            "{told}"
        );
    }
    assert_eq!(ask(&gate, "DELETE", "/capability/remove/mcpb:two", &installer, "").0, 200);
}

#[test]
fn the_log_names_the_token_of_every_call_refusal_and_change() {
    let (desk, _scripts) = ready();
    let (agent, installer) = (token(&desk, &["me"]), token(&desk, &["ci", "--role", "installer"]));
    let gate = Gate::open(&desk, &[]);
    let bearer = format!("Bearer {agent}");
    let shown = [("authorization", bearer.as_str())];
    // A conversation of the older era is known by its token as well.
    let greeting = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let greeted = gate.post("/mcp", &shown, &greeting);
    let session = greeted.headers["mcp-session-id"].clone();
    let called = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "plain_say", "arguments": { "words": "hello" } } });
    let in_session = [shown[0], ("mcp-session-id", session.as_str())];
    assert!(gate.post("/mcp", &in_session, &called).body.contains("hello"));
    // What is switched off is refused, and that is written down too, however it was called.
    desk.done(&["disable", "mcpb:plain"]);
    let refused = gate.post("/mcp", &in_session, &called).last();
    let words = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("`mcpb:plain` cannot be called."), "{words}");
    let run = json!({ "id": "mcpb:plain", "input": { "words": "hello" } }).to_string();
    for (path, body) in [("/v1/tools/plain_say/call", "{}"), ("/capability/run", run.as_str())] {
        assert_eq!(ask(&gate, "POST", path, &agent, body).0, 403, "{path}");
    }
    let (status, _) = ask(&gate, "DELETE", "/capability/remove/demo.echo", &installer, "");
    assert_eq!(status, 200);
    let log = desk.done(&["audit", "--json", "--limit", "20"]).stdout;
    let log: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |is_meant: &dyn Fn(&Value) -> bool| {
        log.iter().filter(|one| is_meant(one)).map(|one| one["session"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(&|one| one["kind"] == "end" && one["action"] == "say"), ["me"], "{log:?}");
    let is_refused = |one: &Value| one["package"] == "mcpb:plain" && one["decision"] == "denied";
    assert_eq!(of(&is_refused), ["me", "me", "me"], "{log:?}");
    let is_removed = |one: &Value| one["kind"] == "end" && one["change"] == "remove";
    assert_eq!(of(&is_removed), ["ci"], "{log:?}");
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}

#[test]
fn what_is_too_large_or_asked_for_in_another_way_is_told_as_everything_else() {
    let (desk, _scripts) = ready();
    let agent = token(&desk, &["agent"]);
    let gate = Gate::open(&desk, &[]);
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(16 << 20));
    for path in ["/v1/tools/demo_echo/call", "/capability/run"] {
        let (status, told) = ask(&gate, "POST", path, &agent, &large);
        assert_eq!((status, told["error"]["code"].as_str()), (413, Some("too_large")), "{path}");
    }
    for (method, path) in [
        ("POST", "/v1/tools.json"),
        ("GET", "/v1/tools/demo_echo/call"),
        ("POST", "/healthz"),
        ("POST", "/approvals"),
        ("POST", "/sign-in/x"),
    ] {
        let (status, told) = ask(&gate, method, path, &agent, "");
        assert_eq!((status, told["error"]["code"].as_str()), (405, Some("bad_method")), "{path}");
        assert!(told["error"]["message"].as_str().unwrap().starts_with(method), "{told}");
        let token = format!("Bearer {agent}");
        let shown = [("authorization", token.as_str())];
        let allowed = gate.send(method, path, &shown, "").headers["allow"].clone();
        assert!(!allowed.is_empty() && !allowed.contains(method), "{path}: {allowed}");
    }
    let token = format!("Bearer {agent}");
    let answered = gate.send("PUT", "/mcp", &[("authorization", &token)], "");
    assert_eq!((answered.status, &*answered.headers["allow"]), (405, "DELETE, GET, POST"));
    // A greeting is counted as every request is.
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    gate.post("/mcp", &[("authorization", &token)], &hello);
    let counted = gate.send("GET", "/metrics", &[("authorization", &token)], "").body;
    let greetings = r#"haft_requests_total{method="initialize",outcome="ok"} 1"#;
    assert!(counted.contains(greetings), "{counted}");
}
