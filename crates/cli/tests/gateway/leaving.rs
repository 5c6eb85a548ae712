//! Clients that leave before they have their answer.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::Desk;
use crate::gate::{Gate, NEWER, sleepers, until};

/// Records of one kind, of calls of one action.
pub(crate) fn written(desk: &Desk, kind: &str, action: &str) -> Vec<Value> {
    let log = desk.done(&["audit", "--json", "--limit", "100"]).stdout;
    let all = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|one| one["kind"] == kind && one["action"] == action).collect()
}

#[test]
fn the_log_says_how_a_call_ended_that_nobody_waited_for() {
    let (desk, _scripts) = sleepers();
    let gate = Gate::open(&desk, &["--without-token"]);

    // In each way in which one can be called: statelessly, within a session, and without MCP.
    let newer = |tool: &str| {
        let called = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": NEWER,
                "io.modelcontextprotocol/clientCapabilities": {} } } });
        let head = format!(
            "mcp-protocol-version: {NEWER}\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
        );
        ("/mcp".to_owned(), head, called.to_string())
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let session = gate.post("/mcp", &[], &hello).headers["mcp-session-id"].clone();
    let older = |tool: &str| {
        let called = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": {} } });
        ("/mcp".to_owned(), format!("mcp-session-id: {session}\r\n"), called.to_string())
    };
    let plain = |tool: &str| (format!("/v1/tools/{tool}/call"), String::new(), "{}".to_owned());
    let mut count = 0;
    for (tool, action) in [("sleeper_say", "say"), ("dozer_doze", "doze")] {
        let before = count;
        for (path, head, body) in [newer(tool), older(tool), plain(tool)] {
            let mut stream = TcpStream::connect(&gate.address).unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{head}content-length: {}\r\n\r\n{body}",
                gate.address,
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
            count += 1;
            until("it has begun", || written(&desk, "begin", action).len() == count - before);
            drop(stream);
            until("it has ended", || written(&desk, "end", action).len() == count - before);
        }
        for one in written(&desk, "end", action) {
            assert_eq!(one["outcome"], "cancelled", "{one}");
        }
    }
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}
