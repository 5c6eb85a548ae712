//! The card shows what the author of a package estimates that it costs; nothing depends on that.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use common::{Desk, repository};
use serde_json::{Value, json};

/// Gives estimates by https, until this is dropped.
struct Author {
    server: Child,
    port: u16,
    desk: Desk,
}

impl Author {
    /// An author, and a desk whose owner lets them be asked.
    fn new() -> Self {
        let author = Self::stranger();
        let (port, home) = (author.port, author.desk.path("home"));
        let certificate = author.desk.path("certificate.pem");
        let policy = format!(
            "[network]\nallow = [\"localhost:{port}\"]\n[sources]\ncertificates = \"{}\"\n",
            certificate.display()
        );
        fs::write(home.join("policy.toml"), policy).unwrap();
        author
    }

    /// One whom nobody has allowed.
    fn stranger() -> Self {
        let desk = Desk::new();
        fs::create_dir(desk.path("home")).unwrap();
        let [certificate, key] = desk.certificate();
        let mut server = Command::new("python3")
            .arg(repository().join("crates/cli/tests/estimates.py"))
            .args([&certificate, &key])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
        Self { server, port: said.trim().parse().unwrap(), desk }
    }

    /// A package whose estimate is at a path of this author.
    fn package(&self, id: &str, path: &str) {
        let url = format!("https://localhost:{}{path}", self.port);
        let manifest = json!({
            "manifest_version": "0.4",
            "tool": {
                "id": id, "name": id, "version": "1.0.0", "summary": "A test", "description": "A test.",
                "homepage": "https://example.com", "author": {"name": "Acme"}, "license": "MIT",
            },
            "runtime": {
                "kind": "shell-binary", "entrypoint": {"command": ["echo"]},
                "install": {"method": "preinstalled", "locator": {"kind": "binary-on-path", "binary": "echo"}},
            },
            "env": [], "scopes": [],
            "cost": {"monthly_fee_cents": 0, "usage_model": "per-call", "estimate_url": url},
            "kill_switch": {"kind": "manual", "instructions_url": "https://example.com"},
            "smoke": {"kind": "shell", "command": ["echo"], "success": {"exit_code": 0}},
            "actions": [{
                "name": "ask", "summary": "Asks", "side_effects": "none", "input": {"type": "object"},
                "invocation": {"kind": "subcommand", "argv_template": ["x"]}, "output": {"format": "text"},
            }],
        });
        fs::create_dir(self.desk.path(id)).unwrap();
        fs::write(self.desk.path(id).join("manifest.json"), manifest.to_string()).unwrap();
    }

    fn card(&self, id: &str, more: &[&str]) -> Value {
        let path = format!("./{id}");
        let shown = self.desk.done(&[&["show", &path, "--json"], more].concat()).json();
        shown["cards"][0].clone()
    }

    /// What was asked for, and with what headers.
    fn seen(&self) -> Vec<(String, Vec<String>)> {
        let script = "import ssl, sys, urllib.request as r\n\
            print(r.urlopen(sys.argv[1], context=ssl._create_unverified_context()).read().decode())";
        let url = format!("https://localhost:{}/seen", self.port);
        let ran = Command::new("python3").args(["-c", script, &url]).output().unwrap();
        serde_json::from_slice(&ran.stdout).unwrap()
    }
}

impl Drop for Author {
    fn drop(&mut self) {
        let _ended_already = self.server.kill();
        let _ended_already = self.server.wait();
    }
}

#[test]
fn an_estimate_is_shown_and_no_part_of_what_is_agreed_to() {
    let author = Author::new();
    author.package("metered", "/estimate");
    let (one, other) = (author.card("metered", &[]), author.card("metered", &[]));
    assert_eq!(one["estimate"]["state"], "given");
    assert_eq!(one["estimate"]["monthly_estimate_cents"], 1205);
    assert_eq!(other["estimate"]["monthly_estimate_cents"], 1206);
    assert_eq!(one["card"], other["card"]);
    let installed = author.desk.done(&["install", "./metered", "--yes"]);
    let row = "estimate      12.07 USD a month, as its author says now: 100 calls a day";
    assert!(installed.stderr.contains(row), "{}", installed.stderr);
    assert!(!installed.stderr.contains('\x1b'), "{}", installed.stderr);
    let status = author.desk.done(&["status", "metered", "--json"]).json();
    let agreed = status["card"].as_str().unwrap();
    assert_eq!(
        one["card"].as_str().unwrap().trim_start_matches("sha256:"),
        agreed.trim_start_matches("sha256:")
    );
    // Nothing was sent along.
    for (_, headers) in author.seen() {
        let plain = ["accept", "accept-encoding", "host", "user-agent"];
        assert!(headers.iter().all(|name| plain.contains(&name.as_str())), "{headers:?}");
    }
}

#[test]
fn an_estimate_that_cannot_be_had_is_told_and_keeps_nobody_from_anything() {
    let author = Author::new();
    for (id, path, why) in [
        ("broken", "/none", "the answer was 500"),
        ("away", "/away", "it sends elsewhere"),
        ("large", "/large", "larger"),
        ("odd", "/odd", "no number of cents"),
    ] {
        author.package(id, path);
        let card = author.card(id, &[]);
        assert_eq!(card["estimate"]["state"], "unavailable", "{card}");
        assert!(card["estimate"]["why"].as_str().unwrap().contains(why), "{card}");
        let installed = author.desk.done(&["install", &format!("./{id}"), "--yes"]);
        assert!(installed.stderr.contains("estimate      could not be had: "));
    }
}

#[test]
fn nobody_is_asked_offline_nor_in_a_private_place() {
    let author = Author::stranger();
    author.package("metered", "/estimate");
    assert_eq!(author.card("metered", &["--offline"])["estimate"], json!({"state": "not-asked"}));
    let card = author.card("metered", &[]);
    assert_eq!(card["estimate"]["state"], "unavailable");
    let policy = format!(
        "[network]\nallow = [\"localhost:{0}\"]\ndeny = [\"localhost:{0}\"]\n",
        author.port
    );
    fs::write(author.desk.path("home/policy.toml"), policy).unwrap();
    assert_eq!(author.card("metered", &[])["estimate"]["state"], "unavailable");
    assert_eq!(author.seen(), []);
}
