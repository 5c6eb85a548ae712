//! What the tests of the verbs share.
#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of it")]
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and this is no library"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

#[cfg(target_os = "linux")]
pub mod compiled;
#[cfg(unix)]
pub mod served;
#[cfg(unix)]
pub mod site;

/// What came of a run.
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// The result.
    pub stdout: String,
    /// Everything else.
    pub stderr: String,
}

impl Ran {
    /// The result as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs `haft` at the root of the repository.
pub fn haft(arguments: &[&str]) -> Ran {
    run_in(&repository(), arguments, None)
}

/// Runs `haft` in a folder, perhaps with something on its standard input.
pub fn run_in(folder: &Path, arguments: &[&str], stdin: Option<&[u8]>) -> Ran {
    let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
    command
        .current_dir(folder)
        .args(arguments)
        .env_remove("NO_COLOR")
        .env_remove("SOURCE_DATE_EPOCH");
    if let Some(bytes) = stdin {
        command.write_stdin(bytes.to_vec());
    }
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().expect("haft ends by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Writes a file below a folder, and the folders on the way; its path.
pub fn write_below(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A folder to work in, with a home of its own.
pub struct Desk(pub tempfile::TempDir);

impl Desk {
    /// An empty one.
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One with a copy of the echo example, and the key `alice` in its home.
    pub fn with_alice() -> Self {
        let desk = Self::new();
        desk.echo();
        desk.done(&["key", "new", "alice", "--no-passphrase"]);
        desk
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a verb.
    pub fn haft(&self, arguments: &[&str]) -> Ran {
        self.haft_with(arguments, None)
    }

    /// Runs a verb with something on its standard input.
    pub fn haft_with(&self, arguments: &[&str], stdin: Option<&str>) -> Ran {
        let home = self.path("home");
        let all = [&["--home", home.to_str().unwrap()], arguments].concat();
        run_in(self.0.path(), &all, stdin.map(str::as_bytes))
    }

    /// Runs a verb that must succeed.
    pub fn done(&self, arguments: &[&str]) -> Ran {
        let ran = self.haft(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran
    }

    /// Runs a verb that must fail with this code and these words.
    pub fn refused(&self, arguments: &[&str], code: i32, words: &str) {
        let ran = self.haft(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }

    /// Runs a verb at a terminal, where these answers are typed; its code and what the screen showed.
    pub fn at_terminal(&self, answers: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new("python3");
        command.arg(repository().join("crates/cli/tests/terminal.py")).args(answers).arg("--");
        command.arg(assert_cmd::cargo::cargo_bin("haft")).arg("--home").arg(self.path("home"));
        let output = command.args(arguments).current_dir(self.0.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }

    /// A copy of the echo example.
    pub fn echo(&self) -> PathBuf {
        let folder = self.path("echo");
        let source = repository().join("examples/mcpkg/echo");
        let copied = Command::new("cp").arg("-r").args([&source, &folder]).status();
        assert!(copied.unwrap().success());
        folder
    }

    /// A certificate of this machine and its key, for a server over TLS.
    pub fn certificate(&self) -> [PathBuf; 2] {
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| self.path(name));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-out"])
            .arg(&certificate)
            .arg("-keyout")
            .arg(&key)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        [certificate, key]
    }

    /// Runs git in that copy.
    pub fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(arguments);
        let date = "2026-01-02T03:04:05+01:00";
        command.env("GIT_COMMITTER_DATE", date).env("GIT_AUTHOR_DATE", date);
        assert!(command.current_dir(self.path("echo")).output().unwrap().status.success());
    }

    /// What stands in it.
    pub fn names(&self) -> Vec<String> {
        names(self.0.path())
    }
}

/// The names in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A statement that a key makes over one file alone, by the documented rules.
pub fn statement_over(
    path: &str,
    content: &[u8],
    key: &package::key::PrivateKey,
) -> serde_json::Value {
    let digest = package::digest::Digest::of(content);
    let size = content.len();
    let message = format!("haft package signature 1\ncovers files\n{digest} {size} {path}\n");
    let hex: String =
        key.sign(message.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let script = "import base64, sys; print(base64.b64encode(bytes.fromhex(sys.argv[1])).decode())";
    let ran = Command::new("python3").args(["-c", script, &hex]).output().unwrap();
    let signature = String::from_utf8(ran.stdout).unwrap();
    serde_json::json!({
        "covers": "files",
        "files": [{"path": path, "size": size, "sha256": digest.to_string()}],
        "signatures": [{"key": key.public().to_string(), "signature": signature.trim()}],
    })
}

/// An install-manifest of a command of the system that says hello, and is tried by doing nothing.
pub fn greeting(id: &str) -> serde_json::Value {
    serde_json::json!({
        "manifest_version": "0.4",
        "tool": {
            "id": id, "version": "1.0.0", "name": "A Greeting", "summary": "A test.",
            "homepage": "https://example.com/", "license": "MIT", "tags": ["test"],
        },
        "runtime": {
            "kind": "shell-binary",
            "install": {
                "method": "preinstalled",
                "locator": {"kind": "binary-on-path", "binary": "echo"},
            },
            "entrypoint": {"command": ["echo"]},
        },
        "actions": [{
            "name": "say", "summary": "Says it.", "side_effects": "none",
            "invocation": {"kind": "subcommand", "argv_template": ["hello"]},
            "output": {"format": "text"},
        }],
        "data_boundary": {"reads": [], "transmits": [], "persists": []},
        "smoke": {"kind": "shell", "command": ["true"], "success": {"exit_code": 0}},
        "kill_switch": {"kind": "none"},
    })
}
