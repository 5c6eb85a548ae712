//! A home with a package whose server is on the network, and a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Ran, repository, run_in, write_below};

/// The package that is signed in for.
pub(crate) const PACKAGE: &str = "install-manifest:trial";

/// A home with a package.
pub(crate) struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    /// A package whose server is at a URL, which the owner lets it reach.
    pub(crate) fn of(url: &str, host: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("haft-login-").tempdir_in("/var/tmp").unwrap();
        let manifest = json!({
            "manifest_version": "0.1",
            "tool": {
                "id": "trial", "version": "1.0.0", "name": "Trial", "summary": "Tries a server.",
                "homepage": "https://example.com/trial", "author": { "name": "Nobody" },
                "license": "MIT", "tags": ["trial"],
            },
            "runtime": {
                "kind": "mcp-http", "endpoint_url": url,
                "install": { "method": "npm", "package": "trial", "version_spec": "1.0.0" },
            },
            "env": [],
            "smoke": {
                "kind": "mcp-tool-call", "tool_name": "none", "arguments": {},
                "timeout_seconds": 10, "success": { "no_error_field": true },
            },
            "kill_switch": { "kind": "manual", "instructions_url": "https://example.com/trial" },
            "cost": { "install_fee_cents": 0, "monthly_fee_cents": 0, "usage_model": "none" },
        });
        std::fs::write(folder.path().join("install.json"), manifest.to_string()).unwrap();
        let desk = Self { folder };
        assert_eq!(desk.run(&["grant", PACKAGE, "--host", host]).code, 0);
        desk
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn manifest(&self) -> String {
        self.folder.path().join("install.json").to_str().unwrap().to_owned()
    }

    /// A file beside the home.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        write_below(self.folder.path(), name, text)
    }

    fn arguments<'a>(home: &'a Path, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut all = vec!["--home", home.to_str().unwrap(), "--non-interactive"];
        all.extend(arguments);
        all
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let home = self.home();
        run_in(&repository(), &Self::arguments(&home, arguments), None)
    }

    /// Calls a tool of the server.
    pub(crate) fn call(&self, tool: &str, input: &Value) -> Ran {
        self.run(&["call", "--from", &self.manifest(), tool, &input.to_string()])
    }

    /// Starts `haft`.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let home = self.home();
        Command::new(env!("CARGO_BIN_EXE_haft"))
            .args(Self::arguments(&home, arguments))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs `haft` at a terminal, where these answers are typed and programs are looked for in one folder; its code and what the screen showed.
    pub(crate) fn at_terminal(
        &self,
        programs: &str,
        answers: &[&str],
        arguments: &[&str],
    ) -> (Option<i32>, String) {
        let mut command = Command::new("python3");
        command.arg(repository().join("crates/cli/tests/terminal.py")).args(answers).arg("--");
        command.arg("/usr/bin/env").arg(format!("PATH={programs}"));
        command.arg(env!("CARGO_BIN_EXE_haft")).arg("--home").arg(self.home());
        let output = command.args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }

    /// Begins to sign in, up to the page for the browser.
    pub(crate) fn begin(&self, more: &[&str]) -> Waiting {
        let manifest = self.manifest();
        let mut arguments = vec!["login", "--from", &manifest];
        if !more.contains(&"--timeout") {
            arguments.extend(["--timeout", "30s"]);
        }
        arguments.extend(more);
        let mut child = self.start(&arguments);
        let mut page = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut page).unwrap();
        Waiting { child, page: page.trim().to_owned() }
    }

    /// Runs `haft`, with a browser that goes wherever it is sent.
    pub(crate) fn browsing(&self, arguments: &[&str]) -> Ran {
        let mut child = self.start(arguments);
        let mut page = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut page).unwrap();
        if !page.is_empty() {
            browse(page.trim());
        }
        ended(child)
    }

    /// Signs in, with a browser that goes wherever it is sent.
    pub(crate) fn sign_in(&self, more: &[&str]) -> Ran {
        let waiting = self.begin(more);
        if !waiting.page.is_empty() {
            browse(&waiting.page);
        }
        waiting.end()
    }

    /// Whether anything is kept of a sign-in.
    pub(crate) fn is_signed_in(&self) -> bool {
        self.run(&["secret", "list"]).stdout.contains("(login)")
    }

    /// Whether a text is in any file of the home.
    pub(crate) fn holds(&self, text: &str) -> bool {
        let found = Command::new("grep").args(["-rqaF", text]).arg(self.home()).status().unwrap();
        found.success()
    }
}

