//! Packages to publish.

use package::write::{Packed, Writer};
use serde_json::{Value, json};

/// An archive of these files.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    for (path, content) in files {
        writer.add(&Packed::compress(*path, content, false)).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// A tool in the dialect mcpkg that is run as a process; `note` makes other bytes of the same version.
pub(crate) fn mcpkg(id: &str, version: &str, note: &str) -> Vec<u8> {
    let manifest = json!({
        "toolId": id, "name": "Reads PDF", "version": version,
        "description": "Reads the text of a PDF file.", "capabilities": ["pdf", "Reading"],
        "endpoint": {"type": "local", "command": "node ./index.js"},
        "input_schema": {"type": "object", "properties": {"page": {"type": "integer"}}},
        "output_schema": {"type": "object"}
    });
    archive(&[("index.js", note.as_bytes()), ("manifest.json", manifest.to_string().as_bytes())])
}

/// What a Jumith tool says of itself.
pub(crate) fn jumith(id: &str, name: &str, version: &str) -> Value {
    json!({
        "id": id, "name": name, "version": version, "summary": "Sends an email",
        "tags": ["email"], "provider": "post", "requiresApproval": true,
        "requiredSecrets": ["smtp_pass"],
        "entry": {"runtime": "node", "main": "dist/index.js", "export": "tool"},
        "schema": {"input": {"type": "object"}}
    })
}

/// A Jumith bundle.
pub(crate) fn bundle(id: &str, name: &str, version: &str) -> Value {
    json!({
        "manifest": jumith(id, name, version),
        "files": [
            {"path": "dist/index.js", "content": "export const tool = {}"},
            {"path": "dist/icon.png", "content": "iVBORw0A/w==", "encoding": "base64"}
        ]
    })
}
