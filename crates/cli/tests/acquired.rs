//! What a package needs beside its files is acquired when it is installed, and found by it when it is called.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use common::{Desk, repository};
use serde_json::{Value, json};

/// Indexes and a repository on the loopback, until this is dropped.
struct World {
    server: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Command::new("python3")
            .arg(repository().join("crates/install/tests/acquire/world.py"))
            .arg(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
        Self { server, port: said.trim().parse().unwrap(), _folder: folder }
    }

    fn ask(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// A desk whose owner has their packages from here.
    fn desk(&self) -> Desk {
        let desk = Desk::new();
        let port = self.port;
        let policy = format!(
            "[sources]\npip = [\"http://127.0.0.1:{port}/simple/\"]\nnpm = \"http://127.0.0.1:{port}/npm/\"\n"
        );
        fs::create_dir(desk.path("home")).unwrap();
        fs::write(desk.path("home/policy.toml"), policy).unwrap();
        desk
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ended_already = self.server.kill();
        let _ended_already = self.server.wait();
    }
}

/// A tool whose command is acquired, in a folder of its own.
fn tool(desk: &Desk, id: &str, install: &Value, command: &[&str]) {
    let manifest = json!({
        "manifest_version": "0.2",
        "tool": {
            "id": id, "name": id, "version": "1.0.0", "summary": "A test", "description": "A test.",
            "homepage": "https://example.com", "author": {"name": "Acme"}, "license": "MIT",
        },
        "runtime": {"kind": "shell-binary", "install": install, "entrypoint": {"command": command}},
        "env": [], "scopes": [],
        "kill_switch": {"kind": "manual", "instructions_url": "https://example.com"},
        "smoke": {"kind": "shell", "command": command, "success": {"exit_code": 0, "stdout_regex": "hello"}},
        "actions": [{
            "name": "greet", "summary": "Greets", "invocation": {"kind": "subcommand", "argv_template": ["greet"]},
            "input": {"type": "object"}, "output": {"format": "text"}, "side_effects": "none",
        }],
    });
    fs::create_dir(desk.path(id)).unwrap();
    fs::write(desk.path(id).join("manifest.json"), manifest.to_string()).unwrap();
}

#[test]
fn packages_of_python_and_node_are_had_pinned_and_found_and_a_second_time_needs_no_network() {
    let world = World::new();
    let desk = world.desk();
    tool(&desk, "snake", &json!({"method": "pip", "package": "hello-tool"}), &["hello-tool"]);
    tool(
        &desk,
        "leaf",
        &json!({"method": "npm", "package": "hello-node"}),
        &["npx", "-y", "hello-node"],
    );
    for (id, said) in [("snake", "hello world"), ("leaf", "hello leaf")] {
        let installed = desk.done(&["install", &format!("./{id}"), "--yes"]);
        assert!(installed.stderr.contains("Smoke test passed"), "{}", installed.stderr);
        assert_eq!(desk.done(&["call", id, "greet"]).stdout.trim(), said);
    }
    // The card told what would be run.
    let card = desk.done(&["show", "./snake", "--json"]).json();
    let commands = card["cards"][0]["commands"].to_string();
    assert!(
        commands.contains("--only-binary=:all:") && commands.contains("hello-tool"),
        "{commands}"
    );
    // No script of theirs ran, and every file is in the lock.
    assert!(!world.ask("/seen").contains("/ran/"), "{}", world.ask("/seen"));
    let lock: Value =
        serde_json::from_slice(&fs::read(desk.path("home/haft.lock")).unwrap()).unwrap();
    let artefacts = |at: usize| {
        let artefacts = lock["packages"][at]["artefacts"].as_array().unwrap().iter();
        artefacts.map(|one| format!("{} {}", one["name"], one["version"])).collect::<Vec<_>>()
    };
    assert_eq!(artefacts(0), ["\"hello-leaf\" \"1.1.0\"", "\"hello-node\" \"1.0.0\""]);
    assert_eq!(artefacts(1), ["\"hello-dep\" \"2.0\"", "\"hello-tool\" \"1.0\""]);
    desk.done(&["doctor", "-q"]);
    desk.done(&["remove", "snake"]);
    let asked = world.ask("/seen");
    drop(world);
    desk.done(&["install", "./snake", "--yes", "--offline", "-q"]);
    assert_eq!(desk.done(&["call", "snake", "greet"]).stdout.trim(), "hello world");
    assert!(asked.contains("hello"));
    // Whoever changes what was acquired is noticed.
    let installed = desk.done(&["status", "snake", "--json"]).json();
    let folder = installed["folder"].as_str().unwrap().to_owned();
    let module = format!("{folder}/.haft/acquired/python/hello_dep.py");
    fs::write(&module, "word = 'evil'\n").unwrap();
    let status = desk.done(&["status", "snake", "--json"]).json();
    assert_eq!(status["changed"], json!([".haft/acquired/python/hello_dep.py"]));
}

#[test]
fn what_cannot_be_had_leaves_nothing() {
    let world = World::new();
    let desk = world.desk();
    tool(&desk, "none", &json!({"method": "pip", "package": "no-such-package"}), &["x"]);
    tool(&desk, "built", &json!({"method": "pip", "package": "sourced"}), &["x"]);
    tool(&desk, "hello", &json!({"method": "pip", "package": "hello-tool"}), &["no-such-command"]);
    let digest = "0".repeat(64);
    let file = json!({"method": "url", "url": format!("http://127.0.0.1:{}/one/tool", world.port), "sha256": digest});
    tool(&desk, "file", &file, &["tool"]);
    for id in ["none", "built", "hello", "file"] {
        let ran = desk.haft(&["install", &format!("./{id}"), "--yes"]);
        assert!([1, 2, 3, 6].contains(&ran.code), "{id}: {} {}", ran.code, ran.stderr);
        assert!(ran.stderr.contains("so it is not installed"), "{id}: {}", ran.stderr);
    }
    assert!(!world.ask("/seen").contains("/ran/"));
    assert_eq!(desk.done(&["list", "--json"]).json(), json!({"packages": []}));
    for folder in ["packages", "tools", "staging"] {
        let entries = fs::read_dir(desk.path("home").join(folder)).into_iter().flatten();
        assert_eq!(entries.count(), 0, "{folder}");
    }
    desk.done(&["doctor", "-q"]);
}

#[test]
fn what_an_implementation_requires_is_acquired_too() {
    let world = World::new();
    let desk = world.desk();
    fs::create_dir(desk.path("needy")).unwrap();
    let manifest = json!({
        "toolId": "acme.needy", "version": "1.0.0", "name": "Needy",
        "description": "Says a word of another package.",
        "capabilities": ["say"],
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
        "implementations": [{
            "id": "main", "language": "python", "runtime": "python",
            "platforms": ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"],
            "endpoint": {"type": "local", "command": "python3 ./say.py"},
            "requirements": {"packages": ["hello-dep==1.5"]},
        }, {
            // Nobody has what this one wants, which keeps nobody from the other.
            "id": "other", "language": "python",
            "endpoint": {"type": "local", "command": "python3 ./other.py"},
            "requirements": {"packages": ["hello-dep==99", "no-such-thing"]},
        }],
        "tests": [],
    });
    fs::write(desk.path("needy/manifest.json"), manifest.to_string()).unwrap();
    let script = "import json, hello_dep\nprint(json.dumps({'word': hello_dep.word}))\n";
    fs::write(desk.path("needy/say.py"), script).unwrap();
    let valid = desk.haft(&["validate", "./needy"]);
    assert_eq!(valid.code, 0, "{}{}", valid.stdout, valid.stderr);
    desk.done(&["install", "./needy", "--yes", "-q"]);
    assert_eq!(desk.done(&["call", "acme.needy", "{}"]).json(), json!({"word": "old"}));
    let told = desk.done(&["status", "acme.needy"]).stdout;
    assert!(told.contains("other  not here: needs `hello-dep` ==99, which is 1.5"), "{told}");
}

#[test]
fn a_file_that_comes_with_the_package_is_known_by_its_digest() {
    let desk = Desk::new();
    for (name, call, said) in [
        ("word-count", &["word-count", "count", r#"{"text":"a b"}"#][..], "2"),
        ("dice-server", &["dice-server", "roll", r#"{"sides":2}"#], ""),
    ] {
        let place = repository().join("examples/install-manifest").join(name);
        desk.done(&["install", place.to_str().unwrap(), "--yes", "-q"]);
        let ran = desk.haft(&[&["call"][..], call].concat());
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        assert!(ran.stdout.contains(said), "{name}: {}", ran.stdout);
    }
    let copied = Command::new("cp")
        .arg("-r")
        .args([&repository().join("examples/install-manifest/word-count"), &desk.path("changed")])
        .status();
    assert!(copied.unwrap().success());
    let manifest = desk.path("changed/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap().replace("1.2.0", "1.3.0");
    fs::write(&manifest, text.replace("example.com", "example.invalid")).unwrap();
    fs::write(desk.path("changed/word_count.py"), "print('evil')\n").unwrap();
    desk.done(&["remove", "word-count"]);
    fs::remove_dir_all(desk.path("home/cache")).unwrap();
    desk.refused(&["install", "./changed", "--yes"], 6, "so it is not installed");
}
