//! A chain that was found in calls is written as a package that is one.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;

use manifest::document::{Options, read};
use manifest::model::Package;
use prove::Case;
use prove::mining::draft::{Called, Draft};
use prove::mining::{Source, Step, Suggestion, Tool};
use serde_json::{Value, json};

fn example(name: &str) -> Package {
    let path = testkit::repo().join("examples/mcpkg").join(name).join("manifest.json");
    let (_, packages) = read(&fs::read(path).unwrap(), &Options::default()).unwrap();
    packages.into_iter().next().unwrap()
}

fn step(package: &Package, takes: &[(&str, usize, &str)], asks: &[(&str, bool)]) -> Step {
    let tool = Tool { package: package.canonical_id(), action: package.actions[0].name.clone() };
    let source = |step: usize, path: &str| Source { step, path: path.to_owned() };
    let takes = takes.iter().map(|(name, at, path)| ((*name).to_owned(), source(*at, path)));
    let asks = asks.iter().map(|(name, is_needed)| ((*name).to_owned(), *is_needed));
    Step { tool, takes: takes.collect(), asks: asks.collect() }
}

fn suggestion(steps: Vec<Step>) -> Suggestion {
    Suggestion { steps, seen: 3, calls: 3, millis: 900 }
}

fn called<'p>(package: &'p Package, tested: Option<&'p Value>) -> Called<'p> {
    Called { package, action: &package.actions[0], tested }
}

#[test]
fn a_draft_is_a_valid_chain_with_a_test_of_what_its_steps_are_tested_with() {
    let (clean, stats) = (example("text-clean"), example("text-stats"));
    let steps = vec![
        step(&clean, &[], &[("text", true)]),
        step(&stats, &[("text", 0, "$.text")], &[("language", false)]),
    ];
    let tested = json!({"text": "  some   text "});
    let called = [called(&clean, Some(&tested)), called(&stats, None)];
    let draft = Draft::of(&suggestion(steps), &called, "local.chain.clean-stats");
    let (report, packages) =
        read(draft.manifest.to_string().as_bytes(), &Options::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(packages[0].chain.is_some());
    let chain = &draft.manifest["chain"];
    assert_eq!(chain[0]["inputMapping"], json!({"text": "$.input.text"}));
    assert_eq!(
        chain[1]["inputMapping"],
        json!({"text": "$.clean.text", "language": "$.input.language"})
    );
    assert_eq!(chain[1]["optional"], json!(["language"]));
    assert_eq!(draft.manifest["input_schema"]["required"], json!(["text"]));
    let test = draft.test.unwrap();
    assert_eq!(test["input"], tested);
    let case = Case::read("tests/a.test.json", test.to_string().as_bytes()).unwrap();
    assert!(!case.faults(&json!({})).is_empty(), "the answer must have what is promised");
}

#[test]
fn what_is_called_alike_in_two_steps_is_told_apart_and_without_tests_there_is_none() {
    let stats = example("text-stats");
    let steps = vec![
        step(&stats, &[], &[("text", true), ("depth", true)]),
        step(&stats, &[("text", 0, "$")], &[("depth", true)]),
    ];
    let called = [called(&stats, None), called(&stats, None)];
    let Draft { manifest, test } = Draft::of(&suggestion(steps), &called, "local.twice");
    assert_eq!(test, None);
    assert_eq!(manifest.get("tests"), None);
    let mapping = |at: usize| -> BTreeMap<String, Value> {
        serde_json::from_value(manifest["chain"][at]["inputMapping"].clone()).unwrap()
    };
    assert_eq!(mapping(0)["depth"], "$.input.stats_depth");
    assert_eq!(mapping(1)["depth"], "$.input.stats_2_depth");
    assert_eq!(mapping(1)["text"], "$.stats");
}
