//! A new capability manifest: a command that touches nothing.

use serde_json::json;

use super::{About, StarterFile, example};

pub(super) fn files(about: &About) -> Vec<StarterFile> {
    let document = json!({
        "id": about.id,
        "type": "tool",
        "version": "0.1.0",
        "description": about.summary,
        "origin": {
            "source": "local",
            // Unknown: the author is about to change the file.
            "digest": format!("sha256:{}", "0".repeat(64)),
            "path": "tool.py"
        },
        "interfaces": { "inputs": example::input_schema(), "outputs": example::output_schema() },
        "permissions": { "network": "deny", "filesystem": "none", "devices": [] },
        "runtime": {
            "sandbox": "process",
            "resources": { "cpu": "500m", "memory": "128Mi" },
            "timeout_seconds": 10
        },
        "trust_level": "local",
        "implementation": { "kind": "command", "command": { "argv": ["python3", "tool.py"] } }
    });
    let more = "`origin.digest` is all zeros, which means unknown; put the SHA-256 of `tool.py` there once it is done.";
    vec![
        StarterFile::json("manifest.json", &document),
        StarterFile::text("tool.py", example::STDIN_TOOL),
        about.readme("tool.py", "manifest.json", more),
    ]
}
