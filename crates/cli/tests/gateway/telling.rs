//! What those are told who watch: counts for Prometheus, spans for a collector, and the trace for the tool itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::common::Desk;
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

/// A server that says which trace it was told of.
fn traced(scripts: &Desk) -> String {
    let tools = r#"[{"name": "where", "inputSchema": {"type": "object"}}]"#;
    let called = r#"_words((params.get("_meta") or {}).get("traceparent"))"#;
    speaking(scripts.0.path(), "traced", "", tools, called)
}

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
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "traced_where",
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": crate::gate::NEWER,
            "io.modelcontextprotocol/clientCapabilities": {},
            "traceparent": parent,
        },
    } });
    let headers = [
        ("mcp-protocol-version", crate::gate::NEWER),
        ("mcp-method", "tools/call"),
        ("mcp-name", "traced_where"),
    ];
    let answer = gate.post("/mcp", &headers, &message).last();
    let at = words(&answer["result"]).to_owned();
    assert!(at.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && at != parent, "{at}");
    let spans = || -> Vec<Value> {
        let told = told.lock().unwrap();
        let all = told.iter().flat_map(|body| body["resourceSpans"].as_array().unwrap().clone());
        all.flat_map(|one| one["scopeSpans"][0]["spans"].as_array().unwrap().clone()).collect()
    };
    until("the span", || !spans().is_empty());
    let span = spans().remove(0);
    assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(span["parentSpanId"], "00f067aa0ba902b7");
    assert!(at.contains(span["spanId"].as_str().unwrap()), "{at} {span}");
    assert_eq!(span["name"], "execute_tool traced_where");
    let attribute = |key: &str| {
        let all = span["attributes"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).map(|one| one["value"]["stringValue"].clone())
    };
    assert_eq!(attribute("gen_ai.operation.name"), Some(json!("execute_tool")));
    assert_eq!(attribute("gen_ai.tool.name"), Some(json!("traced_where")));
    assert_eq!(attribute("mcp.method.name"), Some(json!("tools/call")));
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
    for line in ["haft_calls_total{outcome=\"ok\"} 1", "haft_packages 1", "haft_tools 1"] {
        assert!(counted.body.lines().any(|known| known == line), "{}", counted.body);
    }
    assert!(counted.body.ends_with("# EOF\n"));
}
