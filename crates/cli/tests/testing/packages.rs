//! Packages with tests.

use serde_json::{Value, json};

use super::common::{Desk, write_below};

/// A Python function `run` that is kept warm, and tests in its folder, which no manifest of its dialect lists.
pub(super) fn python(desk: &Desk, code: &str, tests: &[Value]) {
    let manifest = json!({
        "id": "demo.python", "type": "tool", "version": "1.0.0", "description": "A test",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
        "permissions": {"network": "deny", "filesystem": "none", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "2", "memory": "512Mi"},
            "timeout_seconds": 20},
        "trust_level": "local",
        "implementation": {"kind": "python", "python": {"callable": "demo:run"}}
    });
    let root = desk.0.path();
    write_below(root, "python/manifest.json", &manifest.to_string());
    write_below(root, "python/demo.py", code);
    for (index, test) in tests.iter().enumerate() {
        let path = format!("python/tests/{index:05}.test.json");
        write_below(root, &path, &test.to_string());
    }
}

/// An install-manifest of a command that takes its input on standard input, with a file of cases.
pub(super) fn promising(desk: &Desk, verify: &Value, cases: &[Value]) {
    let code = "#!/bin/sh\nexec cat\n";
    let path = write_below(desk.0.path(), "promising/bin/run", code);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    let action = |name: &str| {
        json!({
            "name": name, "summary": "Gives it back.", "side_effects": "none",
            "invocation": {"kind": "stdin-json"},
            "input": {"type": "object", "properties": {"n": {"type": "integer"}}},
            "output": {"format": "json"},
        })
    };
    let manifest = json!({
        "manifest_version": "0.4",
        "tool": {
            "id": "demo-promise", "version": "1.0.0", "name": "A Promise", "summary": "A test.",
            "homepage": "https://example.com/", "license": "MIT", "tags": ["test"],
        },
        "runtime": {
            "kind": "shell-binary",
            "install": {
                "method": "preinstalled",
                "locator": {"kind": "binary-on-path", "binary": "cat"},
            },
            "entrypoint": {"command": ["./bin/run"]},
        },
        "actions": [action("give"), action("take")],
        "data_boundary": {"reads": [], "transmits": [], "persists": []},
        "smoke": {"kind": "action-call", "action": "give", "arguments": {"n": 1},
            "success": {"json_pointer_equals": {"/n": 1}}},
        "kill_switch": {"kind": "none"},
        "verify": verify,
    });
    write_below(desk.0.path(), "promising/manifest.json", &manifest.to_string());
    let lines: String = cases.iter().map(|case| format!("{case}\n")).collect();
    write_below(desk.0.path(), "promising/cases.jsonl", &lines);
}
