//! Packages are installed from addresses, from the index of a site and from catalogs; whoever serves something else
//! than they said is refused, and nothing is left of it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod listed;
mod registries;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::served::Served;
use common::site::{Asked, Reply, Site, passed_on};
use common::{Desk, repository};
use package::digest::Digest;
use serde_json::{Value, json};

/// A line of the policy that lets one package in.
fn allow(desk: &Desk, id: &str) {
    fs::create_dir_all(desk.path("home")).unwrap();
    fs::write(desk.path("home/policy.toml"), format!("[package.\"{id}\"]\nallow = true\n"))
        .unwrap();
}

/// Echo, packed.
fn packed(desk: &Desk, more: &[&str]) -> Vec<u8> {
    desk.echo();
    desk.done(&["pack", "./echo", "-o", "echo.mcpkg", "-q"]);
    if !more.is_empty() {
        desk.done(&[&["sign", "echo.mcpkg", "-q"], more].concat());
    }
    fs::read(desk.path("echo.mcpkg")).unwrap()
}

/// What stands at each path.
type Held = BTreeMap<PathBuf, Vec<u8>>;

/// Every folder, file and link of a home with what stands there, but the log, the locks, the state, and answers that are
/// kept.
fn held(desk: &Desk) -> Held {
    let home = desk.path("home");
    let (mut found, mut left) = (Held::new(), vec![home.clone()]);
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(&home).unwrap().to_str().unwrap().to_owned();
            if name.starts_with("state.db")
                || ["audit", "locks", "cache/answers"].contains(&name.as_str())
            {
                continue;
            }
            let content = if kind.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if kind.is_dir() {
                left.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            // Folders for what may be kept are there with the first that might have been.
            if !(kind.is_dir() && name.starts_with("cache")) {
                found.insert(path, content);
            }
        }
    }
    found
}

/// Runs an install that must be refused, and leave nothing.
fn refused(desk: &Desk, arguments: &[&str], code: i32, words: &str) {
    let before = held(desk);
    desk.refused(arguments, code, words);
    check_same(&before, &held(desk), arguments);
}

/// The same where sound packages are kept for the next time.
fn refused_but_cache(desk: &Desk, arguments: &[&str], code: i32, words: &str) {
    let cache = desk.path("home/cache");
    let kept = || {
        let mut all = held(desk);
        all.retain(|path, _| !path.starts_with(&cache));
        all
    };
    let before = kept();
    desk.refused(arguments, code, words);
    check_same(&before, &kept(), arguments);
}

/// Whether nothing came, went or changed; what did is named, since nobody reads the bytes of an archive.
fn check_same(before: &Held, after: &Held, arguments: &[&str]) {
    let is_other = |path: &&PathBuf| before.get(*path) != after.get(*path);
    let differ: Vec<_> = before.keys().chain(after.keys()).filter(is_other).collect();
    assert_eq!(differ, Vec::<&PathBuf>::new(), "{arguments:?}");
}

/// An install-manifest of a program that is on every machine.
fn install_manifest(id: &str) -> Vec<u8> {
    let manifest = json!({
        "manifest_version": "0.4",
        "tool": {
            "id": id, "version": "1.0.0", "name": "Counter", "summary": "Counts words.",
            "homepage": "https://example.com/x", "license": "MIT", "tags": ["text"],
        },
        "runtime": {
            "kind": "shell-binary",
            "install": {
                "method": "preinstalled", "locator": {"kind": "binary-on-path", "binary": "cat"},
            },
            "entrypoint": {"command": ["cat"]},
        },
        "actions": [{
            "name": "count", "summary": "Counts words.",
            "invocation": {"kind": "stdin-json", "argv_template": []},
            "input": {"type": "object", "properties": {"text": {"type": "string"}}},
            "output": {"format": "json", "schema": {"type": "object"}},
            "side_effects": "none", "idempotent": true, "error_envelope": "standard",
        }],
        "env": [], "scopes": [],
        "smoke": {"kind": "shell", "command": ["cat", "--version"], "success": {"exit_code": 0}},
        "kill_switch": {"kind": "none"},
        "cost": {"usage_model": "none"},
    });
    serde_json::to_vec(&manifest).unwrap()
}

