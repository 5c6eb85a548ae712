//! What is broken while a gateway runs: whoever calls it is told why, that is written down, and what is mended is called again.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::common::Desk;
use crate::gate::{Gate, OPEN, home, server, until};

/// A home with one tool; and the scripts of that.
fn clock() -> (Desk, Desk) {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "clock", "tell", "return 'noon'");
    (home(&[("clock", &path)], OPEN), scripts)
}

/// What is in the log of calls that came to nothing so.
fn refused(desk: &Desk, outcome: &str) -> Vec<Value> {
    let log = desk.done(&["audit", "--json", "--outcome", outcome]).stdout;
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_package_that_was_changed_is_told_of_and_called_again_when_it_is_what_it_was() {
    let (desk, _scripts) = clock();
    let gate = Gate::open(&desk, &["--without-token"]);
    let call = || gate.send("POST", "/v1/tools/clock_tell/call", &[], "{}");
    assert_eq!(call().status, 200);
    let packages = desk.path("home").join("packages/mcpb~clock");
    let version = std::fs::read_dir(packages).unwrap().next().unwrap().unwrap().path();
    let manifest = version.join("manifest.json");
    let text = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, [&text[..], b" "].concat()).unwrap();
    until("it is told", || call().status == 503);
    let told: Value = serde_json::from_str(&call().body).unwrap();
    let words = told["error"]["message"].as_str().unwrap();
    assert!(words.starts_with("`mcpb:clock` cannot be called: "), "{told}");
    assert_eq!(told["error"]["who"], "owner", "{told}");
    let by_mcp =
        || gate.ask("/mcp", "tools/call", json!({ "name": "clock_tell", "arguments": {} }));
    let refusal = by_mcp();
    let by_name = refusal["result"]["content"][0]["text"].as_str().unwrap();
    assert!(by_name.starts_with(words) && refusal["result"]["isError"] == true, "{refusal}");
    let written = refused(&desk, "unavailable");
    assert!(written.len() >= 3, "{written:?}");
    assert!(written.iter().all(|one| one["action"] == "tell"), "{written:?}");
    std::fs::write(&manifest, &text).unwrap();
    until("it is called again", || by_mcp()["result"]["content"][0]["text"] == "noon");
}

#[test]
fn a_policy_that_cannot_be_read_is_told_with_its_line() {
    let (desk, _scripts) = clock();
    let gate = Gate::open(&desk, &["--without-token"]);
    let call = || gate.send("POST", "/v1/tools/clock_tell/call", &[], "{}");
    assert_eq!(call().status, 200);
    let policy = desk.path("home").join("policy.toml");
    std::fs::write(&policy, "[nonsense]\n").unwrap();
    until("it is told", || call().status == 503);
    let told = call().body;
    assert!(told.contains("policy.toml` is no policy: line 1"), "{told}");
    assert!(!refused(&desk, "unavailable").is_empty());
    // An agent that sees no tools is told so too, by the one that is left.
    let listed = gate.ask("/mcp", "tools/list", json!({}))["result"]["tools"].clone();
    let [only] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!(only["name"], "find_tools");
    assert!(only["description"].as_str().unwrap().contains("is no policy: line 1"), "{only}");
    let found = gate.call("/mcp", "find_tools", json!({ "query": "clock" }));
    let error = &found["structuredContent"]["error"];
    assert_eq!((&found["isError"], &error["who"]), (&json!(true), &json!("owner")), "{found}");
    let doctor = desk.haft(&["doctor"]);
    assert_ne!(doctor.code, 0);
    assert!(doctor.stderr.contains("is no policy"), "{}", doctor.stderr);
    std::fs::write(&policy, OPEN).unwrap();
    until("it is called again", || call().status == 200);
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}

#[test]
fn what_others_may_write_is_noticed_while_it_runs() {
    let (desk, _scripts) = clock();
    let gate = Gate::open(&desk, &["--without-token"]);
    let call = || gate.send("POST", "/v1/tools/clock_tell/call", &[], "{}");
    assert_eq!(call().status, 200);
    let home = desk.path("home");
    for path in [home.join("state.db"), home.join("audit"), home] {
        let before = std::fs::metadata(&path).unwrap().permissions();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        until("it is told", || call().status == 503);
        let told = call().body;
        assert!(told.contains(&format!("others may write `{}`", path.display())), "{told}");
        std::fs::set_permissions(&path, before).unwrap();
        until("it is called again", || call().status == 200);
    }
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}

#[test]
fn whoever_is_a_program_is_told_as_one_that_there_is_nothing() {
    let desk = home(&[], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let kind = |headers: &[(&str, &str)]| {
        let answer = gate.send("GET", "/nope", headers, "");
        assert_eq!(answer.status, 404);
        answer.headers["content-type"].clone()
    };
    assert_eq!(kind(&[("accept", "application/json")]), "application/json");
    assert_eq!(kind(&[("authorization", "Bearer x")]), "application/json");
    assert!(kind(&[("accept", "text/html,*/*")]).starts_with("text/html"));
}
