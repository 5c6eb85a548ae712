//! What a chain is shown as.

use serde_json::json;

use super::common::Desk;
use super::{chain, example, with};

#[test]
fn a_chain_is_shown_with_what_flows_where_and_what_is_missing() {
    let desk = with(&["mcpkg/text-clean"]);
    let ran = desk.done(&["chain", "show", &example("mcpkg/pipeline")]);
    let expected = "\
demo.text.report 1.0.0
Cleans a text first, then counts what is left.

  1  clean    demo.text.clean 1.0.0, side effects none
              text ← $.input.draft
              → $.cleaned
  2  measure  demo.text.stats (missing)
              after clean
              text ← $.cleaned.text
              → $.measured, the result

missing: demo.text.stats

it cannot be called as it is: the step `measure` calls `demo.text.stats`: it is not installed
";
    assert_eq!(ran.stdout, expected);
    let all = example("mcpkg");
    let whole = desk.done(&["chain", "show", &example("mcpkg/pipeline"), "--with", &all]).stdout;
    assert!(!whole.contains("missing") && whole.contains("demo.text.stats 1.0.0"), "{whole}");
}

#[test]
fn programs_are_told_every_step_and_how_it_is_called() {
    let desk = with(&["install-manifest/json-format"]);
    let folder = chain(
        &desk,
        "chain",
        "demo.test.many",
        "1.0.0",
        &json!([
            {"step": "a", "tool": "json-format", "action": "sort_keys", "retry": 2, "timeoutMs": 500, "outputKey": "one"},
            {"step": "b", "tool": "json-format", "action": "sort_keys", "outputKey": "two"},
            {"step": "c", "tool": "no.such.tool", "forEach": "$.one.list", "concurrency": 2, "when": "$.two", "retry": 1,
             "inputMapping": {"x": "$.item", "y": {"path": "$.input.y", "default": 7}}},
        ]),
    );
    let look = desk.done(&["chain", "show", &folder, "--json"]).json();
    let steps = look["steps"].as_array().unwrap();
    let rounds: Vec<_> = steps.iter().map(|one| one["round"].clone()).collect();
    assert_eq!(rounds, [1, 1, 2], "the first two may run side by side");
    assert_eq!(steps[2]["after"], json!(["a", "b"]));
    assert_eq!(steps[2]["takes"], json!({"x": "$.item", "y": "$.input.y, else 7"}));
    assert_eq!((&steps[2]["forEach"], &steps[2]["concurrency"]), (&json!("$.one.list"), &json!(2)));
    assert_eq!((&steps[0]["sideEffects"], &steps[0]["retry"]), (&json!("none"), &json!(2)));
    assert_eq!(look["missing"], json!(["no.such.tool"]));
    let text = desk.done(&["chain", "show", &folder]).stdout;
    for words in [
        "tried again up to 2 times",
        "within 500 ms",
        "for each element of $.one.list, 2 at a time",
        "only where $.two finds something",
        "tried once: its action does not say that it is idempotent",
        "side effects none",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_drawing_has_a_box_for_each_step_and_no_markup_of_a_stranger() {
    let desk = Desk::new();
    let steps = json!([
        {"step": "<script>alert(1)</script>", "tool": "a.b.c", "outputKey": "one"},
        {"step": "second", "tool": "a.b.c", "inputMapping": {"x": "$.one"}},
    ]);
    let folder = chain(&desk, "chain", "demo.test.drawn", "1.0.0", &steps);
    let file = desk.path("chain.svg");
    let file = file.to_str().unwrap();
    let ran = desk.done(&["chain", "show", &folder, "--svg", file]);
    assert!(ran.stderr.contains("Wrote"), "{}", ran.stderr);
    let drawn = std::fs::read_to_string(file).unwrap();
    assert_eq!(drawn.matches("class=\"missing\"").count(), 2);
    assert_eq!(drawn.matches("class=\"flow\"").count(), 1);
    assert!(drawn.contains("&lt;script&gt;") && !drawn.contains("<script"), "{drawn}");
    // What is there is not written over.
    desk.refused(&["chain", "show", &folder, "--svg", file], 5, "chain.svg");
}

#[test]
fn what_is_no_chain_is_told() {
    let desk = Desk::new();
    desk.refused(&["chain", "show", &example("mcpkg/echo")], 2, "`demo.echo` is no chain");
    desk.refused(&["chain", "show", "no.such.chain"], 3, "is not installed");
    desk.refused(&["chain", "show", &example("mcpkg")], 2, "name one of them");
}