#[test]
fn what_an_address_gives_is_untrusted_until_the_policy_lets_it_in() {
    let desk = Desk::new();
    let bytes = packed(&desk, &[]);
    let site = Site::with(&[("/x/echo.mcpkg", &bytes)]);
    let url = format!("{}/x/echo.mcpkg", site.url);
    let card = desk.done(&["show", &url, "--json"]).json()["cards"][0].clone();
    assert_eq!(card["source"], json!({"url": url}));
    assert_eq!(card["archive"], format!("sha256:{}", Digest::of(&bytes)));
    assert_eq!(card["trust"], "untrusted");
    refused(&desk, &["install", &url, "--yes"], 4, "trust_level not allowed by policy: untrusted");
    allow(&desk, "mcpkg:demo.echo");
    desk.done(&["install", &format!("{url}?token=s3cret"), "--yes", "-q"]);
    assert_eq!(desk.done(&["list", "--json"]).json()["packages"][0]["trust"], "untrusted");
    assert_eq!(
        desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]).stdout,
        "{\"message\":\"hi\"}\n"
    );
    // What stands in parameters may be secret, and a lockfile is made to be committed.
    let lock = desk.done(&["lock"]).stdout;
    assert!(lock.contains(&url) && !lock.contains("s3cret"), "{lock}");
}

#[test]
fn a_signature_of_a_trusted_key_counts_wherever_the_package_comes_from() {
    let desk = Desk::new();
    desk.done(&["key", "new", "alice", "--no-passphrase"]);
    let bytes = packed(&desk, &["--key", "alice"]);
    let site = Site::with(&[("/echo.mcpkg", &bytes)]);
    let url = format!("{}/echo.mcpkg", site.url);
    desk.done(&["install", &url, "--yes", "-q"]);
    assert_eq!(desk.done(&["list", "--json"]).json()["packages"][0]["trust"], "verified");
}

#[test]
fn a_digest_that_is_typed_decides_and_what_it_names_is_fetched_once() {
    let desk = Desk::new();
    let bytes = packed(&desk, &[]);
    allow(&desk, "mcpkg:demo.echo");
    let site = Site::with(&[("/echo.mcpkg", &bytes)]);
    let url = format!("{}/echo.mcpkg", site.url);
    let pinned = format!("{url}#sha256={}", Digest::of(&bytes));
    let wrong = format!("{url}#sha256={}", "ab".repeat(32));
    refused(&desk, &["install", &wrong, "--yes"], 2, "has another digest");
    refused(&desk, &["install", &pinned, "--yes", "--offline"], 6, "is not kept here");
    refused(&desk, &["install", &url, "--yes", "--offline"], 6, "is not kept here");
    desk.done(&["install", &pinned, "--yes", "-q"]);
    let asked = site.asked().len();
    desk.done(&["remove", "demo.echo"]);
    desk.done(&["install", &pinned, "--yes", "--offline", "-q"]);
    assert_eq!(site.asked().len(), asked, "it was fetched before");
}

#[test]
fn addresses_that_others_could_change_or_read_are_refused_before_anybody_is_asked() {
    let desk = Desk::new();
    for (url, words) in [
        ("http://tools.example/x.mcpkg", "it is not `https`"),
        ("http://10.0.0.1/x.mcpkg", "it is not `https`"),
        ("https://ci:s3cret@tools.example/x.mcpkg", "a name or a password"),
        ("https://tools.example/x.mcpkg#sha256=12", "64 digits"),
        ("https://tools.example/x.mcpkg#readme", "64 digits"),
    ] {
        refused(&desk, &["install", url, "--yes"], 2, words);
        assert!(!desk.haft(&["install", url]).stderr.contains("s3cret"), "{url}");
    }
}

