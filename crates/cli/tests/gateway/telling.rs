//! What those are told who watch: counts for Prometheus, spans for a collector, and the trace for the tool itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::common::{Desk, write_below};
use crate::gate::{Gate, OPEN, home, speaking, until, words};

/// A collector that takes everything.
fn collector() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || {
                let mut out = stream.try_clone().unwrap();
                let mut reader = BufReader::new(stream);
                loop {
                    let (mut length, mut line) = (0, String::new());
                    while reader.read_line(&mut line).unwrap_or(0) > 0 && line != "\r\n" {
                        if let Some(value) =
                            line.to_ascii_lowercase().strip_prefix("content-length:")
                        {
                            length = value.trim().parse().unwrap();
                        }
                        line.clear();
                    }
                    if line.is_empty() {
                        return;
                    }
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).unwrap();
                    heard.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                    out.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}").unwrap();
                }
            });
        }
    });
    (address, told)
}

/// A server that says which trace it was told of, and what is kept with it; and that fails when it is asked to.
fn traced(scripts: &Desk) -> String {
    let tools =
        r#"[{"name": name, "inputSchema": {"type": "object"}} for name in ("where", "fail")]"#;
    let told = r#"def told(meta): return f'{meta.get("traceparent")} {meta.get("tracestate")}'"#;
    let called =
        r#"{**_words(told(params.get("_meta") or {})), "isError": params["name"] == "fail"}"#;
    speaking(scripts.0.path(), "traced", told, tools, called)
}

/// The spans that a collector was told of, once there are so many.
fn spans(told: &Mutex<Vec<Value>>, count: usize) -> Vec<Value> {
    let all = || -> Vec<Value> {
        let told = told.lock().unwrap();
        let all = told.iter().flat_map(|body| body["resourceSpans"].as_array().unwrap().clone());
        all.flat_map(|one| one["scopeSpans"][0]["spans"].as_array().unwrap().clone()).collect()
    };
    until("the spans", || all().len() >= count);
    all()
}

/// What is said of a span.
fn attribute(span: &Value, key: &str) -> Option<String> {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|one| one["key"] == key)?;
    found["value"]["stringValue"].as_str().map(str::to_owned)
}

/// The trace that requests come in, and the part of it that makes them.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_trace_goes_from_the_client_through_the_gateway_to_the_tool() {
    let scripts = Desk::new();
    let desk = home(&[("traced", &traced(&scripts))], OPEN);
    let (collector, told) = collector();
    let gate = Gate::open_with(
        &desk,
        &["--without-token"],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector)],
    );
    let call = |tool: &str, parent: &str, head: &[(&str, &str)]| {
        let message = json!({ "jsonrpc": "2.0", "id": "r-1", "method": "tools/call", "params": {
            "name": tool,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": crate::gate::NEWER,
                "io.modelcontextprotocol/clientCapabilities": {},
                "traceparent": parent,
                "tracestate": "them=1",
            },
        } });
        let usual = [
            ("mcp-protocol-version", crate::gate::NEWER),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        let answer = gate.post("/mcp", &[&usual, head].concat(), &message).last();
        words(&answer["result"]).to_owned()
    };
    // What the request says itself comes before what its head says.
    let at = call("traced_where", PARENT, &[("traceparent", &PARENT.replace("4bf9", "0000"))]);
    assert!(at.starts_with(&format!("00-{TRACE}-")) && at.ends_with("-01 them=1"), "{at}");
    let span = spans(&told, 1).remove(0);
    assert_eq!(
        (&span["traceId"], &span["parentSpanId"]),
        (&json!(TRACE), &json!("00f067aa0ba902b7"))
    );
    assert!(at.contains(span["spanId"].as_str().unwrap()), "{at} {span}");
    assert_eq!((&span["name"], &span["kind"]), (&json!("tools/call traced_where"), &json!(2)));
    for (key, value) in [
        ("gen_ai.operation.name", Some("execute_tool")),
        ("gen_ai.tool.name", Some("traced_where")),
        ("mcp.method.name", Some("tools/call")),
        ("jsonrpc.request.id", Some("r-1")),
        ("haft.outcome", Some("ok")),
        ("error.type", None),
        // There are no sessions in this revision.
        ("mcp.session.id", None),
    ] {
        assert_eq!(attribute(&span, key).as_deref(), value, "{key}: {span}");
    }
    // A trace that cannot be read is none, and what is kept with it is nobody's: another begins.
    let at = call("traced_where", "00-nonsense", &[]);
    assert!(at.starts_with("00-") && !at.contains(TRACE) && at.ends_with("-01 None"), "{at}");
    call("traced_fail", PARENT, &[]);
    let failed = spans(&told, 3).remove(2);
    assert_eq!(attribute(&failed, "error.type").as_deref(), Some("tool_error"));
    assert_eq!(attribute(&failed, "haft.outcome").as_deref(), Some("tool_failed"));
    assert_eq!(failed["status"]["code"], 2);
}

