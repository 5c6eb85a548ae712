//! A new install-manifest: a Python program, on the Python that is there.

use serde_json::json;

use super::{About, StarterFile, example};

/// What the author does before others can install it.
const MORE: &str = "An install-manifest is published by itself. Before others can install it, put `tool.py` where it can be
fetched, name the place and the SHA-256 in `runtime.install` (method `url`), and let `tool.homepage` be
your own page.";

pub(super) fn files(about: &About) -> Vec<StarterFile> {
    let document = json!({
        "manifest_version": "0.4",
        "tool": {
            "id": about.id,
            "version": "0.1.0",
            "name": about.name,
            "summary": about.summary,
            "homepage": format!("https://example.com/{}", about.id)
        },
        "runtime": {
            "kind": "shell-binary",
            "install": {
                "method": "preinstalled",
                "locator": { "kind": "binary-on-path", "binary": "python3" }
            },
            "entrypoint": { "command": ["python3", "tool.py"] }
        },
        "actions": [{
            "name": "count",
            "summary": example::SUMMARY,
            "invocation": { "kind": "stdin-json" },
            "input": example::input_schema(),
            "output": { "format": "json", "schema": example::output_schema() },
            "side_effects": "none",
            "idempotent": true,
            "examples": [{
                "description": "A short text.",
                "input": example::input(),
                "output": example::output()
            }]
        }],
        "smoke": {
            "kind": "action-call",
            "action": "count",
            "arguments": example::input(),
            "timeout_seconds": 10,
            "success": { "no_error_field": true, "json_pointer_equals": { "/words": 3 } }
        },
        "kill_switch": { "kind": "none" }
    });
    vec![
        StarterFile::json("manifest.json", &document),
        StarterFile::text("tool.py", example::STDIN_TOOL),
        about.readme("tool.py", "manifest.json", MORE),
    ]
}
