//! Images with one program that is many, and manifests that name them.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::kit::Folder;

/// A server of MCP, as far as a shell can be one.
const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(echo "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}}' ;;
    *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"hello from '$(cat /opt/mark)'"}]}}' ;;
    *'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
  esac
done
"#;

/// The folder of a package with a layout of an image in it, and the digest of its manifest.
pub(crate) struct Image {
    pub(crate) folder: Folder,
    pub(crate) digest: String,
}

impl Image {
    /// An image as umoci makes it, with these settings.
    pub(crate) fn new(settings: &[&str]) -> Self {
        let folder = Folder::with(&[("root/opt/mark", "the image")]);
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
        for name in ["sh", "cat", "echo", "sed", "env", "pwd", "id", "ls", "sleep", "yes", "wc"] {
            std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).unwrap();
        }
        std::fs::write(root.join("opt/server"), SERVER).unwrap();
        run(&["chmod", "755", root.join("opt/server").to_str().unwrap()]);
        let layout = folder.path().join("layout");
        let layout = layout.to_str().unwrap();
        let image = format!("{layout}:tool");
        run(&["umoci", "init", "--layout", layout]);
        run(&["umoci", "new", "--image", &image]);
        run(&["umoci", "insert", "--rootless", "--image", &image, root.to_str().unwrap(), "/"]);
        run(&[&["umoci", "config", "--image", &image], settings].concat());
        std::fs::remove_dir_all(root).unwrap();
        let index = std::fs::read(Path::new(layout).join("index.json")).unwrap();
        let index: Value = serde_json::from_slice(&index).unwrap();
        let digest = index["manifests"][0]["digest"].as_str().unwrap().to_owned();
        Self { folder, digest }
    }

    /// Its name, as a manifest has it.
    pub(crate) fn name(&self) -> String {
        format!("localhost/tool@{}", self.digest)
    }

    /// A tool with one action, of this image.
    pub(crate) fn tool(&self, command: Option<&[&str]>, invocation: &Value) -> host::Tool {
        self.tool_of("container", &self.name(), command, invocation)
    }

    /// The same, of another kind or another image.
    pub(crate) fn tool_of(
        &self,
        kind: &str,
        image: &str,
        command: Option<&[&str]>,
        invocation: &Value,
    ) -> host::Tool {
        let mut manifest = manifest(kind, image, invocation);
        if let Some(command) = command {
            manifest["runtime"]["entrypoint"] = json!({ "command": command });
        }
        let path = self.folder.path().join("manifest.json");
        std::fs::write(path, manifest.to_string()).unwrap();
        self.folder.tool("manifest.json")
    }
}

pub(crate) fn manifest(kind: &str, image: &str, invocation: &Value) -> Value {
    json!({
        "manifest_version": "0.3",
        "tool": {
            "id": "demo-image", "name": "Image", "version": "1.0.0", "summary": "An image.",
            "tags": [], "license": "MIT", "author": {"name": "Ann"},
            "homepage": "https://example.com", "description": "An image, tried out."
        },
        "runtime": {"kind": kind, "install": {"method": "container", "image": image}},
        "smoke": {
            "kind": "action-call", "action": "run", "arguments": {"text": "x"},
            "timeout_seconds": 10, "success": {"no_error_field": true}
        },
        "kill_switch": {"kind": "manual", "instructions_url": "https://example.com/revoke"},
        "env": [
            {"name": "TOKEN", "secret": true, "required": false, "prompt": "A token"},
            {"name": "SPACE", "secret": false, "required": false, "prompt": "A space", "default": "main"}
        ],
        "actions": [{
            "name": "run", "summary": "Runs.", "side_effects": "none", "invocation": invocation,
            "input": {"type": "object", "properties": {"text": {"type": "string"}}},
            "output": {"format": "text"}
        }]
    })
}

/// Runs a program that must end well.
pub(crate) fn run(argv: &[&str]) -> String {
    let output = Command::new(argv[0]).args(&argv[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", argv[0]));
    assert!(output.status.success(), "{argv:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
