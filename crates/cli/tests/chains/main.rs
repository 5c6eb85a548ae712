//! Chains, as a person types them: called, looked at, compared, and killed in the middle.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers are tests too")]

#[path = "../common/mod.rs"]
mod common;

mod approving;
mod calling;
mod comparing;
mod killed;
mod replacing;
mod served;
mod shown;
mod suggesting;

use common::{Desk, repository, write_below};
use serde_json::{Value, json};

/// The path of an example.
fn example(name: &str) -> String {
    repository().join("examples").join(name).to_str().unwrap().to_owned()
}

/// A desk where these examples are installed.
fn with(examples: &[&str]) -> Desk {
    let desk = Desk::new();
    for name in examples {
        desk.done(&["install", &example(name), "--yes"]);
    }
    desk
}

/// Writes a chain into the desk; its folder.
fn chain(desk: &Desk, folder: &str, id: &str, version: &str, steps: &Value) -> String {
    let manifest = json!({
        "toolId": id, "name": id, "version": version, "description": "A test.",
        "capabilities": ["test"], "chain": steps,
        "input_schema": {"type": "object"}, "output_schema": {},
    });
    write_below(desk.0.path(), &format!("{folder}/manifest.json"), &manifest.to_string());
    desk.path(folder).to_str().unwrap().to_owned()
}

/// Writes a tool of one Python command into the desk; its folder. `side_effects` as its manifest says.
fn tool(desk: &Desk, folder: &str, id: &str, body: &str, side_effects: &str) -> String {
    let manifest = json!({
        "manifest_version": "0.4",
        "tool": {
            "id": id, "version": "1.0.0", "name": id, "summary": "A test.",
            "homepage": "https://example.com/", "license": "MIT", "tags": ["test"],
        },
        "runtime": {
            "kind": "shell-binary",
            "install": {"method": "preinstalled", "locator": {"kind": "binary-on-path", "binary": "python3"}},
            "entrypoint": {"command": ["python3", "-c", body]},
        },
        "actions": [{
            "name": "run", "summary": "Runs.", "side_effects": side_effects, "idempotent": true,
            "invocation": {"kind": "stdin-json", "argv_template": []},
            "input": {"type": "object", "additionalProperties": true}, "output": {"format": "json"},
        }],
        "smoke": {
            "kind": "shell", "command": ["true"], "timeout_seconds": 5,
            "success": {"exit_code": 0},
        },
        "kill_switch": {"kind": "none"},
    });
    write_below(desk.0.path(), &format!("{folder}/manifest.json"), &manifest.to_string());
    desk.path(folder).to_str().unwrap().to_owned()
}

/// What answers with its input.
const ECHO: &str = "import json, sys; print(json.dumps({'got': json.load(sys.stdin)}))";
