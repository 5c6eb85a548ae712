//! Being told to stop while calls are under way: each is answered once, nothing goes on, and the log is whole.

use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Desk, repository};
use crate::gate::{Gate, Joined, OPEN, home, sleepers, until};
use crate::joined::{hosts, tools_of};
use crate::leaving::written;

fn terminate(process: u32) {
    assert!(Command::new("kill").args(["-TERM", &process.to_string()]).status().unwrap().success());
}

fn is_gone(process: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{process}")).exists()
}

fn call(client: &mut Joined, id: i64, tool: &str) {
    let params = json!({ "name": tool, "arguments": {} });
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
}

fn begun(desk: &Desk) -> usize {
    written(desk, "begin", "say").len() + written(desk, "begin", "doze").len()
}

/// What the log says once everything has ended.
fn check_log(desk: &Desk, calls: usize) {
    let ends = [written(desk, "end", "say"), written(desk, "end", "doze")].concat();
    assert_eq!(ends.len(), calls, "{ends:?}");
    assert!(ends.iter().all(|one| one["outcome"] == "cancelled"), "{ends:?}");
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}

/// Each was answered, by the host or in its place, and is not again.
fn check_answered(client: Joined, count: i64) {
    let mut client = client;
    let mut ids: Vec<_> = (0..count)
        .map(|_| {
            let answer = client.next();
            assert!(answer["error"].is_object(), "{answer}");
            answer["id"].as_i64().unwrap()
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=count).collect::<Vec<_>>());
    assert_eq!(client.end(), [] as [Value; 0]);
}

#[test]
fn a_gateway_that_is_told_to_stop_answers_what_it_was_asked() {
    let (desk, _scripts) = sleepers();
    let mut gate = Gate::open(&desk, &["--without-token"]);
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let session = gate.post("/mcp", &[], &hello).headers["mcp-session-id"].clone();
    let tools = std::thread::scope(|scope| {
        let (gate, process) = (&gate, gate.process.id());
        let params = json!({ "name": "sleeper_say", "arguments": {} });
        let asked = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        let in_session =
            scope.spawn(move || gate.post("/mcp", &[("mcp-session-id", &session)], &asked));
        let alone = scope.spawn(|| gate.ask("/mcp", "tools/call", params));
        let plain = scope.spawn(|| gate.send("POST", "/v1/tools/sleeper_say/call", &[], "{}"));
        call(&mut client, 1, "sleeper_say");
        call(&mut client, 2, "dozer_doze");
        until("all have begun", || begun(&desk) == 5);
        let tools = tools_of(process);
        assert!(!tools.is_empty());
        terminate(process);
        let [answer] = &in_session.join().unwrap().messages()[..] else { panic!("not one answer") };
        assert!(answer["id"] == 2 && answer["error"].is_object(), "{answer}");
        let answer = alone.join().unwrap();
        let told = &answer["result"]["structuredContent"]["error"]["code"];
        assert_eq!(told, "cancelled", "{answer}");
        let answer = plain.join().unwrap();
        let told: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(told["error"]["code"], "cancelled", "{told}");
        tools
    });
    assert_eq!(gate.process.wait().unwrap().code(), Some(0));
    until("the end of all tools", || tools.iter().all(|tool| is_gone(*tool)));
    check_answered(client, 2);
    check_log(&desk, 5);
}

#[test]
fn no_tool_survives_a_gateway_that_is_killed_in_the_middle_of_calls_and_its_log_is_whole() {
    let (desk, _scripts) = sleepers();
    let mut gate = Gate::open(&desk, &["--without-token"]);
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    for (id, tool) in [(1, "sleeper_say"), (2, "dozer_doze"), (3, "sleeper_say")] {
        call(&mut client, id, tool);
    }
    until("all have begun", || begun(&desk) == 3);
    let tools = tools_of(gate.process.id());
    assert!(tools.len() >= 3, "{tools:?}");
    gate.process.kill().unwrap();
    gate.process.wait().unwrap();
    until("the end of all tools", || tools.iter().all(|tool| is_gone(*tool)));
    check_answered(client, 3);
    // What was under way had begun, and nobody says that it has ended.
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
    assert_eq!(begun(&desk), 3);
    assert!(written(&desk, "end", "say").is_empty() && written(&desk, "end", "doze").is_empty());
    // The next one goes on where it was.
    let gate = Gate::open(&desk, &["--without-token"]);
    let listed = gate.ask("/mcp", "tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}

#[test]
fn a_host_of_clients_that_is_told_to_stop_leaves_nothing_open() {
    let (desk, _scripts) = sleepers();
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    let [host] = hosts(&desk)[..] else { panic!("there is not one host") };
    call(&mut client, 1, "sleeper_say");
    call(&mut client, 2, "dozer_doze");
    until("both have begun", || begun(&desk) == 2);
    let tools = tools_of(host);
    assert!(!tools.is_empty());
    terminate(host);
    until("its end", || hosts(&desk).is_empty());
    until("the end of all tools", || tools.iter().all(|tool| is_gone(*tool)));
    check_answered(client, 2);
    check_log(&desk, 2);
}

#[test]
fn whoever_listens_is_told_that_the_host_is_gone() {
    let desk = crate::gate::home(&[], crate::gate::OPEN);
    let mut client = Joined::new(&desk, &[]);
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": {
        "io.modelcontextprotocol/protocolVersion": crate::gate::NEWER,
        "io.modelcontextprotocol/clientCapabilities": {} } });
    client.send(
        &json!({ "jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params }),
    );
    assert_eq!(client.next()["method"], "notifications/subscriptions/acknowledged");
    let [host] = hosts(&desk)[..] else { panic!("there is not one host") };
    terminate(host);
    let told = client.next();
    assert_eq!(told["method"], "notifications/cancelled", "{told}");
    assert_eq!(told["params"]["requestId"], "l");
    // Over HTTP its request ends, which is no failure.
    let mut gate = Gate::open(&desk, &["--without-token"]);
    let process = gate.process.id();
    let answer = std::thread::scope(|scope| {
        let listening = scope.spawn(|| {
            let wanted = json!({ "notifications": { "toolsListChanged": true } });
            gate.ask_as("/mcp", &[], &json!({}), "subscriptions/listen", wanted).last()
        });
        let counted = || gate.send("GET", "/metrics", &[], "").body;
        until("it listens", || counted().contains("\nhaft_clients 1\n"));
        terminate(process);
        listening.join().unwrap()
    });
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(gate.process.wait().unwrap().code(), Some(0));
}

#[test]
fn the_log_says_how_a_request_ended_that_is_no_call() {
    let peer = repository().join("crates/cli/tests/gateway/peers/several.py");
    let desk = home(&[("one", &format!("{} one resources/read=60", peer.display()))], OPEN);
    let mut client = Joined::greeted(&desk, &[], &json!({}));
    let [host] = hosts(&desk)[..] else { panic!("there is not one host") };
    let params = json!({ "uri": "one://own" });
    client
        .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params }));
    until("it has begun", || !written(&desk, "begin", "resources/read").is_empty());
    terminate(host);
    until("its end", || hosts(&desk).is_empty());
    let [end] = &written(&desk, "end", "resources/read")[..] else { panic!("it has no end") };
    assert_eq!(end["outcome"], "cancelled", "{end}");
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}
