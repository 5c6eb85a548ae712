//! Packages are installed from addresses, from the index of a site and from catalogs; whoever serves something else
//! than they said is refused, and nothing is left of it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::served::Served;
use common::site::{Reply, Site, passed_on};
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

/// Every file of a home but the log, the locks, the state, and answers that are kept.
fn files(desk: &Desk) -> Vec<String> {
    let home = desk.path("home");
    let found = Command::new("find").arg(&home).args(["-type", "f", "-o", "-type", "l"]).output();
    let text = String::from_utf8(found.unwrap().stdout).unwrap();
    let aside = ["/audit/", "/locks/", "/state.db", "/cache/answers/"];
    let is_meant = |path: &&str| !aside.iter().any(|part| path.contains(part));
    let mut files: Vec<_> = text.lines().filter(is_meant).map(str::to_owned).collect();
    files.sort();
    files
}

/// Runs an install that must be refused, and leave nothing.
fn refused(desk: &Desk, arguments: &[&str], code: i32, words: &str) {
    let before = files(desk);
    desk.refused(arguments, code, words);
    assert_eq!(files(desk), before, "{arguments:?}");
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
fn the_index_of_a_site_lists_what_one_entry_of_it_is_installed() {
    let desk = Desk::new();
    let entry = |id: &str, url: &str, status: &str| json!({"id": id, "manifest_url": url, "manifest_version": "0.4", "status": status});
    let mut old = entry("old", "/old.json", "deprecated");
    old["deprecated_in_favor_of"] = "word-count".into();
    let mut first = entry("word-count", "/manifests/word-count.json", "active");
    first["summary"] = "Counts \u{1b}[31mwords".into();
    let entries = json!([
        first, old,
        entry("other", "/manifests/word-count.json", "active"),
        entry("lost", "/lost.json", "active"),
        entry("inside", "https://10.0.0.1/x.json", "active"),
        entry("plain", "http://tools.example/x.json", "active"),
        entry("bad", "/manifests/word-count.json", "quarantined"),
        entry("worse", "/manifests/word-count.json", "broken"),
        {"id": "half"},
    ]);
    let index = json!({
        "version": "1", "publisher": {"kind": "https", "id": "x", "display_name": "X"},
        "generated_at": "2026-01-01T00:00:00Z", "manifests": entries,
    });
    let index = index.to_string();
    let site = Site::with(&[
        ("/.well-known/install-manifests.json", index.as_bytes()),
        ("/manifests/word-count.json", &install_manifest("word-count")),
        ("/old.json", &install_manifest("old")),
    ]);
    let whole = format!("{}/.well-known/install-manifests.json", site.url);
    let told = desk.haft(&["install", &site.url, "--yes"]);
    assert_eq!(told.code, 2, "{}", told.stderr);
    for words in [
        "one is meant",
        "word-count: Counts",
        "old (deprecated)",
        "--only word-count",
        "entry 8 `half`",
    ] {
        assert!(told.stderr.contains(words), "{words}: {}", told.stderr);
    }
    assert!(!told.stderr.contains('\u{1b}'), "{}", told.stderr);
    for (id, code, words) in [
        ("bad", 4, "`bad` is quarantined, as its publisher says"),
        ("worse", 4, "`worse` is broken, as its publisher says"),
        ("other", 2, "the manifest there is of `word-count`"),
        ("lost", 3, "answers with 404"),
        ("inside", 2, "it is a private place, which nobody typed"),
        ("plain", 2, "it is not `https`"),
        ("word-cout", 3, "did you mean `word-count`?"),
        ("word-count", 4, "trust_level not allowed by policy: untrusted"),
    ] {
        refused(&desk, &["install", &whole, "--yes", "--only", id], code, words);
    }
    let shown = desk.done(&["show", &whole, "--only", "install-manifest:word-count", "--json"]);
    let card = shown.json()["cards"][0].clone();
    let from = json!({"url": format!("{}/manifests/word-count.json", site.url)});
    assert_eq!((&card["id"], &card["source"]), (&json!("install-manifest:word-count"), &from));
    let ran = desk.done(&["show", &site.url, "--only", "old"]);
    assert!(ran.stderr.contains("`old` is deprecated; use `word-count`"), "{}", ran.stderr);
    let site = Site::with(&[("/.well-known/install-manifests.json", br#"{"version": "2"}"#)]);
    refused(&desk, &["install", &site.url, "--yes"], 2, "its `version` is not \"1\"");
}

#[test]
fn what_a_catalog_lists_is_installed_by_its_id_and_vouched_for_by_nobody() {
    let desk = Desk::new();
    let path = repository().join("examples/capability/catalog/manifest.base.json");
    let mut catalog: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut there = catalog["capabilities"][0].clone();
    there["id"] = "demo.there".into();
    there["trust_level"] = "verified".into();
    there["implementation"] = json!({"kind": "command", "command": {"argv": ["cat"]}});
    catalog["capabilities"].as_array_mut().unwrap().push(there);
    let catalog = catalog.to_string();
    let site = Site::with(&[
        ("/catalog.json", catalog.as_bytes()),
        (
            "/.well-known/install-manifests.json",
            json!({
                "version": "1", "publisher": {"kind": "https", "id": "x", "display_name": "X"},
                "generated_at": "2026-01-01T00:00:00Z",
                "manifests": [{
                    "id": "word-count", "manifest_url": "/w.json", "manifest_version": "0.4",
                    "status": "active",
                }],
            })
            .to_string()
            .as_bytes(),
        ),
        ("/w.json", &install_manifest("word-count")),
    ]);
    let url = format!("{}/catalog.json", site.url);
    desk.done(&["registry", "add", "list", &url, "--kind", "catalog"]);
    desk.done(&["registry", "add", "site", &site.url, "--kind", "well-known"]);
    let folder = repository().join("examples/mcpkg");
    desk.done(&["registry", "add", "folder", folder.to_str().unwrap(), "--kind", "folder"]);
    for id in ["demo.there", "word-count", "demo.echo"] {
        refused(
            &desk,
            &["install", id, "--yes"],
            4,
            "trust_level not allowed by policy: untrusted",
        );
    }
    let missing = "which does not come with its manifest";
    refused(&desk, &["install", "demo.text.upper", "--yes"], 2, missing);
    fs::write(desk.path("home/policy.toml"), "[trust]\nallow = [\"local\", \"untrusted\"]\n")
        .unwrap();
    for id in ["demo.there", "demo.echo"] {
        desk.done(&["install", id, "--yes", "-q"]);
    }
    let listed = desk.done(&["list", "--json"]).json();
    for one in listed["packages"].as_array().unwrap() {
        assert_eq!(one["trust"], "untrusted", "{one}");
    }
    let called = desk.done(&["call", "demo.there", r#"{"text":"abc"}"#]);
    assert!(called.stdout.contains("abc"), "{}", called.stdout);
    assert_eq!(
        desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]).stdout,
        "{\"message\":\"hi\"}\n"
    );
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

/// A registry with echo in it, and its address.
fn registry(desk: &Desk) -> Served {
    let served = Served::at(&desk.path("served"), &[]);
    let path = desk.path("served");
    let token =
        ["--home", path.to_str().unwrap(), "registry", "token", "new", "--namespace", "*", "-q"];
    let token = common::run_in(desk.0.path(), &token, None).stdout.trim().to_owned();
    desk.done(&["registry", "add", "true", &served.url]);
    assert_eq!(desk.haft_with(&["registry", "login", "true"], Some(&token)).code, 0);
    desk.echo();
    desk.done(&["publish", "./echo", "--no-sign", "-q"]);
    desk.done(&["registry", "rm", "true"]);
    fs::write(
        desk.path("home/policy.toml"),
        "[trust]\nallow = [\"local\", \"verified\", \"community\"]\n",
    )
    .unwrap();
    served
}

/// Installs echo from a registry that stands between us and a true one.
fn lied_to(desk: &Desk, url: &str, code: i32, words: &str) {
    refused(desk, &["install", "demo.echo", "--registry", url, "--yes"], code, words);
    let _ = fs::remove_dir_all(desk.path("home/cache"));
}

#[test]
fn a_registry_that_lies_is_refused_and_nothing_is_left() {
    let desk = Desk::new();
    let served = registry(&desk);
    let is_package = |path: &str| path.ends_with("/package");
    let lying = |change: fn(&str, Reply) -> Reply| {
        let to = served.url.clone();
        Site::new(move |asked| change(&asked.path, passed_on(&to, asked)))
    };
    // It gives other bytes than it described.
    let site = lying(|path, reply| {
        let mut body = reply.body().to_vec();
        if path.ends_with("/package")
            && let Some(last) = body.last_mut()
        {
            *last ^= 1;
        }
        reply.saying(body)
    });
    lied_to(&desk, &site.url, 2, "the package has the digest");
    assert!(site.asked().iter().any(|path| is_package(path)));
    // It describes another digest than that of what it gives.
    let site = lying(|path, reply| {
        if is_described(path) {
            let mut said: Value = serde_json::from_slice(reply.body()).unwrap();
            said["sha256"] = "ab".repeat(32).into();
            return reply.saying(said.to_string());
        }
        reply
    });
    lied_to(&desk, &site.url, 2, "the package has the digest");
    // It describes none.
    let site = lying(|path, reply| {
        if is_described(path) {
            let mut said: Value = serde_json::from_slice(reply.body()).unwrap();
            said.as_object_mut().unwrap().remove("sha256");
            return reply.saying(said.to_string());
        }
        reply
    });
    lied_to(&desk, &site.url, 2, "does not say the SHA-256");
    // It sends us elsewhere.
    let site = lying(|path, reply| {
        if path.ends_with("/package") { Reply::elsewhere("https://10.0.0.1/x") } else { reply }
    });
    lied_to(&desk, &site.url, 2, "where nobody goes");
    // It answers with another tool.
    let site = lying(|path, reply| {
        if is_described(path) {
            let text = String::from_utf8(reply.body().to_vec()).unwrap();
            return reply.saying(text.replace("demo.echo", "demo.other"));
        }
        reply
    });
    lied_to(&desk, &site.url, 2, "was asked for the");
    // What it says truly is installed.
    let site = lying(|_, reply| reply);
    desk.done(&["install", "demo.echo", "--registry", &site.url, "--yes", "-q"]);
    desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]);
}

fn is_described(path: &str) -> bool {
    path.starts_with("/v1/tools/") && !path.ends_with("/package") && !path.ends_with("/versions")
}

#[test]
fn what_a_registry_describes_must_be_what_its_package_says() {
    let desk = Desk::new();
    let served = registry(&desk);
    // Under the id and the version of one tool it gives another, with the right digest of that.
    fs::write(
        desk.path("echo/manifest.json"),
        fs::read_to_string(desk.path("echo/manifest.json"))
            .unwrap()
            .replace("demo.echo", "demo.other"),
    )
    .unwrap();
    desk.done(&["pack", "./echo", "-o", "other.mcpkg", "-q"]);
    let other = fs::read(desk.path("other.mcpkg")).unwrap();
    let to = served.url.clone();
    let site = Site::new(move |asked| {
        let reply = passed_on(&to, asked);
        if asked.path.ends_with("/package") {
            return reply.saying(other.clone());
        }
        if is_described(&asked.path) {
            let mut said: Value = serde_json::from_slice(reply.body()).unwrap();
            said["sha256"] = Digest::of(&other).to_string().into();
            said["size"] = other.len().into();
            return reply.saying(said.to_string());
        }
        reply
    });
    let install = ["install", "demo.echo", "--registry", &site.url, "--yes"];
    refused_but_cache(&desk, &install, 2, "describes `demo.echo`");
}

#[test]
fn a_registry_that_gives_other_bytes_the_second_time_is_refused() {
    let desk = Desk::new();
    let served = registry(&desk);
    let text = fs::read_to_string(desk.path("echo/echo.py")).unwrap();
    fs::write(desk.path("echo/echo.py"), format!("{text}# more\n")).unwrap();
    desk.done(&["pack", "./echo", "-o", "other.mcpkg", "-q"]);
    let other = fs::read(desk.path("other.mcpkg")).unwrap();
    let to = served.url.clone();
    let changed = desk.path("changed");
    let flag = changed.clone();
    // The same version, with other bytes, which it describes rightly.
    let site = Site::new(move |asked| {
        let reply = passed_on(&to, asked);
        if !Path::new(&flag).exists() {
            return reply;
        }
        if asked.path.ends_with("/package") {
            return reply.saying(other.clone());
        }
        if is_described(&asked.path) {
            let mut said: Value = serde_json::from_slice(reply.body()).unwrap();
            said["sha256"] = Digest::of(&other).to_string().into();
            said["size"] = other.len().into();
            return reply.saying(said.to_string());
        }
        reply
    });
    let install = ["install", "demo.echo", "--registry", &site.url, "--yes"];
    let card = desk.done(&["show", "demo.echo", "--registry", &site.url, "--json"]).json();
    let card = card["cards"][0]["card"].as_str().unwrap().to_owned();
    fs::write(&changed, "").unwrap();
    let words = "is not the one that was accepted";
    refused_but_cache(&desk, &[&install[..], &["--card", &card]].concat(), 4, words);
    fs::remove_file(&changed).unwrap();
    desk.done(&[&install[..], &["-q"]].concat());
    fs::write(&changed, "").unwrap();
    refused_but_cache(&desk, &install, 5, "is installed with other bytes");
    fs::remove_file(&changed).unwrap();
    desk.done(&["call", "demo.echo", r#"{"message":"hi"}"#]);
}

/// The same as [`refused`] where sound packages are kept for the next time.
fn refused_but_cache(desk: &Desk, arguments: &[&str], code: i32, words: &str) {
    let kept = |desk: &Desk| {
        let mut all = files(desk);
        all.retain(|path| !path.contains("/cache/"));
        all
    };
    let before = kept(desk);
    desk.refused(arguments, code, words);
    assert_eq!(kept(desk), before, "{arguments:?}");
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
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| desk.path(name));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-out"])
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output();
    assert!(made.unwrap().status.success());
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
