//! What a sign-in was granted is held against what a package says that its actions need.

use std::io::{BufRead, BufReader, Read};

use serde_json::{Value, json};

use crate::desk::browse;
use crate::provider::{Provider, fails};

#[test]
fn what_was_not_granted_is_told_and_refused_before_it_is_sent() {
    let provider = Provider::new(&json!({"gives": ["read", "billing"]}));
    let desk = provider.desk();
    let ran = desk.sign_in(&["--allow-host", &provider.host()]);
    let command = format!("`haft login --from {} --scope write --scope admin`", desk.manifest());
    fails(
        &ran,
        0,
        &[
            "(scopes: read billing)",
            "More was granted than its manifest names: billing",
            "Not granted: write (refused until then: change)",
            "Not granted: admin (refused until then: rule)",
            &command,
        ],
    );
    // What the server knows of what the package names is asked for; what it does not know is not.
    assert_eq!(provider.log()["asked"], json!([["read", "write"]]));
    let ran = desk.call("look", &json!({}));
    assert_eq!((ran.code, ran.stdout.trim()), (0, "did look"), "{}", ran.stderr);
    let before = provider.log()["methods"].clone();
    let ran = desk.call("change", &json!({}));
    let command = format!("`haft login --from {} --scope write` signs in", desk.manifest());
    fails(&ran, 4, &["the action needs what your sign-in was not granted: `write`", &command]);
    fails(&desk.call("rule", &json!({})), 4, &["not granted: `admin`"]);
    let log = provider.log();
    assert_eq!((&log["calls"], &log["methods"]), (&json!(["look"]), &before));
}

#[test]
fn what_was_granted_without_a_word_is_what_was_asked_for() {
    let provider = Provider::new(&json!({"gives": "silent"}));
    let desk = provider.desk();
    let (host, manifest) = (provider.host(), desk.manifest());
    let mut child = desk.start(&["login", "--from", &manifest, "--allow-host", &host, "--json"]);
    // The page is a note where the result is JSON.
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    browse(&notes.find(|note| note.contains("/authorize?")).unwrap());
    let mut told = String::new();
    child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(child.wait().unwrap().success());
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["scopes"], json!(["read", "write"]));
    assert_eq!(told["missing"], json!([{"scope": "admin", "actions": ["rule"]}]));
    assert_eq!(told["beyond"], json!([]));
    assert_eq!(desk.call("change", &json!({})).code, 0);
    fails(&desk.call("rule", &json!({})), 4, &["not granted: `admin`"]);
    let ran = desk.sign_in(&["--allow-host", &provider.host(), "--scope", "admin"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("Not granted"), "{}", ran.stderr);
    assert_eq!(desk.call("rule", &json!({})).code, 0);
}

#[test]
fn where_no_scopes_are_named_nothing_is_refused() {
    let provider = Provider::new(&json!({"wants": [], "knows": []}));
    let desk = provider.desk();
    let ran = desk.sign_in(&["--allow-host", &provider.host()]);
    fails(&ran, 0, &["(scopes: none named)"]);
    assert!(!ran.stderr.contains("Not granted"), "{}", ran.stderr);
    for action in ["look", "change", "rule"] {
        assert_eq!(desk.call(action, &json!({})).code, 0);
    }
}

#[test]
fn a_server_that_greets_everybody_is_asked_for_its_tools() {
    // One of the older era greets, one of the newer has never heard of it.
    for status in [200, 400, 404] {
        let provider = Provider::new(&json!({"greets": status, "knows": ["read"]}));
        let desk = provider.desk();
        let ran = desk.sign_in(&["--allow-host", &provider.host()]);
        fails(&ran, 0, &["(scopes: read)"]);
    }
}

#[test]
fn an_installed_package_is_signed_in_for_by_its_id() {
    let provider = Provider::new(&json!({}));
    let desk = provider.desk();
    let manifest = desk.manifest();
    // Its smoke test needs somebody who is signed in.
    let ran = desk.run(&["install", &manifest, "--yes"]);
    fails(&ran, 4, &["so it is not installed", "`haft login --from PATH` signs in before"]);
    let ran = desk.run(&["install", &manifest, "--yes", "--on-smoke-fail=keep-disabled"]);
    fails(&ran, 1, &["`haft login install-manifest:trial` signs in"]);
    let ran = provider.sign_in(&desk, "trial", &[]);
    fails(
        &ran,
        0,
        &[
            "Not granted: admin",
            "`haft approve surface install-manifest:trial`",
            "haft login install-manifest:trial --scope admin",
        ],
    );
    assert_eq!(desk.run(&["enable", "trial"]).code, 0);
    let ran = desk.run(&["approve", "surface", "trial"]);
    let digest = ran.stderr.split("sha256:").nth(1).unwrap();
    let digest = format!("sha256:{}", &digest[..64]);
    let ran = desk.run(&["approve", "surface", "trial", "--digest", &digest]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = desk.run(&["call", "trial", "change", "{}"]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "did change"), "{}", ran.stderr);
    let ran = desk.run(&["call", "trial", "rule", "{}"]);
    fails(&ran, 4, &["`haft login install-manifest:trial --scope admin` signs in"]);
}

#[test]
fn a_capability_that_requires_it_says_what_comes_next() {
    let provider = Provider::new(&json!({}));
    let desk = provider.desk();
    let path = provider.capability(&desk);
    let ran = desk.run(&["install", &path, "--yes"]);
    let next = "capability requires oauth onboarding: `haft login capability:files` signs in";
    fails(&ran, 0, &[next]);
    let ran = desk.run(&["call", "files", "{}"]);
    fails(
        &ran,
        4,
        &["capability requires oauth onboarding", "`haft login capability:files` signs in"],
    );
    assert_eq!(provider.log()["calls"], json!([]));
    let ran = provider.sign_in(&desk, "files", &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = desk.run(&["call", "files", "{}"]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "did look"), "{}", ran.stderr);
    // Who is signed in is told nothing.
    let ran = desk.run(&["install", &path, "--yes"]);
    assert!(!ran.stderr.contains("requires oauth"), "{}", ran.stderr);
}
