//! What is done to packages is in the log; what is refused leaves nothing else; a tool that fights its walls is switched
//! off where the policy says so.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Desk, Ran, greeting, write_below};
use serde_json::{Value, json};

fn fails(ran: &Ran, code: i32, words: &str) {
    assert_eq!(ran.code, code, "{}", ran.stderr);
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
}

/// Every folder and file of a home but the log, with what stands there.
fn all(home: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut left) = (BTreeMap::new(), vec![home.to_owned()]);
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path == home.join("audit") {
                continue;
            }
            let kind = entry.file_type().unwrap();
            let is_folder = kind.is_dir();
            let content = match kind {
                kind if kind.is_symlink() => {
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                }
                kind if kind.is_dir() => Vec::new(),
                _ => fs::read(&path).unwrap(),
            };
            found.insert(path.clone(), content);
            if is_folder {
                left.push(path);
            }
        }
    }
    found
}

/// The records of the log that tell of changes, each change once.
fn changes(desk: &Desk) -> Vec<Value> {
    let text = desk.done(&["audit", "--json"]).stdout;
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|one| !one["change"].is_null() && one["kind"] != "begin").collect()
}

/// Echo at a version, in a folder of its own.
fn echo(desk: &Desk, version: &str) {
    let _ = fs::remove_dir_all(desk.path("echo"));
    let manifest = desk.echo().join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"0.1.0\"", &format!("\"{version}\""))).unwrap();
}

#[test]
fn every_change_is_in_the_log_with_who_what_and_what_came_of_it() {
    let desk = Desk::new();
    for version in ["0.1.0", "0.2.0"] {
        echo(&desk, version);
        desk.done(&["install", "./echo", "--yes", "-q"]);
    }
    desk.done(&["rollback", "demo.echo"]);
    desk.done(&["disable", "demo.echo"]);
    desk.done(&["enable", "demo.echo"]);
    let status = desk.done(&["status", "demo.echo", "--json"]).json();
    desk.done(&["remove", "demo.echo"]);
    desk.done(&["install", "./echo", "--yes", "-q"]);
    desk.done(&["revoke", "demo.echo", "--yes"]);
    desk.done(&["reset", "--yes"]);
    let changes = changes(&desk);
    let told = |one: &Value| {
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} {} {}", text("surface"), text("change"), text("version"), text("outcome"))
    };
    let told: Vec<_> = changes.iter().map(told).collect();
    assert_eq!(
        told,
        [
            "terminal install 0.1.0 ok",
            "terminal update 0.2.0 ok",
            "terminal rollback 0.1.0 ok",
            "terminal disable 0.1.0 ok",
            "terminal enable 0.1.0 ok",
            "terminal remove 0.1.0 ok",
            "terminal install 0.2.0 ok",
            "terminal revoke 0.2.0 ok",
            "terminal reset  ok",
        ]
    );
    for one in &changes[..8] {
        assert_eq!(one["package"], "mcpkg:demo.echo");
        assert!(one["packageDigest"].as_str().unwrap().starts_with("sha256:"), "{one}");
        assert!(one["card"].as_str().unwrap().starts_with("sha256:"), "{one}");
    }
    assert_eq!(
        (&changes[5]["packageDigest"], &changes[5]["card"]),
        (&status["package"], &status["card"])
    );
    let shown = desk.done(&["audit"]).stdout;
    assert!(shown.contains(" terminal mcpkg:demo.echo 0.2.0 update ok\n"), "{shown}");
    assert!(desk.done(&["audit", "verify"]).stdout.ends_with("unbroken\n"));
}

