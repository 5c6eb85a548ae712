//! Tools that ask a server, tested with it and without it.

use std::fs;

use serde_json::json;

use super::common::site::{Reply, Site};
use super::common::{Desk, write_below};

const SECRET: &str = "s3cret-of-the-owner";

/// A tool that asks a site, with a key in a header and one in the address.
fn asking(desk: &Desk, site: &str, questions: &[&str]) {
    let tests: Vec<_> =
        (0..questions.len()).map(|index| format!("tests/{index}.test.json")).collect();
    let manifest = json!({
        "toolId": "demo.web.ask", "name": "Ask", "version": "1.0.0", "description": "Asks.",
        "capabilities": ["demo"],
        "endpoint": {"type": "http", "method": "GET", "url": format!("{site}/ask")},
        "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}},
        "output_schema": {"type": "object"},
        "auth": {"type": "bearer", "configHints": {"env": ["WEB_KEY"]}},
        "tests": tests,
    });
    write_below(desk.0.path(), "web/manifest.json", &manifest.to_string());
    for (path, question) in tests.iter().zip(questions) {
        let test = json!({"name": question, "input": {"q": question},
            "assertions": [{"path": "$.asked", "contains": format!("q={question}")}]});
        write_below(desk.0.path(), &format!("web/{path}"), &test.to_string());
    }
}

fn site() -> Site {
    Site::new(|asked| {
        let key = asked.headers.get("authorization").cloned().unwrap_or_default();
        assert!(asked.method == "GET");
        Reply::found(json!({"asked": asked.path, "you": key}).to_string())
    })
}

/// Lets the tool reach a site, and keeps a key for it.
fn allowed(desk: &Desk, site: &str) {
    let host = site.strip_prefix("http://").unwrap();
    desk.done(&["grant", "mcpkg:demo.web.ask", "--host", host]);
}

#[test]
fn what_a_server_answered_is_recorded_without_secrets_and_answers_in_its_place() {
    let desk = Desk::new();
    let site = site();
    asking(&desk, &site.url, &["one", "two"]);
    allowed(&desk, &site.url);
    let kept = desk.haft_with(&["secret", "set", "mcpkg:demo.web.ask", "WEB_KEY"], Some(SECRET));
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    let ran = desk.done(&["test", "./web", "--record", "web.tape"]);
    assert!(ran.stderr.contains("Recorded 2 answers in web.tape"), "{}", ran.stderr);
    assert_eq!(site.asked().len(), 2);
    let tape = fs::read_to_string(desk.path("web.tape")).unwrap();
    assert!(tape.contains("Bearer [secret WEB_KEY]") && !tape.contains(SECRET), "{tape}");

    // Without the secret, and without the server.
    desk.done(&["secret", "rm", "mcpkg:demo.web.ask", "WEB_KEY"]);
    let missing = desk.haft(&["test", "./web"]);
    assert_eq!(missing.code, 1, "{}", missing.stderr);
    assert!(missing.stdout.contains("Missing required secret: WEB_KEY"), "{}", missing.stdout);
    let ran = desk.done(&["test", "./web", "--replay", "web.tape", "--repeat", "3"]);
    assert!(ran.stdout.contains("2 tests: 2 passed, 0 failed"), "{}", ran.stdout);
    assert_eq!(site.asked().len(), 2, "nobody was asked");

    // Another question was never answered.
    asking(&desk, &site.url, &["one", "three"]);
    let ran = desk.haft(&["test", "./web", "--replay", "web.tape"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for words in ["no answer to `GET ", "/ask?q=three` was recorded", "1 passed, 1 failed"] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    assert_eq!(site.asked().len(), 2, "nobody was asked");
}

#[test]
fn a_recording_is_not_written_over_what_is_none_nor_for_nothing() {
    let desk = Desk::new();
    asking(&desk, "http://127.0.0.1:9", &["one"]);
    fs::write(desk.path("notes.txt"), "mine").unwrap();
    desk.refused(&["test", "./web", "--record", "notes.txt"], 5, "is no recording");
    desk.refused(&["test", "./web", "--replay", "notes.txt"], 2, "`notes.txt` is no recording");
    desk.refused(&["test", "./web", "--replay", "gone.tape"], 3, "gone.tape");
    desk.refused(&["test", "./web", "--replay", "a", "--record", "b"], 2, "cannot be used with");
    desk.refused(&["test", "./web", "--replay", "a", "--jobs", "2"], 2, "cannot be used with");
    assert_eq!(fs::read_to_string(desk.path("notes.txt")).unwrap(), "mine");
    fs::write(desk.path("old.tape"), "{\"haft_recording\":1}\n").unwrap();
    let ran = desk.haft(&["test", "./web", "--record", "old.tape"]);
    assert!(ran.stderr.contains("nothing to record"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(desk.path("old.tape")).unwrap(), "{\"haft_recording\":1}\n");
}

#[test]
fn what_reaches_the_network_by_itself_is_not_run_from_a_recording() {
    let desk = Desk::new();
    let folder = desk.echo();
    fs::write(desk.path("a.tape"), "{\"haft_recording\":1}\n").unwrap();
    desk.done(&["test", "./echo", "--replay", "a.tape"]);
    desk.done(&["grant", "mcpkg:demo.echo", "--host", "example.com"]);
    let ran = desk.haft(&["test", folder.to_str().unwrap(), "--replay", "a.tape"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("it reaches the network by itself"), "{}", ran.stdout);
}
