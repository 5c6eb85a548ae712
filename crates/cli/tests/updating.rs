//! Newer versions are shown and taken, lockfiles are brought into a home, and what servers offer is pinned.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::process::Command;

use common::served::Served;
use common::{Desk, repository};
use serde_json::{Value, json};

/// Changes the manifest of a package in a folder.
fn change(desk: &Desk, folder: &str, change: impl FnOnce(&mut Value)) {
    let path = desk.path(folder).join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(&path, manifest.to_string()).unwrap();
}

fn version(desk: &Desk, id: &str) -> String {
    desk.done(&["status", id, "--json"]).json()["version"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_newer_is_shown_and_taken_and_what_asks_for_more_is_asked_about() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["install", "./echo", "--yes", "-q"]);
    let check = || desk.done(&["update", "--check", "--json"]).json();
    assert_eq!(check(), json!({"packages": [], "failed": []}));
    change(&desk, "echo", |manifest| manifest["version"] = "0.2.0".into());
    let newer = check();
    assert_eq!(newer["packages"][0]["newer"], "0.2.0");
    assert_eq!(newer["packages"][0]["asks"], false);
    let files = json!({"added": [], "changed": ["manifest.json"], "removed": []});
    assert_eq!(newer["packages"][0]["files"], files);
    let shown = desk.done(&["update", "--check"]).stdout;
    assert!(shown.contains("files changed: manifest.json\n"), "{shown}");
    assert_eq!(version(&desk, "demo.echo"), "0.1.0");
    // Nothing more is asked for, so nobody is asked.
    desk.done(&["update"]);
    assert_eq!(version(&desk, "demo.echo"), "0.2.0");
    // More is.
    change(&desk, "echo", |manifest| manifest["version"] = "0.3.0".into());
    fs::create_dir_all(desk.path("echo/meta")).unwrap();
    let companion = json!({"haft": "1", "permissions": {"network": ["api.example.com"]}});
    fs::write(desk.path("echo/meta/haft.json"), companion.to_string()).unwrap();
    let newer = check();
    assert_eq!(newer["packages"][0]["asks"], true, "{newer}");
    assert!(newer["packages"][0]["changes"].to_string().contains("api.example.com"), "{newer}");
    let ran = desk.haft(&["update"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("its card has to be accepted"), "{}", ran.stderr);
    assert_eq!(version(&desk, "demo.echo"), "0.2.0");
    desk.done(&["update", "demo.echo", "--yes"]);
    assert_eq!(version(&desk, "demo.echo"), "0.3.0");
    desk.done(&["rollback", "demo.echo"]);
    assert_eq!(version(&desk, "demo.echo"), "0.2.0");
    // Other bytes under the same version are no update, and a source that is gone is told.
    change(&desk, "echo", |manifest| manifest["version"] = "0.2.0".into());
    desk.refused(&["update"], 5, "it was changed, and is still called 0.2.0");
    fs::rename(desk.path("echo"), desk.path("elsewhere")).unwrap();
    desk.refused(&["update"], 3, "`mcpkg:demo.echo`: failed to read");
    assert_eq!(version(&desk, "demo.echo"), "0.2.0");
    desk.refused(&["update", "nothing"], 3, "`nothing` is not installed");
}

#[test]
fn an_update_whose_smoke_test_fails_leaves_the_old_version() {
    let desk = Desk::new();
    let copied = Command::new("cp")
        .arg("-r")
        .args([&repository().join("examples/install-manifest/json-format"), &desk.path("tool")])
        .status();
    assert!(copied.unwrap().success());
    desk.done(&["install", "./tool", "--yes", "-q"]);
    let before = version(&desk, "json-format");
    change(&desk, "tool", |manifest| {
        manifest["tool"]["version"] = "9.0.0".into();
        manifest["smoke"] =
            json!({"kind": "shell", "command": ["false"], "success": {"exit_code": 0}});
    });
    desk.refused(&["update", "--yes"], 1, "its smoke test failed");
    assert_eq!(version(&desk, "json-format"), before);
    desk.done(&["call", "json-format", "sort_keys", r#"{"b":1}"#]);
    // What works is not given up for what does not; whoever wants to find out why may keep it in the place of what is off.
    let keeping = ["install", "./tool", "--yes", "--on-smoke-fail", "keep-disabled"];
    desk.refused(&keeping, 1, "the version before it stays");
    assert_eq!(version(&desk, "json-format"), before);
    desk.done(&["disable", "json-format", "-q"]);
    desk.refused(&keeping, 1, "so it is installed and disabled");
    assert_eq!(version(&desk, "json-format"), "9.0.0");
    assert_eq!(desk.done(&["list", "--json"]).json()["packages"][0]["enabled"], false);
    let back = desk.done(&["rollback", "json-format"]);
    assert_eq!(version(&desk, "json-format"), before);
    assert!(back.stderr.contains("it is disabled: `haft enable"), "{}", back.stderr);
    desk.done(&["doctor", "-q"]);
}

#[test]
fn a_lockfile_makes_another_home_the_same_or_leaves_it_as_it_was() {
    let desk = Desk::new();
    desk.echo();
    let served = Served::known_to(&desk, "acme");
    desk.done(&["publish", "./echo", "--no-sign", "-q"]);
    let policy = "[trust]\nallow = [\"local\", \"verified\", \"community\"]\n";
    fs::write(desk.path("home/policy.toml"), policy).unwrap();
    desk.done(&["install", "demo.echo", "--yes", "-q"]);
    let greet = repository().join("examples/capability/greet");
    desk.done(&["install", greet.to_str().unwrap(), "--yes", "-q"]);
    desk.done(&["lock", "-o", "haft.lock"]);
    let lock = fs::read(desk.path("haft.lock")).unwrap();

    let there = Desk::new();
    fs::create_dir_all(there.path("home")).unwrap();
    fs::write(there.path("home/policy.toml"), policy).unwrap();
    there.done(&["registry", "add", "acme", &served.url]);
    let stats = repository().join("examples/mcpkg/text-stats");
    there.done(&["install", stats.to_str().unwrap(), "--yes", "-q"]);
    let file = desk.path("haft.lock");
    let file = file.to_str().unwrap();
    there.refused(&["sync", "--locked", file], 4, "--yes says so beforehand");
    there.done(&["sync", "--locked", file, "--yes"]);
    assert_eq!(fs::read(there.path("home/haft.lock")).unwrap(), lock);
    assert_eq!(there.done(&["call", "demo.echo", r#"{"message":"hi"}"#]).json()["message"], "hi");
    there.done(&["doctor", "-q"]);
    let again = there.done(&["sync", "--locked", file, "--yes", "--json"]).json();
    assert_eq!(again, json!({"packages": 2, "brought": [], "removed": []}));

    // The lock lies in a home that has nothing else, and nobody can be asked: what was fetched before will do.
    for folder in ["packages", "tools"] {
        fs::remove_dir_all(there.path("home").join(folder)).unwrap();
    }
    drop(served);
    there.done(&["sync", "--locked", "--yes", "--offline"]);
    there.done(&["doctor", "-q"]);

    // One digest that is another, and nothing is changed.
    let other = Desk::new();
    fs::create_dir_all(other.path("home")).unwrap();
    fs::write(other.path("home/policy.toml"), policy).unwrap();
    let mut changed: Value = serde_json::from_slice(&lock).unwrap();
    changed["packages"][0]["package"] = format!("sha256:{}", "1".repeat(64)).into();
    fs::write(other.path("changed.lock"), changed.to_string()).unwrap();
    other.refused(&["sync", "--locked", "changed.lock", "--yes"], 2, "is not what the lock says");
    assert_eq!(other.done(&["list", "--json"]).json(), json!({"packages": []}));
    other.refused(&["sync", "--locked", "nothing.lock"], 3, "nothing.lock");
    fs::write(other.path("bad.lock"), "{}").unwrap();
    other.refused(&["sync", "bad.lock"], 2, "is no lockfile");
}

/// A server whose tool is described as a setting says.
const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "moody", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "say", "description": "Says " + os.environ.get("MOOD", "hi"),
                             "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": os.environ.get("MOOD", "hi")}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

#[test]
fn a_server_that_offers_something_else_is_not_called_until_that_is_approved() {
    let desk = Desk::new();
    fs::create_dir(desk.path("moody")).unwrap();
    fs::write(desk.path("moody/server.py"), SERVER).unwrap();
    let manifest = json!({
        "manifest_version": "0.3", "name": "moody", "version": "1.0.0", "description": "Has moods.",
        "author": {"name": "Acme"},
        "server": {
            "type": "python", "entry_point": "server.py",
            "mcp_config": {
                "command": "python3", "args": ["${__dirname}/server.py"],
                "env": {"MOOD": "${user_config.mood}"},
            },
        },
        "user_config": {"mood": {"type": "string", "title": "Mood", "description": "Which", "default": "hi"}},
    });
    fs::write(desk.path("moody/manifest.json"), manifest.to_string()).unwrap();
    let installed = desk.done(&["install", "./moody", "--yes"]);
    for words in ["Its server offers 1 tool", "It offers:\n  say  Says hi"] {
        assert!(installed.stderr.contains(words), "{words}: {}", installed.stderr);
    }
    assert_eq!(desk.done(&["list", "--json"]).json()["packages"][0]["actions"], json!(["say"]));
    assert_eq!(desk.done(&["call", "moody", "say"]).stdout.trim(), "hi");
    let locked = || -> Value {
        let lock = fs::read(desk.path("home/haft.lock")).unwrap();
        serde_json::from_slice::<Value>(&lock).unwrap()["packages"][0]["surface"].clone()
    };
    let before = locked();
    let set = desk.haft_with(&["secret", "set", "mcpb:moody", "mood"], Some("grim"));
    assert_eq!(set.code, 0, "{}", set.stderr);
    let blocked = desk.haft(&["call", "moody", "say"]);
    assert_eq!(blocked.code, 4, "{}", blocked.stderr);
    for words in ["not those that you approved", "Says grim", "haft approve surface"] {
        assert!(blocked.stderr.contains(words), "{words}: {}", blocked.stderr);
    }
    // Nobody is there to approve it, and another digest is none.
    let unasked = desk.haft(&["approve", "surface", "moody"]);
    assert_eq!(unasked.code, 4, "{}", unasked.stderr);
    let digest = unasked.stderr.split("--digest ").nth(1).unwrap().split('`').next().unwrap();
    let other = format!("sha256:{}", "0".repeat(64));
    desk.refused(&["approve", "surface", "moody", "--digest", &other], 4, "another digest");
    assert_eq!(locked(), before);
    desk.done(&["approve", "surface", "moody", "--digest", digest]);
    assert_eq!(locked(), digest);
    assert_eq!(desk.done(&["call", "moody", "say"]).stdout.trim(), "grim");
    // Nothing but what it offers is new in an update: --yes approves of that, and nothing else does.
    change(&desk, "moody", |manifest| manifest["version"] = "1.1.0".into());
    let server = SERVER.replace("Says ", "Tells ");
    assert_ne!(server, SERVER);
    fs::write(desk.path("moody/server.py"), server).unwrap();
    desk.refused(&["update", "moody"], 4, "you did not approve what its server offers now");
    assert_eq!(version(&desk, "moody"), "1.0.0");
    desk.done(&["update", "moody", "--yes"]);
    assert_eq!(version(&desk, "moody"), "1.1.0");
    let same = desk.done(&["approve", "surface", "moody", "--json"]).json();
    assert_eq!(same["changed"], false);
    desk.echo();
    desk.done(&["install", "./echo", "--yes", "-q"]);
    desk.refused(&["approve", "surface", "demo.echo"], 2, "has no server");
}

#[test]
fn what_was_taken_back_comes_only_by_a_lockfile_and_never_where_it_endangers() {
    const LOCKED: &[&str] = &["sync", "--locked", "kept.lock", "--yes", "-q"];
    const OFFLINE: &[&str] = &["sync", "--locked", "kept.lock", "--yes", "-q", "--offline"];
    const ALONE: &[&str] = &["install", "demo.echo@0.1.0", "--yes", "--offline"];
    let desk = Desk::new();
    desk.echo();
    let _served = Served::known_to(&desk, "acme");
    desk.done(&["publish", "./echo", "--no-sign", "-q"]);
    let allowed = "[trust]\nallow = [\"local\", \"verified\", \"community\"]\n";
    fs::write(desk.path("home/policy.toml"), allowed).unwrap();
    desk.done(&["install", "demo.echo@0.1.0", "--yes", "-q"]);
    desk.done(&["lock", "-o", "kept.lock"]);
    let brought = |words: &[&str]| {
        desk.done(words);
        assert_eq!(version(&desk, "demo.echo"), "0.1.0");
        desk.done(&["remove", "demo.echo"]);
    };
    desk.done(&["remove", "demo.echo"]);
    desk.done(&["yank", "demo.echo@0.1.0", "--reason", "loses data"]);
    desk.refused(&["install", "demo.echo@0.1.0", "--yes"], 4, "was taken back: loses data");
    brought(LOCKED);
    brought(OFFLINE);
    desk.done(&["yank", "demo.echo@0.1.0", "--security", "--reason", "leaks"]);
    // Nobody here has heard of it yet.
    brought(OFFLINE);
    for words in [LOCKED, OFFLINE, ALONE, &["install", "demo.echo@0.1.0", "--yes"], OFFLINE] {
        desk.refused(words, 4, "was taken back for security: leaks");
        assert_eq!(desk.done(&["list", "--json"]).json()["packages"], json!([]), "{words:?}");
    }
    desk.done(&["yank", "demo.echo@0.1.0", "--undo"]);
    desk.refused(OFFLINE, 4, "was taken back for security: leaks");
    brought(LOCKED);
    brought(OFFLINE);
}

/// A package whose next version takes a while to be tried.
fn slow_update(desk: &Desk) {
    let source = repository().join("examples/install-manifest/json-format");
    let copied = Command::new("cp").arg("-r").args([&source, &desk.path("tool")]).status();
    assert!(copied.unwrap().success());
    desk.done(&["install", "./tool", "--yes", "-q"]);
    change(desk, "tool", |manifest| {
        manifest["tool"]["version"] = "9.0.0".into();
        manifest["smoke"] =
            json!({"kind": "shell", "command": ["sleep", "4"], "success": {"exit_code": 0}});
    });
}

#[test]
fn what_is_revoked_or_removed_while_it_is_updated_stays_so() {
    for (verb, words) in [("revoke", "was revoked"), ("remove", "was removed in the meantime")] {
        let desk = Desk::new();
        slow_update(&desk);
        std::thread::scope(|scope| {
            let update = scope.spawn(|| desk.haft(&["update", "--yes"]));
            std::thread::sleep(std::time::Duration::from_millis(1500));
            desk.done(if verb == "revoke" {
                &["revoke", "json-format", "--yes"]
            } else {
                &["remove", "json-format"]
            });
            let ran = update.join().unwrap();
            assert_eq!(ran.code, 5, "{verb}: {}", ran.stderr);
            assert!(ran.stderr.contains(words), "{verb}: {}", ran.stderr);
        });
        assert_ne!(desk.haft(&["call", "json-format", "sort_keys", "{}"]).code, 0);
        desk.done(&["doctor", "-q"]);
        desk.done(&["install", "./tool", "--yes", "-q"]);
    }
}

#[test]
fn a_version_that_somebody_went_back_from_is_still_what_it_was() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["install", "./echo", "--yes", "-q"]);
    change(&desk, "echo", |manifest| manifest["version"] = "0.2.0".into());
    desk.done(&["update", "-q"]);
    desk.done(&["rollback", "demo.echo"]);
    fs::write(desk.path("echo/more.txt"), "other bytes").unwrap();
    desk.refused(&["update"], 5, "a version never changes");
    desk.refused(&["install", "./echo", "--yes"], 5, "a version never changes");
    assert_eq!(version(&desk, "demo.echo"), "0.1.0");
}

#[test]
fn whoever_has_a_version_that_was_taken_back_for_security_is_told() {
    let desk = Desk::new();
    desk.echo();
    let _served = Served::known_to(&desk, "acme");
    desk.done(&["publish", "./echo", "--no-sign", "-q"]);
    fs::write(desk.path("home/policy.toml"), "[trust]\nallow = [\"community\"]\n").unwrap();
    desk.done(&["install", "demo.echo", "--yes", "-q"]);
    desk.done(&["yank", "demo.echo@0.1.0", "--security", "--reason", "it leaks"]);
    let told = "mcpkg:demo.echo 0.1.0 was taken back for security: it leaks";
    for verb in [&["update", "--check"][..], &["update"], &["update", "--offline"]] {
        let ran = desk.haft(verb);
        assert!(ran.stderr.contains(told), "{verb:?}: {}", ran.stderr);
    }
    let back = desk.haft(&["update", "--check", "--json"]).json();
    assert_eq!(back["taken_back"][0]["security"], true, "{back}");
    assert!(desk.done(&["status", "demo.echo"]).stdout.contains("for security: it leaks"));
    let ran = desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]);
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn a_lockfile_of_somebody_else_vouches_for_no_registry_and_says_what_it_is() {
    let desk = Desk::new();
    desk.echo();
    let _served = Served::known_to(&desk, "acme");
    desk.done(&["publish", "./echo", "--no-sign", "-q"]);
    let policy = "[trust]\nallow = [\"local\", \"community\"]\n";
    fs::write(desk.path("home/policy.toml"), policy).unwrap();
    desk.done(&["install", "demo.echo", "--yes", "-q"]);
    desk.done(&["lock", "-o", "haft.lock"]);
    let there = Desk::new();
    fs::create_dir_all(there.path("home")).unwrap();
    fs::write(there.path("home/policy.toml"), policy).unwrap();
    let file = desk.path("haft.lock");
    let sync = ["sync", "--locked", file.to_str().unwrap(), "--yes"];
    there.refused(&sync, 4, "trust_level not allowed by policy: untrusted");
    // What it says of a version must be so.
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"0.1.0\"", "\"9.9.9\"")).unwrap();
    assert_ne!(desk.haft(&sync).code, 0);
    let local = Desk::new();
    local.echo();
    local.done(&["install", "./echo", "--yes", "-q"]);
    local.done(&["lock", "-o", "haft.lock"]);
    let text = fs::read_to_string(local.path("haft.lock")).unwrap();
    fs::write(local.path("haft.lock"), text.replace("\"0.1.0\"", "\"9.9.9\"")).unwrap();
    local.done(&["reset", "--yes"]);
    local.refused(
        &["sync", "--locked", "haft.lock", "--yes"],
        2,
        "is not what the lock says of it",
    );
}

#[test]
fn all_values_that_a_lockfile_s_packages_lack_are_told_at_once() {
    let desk = Desk::new();
    for id in ["first", "second"] {
        let mut manifest = common::greeting(id);
        manifest["env"] =
            json!([{"name": "KEY", "secret": true, "required": true, "prompt": "It."}]);
        manifest["kill_switch"] = json!({"kind": "manual", "instructions": "Nothing."});
        common::write_below(&desk.path(id), "manifest.json", &manifest.to_string());
        let id = format!("install-manifest:{id}");
        assert_eq!(desk.haft_with(&["secret", "set", &id, "KEY"], Some("s3cret-key")).code, 0);
    }
    desk.done(&["install", "./first", "--yes", "-q"]);
    desk.done(&["install", "./second", "--yes", "-q"]);
    desk.done(&["lock", "-o", "haft.lock"]);
    let home = desk.path("other");
    let sync = ["--home", home.to_str().unwrap(), "sync", "--locked", "haft.lock", "--yes"];
    let ran = common::run_in(desk.0.path(), &sync, None);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    for words in [
        "2 packages lack values",
        "secret set install-manifest:first KEY",
        "secret set install-manifest:second KEY",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
}
