//! A desk of the owner: a home of its own, packages, and a terminal where one is wanted.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{self, Ran, repository, run_in};

/// A home of its own, and a folder for packages.
pub(crate) struct Desk(tempfile::TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("haft-owner-").tempdir_in("/var/tmp").unwrap())
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        common::write_below(self.0.path(), name, text)
    }

    pub(crate) fn run(&self, arguments: &[&str], stdin: Option<&[u8]>) -> Ran {
        let home = self.home();
        let mut all = vec!["--home", home.to_str().unwrap(), "--non-interactive"];
        all.extend(arguments);
        run_in(&repository(), &all, stdin)
    }

    pub(crate) fn done(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments, None);
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    /// A capability whose command is a shell script, with these permissions and secrets.
    pub(crate) fn capability(&self, script: &str, permissions: &Value, secrets: &Value) -> String {
        let manifest = json!({
            "id": "demo.tool", "type": "tool", "version": "1.0.0", "description": "A test",
            "origin": {"source": "local", "digest": "0".repeat(64)},
            "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
            "permissions": permissions,
            "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"},
                "timeout_seconds": 20},
            "trust_level": "local",
            "secrets": secrets,
            "implementation": {"kind": "command", "command": {"argv": ["sh", "-c", script]}}
        });
        self.write("pkg/manifest.json", &manifest.to_string())
    }

    /// The log of today, in which there is a call.
    pub(crate) fn log(&self) -> PathBuf {
        let files = std::fs::read_dir(self.home().join("audit")).unwrap().flatten();
        let mut paths = files.map(|entry| entry.path());
        paths.find(|path| path.extension().is_some_and(|kind| kind == "log")).unwrap()
    }

    pub(crate) fn call(&self, manifest: &str) -> Ran {
        self.run(&["call", "--from", manifest, "demo.tool", "{}"], None)
    }
}

pub(crate) const PACKAGE: &str = "capability:demo.tool";

pub(crate) fn closed() -> Value {
    json!({"network": "deny", "filesystem": "none", "devices": []})
}

pub(crate) fn open() -> Value {
    json!({"network": "allowlist", "network_allowlist": ["api.example.com"],
        "filesystem": "write", "devices": []})
}

/// Leaves a question as an agent's call does; its ticket.
pub(crate) fn leave(home: &Path, action: &str) -> String {
    use ledger::state::approvals::{Asked, Shown};
    std::fs::create_dir_all(home).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let records = host::Records::open(home).await.unwrap();
        let asked = Asked {
            package: "sha256:1".into(),
            action: action.into(),
            arguments: "sha256:2".into(),
            surface: "mcp".into(),
        };
        let text = json!({"package": PACKAGE, "input": {"to": "a\u{1b}[2J"}, "because": "of this"});
        let shown = Shown { text: text.to_string(), session: "s1".into() };
        let now = host::records::now();
        let expires = now.plus(std::time::Duration::from_mins(10));
        records.state.ask(&asked, &shown, now, expires).await.unwrap().to_string()
    })
}

/// Runs it in a session of its own, which has no terminal.
pub(crate) fn without_terminal(desk: &Desk, arguments: &[&str], stdin: &str) -> Ran {
    let home = desk.home();
    let mut command = std::process::Command::new("setsid");
    command.arg("--wait").arg(assert_cmd::cargo::cargo_bin("haft")).arg("--home").arg(home);
    command.args(arguments).current_dir(repository());
    let output = assert_cmd::Command::from_std(command).write_stdin(stdin).output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs it at a terminal, where these answers are typed; its code and what the screen showed.
pub(crate) fn at_terminal(
    desk: &Desk,
    answers: &[&str],
    arguments: &[&str],
) -> (Option<i32>, String) {
    let mut command = std::process::Command::new("python3");
    command.arg(repository().join("crates/cli/tests/terminal.py")).args(answers).arg("--");
    command.arg(assert_cmd::cargo::cargo_bin("haft")).arg("--home").arg(desk.home());
    let output = command.args(arguments).current_dir(repository()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}