#[test]
fn a_redirect_inherits_nothing() {
    let desk = Desk::new();
    let bytes = packed(&desk, &[]);
    allow(&desk, "mcpkg:demo.echo");
    let private = Site::with(&[("/echo.mcpkg", &bytes)]);
    let place = private.url.clone();
    let port = place.rsplit(':').next().unwrap().to_owned();
    let site = Site::new(move |asked| match asked.path.as_str() {
        "/other-port" => Reply::elsewhere(&format!("{place}/echo.mcpkg")),
        "/by-name" => Reply::elsewhere(&format!("http://localhost:{port}/echo.mcpkg")),
        "/encrypted" => Reply::elsewhere(&format!("https://127.0.0.1:{port}/echo.mcpkg")),
        "/plain" => Reply::elsewhere("http://tools.example/echo.mcpkg"),
        "/cloud" => Reply::elsewhere("https://169.254.169.254/latest"),
        "/file" => Reply::elsewhere("file:///etc/passwd"),
        "/round" => Reply::elsewhere("/round"),
        "/nowhere" => Reply::status(302),
        "/inside" => Reply::elsewhere("/there/echo.mcpkg"),
        "/there/echo.mcpkg" => Reply::found(bytes.clone()),
        _ => Reply::status(404),
    });
    let at = |path: &str| format!("{}{path}", site.url);
    for (path, words) in [
        ("/other-port", "it is not `https`"),
        ("/by-name", "it is not `https`"),
        ("/encrypted", "it is a private place, which nobody typed"),
        ("/plain", "it is not `https`"),
        ("/cloud", "it is a private place, which nobody typed"),
        ("/file", "it is not `https`"),
        ("/round", "one redirect followed another"),
        ("/nowhere", "what is no URL"),
    ] {
        for pin in [String::new(), format!("#sha256={}", "ab".repeat(32))] {
            refused(&desk, &["install", &format!("{}{pin}", at(path)), "--yes"], 2, words);
        }
    }
    assert!(private.asked().is_empty(), "{:?}", private.asked());
    refused(&desk, &["install", &at("/missing"), "--yes"], 3, "answers with 404");
    desk.done(&["install", &at("/inside"), "--yes", "-q"]);
}

#[test]
fn as_much_is_taken_as_the_kind_of_file_may_have() {
    let desk = Desk::new();
    let long = |begin: &str, length: usize| {
        let mut bytes = begin.as_bytes().to_vec();
        bytes.resize(length, b' ');
        bytes
    };
    let manifest = long("{\"toolId\": \"a.b.c\",", (1 << 20) + 1);
    let catalog = long("{\"capabilities\": [", (16 << 20) + 1);
    let page = b"<!doctype html><title>Not found</title>".to_vec();
    let site = Site::with(&[
        ("/manifest.json", &manifest),
        ("/catalog.json", &catalog),
        ("/page.json", &page),
        ("/cut.mcpkg", b"PK\x03\x04"),
    ]);
    for (path, words) in [
        ("/manifest.json", "larger than a manifest may be"),
        ("/catalog.json", "larger than a catalog may be"),
        ("/page.json", "is not valid"),
        ("/cut.mcpkg", "is refused"),
    ] {
        refused(&desk, &["install", &format!("{}{path}", site.url), "--yes"], 2, words);
    }
}

