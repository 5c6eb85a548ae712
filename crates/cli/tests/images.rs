//! A package that is a container image: pulled when it is installed, and called in its files.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use common::{Desk, names, repository};
use serde_json::{Value, json};

/// A registry of images on the loopback, until this is dropped.
struct Registry {
    server: Child,
    world: Value,
}

impl Registry {
    fn new() -> Self {
        let mut server = Command::new("python3")
            .arg(repository().join("crates/install/tests/acquire/images.py"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
        Self { server, world: serde_json::from_str(&said).unwrap() }
    }

    fn seen(&self) -> usize {
        let port = u16::try_from(self.world["port"].as_u64().unwrap()).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET /seen HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str::<Vec<Value>>(body).unwrap().len()
    }

    /// A desk whose owner has images from here.
    fn desk(&self) -> Desk {
        let desk = Desk::new();
        fs::create_dir(desk.path("home")).unwrap();
        let policy = format!("[sources]\nimages = \"http://127.0.0.1:{}\"\n", self.world["port"]);
        fs::write(desk.path("home/policy.toml"), policy).unwrap();
        desk
    }

    fn image(&self, way: &str, which: &str) -> String {
        format!("images.test/{way}/greet@{}", self.world[which].as_str().unwrap())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ended_already = self.server.kill();
        let _ended_already = self.server.wait();
    }
}

/// A tool that is an image, in a folder of its own.
fn tool(desk: &Desk, id: &str, image: &str) {
    let text = json!({"type": "string"});
    let manifest = json!({
        "manifest_version": "0.2",
        "tool": {
            "id": id, "name": id, "version": "1.0.0", "summary": "A test", "description": "A test.",
            "homepage": "https://example.com", "author": {"name": "Acme"}, "license": "MIT",
        },
        "runtime": {
            "kind": "container", "install": {"method": "container", "image": image},
            "entrypoint": {"command": ["greet"]},
        },
        "env": [], "scopes": [],
        "kill_switch": {"kind": "manual", "instructions_url": "https://example.com"},
        "smoke": {
            "kind": "action-call", "action": "greet", "arguments": {"name": "smoke"},
            "success": {"no_error_field": true, "stdout_regex": "from the image"},
        },
        "actions": [{
            "name": "greet", "summary": "Greets", "side_effects": "none",
            "invocation": {"kind": "subcommand", "argv_template": ["${input.name}"]},
            "input": {"type": "object", "properties": {"name": text}}, "output": {"format": "text"},
        }],
    });
    fs::create_dir(desk.path(id)).unwrap();
    fs::write(desk.path(id).join("manifest.json"), manifest.to_string()).unwrap();
}

fn greet(desk: &Desk, id: &str) -> String {
    desk.done(&["call", id, "greet", r#"{"name":"you"}"#]).stdout.trim().to_owned()
}

#[test]
fn an_image_is_pulled_by_its_digest_tried_and_called_and_a_second_time_needs_no_network() {
    let registry = Registry::new();
    let desk = registry.desk();
    tool(&desk, "greeter", &registry.image("locked", "index"));
    let installed = desk.done(&["install", "./greeter", "--yes"]);
    assert!(installed.stderr.contains("Smoke test passed"), "{}", installed.stderr);
    assert_eq!(greet(&desk, "greeter"), "hello you from the image");
    desk.done(&["doctor", "-q"]);
    let folder = desk.done(&["status", "greeter", "--json"]).json()["folder"].clone();
    let layout = format!("{}/.haft/acquired/image", folder.as_str().unwrap());
    assert_eq!(names(layout.as_ref()), ["blobs", "index.json", "oci-layout"]);
    // The image and each part of it are in the lock.
    let lock: Value =
        serde_json::from_slice(&fs::read(desk.path("home/haft.lock")).unwrap()).unwrap();
    let artefacts = lock["packages"][0]["artefacts"].as_array().unwrap();
    let digest = registry.world["index"].as_str().unwrap();
    assert_eq!(artefacts[0]["sha256"].as_str().unwrap(), &digest["sha256:".len()..]);
    assert_eq!(artefacts.len(), 5, "{artefacts:?}");
    // What was unpacked goes one day, and comes from the layout again.
    fs::remove_dir_all(desk.path("home/images")).unwrap();
    assert_eq!(greet(&desk, "greeter"), "hello you from the image");
    // Who changes a part is noticed.
    let part = format!("{layout}/blobs/sha256/{}", &digest["sha256:".len()..]);
    fs::write(&part, "{}").unwrap();
    let status = desk.done(&["status", "greeter", "--json"]).json();
    assert!(status["changed"].to_string().contains(&digest["sha256:".len()..]), "{status}");
    desk.done(&["remove", "greeter"]);
    fs::remove_dir_all(desk.path("home/images")).unwrap();
    let before = registry.seen();
    desk.done(&["install", "./greeter", "--yes", "--offline", "-q"]);
    assert_eq!(registry.seen(), before);
    assert_eq!(greet(&desk, "greeter"), "hello you from the image");
}

#[test]
fn a_lock_brings_the_same_image_to_another_home() {
    let registry = Registry::new();
    let desk = registry.desk();
    tool(&desk, "greeter", &registry.image("plain", "manifest"));
    desk.done(&["install", "./greeter", "--yes", "-q"]);
    let lock = fs::read(desk.path("home/haft.lock")).unwrap();
    // The same desk with a home that has nothing but the lock, the policy and what was kept.
    for folder in ["packages", "tools", "images"] {
        fs::remove_dir_all(desk.path("home").join(folder)).unwrap();
    }
    fs::remove_file(desk.path("home/manifest.local.json")).unwrap();
    fs::remove_file(desk.path("home/haft.lock")).unwrap();
    fs::write(desk.path("haft.lock"), &lock).unwrap();
    drop(registry);
    desk.done(&["sync", "haft.lock", "--locked", "--offline", "--yes", "-q"]);
    assert_eq!(greet(&desk, "greeter"), "hello you from the image");
    assert_eq!(fs::read(desk.path("home/haft.lock")).unwrap(), lock);
}

#[test]
fn an_image_that_is_not_what_was_described_leaves_nothing() {
    let registry = Registry::new();
    let desk = registry.desk();
    for (id, way, which, code) in [
        ("other", "wrong", "manifest", 2),
        ("half", "short", "manifest", 2),
        ("elsewhere", "plain", "alien", 6),
        ("nowhere", "none", "manifest", 3),
        ("astray", "astray", "manifest", 2),
        ("closed", "closed", "manifest", 3),
    ] {
        let image = registry.image(way, which);
        let image = if way == "none" { image.replace("greet@", "gone@") } else { image };
        tool(&desk, id, &image);
        let ran = desk.haft(&["install", &format!("./{id}"), "--yes"]);
        assert_eq!(ran.code, code, "{id}: {}", ran.stderr);
        assert!(ran.stderr.contains("so it is not installed"), "{id}: {}", ran.stderr);
    }
    assert_eq!(desk.done(&["list", "--json"]).json(), json!({"packages": []}));
    for folder in ["packages", "tools", "staging", "images"] {
        let entries = fs::read_dir(desk.path("home").join(folder)).into_iter().flatten();
        assert_eq!(entries.count(), 0, "{folder}");
    }
    desk.done(&["doctor", "-q"]);
}
