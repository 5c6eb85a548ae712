//! The home of a project says which packages are used in it, once its owner trusts it, and never what they may do.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use common::{Desk, Ran, repository, run_in};
use serde_json::{Value, json};

/// Runs a verb in the folder of the project, with the user's home of the desk.
fn within(desk: &Desk, arguments: &[&str]) -> Ran {
    let home = desk.path("home");
    fs::create_dir_all(desk.path("project/src")).unwrap();
    let all = [&["--home", home.to_str().unwrap()], arguments].concat();
    run_in(&desk.path("project/src"), &all, None)
}

fn done(desk: &Desk, arguments: &[&str]) -> Ran {
    let ran = within(desk, arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran
}

fn refused(desk: &Desk, arguments: &[&str], code: i32, words: &str) {
    let ran = within(desk, arguments);
    assert_eq!(ran.code, code, "{arguments:?}: {} {}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
}

/// Echo at a version that says so itself.
fn echo(desk: &Desk, version: &str) -> PathBuf {
    let folder = desk.path(&format!("echo-{version}"));
    let source = repository().join("examples/mcpkg/echo");
    let copied = Command::new("cp").arg("-r").args([&source, &folder]).status();
    assert!(copied.unwrap().success());
    let manifest = folder.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"0.1.0\"", &format!("\"{version}\""))).unwrap();
    folder
}

fn install(desk: &Desk, version: &str) {
    let folder = echo(desk, version);
    desk.done(&["install", folder.to_str().unwrap(), "--yes", "-q"]);
}

/// Writes what is installed now into the project's lockfile.
fn lock(desk: &Desk) {
    fs::create_dir_all(desk.path("project/.mcp")).unwrap();
    let place = desk.path("project/.mcp/haft.lock");
    desk.done(&["lock", "-o", place.to_str().unwrap(), "-q"]);
}

fn listed(desk: &Desk) -> Value {
    done(desk, &["list", "--json"]).json()["packages"].clone()
}

