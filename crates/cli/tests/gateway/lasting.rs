//! Calls that take so long that they become tasks of clients which know those.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Desk, write_below};
use crate::gate::{Gate, Joined, OPEN, home, newer, until, words};

/// What a client can that knows tasks, and has somebody to ask.
pub(crate) fn can() -> Value {
    json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

/// What is asked of a task, or said to it.
pub(crate) fn ask(gate: &Gate, method: &str, params: Value) -> Value {
    let told = gate.ask_as("/mcp", &[], &can(), method, params).last();
    assert!(told.get("error").is_none(), "{told}");
    told["result"].clone()
}

/// Makes a call that becomes a task, and says which.
pub(crate) fn begun(gate: &Gate, tool: &str) -> Value {
    let told = ask(gate, "tools/call", json!({ "name": tool, "arguments": {} }));
    assert_eq!(told["resultType"], "task", "{told}");
    told["taskId"].clone()
}

/// Waits until a task is so.
pub(crate) fn reached(gate: &Gate, task: &Value, status: &str) -> Value {
    let mut told = json!({});
    until(status, || {
        told = ask(gate, "tasks/get", json!({ "taskId": task }));
        told["status"] == status
    });
    assert_eq!(told["taskId"], *task, "{told}");
    told
}

/// A server of the newer era, and what it says once its first call lasted.
pub(crate) fn server(folder: &Path, result: &str) -> String {
    newer(
        folder,
        "late",
        "",
        &format!(
            "(time.sleep(5.5) if 'requestState' not in params and method == 'tools/call' else None) or {result}"
        ),
    )
}

/// A capability that may reach one host, and reaches for another before or after it takes its time.
pub(crate) fn reaching(desk: &Desk, before: &str, after: &str) {
    let script = format!(
        "import os, sys, time, urllib.request\n\
         def reach():\n    try: urllib.request.urlopen('http://evil.example.net/', timeout=5)\n    except Exception: pass\n\
         {before}\nreach()\n{after}\nprint('{{}}')\n"
    );
    let manifest = json!({
        "id": "demo.reach", "type": "tool", "version": "1.0.0", "description": "A test",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
        "permissions": {"network": "allowlist", "network_allowlist": ["api.example.com"],
            "filesystem": "read", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"},
            "timeout_seconds": 100},
        "trust_level": "local",
        "implementation": {"kind": "command", "command": {"argv": ["python3", "-c", script]}},
    });
    write_below(&desk.path("tool"), "manifest.json", &manifest.to_string());
    desk.done(&["install", "./tool", "--yes", "-q"]);
    let policy = format!("{OPEN}[sandbox]\non_violation = \"disable\"\n");
    write_below(&desk.path("home"), "policy.toml", &policy);
}

/// Whether the one tool of a home may be called.
pub(crate) fn is_enabled(desk: &Desk) -> bool {
    desk.done(&["list", "--json"]).json()["packages"][0]["enabled"] == true
}

#[test]
fn a_task_that_fights_its_walls_is_switched_off() {
    let desk = Desk::new();
    reaching(&desk, "time.sleep(5.5)", "");
    let gate = Gate::open(&desk, &["--without-token"]);
    let listed = gate.ask("/mcp", "tools/list", json!({}));
    let tool = listed["result"]["tools"][0]["name"].as_str().unwrap();
    let task = begun(&gate, tool);
    assert!(is_enabled(&desk));
    reached(&gate, &task, "completed");
    until("the end of the tool", || !is_enabled(&desk));
}

#[test]
fn what_a_server_wants_of_a_call_that_became_a_task_the_task_asks() {
    let scripts = Desk::new();
    // It asks twice, by the same name.
    let path = server(
        scripts.0.path(),
        r#"{"resultType": "input_required", "requestState": "one" if "requestState" not in params else "two",
         "inputRequests": {"name": {"method": "elicitation/create", "params": {"mode": "form", "message": "who?", "requestedSchema": {"type": "object", "properties": {}}}}}}
         if params.get("requestState") != "two" else words(params["inputResponses"]["name"]["content"]["name"])"#,
    );
    let desk = home(&[("late", &path)], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let task = begun(&gate, "late_work");
    let mut known = Vec::new();
    for name in ["ada", "eve"] {
        let mut told = json!({});
        until("a new question", || {
            told = reached(&gate, &task, "input_required");
            !known.contains(&told["inputRequests"])
        });
        let requests = told["inputRequests"].clone();
        let [(key, question)] = &requests.as_object().unwrap().iter().collect::<Vec<_>>()[..]
        else {
            panic!("{told}");
        };
        assert_eq!(question["method"], "elicitation/create", "{told}");
        let answers = json!({ *key: { "action": "accept", "content": { "name": name } } });
        ask(&gate, "tasks/update", json!({ "taskId": task, "inputResponses": answers }));
        known.push(requests.clone());
    }
    let done = reached(&gate, &task, "completed");
    assert_eq!(words(&done["result"]), "eve", "{done}");
}

#[test]
fn a_task_that_is_called_off_while_it_asks_is() {
    let scripts = Desk::new();
    let path = server(
        scripts.0.path(),
        r#"{"resultType": "input_required", "inputRequests": {"name": {"method": "elicitation/create", "params": {"mode": "form", "message": "who?", "requestedSchema": {"type": "object", "properties": {}}}}}}"#,
    );
    let desk = home(&[("late", &path)], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let task = begun(&gate, "late_work");
    reached(&gate, &task, "input_required");
    ask(&gate, "tasks/cancel", json!({ "taskId": task }));
    let told = reached(&gate, &task, "cancelled");
    assert_eq!(told.get("inputRequests"), None, "{told}");
}

#[test]
fn a_call_that_its_server_makes_a_task_of_late_goes_on_as_that() {
    let scripts = Desk::new();
    let path = newer(
        scripts.0.path(),
        "late",
        r#"
task = {"taskId": "theirs", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60000}
"#,
        r#"(time.sleep(5.5) or {"resultType": "task", "status": "working", **task}) if method == "tools/call" else {"status": "completed", "result": words(method + " " + params["taskId"]), **task}"#,
    );
    let desk = home(&[("late", &path)], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let task = begun(&gate, "late_work");
    let done = reached(&gate, &task, "completed");
    assert_eq!(words(&done["result"]), "tasks/get theirs", "{done}");
}

#[test]
fn a_task_whose_server_breaks_the_protocol_has_failed() {
    let scripts = Desk::new();
    let path = newer(
        scripts.0.path(),
        "late",
        r#"
def broken():
    time.sleep(5.5)
    raise Refused(-32042, "first sign in", {"elicitations": []})
"#,
        "broken()",
    );
    let desk = home(&[("late", &path)], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let task = begun(&gate, "late_work");
    let failed = reached(&gate, &task, "failed");
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["message"], &failed["statusMessage"]),
        (&json!(-32603), &json!("first sign in"), &json!("first sign in")),
        "{failed}"
    );
}

#[test]
fn where_there_is_no_place_for_a_task_its_client_waits() {
    let scripts = Desk::new();
    let late = r#"answer_all(words("at last")) if arguments.get("end") else None"#;
    // One server works on 64 calls at a time.
    let names = ["late", "later"];
    let paths = names.map(|name| newer(scripts.0.path(), name, "", late));
    let servers = [(names[0], &*paths[0]), (names[1], &*paths[1])];
    // A hundred clients at once may take a while to be answered.
    let desk = home(&servers, &format!("{OPEN}[sandbox]\ntimeout = \"5m\"\n"));
    let gate = Gate::open(&desk, &["--without-token"]);
    let call = |number: usize, arguments: Value| {
        let name = format!("{}_work", names[number % 2]);
        ask(&gate, "tools/call", json!({ "name": name, "arguments": arguments }))
    };
    std::thread::scope(|scope| {
        // As many as there are places for one client, and one more.
        let call = &call;
        let calls: Vec<_> =
            (0..101).map(|number| scope.spawn(move || call(number, json!({})))).collect();
        until("the tasks", || calls.iter().filter(|call| call.is_finished()).count() == 100);
        (0..2).for_each(|number| drop(call(number, json!({ "end": true }))));
        let told: Vec<_> = calls.into_iter().map(|call| call.join().unwrap()).collect();
        let (tasks, rest): (Vec<_>, Vec<_>) =
            told.into_iter().partition(|told| told["resultType"] == "task");
        let [waited] = &rest[..] else { panic!("{rest:?}") };
        assert_eq!(words(waited), "at last", "{waited}");
        for task in tasks {
            reached(&gate, &task["taskId"], "completed");
        }
    });
}

#[test]
fn a_task_goes_on_when_the_client_that_started_it_is_gone() {
    let scripts = Desk::new();
    let path =
        crate::gate::server(scripts.0.path(), "slow", "work", "time.sleep(7); return 'done'");
    let desk = home(&[("slow", &path)], OPEN);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": crate::gate::NEWER,
        "io.modelcontextprotocol/clientCapabilities": can(),
    });
    let mut client = Joined::new(&desk, &[]);
    let told = client.ask("tools/call", &json!({ "_meta": meta, "name": "slow_work" }));
    assert_eq!(told["result"]["resultType"], "task", "{told}");
    let task = told["result"]["taskId"].clone();
    assert_eq!(client.end(), [] as [Value; 0]);
    let mut client = Joined::new(&desk, &[]);
    until("its end", || {
        let told = client.ask("tasks/get", &json!({ "_meta": meta, "taskId": task }));
        let status = told["result"]["status"].as_str().unwrap().to_owned();
        assert!(["working", "completed"].contains(&&*status), "{told}");
        status == "completed"
    });
    let log = desk.done(&["audit", "--json", "--limit", "5"]).stdout;
    assert!(log.contains("\"outcome\":\"ok\"") && !log.contains("cancelled"), "{log}");
}
