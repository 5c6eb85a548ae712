//! A server and where people sign in for it, in one, with a package that names scopes.

use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Ran, repository};
use crate::desk::{Desk, browse};
use crate::program::Program;

/// A server and where people sign in for it, until this is dropped.
pub(crate) struct Provider(Program);

impl Provider {
    pub(crate) fn new(setup: &Value) -> Self {
        let program = repository().join("crates/cli/tests/login/provider.py");
        Self(Program::start(Command::new("python3").arg(program).arg(setup.to_string())))
    }

    pub(crate) fn host(&self) -> String {
        self.0.host()
    }

    pub(crate) fn log(&self) -> Value {
        serde_json::from_str(&browse(&format!("http://{}/log", self.host()))).unwrap()
    }

    /// A desk with a package of three actions: one that looks, one that changes, one that rules.
    pub(crate) fn desk(&self) -> Desk {
        let url = format!("http://{}/mcp", self.host());
        let desk = Desk::of(&url, &self.host());
        let scope = |resource: &str, verb: &str, provider: &str| {
            json!({
                "resource": resource, "actions": [verb], "rationale": "to do it",
                "provider_scope": provider,
            })
        };
        let action = |name: &str, effects: &str, used: &str| {
            json!({
                "name": name, "summary": name, "side_effects": effects, "scopes_used": [used],
                "input": {"type": "object"}, "output": {"format": "text"},
                "invocation": {"kind": "mcp-tool", "tool_name": name},
            })
        };
        let manifest = json!({
            "manifest_version": "0.4",
            "tool": {
                "id": "trial", "version": "1.0.0", "name": "Trial", "summary": "Tries a server.",
                "description": "Tries a server.", "homepage": "https://example.com/trial",
                "author": {"name": "Nobody"}, "license": "MIT",
            },
            "runtime": {
                "kind": "mcp-http", "endpoint_url": url,
                "install": {"method": "preinstalled", "locator": {"kind": "binary-on-path", "binary": "sh"}},
            },
            "env": [],
            "scopes": [
                scope("trial.things", "read", "read"),
                scope("trial.things", "write", "write"),
                scope("trial.rules", "admin", "admin"),
            ],
            "kill_switch": {"kind": "manual", "instructions_url": "https://example.com/trial"},
            "smoke": {
                "kind": "mcp-tool-call", "tool_name": "look", "arguments": {},
                "timeout_seconds": 10, "success": {"no_error_field": true},
            },
            "actions": [
                action("look", "read", "trial.things"),
                action("change", "write", "trial.things"),
                action("rule", "write", "trial.rules"),
            ],
        });
        desk.write("install.json", &manifest.to_string());
        desk
    }

    /// Signs in for an installed package.
    pub(crate) fn sign_in(&self, desk: &Desk, package: &str, more: &[&str]) -> Ran {
        let host = self.host();
        let words = ["login", package, "--allow-host", &host, "--timeout", "30s"];
        desk.browsing(&[&words, more].concat())
    }

    /// A capability that is a tool of its server, and wants somebody to sign in first.
    pub(crate) fn capability(&self, desk: &Desk) -> String {
        let capability = json!({
            "id": "files", "type": "tool", "version": "1.0.0", "description": "Looks at files.",
            "origin": {"source": "local", "digest": "0".repeat(64)},
            "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
            "permissions": {
                "network": "allowlist", "network_allowlist": ["127.0.0.1"], "filesystem": "none",
                "devices": [],
            },
            "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"}},
            "trust_level": "local", "requires_oauth": true,
            "implementation": {
                "kind": "mcp_tool",
                "mcp": {"registry_url": format!("http://{}/mcp", self.host()), "tool_name": "look"},
            },
        });
        assert_eq!(desk.run(&["grant", "capability:files", "--host", &self.host()]).code, 0);
        desk.write("files/manifest.json", &capability.to_string())
    }
}

/// Holds what came of a command against a code and words.
pub(crate) fn fails(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{}", ran.stderr);
    for words in words {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
}