/// `haft login`, which waits for a browser.
pub(crate) struct Waiting {
    child: Child,
    pub(crate) page: String,
}

impl Waiting {
    /// Pastes a line.
    pub(crate) fn paste(&mut self, text: &str) {
        if writeln!(self.child.stdin.as_mut().unwrap(), "{text}").is_err() {
            let mut said = String::new();
            let _ = self.child.stderr.take().unwrap().read_to_string(&mut said);
            panic!("it ended before: {said}");
        }
    }

    pub(crate) fn end(self) -> Ran {
        ended(self.child)
    }
}

/// What came of a program that was started.
pub(crate) fn ended(mut child: Child) -> Ran {
    drop(child.stdin.take());
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    Ran { code: child.wait().unwrap().code().unwrap_or(-1), stdout, stderr }
}

/// Goes to a page, and on to wherever it sends us; gives what is there.
pub(crate) fn browse(page: &str) -> String {
    let ran = Command::new("curl").args(["-sSL", "-m", "20", "--", page]).output().unwrap();
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Goes to a page, and only looks where it would send us.
pub(crate) fn look(page: &str) -> String {
    let arguments = ["-sS", "-o", "/dev/null", "-w", "%{redirect_url}", "--", page];
    let ran = Command::new("curl").args(arguments).output().unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

/// The protocol's own library for Python: a server, and where people sign in for it.
pub(crate) struct Peer {
    child: Child,
    pub(crate) port: u16,
    pub(crate) auth_port: u16,
    path: &'static str,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    pub(crate) fn start(release: &str, setup: &Value) -> Self {
        let ports = [testkit::ports::unused(), testkit::ports::unused()];
        let installed = std::env::var_os("HAFT_MCP_PYTHON")
            .map_or_else(|| repository().join("target/tools/mcp-python"), PathBuf::from);
        let library = installed.join(release);
        assert!(library.is_dir(), "run `./test` once: nothing is at `{}`", library.display());
        let child = Command::new("python3")
            .arg(repository().join("crates/cli/tests/login/peer.py"))
            .env("PYTHONPATH", library)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PORT", ports[0].to_string())
            .env("AUTH_PORT", ports[1].to_string())
            .env("SETUP", setup.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_mins(1);
        for port in ports {
            while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
                assert!(Instant::now() < until, "nobody listens");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let path = if setup["sse"] == true { "sse" } else { "mcp" };
        Self { child, port: ports[0], auth_port: ports[1], path }
    }

    /// A desk whose package is this server.
    pub(crate) fn desk(&self) -> Desk {
        let host = format!("127.0.0.1:{}", self.port);
        Desk::of(&format!("http://{host}/{}", self.path), &host)
    }

    /// Where people sign in, as the owner agrees to it.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.auth_port)
    }

    /// What it has seen.
    pub(crate) fn log(&self) -> Value {
        serde_json::from_str(&browse(&format!("http://{}/log", self.host()))).unwrap()
    }

    /// Ends all access tokens, so that the server refuses them before their time.
    pub(crate) fn end_tokens(&self) {
        let url = format!("http://{}/end", self.host());
        assert!(Command::new("curl").args(["-sS", "-X", "POST", &url]).status().unwrap().success());
    }
}
