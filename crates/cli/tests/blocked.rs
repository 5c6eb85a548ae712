//! What a tool is kept from is told: in the error, in the log, and with the command that would allow it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use common::{Ran, repository, run_in};
use serde_json::{Value, json};

/// A home of its own, and a folder for packages.
struct Desk(tempfile::TempDir);

const PACKAGE: &str = "jumith:tool:demo.node";

impl Desk {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("haft-blocked-").tempdir_in("/var/tmp").unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        common::write_below(self.0.path(), name, text);
        self.path(name).to_str().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let home = self.path("home");
        let all = [&["--home", home.to_str().unwrap(), "--non-interactive"], arguments].concat();
        run_in(&repository(), &all, None)
    }

    fn done(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// A Node tool with this body, and what else its object has.
    fn node(&self, body: &str, rest: &str) -> String {
        let code = format!(
            "export const tool = {{ name: 'demo.node', async execute(input) {{ {body} }}, {rest} }};"
        );
        let bundle = json!({
            "manifest": {"id": "tool:demo.node", "name": "demo.node", "version": "1.0.0",
                "summary": "A test", "description": "A test.",
                "entry": {"runtime": "node", "main": "index.js"},
                "schema": {"input": {"type": "object"}, "output": {}}},
            "files": [{"path": "index.js", "content": code}],
        });
        self.write("pkg/node.json", &bundle.to_string())
    }

    fn call(&self, from: &str, input: &Value) -> Ran {
        self.run(&["call", "--from", from, "demo.node", &input.to_string()])
    }

    fn last_record(&self) -> Value {
        let records = self.done(&["audit", "--json"]);
        serde_json::from_str(records.lines().last().unwrap()).unwrap()
    }

    /// What is offered after a call is what is told everywhere.
    fn assert_told(&self, ran: &Ran, grant: &str, kind: &str, value: &str) {
        let wanted = format!("haft grant {PACKAGE} {grant} {value}");
        assert!(ran.stderr.contains(&format!("`{wanted}`")), "{}{}", ran.stdout, ran.stderr);
        let learned = self.done(&["grant", "--learn", PACKAGE]);
        assert_eq!(learned.lines().filter(|line| *line == wanted).count(), 1, "{learned}");
        let record = self.last_record();
        let blocked = record["blocked"].as_array().unwrap();
        assert!(blocked.contains(&json!({"kind": kind, "value": value})), "{record}");
    }
}

#[test]
fn a_host_is_told_of_a_tool_that_has_no_network() {
    let desk = Desk::new();
    let from = desk.node("await fetch('https://api.example.net/v1'); return 1;", "");
    let ran = desk.call(&from, &json!({}));
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    desk.assert_told(&ran, "--host", "host", "api.example.net");
    // And of one that asks while it is loaded.
    let early = "await fetch('https://early.example.net/').catch(() => {}); throw new Error('no');";
    let code = format!(
        "{early}\nexport const tool = {{ name: 'demo.node', async execute() {{ return 1; }} }};"
    );
    let mut bundle: Value = serde_json::from_str(&std::fs::read_to_string(&from).unwrap()).unwrap();
    bundle["files"][0]["content"] = code.into();
    desk.write("pkg/node.json", &bundle.to_string());
    let ran = desk.call(&from, &json!({}));
    assert_ne!(ran.code, 0);
    let learned = desk.done(&["grant", "--learn", PACKAGE]);
    assert!(learned.contains("--host early.example.net\n"), "{learned}{}", ran.stderr);
    // Once it is granted it is not offered again.
    desk.done(&["grant", PACKAGE, "--host", "api.example.net"]);
    let learned = desk.done(&["grant", "--learn", PACKAGE]);
    assert!(!learned.contains("api.example.net"), "{learned}");
}

#[test]
fn a_program_that_knows_of_no_proxy_reaches_what_is_granted() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for client in server.incoming() {
            let mut client = client.unwrap();
            let mut head = [0; 4096];
            let _ = client.read(&mut head);
            let _ = client
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n42");
        }
    });
    let desk = Desk::new();
    let body = format!(
        "const answer = await fetch('http://host.haft.internal:{port}/'); return Number(await answer.text());"
    );
    let from = desk.node(&body, "");
    let ran = desk.call(&from, &json!({}));
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    desk.done(&["grant", PACKAGE, "--host", &format!("localhost:{port}")]);
    let ran = desk.call(&from, &json!({}));
    assert_eq!((ran.code, ran.stdout.trim()), (0, "42"), "{}", ran.stderr);
}

#[test]
fn a_file_is_told_by_the_complaint_of_the_tool() {
    let desk = Desk::new();
    let note = desk.write("data/note.txt", "hello");
    let body = "const fs = await import('node:fs'); if (input.text) { fs.writeFileSync(input.path, input.text); } return fs.readFileSync(input.path, 'utf8');";
    let from = desk.node(body, "");
    let ran = desk.call(&from, &json!({"path": note}));
    desk.assert_told(&ran, "--read", "path", &note);
    // Whether it is there is not told: whoever calls could find out.
    let missing = desk.path("data/missing.txt").to_str().unwrap().to_owned();
    let told = desk.call(&from, &json!({"path": missing})).stderr.replace(&missing, "PATH");
    assert_eq!(told, ran.stderr.replace(&note, "PATH"));
    desk.done(&["grant", PACKAGE, "--read", desk.path("data").to_str().unwrap()]);
    assert_eq!(desk.call(&from, &json!({"path": note})).stdout.trim(), "\"hello\"");
    let ran = desk.call(&from, &json!({"path": note, "text": "changed"}));
    desk.assert_told(&ran, "--write", "path", desk.path("data").to_str().unwrap());
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "hello");
}