#[test]
fn a_refusal_is_in_the_log_and_nowhere_else() {
    let desk = Desk::new();
    echo(&desk, "0.1.0");
    desk.done(&["install", "./echo", "--yes", "-q"]);
    desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]);
    let smoke = |words: &[&str]| {
        let mut manifest = greeting("smoky");
        manifest["smoke"]["command"] = json!(words);
        manifest
    };
    let failing = smoke(&["sh", "-c", "cat /home/nobody/secret; exit 3"]);
    write_below(&desk.path("smoky"), "manifest.json", &failing.to_string());
    let before = all(&desk.path("home"));
    fails(&desk.haft(&["install", "./smoky", "--yes"]), 1, "its smoke test failed");
    assert_eq!(all(&desk.path("home")), before);
    fails(&desk.haft(&["--non-interactive", "install", "./smoky"]), 4, "has to be accepted");
    assert_eq!(all(&desk.path("home")), before);
    let refused = changes(&desk).split_off(1);
    let told: Vec<_> = refused
        .iter()
        .map(|one| (one["decision"].as_str().unwrap(), one["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("denied", "tool_failed"), ("denied", "denied")]);
    assert_eq!(refused[0]["reason"], "its smoke test failed, so it is not installed");
    assert_eq!(refused[0]["package"], "install-manifest:smoky");
    // In a home that is not there yet, the log is all that comes of it.
    let fresh = desk.path("fresh");
    let home = ["--home", fresh.to_str().unwrap()];
    for words in
        [&["install", "./smoky", "--yes"][..], &["--non-interactive", "install", "./smoky"]]
    {
        let ran = common::run_in(desk.0.path(), &[&home[..], words].concat(), None);
        assert!(ran.code == 1 || ran.code == 4, "{}", ran.stderr);
        assert_eq!(all(&fresh), BTreeMap::new());
    }
    // And it is the smoke test that makes the difference.
    write_below(&desk.path("smoky"), "manifest.json", &smoke(&["true"]).to_string());
    desk.done(&["install", "./smoky", "--yes", "-q"]);
    assert_eq!(desk.done(&["call", "smoky", "say"]).stdout, "hello\n");
}

/// A Node tool with a name and a secret.
fn node(desk: &Desk, name: &str, secret: &str) -> String {
    let bundle = json!({
        "manifest": {"id": format!("tool:{name}"), "name": name, "version": "1.0.0",
            "summary": "A test", "description": "A test.",
            "entry": {"runtime": "node", "main": "index.js"},
            "schema": {"input": {"type": "object"}, "output": {}},
            "requiredSecrets": [secret]},
        "files": [{"path": "index.js", "content": "export const tool = { async execute() { return 1; } };"}],
    });
    write_below(desk.0.path(), &format!("{name}.json"), &bundle.to_string())
}

#[test]
fn tools_whose_secrets_could_not_be_told_apart_are_refused() {
    let desk = Desk::new();
    let (first, second) = (node(&desk, "mail", "send-key"), node(&desk, "mail-send", "key"));
    for (tool, name) in [("jumith:tool:mail", "send-key"), ("jumith:tool:mail-send", "key")] {
        assert_eq!(desk.haft_with(&["secret", "set", tool, name], Some("x")).code, 0);
    }
    desk.done(&["install", &first, "--yes", "-q"]);
    let before = all(&desk.path("home"));
    let ran = desk.haft(&["install", &second, "--yes"]);
    fails(&ran, 5, "would both find a secret as `mail-send-key`");
    for id in ["jumith:tool:mail`", "jumith:tool:mail-send`"] {
        assert!(ran.stderr.contains(id), "{}", ran.stderr);
    }
    assert_eq!(all(&desk.path("home")), before);
    // Once the other is gone nothing is in its way; and a tool is never in its own.
    desk.done(&["install", &first, "--yes", "-q"]);
    desk.done(&["remove", "jumith:tool:mail"]);
    desk.done(&["install", &second, "--yes", "-q"]);
}

#[test]
fn an_id_that_may_be_taken_for_another_one_asks_first() {
    let desk = Desk::new();
    echo(&desk, "0.1.0");
    desk.done(&["install", "./echo", "--yes", "-q"]);
    let manifest = desk.path("echo/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("demo.echo", "demo.ehco")).unwrap();
    let before = all(&desk.path("home"));
    for words in [&["install", "./echo", "--yes"][..], &["--non-interactive", "install", "./echo"]]
    {
        let ran = desk.haft(words);
        fails(&ran, 4, "differs by one letter from `mcpkg:demo.echo`, which is installed");
        assert!(ran.stderr.contains("--allow-similar"), "{}", ran.stderr);
    }
    assert_eq!(all(&desk.path("home")), before);
    let (code, screen) = desk.at_terminal(&["n"], &["install", "./echo"]);
    assert_eq!(code, Some(4), "{screen}");
    assert!(screen.contains("it is not the one you mean"), "{screen}");
    assert_eq!(all(&desk.path("home")), before);
    let (code, screen) = desk.at_terminal(&["y", "y"], &["install", "./echo"]);
    assert_eq!(code, Some(0), "{screen}");
    desk.done(&["remove", "demo.ehco"]);
    desk.done(&["install", "./echo", "--yes", "--allow-similar", "-q"]);
    // Who has it is not asked again.
    fs::write(&manifest, text.replace("demo.echo", "demo.ehco").replace("\"0.1.0\"", "\"0.2.0\""))
        .unwrap();
    desk.done(&["install", "./echo", "--yes", "-q"]);
}

/// A capability that runs a script, and may reach one host.
fn capability(desk: &Desk, script: &str) {
    let manifest = json!({
        "id": "demo.tool", "type": "tool", "version": "1.0.0", "description": "A test",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
        "permissions": {"network": "allowlist", "network_allowlist": ["api.example.com"],
            "filesystem": "read", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"},
            "timeout_seconds": 20},
        "trust_level": "local",
        "implementation": {"kind": "command", "command": {"argv": ["python3", "-c", script]}},
    });
    write_below(&desk.path("tool"), "manifest.json", &manifest.to_string());
}

const REACHING: &str = r"
import json, sys, urllib.request
url = json.load(sys.stdin).get('url', 'http://evil.example.net/')
try:
    urllib.request.urlopen(url, timeout=5)
except Exception:
    pass
print('{}')
";

fn policy(desk: &Desk, text: &str) {
    write_below(&desk.path("home"), "policy.toml", text);
}

#[test]
fn a_tool_that_fights_its_walls_is_switched_off_where_the_policy_says_so() {
    let desk = Desk::new();
    capability(&desk, REACHING);
    desk.done(&["install", "./tool", "--yes", "-q"]);
    let enabled = || desk.done(&["list", "--json"]).json()["packages"][0]["enabled"].clone();
    // Without a word in the policy it is told, and nothing else.
    let told = desk.done(&["call", "demo.tool", "{}", "--json"]).json();
    assert_eq!(told["sandbox"]["blocked"][0]["host"], "evil.example.net:80");
    assert_eq!((&told["violation"], enabled()), (&json!(null), json!(true)));
    policy(&desk, "[sandbox]\non_violation = \"disable\"\n");
    // What the caller named is the caller's wish.
    let named = r#"{"url":"http://other.example.net/"}"#;
    let told = desk.done(&["call", "demo.tool", named, "--json"]).json();
    assert_eq!((&told["violation"], enabled()), (&json!(null), json!(true)));
    let told = desk.done(&["call", "demo.tool", "{}", "--json"]).json();
    assert_eq!((&told["ok"], &told["violation"]["state"]), (&json!(true), &json!("disabled")));
    assert_eq!(told["violation"]["blocked"][0]["host"], "evil.example.net:80");
    assert_eq!(enabled(), json!(false));
    fails(&desk.haft(&["call", "demo.tool", "{}"]), 4, "capability disabled");
    let change = changes(&desk).pop().unwrap();
    assert_eq!(
        (&change["surface"], &change["change"], &change["blocked"][0]["value"]),
        (&json!("policy"), &json!("disable"), &json!("evil.example.net:80"))
    );
}

#[test]
fn a_tool_that_fights_its_walls_is_revoked_where_the_policy_says_so() {
    let desk = Desk::new();
    capability(&desk, REACHING);
    desk.done(&["install", "./tool", "--yes", "-q"]);
    desk.done(&["grant", "capability:demo.tool", "--host", "b.example.com"]);
    // A rule for one package goes before the one for all.
    policy(
        &desk,
        "[sandbox]\non_violation = \"disable\"\n[package.\"capability:demo.tool\"]\non_violation = \"revoke\"\n",
    );
    let ran = desk.done(&["call", "demo.tool", "{}"]);
    assert_eq!(ran.stdout, "{}\n");
    assert!(ran.stderr.contains("reached for evil.example.net"), "{}", ran.stderr);
    assert!(ran.stderr.contains("Revoked capability:demo.tool: confirmed"), "{}", ran.stderr);
    let listed = desk.done(&["list", "--json"]).json()["packages"][0].clone();
    assert_eq!((&listed["enabled"], &listed["state"]), (&json!(false), &json!("revoked")));
    assert_eq!(desk.done(&["grant", "capability:demo.tool", "--json"]).json(), json!([]));
    let change = changes(&desk).pop().unwrap();
    assert_eq!((&change["surface"], &change["change"]), (&json!("policy"), &json!("revoke")));
    // Called by its path there is nothing to switch off.
    policy(&desk, "[sandbox]\non_violation = \"revoke\"\n");
    desk.done(&["call", "--from", "./tool", "demo.tool", "{}"]);
    assert_eq!(changes(&desk).len(), 2);
}
