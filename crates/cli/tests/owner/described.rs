//! What a manifest says of a value is told to whoever has to give it.

use serde_json::json;

use crate::desk::{Desk, at_terminal};

const NOTES: &str = "install-manifest:notes";

/// A package that needs a token and a workspace, and says of the token what is asked for.
fn notes(desk: &Desk, prompt: &str) -> String {
    let manifest = json!({
        "manifest_version": "0.4",
        "tool": {"id": "notes", "version": "1.0.0", "name": "Notes", "summary": "Notes.",
            "homepage": "https://example.com", "license": "MIT"},
        "runtime": {"kind": "python-module", "endpoint_url": "https://example.com/api",
            "install": {"method": "preinstalled", "locator": {"kind": "python-module", "module": "json"}}},
        "env": [
            {"name": "NOTES_TOKEN", "prompt": prompt, "obtain_url": "https://example.com/keys",
                "secret": true, "required": true},
            {"name": "NOTES_WS", "prompt": "Workspace", "secret": false, "required": true}],
        "actions": [{"name": "get", "summary": "Get.", "side_effects": "read",
            "invocation": {"kind": "http", "method": "GET", "path": "/notes", "headers":
                {"Authorization": "Bearer ${env.NOTES_TOKEN}", "X-Ws": "${env.NOTES_WS}"}},
            "input": {"type": "object", "properties": {}}, "output": {"format": "json"}}],
        "smoke": {"kind": "http", "url": "https://example.com/", "success": {"http_status": 200}},
        "kill_switch": {"kind": "manual", "instructions": "x"},
    });
    desk.write("pkg/manifest.json", &manifest.to_string())
}

#[test]
fn what_is_missing_is_told_with_what_the_manifest_says_of_it() {
    let desk = Desk::new();
    let from = notes(&desk, "Token of\u{1b}[2J your account");
    let ran = desk.run(&["call", "--from", &from, "get"], None);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let asked = "keeps it; the manifest asks for: Token of";
    let page = "your account; the manifest says where it is to be had: https://example.com/keys\n";
    assert!(ran.stderr.contains(asked) && ran.stderr.contains(page), "{}", ran.stderr);
    assert!(ran.stderr.contains("the manifest asks for: Workspace\n"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    let missing = |more: &[&str], at: &str| {
        let ran = desk.run(&[&["call", "--json", "--from", &from, "get"], more].concat(), None);
        ran.json().pointer(at).unwrap()[0].clone()
    };
    let called = missing(&[], "/error/details/missing");
    assert_eq!(called["obtain_url"], "https://example.com/keys");
    let planned = missing(&["--explain"], "/missing");
    assert_eq!(planned["prompt"], called["prompt"]);
    assert!(planned["hint"].as_str().unwrap().contains(asked), "{planned}");
    let explained = desk.done(&["call", "--explain", "--from", &from, "get"]).stdout;
    assert!(explained.contains(asked) && !explained.contains('\u{1b}'), "{explained}");
    // No more of it than somebody reads.
    notes(&desk, &"x".repeat(800));
    let long = missing(&[], "/error/details/missing");
    assert!(long["prompt"].as_str().unwrap().len() < 500, "{long}");
}

#[test]
fn a_variable_that_was_granted_is_to_be_set() {
    let desk = Desk::new();
    let from = notes(&desk, "Token");
    let grant = format!("haft grant {NOTES} --env NOTES_WS");
    let call = || desk.run(&["call", "--from", &from, "get"], None).stderr;
    assert!(call().contains(&grant), "{}", call());
    desk.done(&["grant", NOTES, "--env", "NOTES_WS"]);
    let set = "set the variable `NOTES_WS` of your environment";
    assert!(call().contains(set) && !call().contains(&grant), "{}", call());
    let explained = desk.done(&["call", "--explain", "--from", &from, "get"]).stdout;
    assert!(explained.contains(set) && !explained.contains(&grant), "{explained}");
}

#[test]
fn the_page_about_a_credential_is_told_where_it_is_missing() {
    let desk = Desk::new();
    let call = ["call", "--from", "examples/mcpkg/http-status", r#"{"service":"x"}"#];
    let ran = desk.run(&call, None);
    let page = "https://example.com/haft/status/tokens";
    assert!(ran.code == 2 && ran.stderr.contains(page), "{}", ran.stderr);
}

#[test]
fn whoever_is_asked_for_a_secret_is_told_what_it_is() {
    let desk = Desk::new();
    let from = notes(&desk, "Token of\u{1b}[2J your account");
    assert_eq!(desk.run(&["call", "--from", &from, "get"], None).code, 2);
    let set = ["secret", "set", NOTES, "NOTES_TOKEN"];
    let (code, screen) = at_terminal(&desk, &["s3cret-word"], &set);
    assert_eq!(code, Some(0), "{screen}");
    let (before, _) = screen.split_once("Value of `NOTES_TOKEN`").unwrap();
    assert!(before.contains("the manifest asks for: Token of"), "{screen}");
    assert!(before.contains("to be had: https://example.com/keys"), "{screen}");
    assert!(!before.contains("\u{1b}[2J"), "{screen}");
}
