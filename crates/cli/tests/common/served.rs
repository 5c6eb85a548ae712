//! A registry that is a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::Desk;

/// A registry that runs until this is dropped.
pub struct Served {
    /// What runs.
    pub process: Child,
    /// Where it is, without a slash at the end.
    pub url: String,
    /// Its host and port.
    pub address: String,
}

impl Served {
    /// A registry beside a desk, which knows it under a name and may publish anything there.
    pub fn known_to(desk: &Desk, name: &str) -> Self {
        let home = desk.path("served");
        let served = Self::at(&home, &[]);
        let token = ["--home", home.to_str().unwrap(), "registry", "token", "new"];
        let token = [&token[..], &["--namespace", "*", "-q"]].concat();
        let token = super::run_in(desk.0.path(), &token, None).stdout.trim().to_owned();
        desk.done(&["registry", "add", name, &served.url]);
        assert_eq!(desk.haft_with(&["registry", "login", name], Some(&token)).code, 0);
        served
    }

    /// Serves what a home has, at a port that is free.
    pub fn at(home: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
        for name in ["HAFT_DATABASE_URL", "DATABASE_URL"] {
            command.env_remove(name);
        }
        command.args(["registry", "serve", "--listen", "127.0.0.1:0", "--json", "--home"]);
        command.arg(home).args(more).stderr(Stdio::null());
        Self::start(command)
    }

    /// Starts one by a command that has `registry serve --json` in it, and waits until it says where it is.
    pub fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        while !said.contains('}') {
            assert!(out.read_line(&mut said).unwrap() > 0, "the registry ended: {said}");
        }
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let url = said["url"].as_str().unwrap().to_owned();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        Self { process, url, address }
    }

    /// What it answers everybody, as JSON.
    pub fn get(&self, path: &str) -> serde_json::Value {
        let address = format!("{}{path}", self.url);
        let answer = Command::new("curl").args(["-s", &address]).output().unwrap();
        serde_json::from_slice(&answer.stdout).unwrap()
    }

    /// Ends it in the middle of everything.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _ended_already = self.process.wait();
    }
}
