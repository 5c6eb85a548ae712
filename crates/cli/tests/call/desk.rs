//! A home of its own, and a folder for packages.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::common::{self, Ran, repository, run_in};

pub(super) struct Desk(tempfile::TempDir);

impl Desk {
    pub(super) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("haft-call-").tempdir_in("/var/tmp").unwrap())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file; those in a folder `bin` are programs.
    pub(super) fn write(&self, name: &str, text: &str) -> String {
        common::write_below(self.0.path(), name, text);
        let path = self.path(name);
        if name.contains("bin/") {
            set_mode(&path, 0o755);
        }
        path.to_str().unwrap().to_owned()
    }

    /// Runs a verb at the root of the repository.
    pub(super) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, None)
    }

    pub(super) fn run_with(&self, arguments: &[&str], stdin: Option<&[u8]>) -> Ran {
        let home = self.path("home");
        let all = [&["--home", home.to_str().unwrap(), "--non-interactive"], arguments].concat();
        run_in(&repository(), &all, stdin)
    }

    /// Runs a verb that must succeed.
    pub(super) fn done(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    /// Calls what is at a path.
    pub(super) fn call(&self, arguments: &[&str]) -> Ran {
        self.call_with(arguments, None)
    }

    pub(super) fn call_with(&self, arguments: &[&str], stdin: Option<&[u8]>) -> Ran {
        self.run_with(&[&["call", "--from"], arguments].concat(), stdin)
    }

    /// The result of a call that must succeed.
    pub(super) fn result(&self, arguments: &[&str]) -> Value {
        let ran = self.call(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran.json()
    }

    /// A tools.json with one tool, a shell script.
    pub(super) fn script(&self, text: &str) -> String {
        self.write("pkg/tools/bin/run", &format!("#!/bin/sh\n{text}\n"));
        let tool = json!({"tools": [{"name": "run", "command": ["./tools/bin/run"], "timeoutSec": 2,
            "schema": {"type": "object", "properties": {"a": {"type": "string", "default": "d"}}}}]});
        self.write("pkg/tools.json", &tool.to_string())
    }

    /// A capability that is implemented so, with this ceiling and these secrets.
    pub(super) fn capability(
        &self,
        implementation: &Value,
        filesystem: &str,
        secrets: &Value,
    ) -> String {
        let manifest = json!({
            "id": "demo.tool", "type": "tool", "version": "1.0.0", "description": "A test",
            "origin": {"source": "local", "digest": "0".repeat(64)},
            "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
            "permissions": {"network": "deny", "filesystem": filesystem, "devices": []},
            "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"},
                "timeout_seconds": 20},
            "trust_level": "local",
            "secrets": secrets,
            "implementation": implementation,
        });
        self.write("pkg/manifest.json", &manifest.to_string())
    }

    /// An install-manifest with one action `show`, a shell script that answers in this format and has these variables.
    pub(super) fn install_manifest(&self, script: &str, format: &str, env: &Value) -> String {
        self.write("installed/run", script);
        let manifest = json!({
            "manifest_version": "0.2",
            "tool": {
                "id": "demo-tool", "version": "1.0.0", "name": "Demo Tool", "summary": "A test.",
                "homepage": "https://example.com/",
            },
            "runtime": {
                "kind": "shell-binary",
                "install": {
                    "method": "url", "url": "https://example.com/run", "sha256": "5f".repeat(32),
                },
                "entrypoint": { "command": ["sh", "run"] },
            },
            "env": env,
            "actions": [{
                "name": "show", "summary": "Shows.",
                "invocation": { "kind": "subcommand", "argv_template": ["go"] },
                "input": { "type": "object" },
                "output": { "format": format },
                "side_effects": "none",
            }],
            "smoke": { "kind": "http", "url": "https://example.com/", "success": { "http_status": 200 } },
            "kill_switch": { "kind": "manual", "instructions_url": "https://example.com/" },
        });
        self.write("installed/agent.json", &manifest.to_string())
    }
}

/// A shell script as the implementation of a capability.
pub(super) fn shell(script: &str) -> Value {
    json!({"kind": "command", "command": {"argv": ["sh", "-c", script]}})
}

pub(super) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
