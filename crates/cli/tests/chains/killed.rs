//! A host that is killed in the middle of a chain.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::common::Desk;
use super::{chain, tool};

#[test]
fn killed_in_the_middle_the_log_says_what_had_begun_and_nothing_else() {
    let desk = Desk::new();
    tool(&desk, "all/quick", "quick", "print('{}')", "none");
    tool(&desk, "all/slow", "slow", "import time; time.sleep(60); print('{}')", "none");
    let steps = json!([
        {"step": "first", "tool": "quick", "outputKey": "one"},
        {"step": "second", "tool": "slow", "inputMapping": {"x": "$.one"}, "outputKey": "two"},
        {"step": "third", "tool": "quick", "inputMapping": {"x": "$.two"}},
    ]);
    chain(&desk, "all/chain", "demo.test.slow", "1.0.0", &steps);
    let all = desk.path("all").to_str().unwrap().to_owned();
    let mut running = Command::new(assert_cmd::cargo::cargo_bin("haft"))
        .arg("--home")
        .arg(desk.path("home"))
        .args(["call", "--from", &all, "demo.test.slow", "{}"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let records = || -> Vec<Value> {
        let Ok(log) = std::fs::read_dir(desk.path("home/audit")) else { return Vec::new() };
        let logs =
            log.flatten().filter(|one| one.path().extension().is_some_and(|end| end == "log"));
        let texts = logs.map(|one| std::fs::read_to_string(one.path()).unwrap_or_default());
        let lines = texts.collect::<String>();
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let is_begun = |one: &Value| one["step"] == "second" && one["kind"] == "begin";
    let until = Instant::now() + Duration::from_mins(1);
    while !records().iter().any(is_begun) {
        assert!(Instant::now() < until, "{:?}", records());
        std::thread::sleep(Duration::from_millis(20));
    }
    running.kill().unwrap();
    running.wait().unwrap();
    let told: Vec<_> = records()
        .iter()
        .map(|one| {
            (
                one["kind"].as_str().unwrap().to_owned(),
                one["step"].as_str().unwrap_or("").to_owned(),
            )
        })
        .collect();
    let expected = [("begin", ""), ("begin", "first"), ("end", "first"), ("begin", "second")];
    assert_eq!(told, expected.map(|(kind, step)| (kind.to_owned(), step.to_owned())));
    let checked = desk.done(&["audit", "verify", "--json"]).json();
    assert_eq!((&checked["sound"], &checked["records"]), (&json!(true), &json!(4)), "{checked}");
    // That the chain and its step have no end is told, and that the last record was to be signed for with the next; neither is a
    // fault of the log.
    let told = |words: &str| {
        let found = checked["findings"].as_array().unwrap().iter();
        found.filter(|one| one.as_str().unwrap().ends_with(words)).count()
    };
    assert_eq!(told("began, and its end was not written"), 2, "{checked}");
    assert_eq!(told("but its head was not"), 1, "{checked}");
    assert_eq!(told(""), 3, "{checked}");
    // And the next one works, and goes on where the log ends.
    desk.done(&["call", "--from", &all, "quick", "{}"]);
    desk.done(&["audit", "verify"]);
}
