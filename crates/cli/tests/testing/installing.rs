//! Tests that are run before a package is installed.

use std::fs;

use serde_json::json;

use super::common::Desk;
use super::packages::promising;

/// A desk with the echo example, one of whose tests fails, and a policy.
fn failing(policy: &str) -> Desk {
    let desk = Desk::new();
    let test = desk.echo().join("tests/echo.test.json");
    let text = fs::read_to_string(&test).unwrap();
    fs::write(&test, text.replace("\"equals\": \"hello\"", "\"equals\": \"hullo\"")).unwrap();
    fs::create_dir_all(desk.path("home")).unwrap();
    fs::write(desk.path("home/policy.toml"), policy).unwrap();
    desk
}

const RUN: &str = "[tests]\non_install = \"run\"\n";

#[test]
fn a_package_whose_tests_fail_is_not_installed_where_the_owner_wants_them_run() {
    for policy in ["", "[tests]\non_install = \"skip\"\n"] {
        let desk = failing(policy);
        let ran = desk.done(&["install", "./echo", "--yes"]);
        assert!(!ran.stderr.contains("1 test"), "{}", ran.stderr);
    }
    let desk = failing(RUN);
    let ran = desk.haft(&["install", "./echo", "--yes"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for words in [
        "1 of 1 test of it failed, so it is not installed",
        "gives_the_message_back: $.message is \"hello\", expected \"hullo\"",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert_eq!(desk.done(&["list", "--json"]).json()["packages"], json!([]));
    // Whoever wants to find out why may keep it.
    let kept = desk.haft(&["install", "./echo", "--yes", "--on-smoke-fail=keep-disabled"]);
    assert!(kept.stderr.contains("hullo"), "{}", kept.stderr);
    let listed = desk.done(&["list", "--json"]).json();
    assert_eq!(listed["packages"][0]["enabled"], false, "{listed}");
}

#[test]
fn a_package_whose_tests_pass_is_installed() {
    let desk = Desk::new();
    desk.echo();
    fs::create_dir_all(desk.path("home")).unwrap();
    fs::write(desk.path("home/policy.toml"), RUN).unwrap();
    let ran = desk.done(&["install", "./echo", "--yes"]);
    assert!(ran.stderr.contains("1 test: 1 passed"), "{}", ran.stderr);
    desk.done(&["test", "demo.echo"]);
    // A misspelt word is no word.
    fs::write(desk.path("home/policy.toml"), "[tests]\non_install = \"rn\"\n").unwrap();
    desk.refused(&["policy", "check"], 2, "did you mean \"run\"?");
}

#[test]
fn the_cases_of_an_author_are_run_where_the_author_says_so_and_the_owner_does_not_refuse() {
    let wrong = json!({"action": "give", "input": {"n": 1}, "expected": {"n": 2}});
    let suite = json!({"ref": "cases.jsonl", "format": "jsonl-cases"});
    let verify = json!({"suite": suite, "schedule": {"on_install": true}});
    let desk = Desk::new();
    promising(&desk, &verify, std::slice::from_ref(&wrong));
    let ran = desk.haft(&["install", "./promising", "--yes"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for words in ["case 1: $.n is 1, expected 2", "pass_threshold is 0, promised at least 1"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    fs::write(desk.path("home/policy.toml"), "[tests]\non_install = \"never\"\n").unwrap();
    desk.done(&["install", "./promising", "--yes"]);
    // A manifest often travels without its cases.
    let other = Desk::new();
    promising(&other, &verify, &[wrong]);
    fs::remove_file(other.path("promising/cases.jsonl")).unwrap();
    let ran = other.done(&["install", "./promising", "--yes"]);
    assert!(ran.stderr.contains("`cases.jsonl` did not come with it"), "{}", ran.stderr);
}

#[test]
fn cases_that_would_change_something_are_not_run_because_an_author_wants_it() {
    let suite = json!({"ref": "cases.jsonl", "format": "jsonl-cases", "case_count": 2});
    let verify = json!({"suite": suite, "schedule": {"cadence": "on-install"}});
    let desk = Desk::new();
    let case = |action: &str, expected: u64| json!({"action": action, "input": {"n": 1}, "expected": {"n": expected}});
    promising(&desk, &verify, &[case("give", 1), case("take", 2)]);
    let manifest = desk.path("promising/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    document["actions"][1]["side_effects"] = "write".into();
    fs::write(&manifest, document.to_string()).unwrap();
    let ran = desk.done(&["install", "./promising", "--yes"]);
    for words in ["1 case that would change something: not run", "1 test: 1 passed"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    // Whoever wants all tests run has said so.
    desk.done(&["remove", "demo-promise"]);
    fs::write(desk.path("home/policy.toml"), RUN).unwrap();
    let ran = desk.haft(&["install", "./promising", "--yes"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("case 2: $.n is 1, expected 2"), "{}", ran.stderr);
}
