//! The owner's console, in a real Chromium that is driven from outside; `./test` installs it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod doors;
mod running;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::served::Served;
use common::{Desk, repository, write_below};
use ledger::State;
use ledger::state::counting::Counted;
use ledger::state::metrics::Series;
use running::Running;
use serde_json::{Value, json};

/// Set where the browser must be there.
const DEMANDED: &str = "HAFT_TEST_SERVERS";
/// What a browser is called.
const BROWSERS: [&str; 3] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// What a tool does that cannot be undone.
const SHRED: &str = "import json, sys\ntext = sys.argv[-1] if len(sys.argv) > 1 else sys.stdin.read()\nprint(json.dumps({\"shredded\": json.loads(text)[\"name\"]}))\n";

/// A script that drives a browser, or nothing where there is none and need not be.
fn driving(script: &str) -> Option<Command> {
    let tools = std::env::var_os("HAFT_BROWSER_TOOLS")
        .map_or_else(|| repository().join("target/tools/browser"), PathBuf::from);
    let browser = std::env::var_os("HAFT_BROWSER").map(PathBuf::from);
    let browser =
        browser.or_else(|| BROWSERS.iter().map(PathBuf::from).find(|path| path.is_file()));
    let (Some(browser), true) = (browser, tools.join("node_modules/puppeteer-core").is_dir())
    else {
        let message = "Chromium, or what drives it, is not installed: run `./test`";
        assert!(std::env::var_os(DEMANDED).is_none(), "{message}");
        return None;
    };
    let mut command = Command::new("node");
    command.arg(repository().join("crates/cli/tests/console").join(script));
    command.arg(browser).arg(tools).stdin(Stdio::null());
    Some(command)
}

/// Has a script go through all of its steps.
fn drive(mut command: Command) {
    let output = command.output().expect("Node is installed");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A server in Python with a tool that is described by what is in a file beside it.
const CHANGING: &str = r#"import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, word = message["method"], open(os.path.join(here, "word")).read()
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "moody", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "act", "description": word, "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "done"}]}
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Has such a server installed; the file that it looks into.
fn moody(desk: &Desk) -> String {
    let word = write_below(&desk.path("moody"), "word", "first");
    let script = write_below(&desk.path("moody"), "moody.py", CHANGING);
    let settings = json!({ "mcpServers": { "moody": { "command": "python3", "args": [script] } } });
    let file = write_below(&desk.path("moody"), "servers.json", &settings.to_string());
    desk.done(&["import", &file, "--yes"]);
    word
}

#[test]
fn the_first_page_after_up_explains_itself() {
    let Some(mut command) = driving("first.mjs") else { return };
    let desk = Desk::new();
    let running = Running::up(&desk);
    command.env("CONSOLE", &running.sign_in);
    drive(command);
}

#[test]
fn the_owner_installs_watches_answers_and_revokes() {
    let Some(mut command) = driving("owner.mjs") else { return };
    let desk = Desk::new();
    let _shop = shop(&desk);
    let examples = repository().join("examples/mcpkg");
    for name in ["text-clean", "text-stats", "pipeline"] {
        desk.done(&["install", examples.join(name).to_str().unwrap(), "--yes"]);
    }
    grown_slow(&desk, "mcpkg:demo.text.clean");
    desk.done(&["call", "demo.text.clean", r#"{"text":" a  b "}"#]);
    for draft in [" one  two ", "three"] {
        let input = json!({ "draft": draft }).to_string();
        desk.done(&["call", "demo.text.report", &input]);
    }
    command.env("WORD", moody(&desk));
    let token = desk.done(&["token", "new", "agent", "--json"]).json();
    let running = Running::start(&desk);
    command.env("CONSOLE", &running.sign_in).env("MCP", &running.mcp);
    command.env("TOKEN", token["token"].as_str().unwrap());
    command.env("HAFT", assert_cmd::cargo::cargo_bin("haft")).env("HAFT_HOME", desk.path("home"));
    drive(command);
}

/// Counts calls of the last hours by which a package got slower, all but the one after which it is looked at.
fn grown_slow(desk: &Desk, package: &str) {
    let now = host::records::now();
    let call = |number: u64| Counted {
        series: Series {
            package: package.to_owned(),
            version: "1.0.0".to_owned(),
            action: package.split_once(':').unwrap().1.to_owned(),
            implementation: "python".to_owned(),
        }
        .into(),
        failure: if number % 100 == 99 { "timed_out" } else { "" }.into(),
        latency: Duration::from_millis(if number < 320 { 1 } else { 2_000 }),
        at: now.minus(Duration::from_hours((366 - number) / 123)),
        place: None,
        flow: None,
    };
    let calls: Vec<_> = (0..367).map(call).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let state = State::open(&desk.path("home").join("state.db")).await.unwrap();
        state.count_calls(&calls).await.unwrap();
        state.close().await.unwrap();
    });
}

/// A registry with a tool that does no harm, and one whose deeds cannot be undone and whose author means no good.
fn shop(desk: &Desk) -> Served {
    let shop = Served::known_to(desk, "shop");
    desk.echo();
    let manifest = json!({
        "toolId": "demo.shredder", "name": "Shredder <img src=x onerror=alert(1)>", "version": "1.0.0",
        "description": "Shreds a note for good. \u{202e}<script>alert(2)</script>",
        "capabilities": ["demo", "notes"], "sideEffects": "destructive",
        "implementations": [{
            "id": "python", "language": "python", "runtime": "python3",
            "endpoint": {"type": "local", "command": "python3 ./shred.py", "timeoutMs": 5000},
        }],
        "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "output_schema": {"type": "object", "properties": {"shredded": {"type": "string"}}},
        "tests": [], "examples": [],
        "meta": {"publisher": {"id": "demo", "name": "Somebody"}, "license": "MIT", "tags": ["notes"]},
    });
    write_below(&desk.path("shredder"), "manifest.json", &manifest.to_string());
    write_below(&desk.path("shredder"), "shred.py", SHRED);
    let publish = |folder: &str, file: &str| {
        desk.done(&["pack", folder, "-o", file]);
        desk.done(&["publish", file, "--registry", "shop"]);
    };
    publish("shredder", "shredder.mcpkg");
    publish("echo", "echo.mcpkg");
    // And something newer that asks for more.
    let path = desk.path("echo/manifest.json");
    let mut newer: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    newer["version"] = "0.2.0".into();
    newer["input_schema"]["properties"]["loud"] = json!({"type": "boolean"});
    std::fs::write(&path, newer.to_string()).unwrap();
    write_below(
        &desk.path("echo"),
        "haft.json",
        r#"{"haft":"1","permissions":{"network":["api.example.com"]}}"#,
    );
    publish("echo", "newer.mcpkg");
    shop
}