const CALL: [&str; 3] = ["call", "demo.echo", r#"{"message":"hi"}"#];

#[test]
fn a_project_counts_for_nothing_until_it_is_trusted_and_chooses_a_version_then() {
    let desk = Desk::new();
    install(&desk, "0.1.0");
    lock(&desk);
    install(&desk, "0.2.0");
    let ran = done(&desk, &["list", "--json"]);
    assert!(
        ran.stderr.contains("that you do not trust") && ran.stderr.contains("haft trust"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.json()["packages"][0]["version"], "0.2.0");
    assert_eq!(ran.json()["packages"][0]["layer"], "local");
    done(&desk, &["trust", ".."]);
    let one = listed(&desk)[0].clone();
    assert_eq!((&one["version"], &one["layer"]), (&json!("0.1.0"), &json!("project")));
    assert_eq!(done(&desk, &CALL).stdout, "{\"message\":\"hi\"}\n");
    let status = done(&desk, &["status", "demo.echo", "--json"]).json();
    assert_eq!((&status["version"], &status["layer"]), (&json!("0.1.0"), &json!("project")));
    // Elsewhere nothing has changed.
    assert_eq!(desk.done(&["list", "--json"]).json()["packages"][0]["version"], "0.2.0");
    // One byte more, and it counts for nothing again.
    let place = desk.path("project/.mcp/haft.lock");
    let text = fs::read_to_string(&place).unwrap();
    fs::write(&place, format!("{text}\n")).unwrap();
    let ran = done(&desk, &["list", "--json"]);
    assert!(ran.stderr.contains("has changed since you trusted it"), "{}", ran.stderr);
    assert_eq!(ran.json()["packages"][0]["version"], "0.2.0");
    fs::write(&place, text).unwrap();
    assert_eq!(listed(&desk)[0]["version"], "0.1.0");
}

#[test]
fn trust_is_listed_and_taken_back() {
    let desk = Desk::new();
    install(&desk, "0.1.0");
    lock(&desk);
    let told = done(&desk, &["trust", "..", "--json"]).json();
    assert_eq!(told["packages"], json!(["mcpkg:demo.echo"]));
    let projects = || done(&desk, &["trust", "--list", "--json"]).json()["projects"].clone();
    assert_eq!(
        (&projects()[0]["state"], &projects()[0]["digest"]),
        (&json!("trusted"), &told["digest"])
    );
    fs::write(desk.path("project/.mcp/manifest.local.json"), "{\"capabilities\": []}").unwrap();
    assert_eq!(projects()[0]["state"], "changed");
    done(&desk, &["trust", "--forget", ".."]);
    assert_eq!(projects(), json!([]));
    refused(&desk, &["trust", "--forget", ".."], 3, "is not trusted");
    refused(&desk, &["trust", "."], 3, "there is no");
    refused(&desk, &["trust"], 2, "required");
    let home = desk.path("home");
    fs::create_dir_all(desk.path("other")).unwrap();
    fs::write(desk.path("project/.mcp/haft.lock"), "{").unwrap();
    refused(&desk, &["trust", ".."], 2, "haft.lock");
    refused(&desk, &["list", "--json"], 0, "counts for nothing");
    let linked = desk.path("linked");
    fs::create_dir_all(&linked).unwrap();
    std::os::unix::fs::symlink(&home, linked.join(".mcp")).unwrap();
    refused(&desk, &["trust", linked.to_str().unwrap()], 2, "is no folder");
}

#[test]
fn what_a_project_names_runs_only_as_it_was_agreed_to_in_the_user_s_home() {
    let desk = Desk::new();
    install(&desk, "0.1.0");
    lock(&desk);
    // A package that lies in the project itself, with a record of its own making.
    let packages = desk.path("project/.mcp/packages");
    let copied =
        Command::new("cp").arg("-r").args([&desk.path("home/packages"), &packages]).status();
    assert!(copied.unwrap().success());
    done(&desk, &["trust", ".."]);
    desk.done(&["remove", "demo.echo"]);
    let one = listed(&desk)[0].clone();
    assert_eq!((&one["trust"], &one["layer"]), (&json!("untrusted"), &json!("project")));
    refused(&desk, &CALL, 6, "which is not installed with those bytes");
    // The same version with other bytes is another package.
    let folder = echo(&desk, "0.1.0-x");
    let manifest = folder.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("0.1.0-x", "0.1.0").replace("Echo", "Oche")).unwrap();
    desk.done(&["install", folder.to_str().unwrap(), "--yes", "-q"]);
    refused(&desk, &CALL, 6, "which is not installed with those bytes");
    desk.done(&CALL);
}

#[test]
fn a_project_narrows_and_never_widens() {
    let desk = Desk::new();
    install(&desk, "0.1.0");
    lock(&desk);
    let home = desk.path("project/.mcp");
    // Policy, grants, secrets and keys of a project are nobody's.
    fs::write(home.join("policy.toml"), "[trust]\nallow = [\"untrusted\"]\n").unwrap();
    fs::create_dir_all(home.join("keys")).unwrap();
    done(&desk, &["trust", ".."]);
    desk.done(&["disable", "demo.echo"]);
    refused(&desk, &CALL, 4, "capability disabled");
    desk.done(&["enable", "demo.echo"]);
    done(&desk, &CALL);
    // What its catalog switches off is off in the project, and what it claims of trust counts for nothing.
    let entry = |id: &str, enabled: bool| {
        json!({
            "id": id, "type": "tool", "version": "0.1.0", "description": "x",
            "origin": {"source": "local", "digest": "0".repeat(64)},
            "interfaces": {"inputs": {}, "outputs": {}},
            "permissions": {"network": "deny", "filesystem": "none", "devices": []},
            "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "64Mi"}},
            "trust_level": "local", "enabled": enabled,
        })
    };
    let entries =
        json!({"capabilities": [entry("mcpkg:demo.echo", false), entry("demo.own", true)]});
    fs::write(home.join("manifest.local.json"), entries.to_string()).unwrap();
    let before = done(&desk, &["list", "--json"]);
    assert!(before.stderr.contains("has changed since you trusted it"), "{}", before.stderr);
    done(&desk, &CALL);
    done(&desk, &["trust", ".."]);
    let all = listed(&desk);
    let found = |id: &str| all.as_array().unwrap().iter().find(|one| one["id"] == id).unwrap();
    assert_eq!(found("mcpkg:demo.echo")["enabled"], false);
    assert_eq!(found("capability:demo.own")["trust"], "untrusted");
    refused(&desk, &CALL, 4, "capability disabled");
    refused(&desk, &["call", "demo.own", "{}"], 6, "not installed");
    // Who looks is told so.
    let own = found("capability:demo.own");
    assert_eq!((&own["state"], &own["enabled"]), (&json!("declared"), &json!(false)));
    let status = done(&desk, &["status", "demo.own"]).stdout;
    assert!(status.contains("declared by") && status.contains("nobody has agreed"), "{status}");
    let shown = done(&desk, &["show", "demo.own"]);
    assert!(shown.stderr.contains("A catalog declares it"), "{}", shown.stderr);
    assert!(shown.stdout.contains("capability:demo.own 0.1.0"), "{}", shown.stdout);
    let status = done(&desk, &["status", "demo.echo"]).stdout;
    assert!(status.contains("the project's catalog switches it off"), "{status}");
    let enabled = done(&desk, &["enable", "demo.echo"]).stderr;
    assert!(enabled.contains("in this folder the project's catalog switches it off"), "{enabled}");
    // The user's own home is as it was.
    desk.done(&CALL);
    refused(&desk, &["remove", "demo.own"], 3, "is not installed");
}

#[test]
fn the_user_s_home_is_no_project() {
    let desk = Desk::new();
    install(&desk, "0.1.0");
    // The working folder lies below a home that is called as a project's would be.
    fs::rename(desk.path("home"), desk.path(".mcp")).unwrap();
    fs::create_dir_all(desk.path("work")).unwrap();
    let home = desk.path(".mcp");
    let ran = run_in(&desk.path("work"), &["--home", home.to_str().unwrap(), "list"], None);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let ran = run_in(&desk.path("work"), &["--home", home.to_str().unwrap(), "trust", ".."], None);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("your own home"), "{}", ran.stderr);
}

#[test]
fn a_project_that_brings_its_tools_is_the_same_wherever_it_lies() {
    let desk = Desk::new();
    fs::create_dir_all(desk.path("project/tools")).unwrap();
    fs::rename(echo(&desk, "0.1.0"), desk.path("project/tools/echo")).unwrap();
    desk.done(&["install", "./project/tools/echo", "--yes", "-q"]);
    lock(&desk);
    // Somebody else has it in another place, and in a home of their own.
    let there = Desk::new();
    let copied =
        Command::new("cp").arg("-r").args([desk.path("project"), there.path("project")]).status();
    assert!(copied.unwrap().success());
    drop(desk);
    done(&there, &["trust", ".."]);
    assert_eq!(listed(&there)[0]["state"], "absent");
    refused(&there, &["list"], 0, "`haft sync .mcp/haft.lock`");
    refused(&there, &CALL, 6, "not installed with those bytes");
    done(&there, &["sync", "../.mcp/haft.lock", "--yes"]);
    done(&there, &CALL);
    assert_eq!(listed(&there)[0]["enabled"], true);
}
