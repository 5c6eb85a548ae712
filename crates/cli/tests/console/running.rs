//! `haft serve` or `haft up`, as a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::common::Desk;

/// A gateway that runs until this is dropped.
pub(crate) struct Running {
    process: Child,
    /// Where agents ask.
    pub(crate) mcp: String,
    /// Where the owner signs in, once.
    pub(crate) sign_in: String,
}

impl Running {
    /// Serves the home of a desk, at a port that is free.
    pub(crate) fn start(desk: &Desk) -> Self {
        Self::run(desk, "serve")
    }

    /// What a newcomer types, in the home of a desk.
    pub(crate) fn up(desk: &Desk) -> Self {
        Self::run(desk, "up")
    }

    fn run(desk: &Desk, verb: &str) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command.arg("--home").arg(desk.path("home")).current_dir(desk.0.path());
        command.args([verb, "--listen", "127.0.0.1:0", "--json"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        while !said.contains('}') {
            assert!(out.read_line(&mut said).unwrap() > 0, "the gateway ended: {said}");
        }
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let text = |name: &str| said[name].as_str().unwrap().to_owned();
        Self { process, mcp: text("mcp"), sign_in: text("console") }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        self.mcp.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What it has started ends with it.
        let _ended_already = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ended_already = self.process.wait();
    }
}