#[test]
fn a_trace_goes_on_by_every_face_and_to_the_steps_of_a_chain() {
    let scripts = Desk::new();
    let desk = home(&[("traced", &traced(&scripts))], OPEN);
    let chain = json!({
        "toolId": "demo.chain", "name": "Chain", "version": "1.0.0", "description": "A test.",
        "capabilities": ["test"], "chain": [{ "step": "a", "tool": "mcpb:traced", "action": "where" }],
        "input_schema": { "type": "object" }, "output_schema": {},
    });
    write_below(desk.0.path(), "chain/manifest.json", &chain.to_string());
    desk.done(&["install", desk.path("chain").to_str().unwrap(), "--yes"]);
    let (collector, told) = collector();
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector)];
    let head = [("traceparent", PARENT), ("tracestate", "them=1,others=2")];
    let by_mcp = |gate: &Gate, tool: &str| {
        let named = json!({ "name": tool });
        let answer = gate.ask_as("/mcp", &head, &json!({}), "tools/call", named).last();
        // What a chain answers is JSON.
        words(&answer["result"]).trim_matches('"').to_owned()
    };
    let posted = |gate: &Gate, path: &str, body: &Value| {
        let answer = gate.post(path, &head, body).last();
        answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let all = |gate: &Gate| {
        [
            by_mcp(gate, "traced_where"),
            by_mcp(gate, "demo_chain"),
            posted(gate, "/v1/tools/traced_where/call", &json!({})),
            posted(gate, "/v1/tools/demo_chain/call", &json!({})),
            posted(gate, "/capability/run", &json!({ "id": "mcpb:traced", "action": "where" })),
        ]
    };
    let gate = Gate::open_with(&desk, &["--without-token"], &variables);
    let said = all(&gate);
    let spans = spans(&told, said.len());
    for (at, span) in said.iter().zip(&spans) {
        let id = span["spanId"].as_str().unwrap();
        assert_eq!(*at, format!("00-{TRACE}-{id}-01 them=1,others=2"));
        let is_of_mcp = attribute(span, "haft.surface").as_deref() == Some("mcp");
        let begins = if is_of_mcp { "tools/call " } else { "execute_tool " };
        assert!(span["name"].as_str().unwrap().starts_with(begins), "{span}");
        assert_eq!(span["kind"], if is_of_mcp { 2 } else { 1 });
    }
    drop(gate);
    // Where nobody collects anything, it is passed on as it came.
    let gate = Gate::open(&desk, &["--without-token"]);
    for at in all(&gate) {
        assert_eq!(at, format!("{PARENT} them=1,others=2"));
    }
}

