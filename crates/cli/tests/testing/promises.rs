//! Cases that an author promises something about, and the smoke test.

use serde_json::{Value, json};

use super::common::Desk;
use super::packages::promising;

fn case(n: u64, expected: u64) -> Value {
    json!({"action": "give", "input": {"n": n}, "expected": {"n": expected}})
}

fn suite(threshold: f64) -> Value {
    json!({"ref": "./cases.jsonl", "format": "jsonl-cases", "pass_threshold": threshold})
}

#[test]
fn as_many_cases_must_pass_as_the_author_promises() {
    let desk = Desk::new();
    let verify =
        json!({"suite": suite(0.75), "sla": {"p95_latency_ms": 60_000, "error_rate_max": 0}});
    let cases = [case(1, 1), case(2, 2), case(3, 3), case(4, 5)];
    promising(&desk, &verify, &cases);
    let ran = desk.done(&["test", "./promising"]);
    for words in [
        "  smoke\n",
        "  case 4\n",
        "$.n is 4, expected 5",
        "kept             pass_threshold is 0.75, promised at least 0.75",
        "5 tests: 4 passed, 1 failed, within what its author promises",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    desk.done(&["test", "./promising", "--junit", "results.xml", "-q"]);
    let xml = std::fs::read_to_string(desk.path("results.xml")).unwrap();
    assert!(xml.contains("failures=\"0\" errors=\"0\" skipped=\"1\""), "{xml}");
    // One more, and the promise is broken.
    promising(&desk, &verify, &[case(1, 1), case(2, 2), case(3, 4), case(4, 5)]);
    let ran = desk.haft(&["test", "./promising", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let document = ran.json();
    assert_eq!((&document["ok"], &document["failed"]), (&json!(false), &json!(2)));
    assert_eq!(
        document["promises"][0],
        json!({"package": "install-manifest:demo-promise", "name": "pass_threshold",
            "expected": "at least 0.75", "found": "0.5", "kept": false})
    );
}

#[test]
fn a_case_says_which_action_it_calls_and_a_count_is_kept() {
    let desk = Desk::new();
    let mut verify = json!({"suite": suite(1.0)});
    verify["suite"]["case_count"] = 4.into();
    let cases = [
        case(1, 1),
        json!({"name": "by name", "action": "take", "input": {"n": 2}}),
        json!({"name": "of neither", "input": {"n": 2}}),
        json!({"name": "of another", "action": "steal", "input": {"n": 2}}),
        json!({"input": 7}),
    ];
    promising(&desk, &verify, &cases);
    let ran = desk.haft(&["test", "./promising"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for words in [
        "it does not say which of the 2 actions it calls",
        "there is no action `steal`",
        "INVALID       0  ./cases.jsonl:5",
        "BROKEN           pass_threshold is 0.4, promised at least 1",
        "BROKEN           case_count is 5, promised 4",
        "6 tests: 3 passed, 3 failed",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
}

#[test]
fn a_smoke_test_that_fails_is_told_with_what_was_found() {
    let desk = Desk::new();
    promising(&desk, &json!({"suite": suite(1.0)}), &[case(1, 1)]);
    let manifest = desk.path("promising/manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("{\"/n\":1}", "{\"/n\":2}")).unwrap();
    let ran = desk.haft(&["test", "./promising"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("json_pointer_equals `/n` is 1, expected 2"), "{}", ran.stdout);
    assert!(ran.stdout.contains("2 tests: 1 passed, 1 failed"), "{}", ran.stdout);
}
