//! Chains that are called, from where they lie and installed.

use serde_json::{Value, json};

use super::common::Desk;
use super::{ECHO, chain, example, tool, with};

const PIPELINE: [&str; 4] =
    ["mcpkg/pdf-read", "mcpkg/text-clean", "mcpkg/embeddings", "mcpkg/pdf-embed"];

#[test]
fn the_pipeline_of_the_examples_works_offline_once_its_tools_are_installed() {
    let desk = with(&PIPELINE);
    let called = desk.done(&["call", "tools.pdf.pipeline.embed", r#"{"pdfPath":"report.pdf"}"#]);
    assert_eq!(called.json()["embeddings"].as_array().unwrap().len(), 64);
    let tested = desk.done(&["test", "tools.pdf.pipeline.embed", "--json"]).json();
    assert_eq!((&tested["passed"], &tested["failed"]), (&json!(1), &json!(0)));
    // Each step is in the log as itself, and all have one trace.
    let log = desk.done(&["audit", "--json", "--limit", "100"]).stdout;
    let records: Vec<Value> = log.lines().map(|one| serde_json::from_str(one).unwrap()).collect();
    let is_of_chain = |one: &Value| one.get("trace").is_some();
    let of_call: Vec<_> = records
        .iter()
        .filter(|one| one["surface"] == "terminal" && one["kind"] == "end" && is_of_chain(one))
        .map(|one| (one["step"].as_str().unwrap_or(""), one["package"].as_str().unwrap()))
        .collect();
    assert_eq!(
        of_call,
        [
            ("read_pdf", "mcpkg:tools.pdf.read_local"),
            ("clean_text", "mcpkg:demo.text.clean"),
            ("generate_embeddings", "mcpkg:tools.embeddings.generate"),
            ("", "mcpkg:tools.pdf.pipeline.embed"),
        ]
    );
    let traces: std::collections::BTreeSet<_> = records
        .iter()
        .filter(|one| one["surface"] == "terminal" && is_of_chain(one))
        .map(|one| one["trace"].as_str().unwrap())
        .collect();
    assert_eq!(traces.len(), 1);
}

#[test]
fn a_chain_finds_what_lies_beside_it_and_what_with_names() {
    let desk = Desk::new();
    let draft = r#"{"draft":"  one   two \n\n three "}"#;
    let report = json!({"lines": 2, "words": 3, "characters": 13, "longest": "three"});
    let all = example("mcpkg");
    let beside = desk.done(&["call", "--from", &all, "demo.text.report", draft]);
    assert_eq!(beside.json(), report);
    let alone = example("mcpkg/pipeline");
    assert_eq!(desk.done(&["call", "--from", &alone, "--with", &all, draft]).json(), report);
    desk.done(&["test", &alone, "--with", &all]);
    let words = "the step `clean` calls `demo.text.clean`: it is not installed";
    let ran = desk.haft(&["call", "--from", &alone, draft]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains(words) && ran.stderr.contains("--with PATH"), "{}", ran.stderr);
    let told = desk.haft(&["call", "--from", &alone, draft, "--json"]).json();
    assert_eq!(told["error"]["code"], "unknown_tool", "{told}");
}

#[test]
fn a_chain_that_leads_back_to_itself_and_one_too_deep_are_refused_before_anything_runs() {
    let desk = Desk::new();
    let step = |tool: &str| json!([{"step": "next", "tool": tool}]);
    chain(&desk, "all/a", "loop.test.a", "1.0.0", &step("loop.test.b"));
    chain(&desk, "all/b", "loop.test.b", "1.0.0", &step("loop.test.a"));
    let all = desk.path("all").to_str().unwrap().to_owned();
    desk.refused(&["call", "--from", &all, "loop.test.a", "{}"], 2, "leads back to itself");
    for number in 0..10 {
        let next = format!("deep.test.n{}", number + 1);
        chain(
            &desk,
            &format!("deep/{number}"),
            &format!("deep.test.n{number}"),
            "1.0.0",
            &step(&next),
        );
    }
    let deep = desk.path("deep").to_str().unwrap().to_owned();
    desk.refused(&["call", "--from", &deep, "deep.test.n0", "{}"], 2, "more than 8 deep");
    let log = desk.done(&["audit", "--json"]).stdout;
    assert_eq!(log.lines().count(), 2);
    assert!(log.lines().all(|line| line.contains("\"outcome\":\"bad_chain\"")), "{log}");
}

#[test]
fn a_step_that_fails_is_named_with_the_shape_of_its_input_and_how_to_help_it() {
    let desk = Desk::new();
    tool(&desk, "all/bad", "bad", "import sys; sys.exit('out of paper')", "none");
    let steps = json!([{"step": "print", "tool": "bad", "inputMapping": {"text": "$.input.text"}}]);
    chain(&desk, "all/chain", "demo.test.print", "1.0.0", &steps);
    let all = desk.path("all").to_str().unwrap().to_owned();
    let call = ["call", "--from", &all, "demo.test.print", r#"{"text":"my diary"}"#];
    let ran = desk.haft(&call);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for words in ["the step `print` (`bad`) failed", "out of paper", r#"{"text":"string(8)"}"#] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("my diary"), "{}", ran.stderr);
    assert!(ran.stdout.is_empty());
}

#[test]
fn explain_tells_the_steps_and_runs_nothing() {
    let desk = Desk::new();
    let all = example("mcpkg");
    let call = ["call", "--from", &all, "demo.text.report", r#"{"draft":"x"}"#, "--explain"];
    let text = desk.done(&call).stdout;
    assert!(text.contains("runs: a chain of other tools"), "{text}");
    let step =
        "- clean: `demo.text.clean` of mcpkg:demo.text.clean with text from $.input.draft: allowed";
    assert!(text.contains(step), "{text}");
    let plan = desk.done(&[&call[..], &["--json"]].concat()).json();
    assert_eq!((&plan["decision"], &plan["implementation"]), (&json!("allowed"), &json!("chain")));
    assert_eq!(plan["steps"][1]["takes"], json!({"text": "$.cleaned.text"}));
    assert!(!desk.path("home/audit").exists());
}

#[test]
fn a_pure_step_of_an_installed_tool_is_made_once_unless_nothing_is_to_be_found() {
    let desk = Desk::new();
    let counts = "import json, os, sys; print(json.dumps({'pid': os.getpid(), 'rand': os.urandom(4).hex()}))";
    for (name, effects) in [("pure", "none"), ("look", "read")] {
        let folder = tool(&desk, name, name, counts, effects);
        desk.done(&["install", &folder, "--yes"]);
        let steps = json!([{"step": "one", "tool": name, "inputMapping": {"n": "$.input.n"}}]);
        let folder =
            chain(&desk, &format!("{name}-chain"), &format!("demo.test.{name}"), "1.0.0", &steps);
        desk.done(&["install", &folder, "--yes"]);
    }
    let rand =
        |arguments: &[&str]| desk.done(&[&["call"], arguments].concat()).json()["rand"].clone();
    let first = rand(&["demo.test.pure", r#"{"n":1}"#]);
    assert_eq!(rand(&["demo.test.pure", r#"{"n":1}"#]), first);
    assert_ne!(rand(&["demo.test.pure", r#"{"n":2}"#]), first);
    assert_ne!(rand(&["demo.test.pure", r#"{"n":1}"#, "--no-cache"]), first);
    assert_eq!(rand(&["demo.test.pure", r#"{"n":1}"#]), first, "it keeps nothing either");
    let looked = rand(&["demo.test.look", r#"{"n":1}"#]);
    assert_ne!(rand(&["demo.test.look", r#"{"n":1}"#]), looked);
    let log = desk.done(&["audit", "--json", "--limit", "100"]).stdout;
    assert_eq!(log.lines().filter(|line| line.contains("\"cached\":true")).count(), 2);
}

#[test]
fn a_step_of_a_package_with_several_actions_names_one() {
    let desk = with(&["install-manifest/json-format"]);
    let step = |action: Value| json!([{"step": "sort", "tool": "json-format", "action": action, "inputMapping": {"b": {"value": 1}, "a": "$.input.a"}}]);
    let named = chain(&desk, "named", "demo.test.sort", "1.0.0", &step(json!("sort_keys")));
    let ran = desk.done(&["call", "--from", &named, r#"{"a":2}"#]);
    assert_eq!(ran.stdout.trim(), r#"{"a":2,"b":1}"#);
    let mut unnamed = step(json!("x"));
    unnamed[0].as_object_mut().unwrap().remove("action");
    let unnamed = chain(&desk, "unnamed", "demo.test.unsaid", "1.0.0", &unnamed);
    desk.refused(&["call", "--from", &unnamed, "{}"], 2, "which of the 2 actions of `json-format`");
}

#[test]
fn what_is_not_installed_is_told_when_a_chain_is_installed() {
    let desk = Desk::new();
    let ran = desk.done(&["install", &example("mcpkg/pipeline"), "--yes"]);
    assert!(
        ran.stderr.contains("It calls `demo.text.clean`, which is not installed"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("cannot be called yet"), "{}", ran.stderr);
    for name in ["mcpkg/text-clean", "mcpkg/text-stats"] {
        desk.done(&["install", &example(name), "--yes"]);
    }
    desk.done(&["call", "demo.text.report", r#"{"draft":"a b"}"#]);
    desk.done(&["disable", "demo.text.stats"]);
    let call = ["call", "demo.text.report", r#"{"draft":"a b"}"#];
    desk.refused(
        &call,
        4,
        "the step `measure` (`demo.text.stats`) is refused: capability disabled",
    );
}

#[test]
fn the_tests_of_a_chain_are_run_when_it_is_installed_where_the_owner_wants_that() {
    let desk = Desk::new();
    super::write_below(desk.0.path(), "home/policy.toml", "[tests]\non_install = \"run\"\n");
    let install = ["install", &example("mcpkg/pipeline"), "--yes"];
    desk.refused(&install, 1, "the step `clean` calls `demo.text.clean`: it is not installed");
    for name in ["mcpkg/text-clean", "mcpkg/text-stats"] {
        desk.done(&["install", &example(name), "--yes"]);
    }
    let ran = desk.done(&install);
    assert!(ran.stderr.contains("1 test: 1 passed"), "{}", ran.stderr);
}

#[test]
fn the_records_of_one_chain_are_found_by_its_trace() {
    let desk = with(&["mcpkg/text-clean", "mcpkg/text-stats", "mcpkg/pipeline"]);
    for _ in 0..2 {
        desk.done(&["call", "demo.text.report", r#"{"draft":"a b"}"#]);
    }
    let log = desk.done(&["audit", "--json", "--limit", "1"]).stdout;
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    let trace = last["trace"].as_str().unwrap();
    let shown = desk.done(&["audit", "--trace", trace]).stdout;
    assert_eq!(shown.lines().count(), 3, "{shown}");
    let step = "mcpkg:demo.text.clean demo.text.clean (step clean) ok, ";
    assert!(shown.lines().next().unwrap().contains(step), "{shown}");
}

#[test]
fn independent_elements_of_a_list_go_through_a_chain_in_order() {
    let desk = Desk::new();
    tool(&desk, "all/echo", "echo-json", ECHO, "none");
    let steps = json!([{
        "step": "each", "tool": "echo-json", "forEach": "$.input.names",
        "inputMapping": {"name": "$.item", "by": {"path": "$.input.by", "default": "nobody"}},
    }]);
    chain(&desk, "all/chain", "demo.test.each", "1.0.0", &steps);
    let all = desk.path("all").to_str().unwrap().to_owned();
    let ran = desk.done(&["call", "--from", &all, "demo.test.each", r#"{"names":["a","b","c"]}"#]);
    let got = |name: &str| json!({"got": {"name": name, "by": "nobody"}});
    assert_eq!(ran.json(), json!([got("a"), got("b"), got("c")]));
}

#[test]
fn a_broken_package_beside_those_that_steps_call_is_passed_over_and_one_found_twice_is_one() {
    let desk = Desk::new();
    tool(&desk, "all/look", "look", ECHO, "read");
    let steps = json!([{"step": "look", "tool": "look", "outputKey": "seen"}]);
    chain(&desk, "all/chain", "demo.test.one", "1.0.0", &steps);
    for (id, other) in
        [("demo.test.round", "demo.test.back"), ("demo.test.back", "demo.test.round")]
    {
        let steps = json!([{"step": "a", "tool": other}]);
        chain(&desk, &format!("all/{id}"), id, "1.0.0", &steps);
    }
    let round = ["call", "--from", "all/demo.test.round", "--with", "all", "{}"];
    desk.refused(&round, 2, "the chain leads back to itself");
    std::fs::create_dir(desk.path("all/broken")).unwrap();
    std::fs::write(desk.path("all/broken/manifest.json"), r#"{"toolId": 7}"#).unwrap();
    let ran = desk.done(&["call", "--from", "all/chain", "--with", "all", "{}"]);
    assert!(ran.stderr.contains("`all/broken` is passed over"), "{}", ran.stderr);
}