/// Three tools that say which trace their process was told of: a command, a function of Python and one of Node.
fn programs(desk: &Desk) {
    let install = |path: &str| {
        desk.done(&["install", desk.path(path).to_str().unwrap(), "--yes"]);
    };
    let text = "import os\ndef run(_): return {'at': f\"{os.environ.get('TRACEPARENT')} {os.environ.get('TRACESTATE')}\"}\n";
    let script = format!("import json\n{text}print(json.dumps(run(None)))\n");
    for (name, implementation) in [
        ("command", json!({ "kind": "command", "command": { "argv": ["python3", "run.py"] } })),
        ("python", json!({ "kind": "python", "python": { "callable": "demo:run" } })),
    ] {
        let manifest = json!({
            "id": format!("demo.{name}"), "type": "tool", "version": "1.0.0", "description": "A test.",
            "origin": { "source": "local", "digest": "0".repeat(64) },
            "interfaces": { "inputs": { "type": "object" }, "outputs": {} },
            "permissions": { "network": "deny", "filesystem": "none", "devices": [] },
            "runtime": { "sandbox": "process", "resources": { "cpu": "1", "memory": "256Mi" }, "timeout_seconds": 20 },
            "trust_level": "local", "implementation": implementation,
        });
        write_below(desk.0.path(), &format!("{name}/manifest.json"), &manifest.to_string());
        write_below(desk.0.path(), &format!("{name}/demo.py"), text);
        write_below(desk.0.path(), &format!("{name}/run.py"), &script);
        install(name);
    }
    let manifest = json!({
        "id": "tool:demo.node", "name": "demo.node", "version": "1.0.0", "summary": "A test", "description": "A test.",
        "tags": ["test"], "provider": "test", "entry": { "runtime": "node", "main": "index.js", "export": "tool" },
        "schema": { "input": { "type": "object" }, "output": { "type": "object" } },
        "requiresApproval": false, "requiredSecrets": [],
    });
    write_below(desk.0.path(), "node/tool.json", &manifest.to_string());
    write_below(desk.0.path(), "node/package.json", r#"{"type":"module"}"#);
    let text = "export const tool = { name: 'demo.node', async execute() { return { at: `${process.env.TRACEPARENT} ${process.env.TRACESTATE}` } } };";
    write_below(desk.0.path(), "node/index.js", text);
    install("node");
}

#[test]
fn programs_are_told_the_trace_of_each_call_and_never_that_of_another() {
    let desk = home(&[], OPEN);
    programs(&desk);
    let gate = Gate::open(&desk, &["--without-token"]);
    let other = PARENT.replace("4bf9", "1111");
    for tool in ["demo_command", "demo_python", "demo_node"] {
        let call = |head: &[(&str, &str)]| {
            let answer = gate.post(&format!("/v1/tools/{tool}/call"), head, &json!({})).last();
            answer["result"]["at"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
        };
        let both = [("traceparent", PARENT), ("tracestate", "them=1,others=2")];
        assert_eq!(call(&both), format!("{PARENT} them=1,others=2"), "{tool}");
        let log = desk.done(&["audit", "--json", "--limit", "1"]).stdout;
        assert!(log.contains("TRACEPARENT"), "what it was given is written down: {log}");
        let alone = call(&[("traceparent", &other)]);
        assert!(alone.starts_with(&*other) && !alone.contains("them"), "{tool}: {alone}");
        let none = call(&[]);
        assert!(!none.contains("4bf9") && !none.contains("1111"), "{tool}: {none}");
        assert!(!call(&[("traceparent", "nonsense")]).contains("nonsense"), "{tool}");
    }
}

#[test]
fn a_contract_that_names_every_variable_of_a_program_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let desk = home(&[], OPEN);
    let tool = |name: &str, passed: &Value| {
        json!({ "name": name, "description": "A test.", "schema": { "type": "object" },
            "command": ["./tools/bin/say"], "envPassthrough": passed })
    };
    let tools = [tool("silent", &json!([])), tool("told", &json!(["TRACEPARENT"]))];
    let tools = json!({ "tools": tools });
    write_below(desk.0.path(), "repo/tools.json", &tools.to_string());
    let script = "#!/usr/bin/env python3\nimport json, os\nprint(json.dumps({'at': str(os.environ.get('TRACEPARENT'))}))\n";
    let script = write_below(desk.0.path(), "repo/tools/bin/say", script);
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    desk.done(&["install", desk.path("repo").to_str().unwrap(), "--yes"]);
    let gate = Gate::open(&desk, &["--without-token"]);
    for (name, at) in [("silent", "None"), ("told", PARENT)] {
        let listed = gate.ask("/mcp", "tools/list", json!({}))["result"]["tools"].clone();
        let mut names = listed.as_array().unwrap().iter().filter_map(|one| one["name"].as_str());
        let tool = names.find(|one| one.ends_with(name)).unwrap_or_else(|| panic!("{listed}"));
        let answer = gate
            .post(&format!("/v1/tools/{tool}/call"), &[("traceparent", PARENT)], &json!({}))
            .last();
        assert_eq!(answer["result"]["at"], at, "{name}: {answer}");
    }
}

#[test]
fn calls_are_counted_for_those_who_show_a_token() {
    let scripts = Desk::new();
    let desk = home(&[("traced", &traced(&scripts))], OPEN);
    let token = format!("Bearer {}", desk.done(&["token", "new", "watcher"]).stdout.trim());
    let gate = Gate::open(&desk, &[]);
    assert_eq!(gate.send("GET", "/metrics", &[], "").status, 401);
    let own = [("authorization", &*token)];
    gate.ask_as("/mcp", &own, &json!({}), "tools/call", json!({ "name": "traced_where" }));
    let counted = gate.send("GET", "/metrics", &own, "");
    assert!(counted.headers["content-type"].starts_with("application/openmetrics-text"));
    for line in ["haft_calls_total{outcome=\"ok\"} 1", "haft_packages 1", "haft_tools 2"] {
        assert!(counted.body.lines().any(|known| known == line), "{}", counted.body);
    }
    assert!(counted.body.ends_with("# EOF\n"));
}