#[test]
fn a_manifest_at_an_address_is_installed_unless_its_files_are_missing() {
    let desk = Desk::new();
    let read = |path: &str| fs::read(repository().join("examples").join(path)).unwrap();
    let remote = install_manifest("word-count");
    let site = Site::with(&[
        ("/remote.json", &remote),
        ("/echo/manifest.json", &read("mcpkg/echo/manifest.json")),
        ("/text/tools.json", &read("agentcli-text/tools.json")),
        ("/catalog.json", &read("capability/catalog/manifest.base.json")),
        ("/dice.json", &read("jumith/dice.bundle.json")),
        ("/coin.json", &read("mcpb/coin/manifest.json")),
    ]);
    let at = |path: &str| format!("{}{path}", site.url);
    for path in ["/echo/manifest.json", "/text/tools.json", "/catalog.json", "/coin.json"] {
        let words = "which does not come with its manifest";
        refused(&desk, &["install", &at(path), "--yes"], 2, words);
    }
    let card = desk.done(&["show", &at("/remote.json"), "--json"]).json()["cards"][0].clone();
    assert_eq!(card["id"], "install-manifest:word-count");
    allow(&desk, "jumith:tool:demo.dice");
    desk.done(&["install", &at("/dice.json"), "--yes", "-q"]);
    let called = desk.done(&["call", "tool:demo.dice", r#"{"sides":2,"count":1}"#]);
    assert!(
        called.stdout.contains("rolls") || called.stdout.contains("total"),
        "{}",
        called.stdout
    );
    let ids = desk.done(&["list", "--json"]).json();
    let ids: Vec<_> = ids["packages"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, ["jumith:tool:demo.dice"]);
}

#[test]
fn only_the_card_that_was_shown_is_accepted() {
    let desk = Desk::new();
    desk.echo();
    let shown = || desk.done(&["show", "./echo", "--json"]).json()["cards"][0]["card"].clone();
    let card = shown().as_str().unwrap().to_owned();
    refused(&desk, &["install", "./echo", "--card", "sha256:12"], 2, "64 digits");
    let manifest = desk.path("echo/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("Echo", "Oche")).unwrap();
    let words = "is not the one that was accepted";
    refused(&desk, &["install", "./echo", "--card", &card], 4, words);
    refused(&desk, &["install", "./echo", "--card", &card, "--yes"], 4, words);
    let now = shown().as_str().unwrap().to_owned();
    assert_ne!(now, card);
    desk.done(&["install", "./echo", "--card", &card, "--card", &now, "-q"]);
    assert_eq!(desk.done(&["status", "demo.echo", "--json"]).json()["card"], now);
}

#[test]
fn a_manifest_that_changes_between_show_and_install_is_refused() {
    let desk = Desk::new();
    let one = install_manifest("word-count");
    let other = String::from_utf8(one.clone()).unwrap().replace("Counts words.", "Sends words.");
    let site = Site::new(move |asked| match asked.before {
        0 => Reply::found(one.clone()),
        _ => Reply::found(other.clone()),
    });
    allow(&desk, "install-manifest:word-count");
    let url = format!("{}/manifest.json", site.url);
    let card = desk.done(&["show", &url, "--json"]).json()["cards"][0]["card"].clone();
    let card = card.as_str().unwrap();
    refused(&desk, &["install", &url, "--card", card], 4, "is not the one that was accepted");
}

/// A site by HTTPS that gives one file, and sends whoever asks for anything else elsewhere.
const SECURE: &str = r#"
import http.server, ssl, sys
body = open(sys.argv[1], "rb").read()
class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        here = self.path == "/echo.mcpkg"
        self.send_response(200 if here else 302)
        if not here:
            self.send_header("location", sys.argv[4])
        self.send_header("content-length", str(len(body) if here else 0))
        self.end_headers()
        self.wfile.write(body if here else b"")
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Site)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[test]
fn a_file_by_https_is_taken_from_whom_the_machine_believes_and_never_by_http_instead() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let desk = Desk::new();
    packed(&desk, &[]);
    allow(&desk, "mcpkg:demo.echo");
    let plain = Site::with(&[("/echo.mcpkg", &fs::read(desk.path("echo.mcpkg")).unwrap())]);
    let [certificate, key] = desk.certificate();
    let mut server = Command::new("python3")
        .args(["-c", SECURE])
        .args([&desk.path("echo.mcpkg"), &certificate, &key])
        .arg(format!("{}/echo.mcpkg", plain.url))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let install = |path: &str, believed: Option<&Path>| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command.args(["install", &format!("https://localhost:{}{path}", port.trim()), "--yes"]);
        command.current_dir(desk.0.path()).env("HAFT_HOME", desk.path("home"));
        command.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
        command.envs(believed.map(|path| ("SSL_CERT_FILE", path)));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let strange = install("/echo.mcpkg", None);
    let downgraded = install("/elsewhere", Some(&certificate));
    let done = install("/echo.mcpkg", Some(&certificate));
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(strange.0, Some(6), "{}", strange.1);
    assert_eq!(downgraded.0, Some(2), "{}", downgraded.1);
    assert!(downgraded.1.contains("it is not `https`"), "{}", downgraded.1);
    assert!(plain.asked().is_empty());
    assert_eq!(done.0, Some(0), "{}", done.1);
}