#[test]
fn what_its_manifest_does_without_is_not_offered() {
    let desk = Desk::new();
    let note = desk.write("data/note.txt", "hello");
    let script = format!("cat {note}; getent hosts api.example.net; exit 1");
    let manifest = json!({
        "id": "demo.tool", "type": "tool", "version": "1.0.0", "description": "A test",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
        "permissions": {"network": "deny", "filesystem": "none", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"},
            "timeout_seconds": 20},
        "trust_level": "local",
        "implementation": {"kind": "command", "command": {"argv": ["sh", "-c", script]}}
    });
    let manifest = desk.write("pkg/manifest.json", &manifest.to_string());
    let ran = desk.run(&["call", "--from", &manifest, "demo.tool", "{}"]);
    assert!(ran.stderr.contains("needs no network, and no grant changes that"), "{}", ran.stderr);
    assert!(ran.stderr.contains("does without, and no grant changes that"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("haft grant"), "{}", ran.stderr);
    let blocked = desk.last_record()["blocked"].clone();
    assert_eq!(blocked.as_array().map(Vec::len), Some(2), "{blocked}");
    assert_eq!(desk.done(&["grant", "--learn", "capability:demo.tool"]), "");
}

#[test]
fn what_the_policy_hides_is_not_there_at_all() {
    let desk = Desk::new();
    let hidden = desk.write("secret/key", "k");
    desk.write("home/policy.toml", &format!("[folders]\ndeny = [\"{hidden}\"]\n"));
    let from =
        desk.node("const fs = await import('node:fs'); return fs.existsSync(input.path);", "");
    assert_eq!(desk.call(&from, &json!({"path": hidden})).stdout.trim(), "false");
}

#[test]
fn a_grant_that_becomes_a_link_while_the_tool_is_asked_is_refused() {
    let desk = Desk::new();
    desk.write("data/a", "mine");
    desk.write("secret/a", "k3y-of-the-owner");
    let data = desk.path("data");
    let body = "const fs = await import('node:fs'); return fs.readFileSync(input.path, 'utf8');";
    let slow = "requiresApproval: async () => { await new Promise(done => setTimeout(done, 1500)); return false; }";
    let from = desk.node(body, slow);
    desk.done(&["grant", PACKAGE, "--read", data.to_str().unwrap()]);
    let input = json!({"path": data.join("a").to_str().unwrap()});
    assert_eq!(desk.call(&from, &input).stdout.trim(), "\"mine\"");
    let ran = std::thread::scope(|scope| {
        let call = scope.spawn(|| desk.call(&from, &input));
        // The log says when the hooks run.
        let log = || {
            std::fs::read_dir(desk.path("home/audit")).map_or(0, |all| {
                let texts = all.filter_map(|one| std::fs::read_to_string(one.ok()?.path()).ok());
                texts.map(|text| text.matches("\"action\":\"hooks\"").count()).sum()
            })
        };
        let before = log();
        while log() == before {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::fs::rename(&data, desk.path("old")).unwrap();
        symlink(desk.path("secret"), &data).unwrap();
        call.join().unwrap()
    });
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("k3y"), "{}", ran.stdout);
}

#[test]
fn hooks_run_only_when_that_is_written_down_and_within_the_budget() {
    let desk = Desk::new();
    let from = desk.node("return 1;", "requiresApproval: () => false");
    desk.call(&from, &json!({}));
    let records = desk.done(&["audit", "--json"]);
    let actions: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["action"].clone())
        .collect();
    assert!(actions.contains(&json!("hooks")), "{records}");
    desk.done(&["audit", "verify"]);
    desk.write("home/policy.toml", "[budget]\ncalls_per_day = 0\n");
    let noisy = desk.node("return 1;", "requiresApproval: () => { throw new Error('it ran'); }");
    let ran = desk.call(&noisy, &json!({}));
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("used up"), "{}", ran.stderr);
    let after = desk.done(&["audit", "--json"]);
    assert_eq!(after.matches("\"hooks\"").count(), records.matches("\"hooks\"").count());
}

#[test]
fn no_program_of_a_folder_that_nobody_gets_is_run() {
    let desk = Desk::new();
    let program = desk.write("denied/run", "#!/bin/sh\necho '{}'\n");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let tools = json!({"tools": [{"name": "get", "description": "A test.",
        "command": [program], "inputSchema": {"type": "object", "properties": {}}}]});
    let from = desk.write("pkg/tools.json", &tools.to_string());
    let call = || desk.run(&["call", "--from", &from, "get", "{}"]);
    let folder = desk.path("denied").to_str().unwrap().to_owned();
    desk.write("home/policy.toml", &format!("[folders]\ndeny = [\"{folder}\"]\n"));
    let ran = call();
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("in a folder that no tool gets"), "{}", ran.stderr);
}
