//! Clients that leave before they have their answer.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::{Desk, repository};
use crate::gate::{Gate, Joined, NEWER, OPEN, home, sleepers, until};
use crate::joined::{hosts, tools_of};
use crate::lasting::{is_enabled, reaching};

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

    // In each way in which one can be called: statelessly, within a session, and without MCP. In a session, whoever lost the connection
    // has called nothing off, and may still do so.
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
            if head.contains("mcp-session-id") {
                std::thread::sleep(std::time::Duration::from_millis(300));
                assert_eq!(written(&desk, "end", action).len(), count - before - 1);
                gate.post("/mcp", &[("mcp-session-id", &session)], &json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } }));
            }
            until("it has ended", || written(&desk, "end", action).len() == count - before);
        }
        for one in written(&desk, "end", action) {
            assert_eq!(one["outcome"], "cancelled", "{one}");
        }
    }
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}

/// Whether anything runs with this in its command.
fn runs(words: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = all.filter_map(|one| std::fs::read_to_string(one.path().join("cmdline")).ok());
    commands.into_iter().any(|command| command.starts_with("sleep") && command.contains(words))
}

#[test]
fn a_tool_that_fought_its_walls_is_switched_off_though_its_client_left() {
    let desk = Desk::new();
    let seconds = format!("90.{}", std::process::id());
    reaching(&desk, "", &format!("os.execvp('sleep', ['sleep', '{seconds}'])"));
    let gate = Gate::open(&desk, &["--without-token"]);
    let listed = gate.ask("/mcp", "tools/list", json!({}));
    let tool = listed["result"]["tools"][0]["name"].as_str().unwrap();
    let mut stream = TcpStream::connect(&gate.address).unwrap();
    let head = format!(
        "POST /v1/tools/{tool}/call HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}",
        gate.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    until("it has reached", || runs(&seconds));
    assert!(is_enabled(&desk));
    drop(stream);
    until("the end of the tool", || !is_enabled(&desk));
}

/// Whether a program that takes a minute runs for a host.
fn is_asleep(host: u32) -> bool {
    let name = |process: &u32| std::fs::read_to_string(format!("/proc/{process}/comm"));
    tools_of(host).iter().any(|process| name(process).is_ok_and(|name| name.trim() == "sleep"))
}

fn call(id: &Value, tool: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": {} } })
}

fn called_off(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

#[test]
fn what_is_called_off_over_lines_ends_and_is_not_answered() {
    let (desk, _scripts) = sleepers();
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    let [host] = hosts(&desk)[..] else { panic!("there is not one host") };
    for (tool, action) in [("sleeper_say", "say"), ("dozer_doze", "doze")] {
        client.send(&call(&json!("a/b"), tool));
        until("it has begun", || !written(&desk, "begin", action).is_empty());
        until("it sleeps", || action != "say" || is_asleep(host));
        // Of another kind, of another name, and the same one, which may be written in another way.
        client.send(&called_off(&json!(1)));
        client.send(&called_off(&json!("a")));
        assert!(client.ask("ping", &json!({}))["result"].is_object());
        assert!(written(&desk, "end", action).is_empty());
        client = client.say(&called_off(&json!("a/b")).to_string().replace('/', "\\/"));
        client = client.say("\n");
        until("it has ended", || !written(&desk, "end", action).is_empty());
        assert_eq!(written(&desk, "end", action)[0]["outcome"], "cancelled");
    }
    until("it wakes", || !is_asleep(host));
    client.send(&json!({ "jsonrpc": "2.0", "id": "last", "method": "ping" }));
    assert_eq!(client.next()["id"], "last");
    assert_eq!(client.end(), [] as [Value; 0]);
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}

#[test]
fn the_log_says_how_a_request_ended_that_is_no_call_and_was_called_off() {
    let peer = repository().join("crates/cli/tests/gateway/peers/several.py");
    let late = "resources/read=60 prompts/get=60 resources/subscribe=60";
    let desk = home(&[("one", &format!("{} one {late}", peer.display()))], OPEN);
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    let prompts = client.ask("prompts/list", &json!({}));
    for (method, params) in [
        ("prompts/get", json!({ "name": prompts["result"]["prompts"][0]["name"] })),
        ("resources/read", json!({ "uri": "one://own" })),
        ("resources/subscribe", json!({ "uri": "one://own" })),
    ] {
        client.send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }));
        until("it has begun", || !written(&desk, "begin", method).is_empty());
        client.send(&called_off(&json!(method)));
        until("it has ended", || !written(&desk, "end", method).is_empty());
        assert_eq!(written(&desk, "end", method)[0]["outcome"], "cancelled");
    }
    assert_eq!(client.end(), [] as [Value; 0]);
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}

#[test]
fn what_is_called_off_in_the_same_breath_does_not_begin() {
    let (desk, _scripts) = sleepers();
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    for id in 0..20 {
        let (call, off) = (call(&json!(id), "sleeper_say"), called_off(&json!(id)));
        client = client.say(&format!("{call}\n{off}\n"));
    }
    client.send(&json!({ "jsonrpc": "2.0", "id": "last", "method": "ping" }));
    assert_eq!(client.next()["id"], "last");
    assert_eq!(client.end(), [] as [Value; 0]);
    assert_eq!(written(&desk, "begin", "say").len(), written(&desk, "end", "say").len());
    assert!(written(&desk, "end", "say").iter().all(|one| one["outcome"] == "cancelled"));
}

#[test]
fn what_is_called_off_in_a_session_is_answered_once_and_ends() {
    let (desk, _scripts) = sleepers();
    let gate = Gate::open(&desk, &["--without-token"]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let session = gate.post("/mcp", &[], &hello).headers["mcp-session-id"].clone();
    let own = [("mcp-session-id", &*session)];
    for (tool, action) in [("sleeper_say", "say"), ("dozer_doze", "doze")] {
        let answer = std::thread::scope(|scope| {
            let calling = scope.spawn(|| gate.post("/mcp", &own, &call(&json!(2), tool)));
            until("it has begun", || !written(&desk, "begin", action).is_empty());
            assert_eq!(gate.post("/mcp", &own, &called_off(&json!(2))).status, 202);
            calling.join().unwrap()
        });
        let [answer] = &answer.messages()[..] else { panic!("{answer:?}") };
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32600)));
        until("it has ended", || !written(&desk, "end", action).is_empty());
        assert_eq!(written(&desk, "end", action)[0]["outcome"], "cancelled");
    }
    until("it wakes", || !is_asleep(gate.process.id()));
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}
