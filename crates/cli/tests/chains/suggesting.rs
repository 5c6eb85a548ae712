//! Chains that are found in what was called.

use std::fs;

use serde_json::{Value, json};

use super::with;

/// Cleans a text and counts what is left, one call after the other.
fn errand(desk: &super::Desk, text: &str) {
    let cleaned =
        desk.done(&["call", "demo.text.clean", &json!({"text": text}).to_string()]).json();
    desk.done(&["call", "demo.text.stats", &json!({"text": cleaned["text"]}).to_string()]);
}

#[test]
fn what_is_called_again_and_again_is_found_written_tested_and_called() {
    let desk = with(&["mcpkg/text-clean", "mcpkg/text-stats"]);
    let suggestions = |desk: &super::Desk| desk.done(&["chain", "suggest", "--json"]).json();
    for number in 0..3 {
        assert_eq!(suggestions(&desk)["suggestions"], json!([]), "after {number}");
        errand(&desk, &format!("  the   text of   number {number}"));
    }
    let found = suggestions(&desk)["suggestions"].clone();
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!((&found[0]["seen"], &found[0]["saved"]["calls"]), (&json!(3), &json!(3)));
    assert_eq!(found[0]["steps"][1]["takes"]["text"], json!({"step": 0, "path": "$.text"}));
    let told = desk.done(&["chain", "suggest"]).stdout;
    assert!(told.contains("demo.text.clean → demo.text.stats"), "{told}");
    // Nothing of what was passed is kept.
    let state = fs::read(desk.path("home/state.db")).unwrap();
    let journal = fs::read(desk.path("home/state.db-wal")).unwrap_or_default();
    for bytes in [state, journal] {
        assert!(!bytes.windows(7).any(|part| part == b"text of"), "a value is in the state");
    }
    let written = desk.done(&["chain", "suggest", "1", "--output", "found"]);
    assert!(written.stderr.contains("`haft test ./found`"), "{}", written.stderr);
    desk.refused(&["chain", "suggest", "1", "--output", "found"], 5, "found");
    desk.refused(&["chain", "suggest", "2", "--output", "other"], 3, "there is no suggestion 2");
    let tested = desk.done(&["test", "./found", "--json"]).json();
    assert_eq!((&tested["total"], &tested["passed"]), (&json!(1), &json!(1)), "{tested}");
    desk.done(&["install", "./found", "--yes", "-q"]);
    let counted =
        desk.done(&["call", "local.chain.clean-stats", r#"{"text":"  one   two "}"#]).json();
    assert_eq!(counted["words"], 2);
    desk.done(&["chain", "suggest", "--forget"]);
    assert_eq!(suggestions(&desk)["suggestions"], json!([]));
}

#[test]
fn the_steps_of_a_chain_and_what_the_policy_forbids_are_not_kept() {
    let desk = with(&["mcpkg/text-clean", "mcpkg/text-stats", "mcpkg/pipeline"]);
    for number in 0..3 {
        let input = json!({"draft": format!("  a   draft of   number {number}")});
        desk.done(&["call", "demo.text.report", &input.to_string()]);
    }
    let none = |desk: &super::Desk| -> Value {
        desk.done(&["chain", "suggest", "--json"]).json()["suggestions"].clone()
    };
    assert_eq!(none(&desk), json!([]));
    fs::write(desk.path("home/policy.toml"), "[chains]\nflows = false\n").unwrap();
    for number in 0..3 {
        errand(&desk, &format!("  the   text of   number {number}"));
    }
    assert_eq!(none(&desk), json!([]));
}
