//! What is told before a call, while nothing runs.

use serde_json::json;

use super::desk::{Desk, shell};

#[test]
fn explain_shows_the_plan_and_runs_nothing() {
    let desk = Desk::new();
    let tool = desk.script("touch ran; echo '{}'");
    let plan = desk.call(&[&tool, "run", "{}", "--explain", "--json"]).json();
    assert_eq!(plan["decision"], "allowed");
    assert_eq!(plan["argv"], json!(["./tools/bin/run"]));
    assert_eq!(plan["walls"]["hosts"], json!([]));
    let text = desk.call(&[&tool, "run", "{}", "--explain"]).stdout;
    assert!(text.contains("decision: allowed") && text.contains("walls:"), "{text}");
}

#[test]
fn a_plan_is_shown_before_its_secrets_are_there() {
    let desk = Desk::new();
    let ran = desk.call(&[
        "examples/mcpkg/http-status",
        "demo.http.status",
        r#"{"service":"x"}"#,
        "--explain",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("authorization"), "{}", ran.stdout);
}

#[test]
fn a_plan_says_what_may_still_keep_the_call_from_being_made() {
    let desk = Desk::new();
    let policy = "[budget]\ncalls_per_minute = 60\n[package.pkg]\nbudget.calls_per_day = 3\n";
    desk.write("home/policy.toml", policy);
    let tool = desk.script("true");
    desk.done(&["call", "--from", &tool]);
    let plan = desk.result(&[&tool, "--explain", "--json"]);
    let budget = json!([
        "3 calls a day, 2 left (`budget.calls_per_day` of this package in policy.toml)",
        "60 calls a minute, 59 left (`calls_per_minute` of `[budget]` in policy.toml)",
    ]);
    assert_eq!(plan["budget"], budget);
    assert_eq!(plan["walls"]["level"]["required"], "L2");
    assert!(plan["walls"]["level"]["here"].is_string(), "{plan}");
    assert_eq!((&plan["missing"], &plan["hooks"]), (&json!([]), &json!(null)));
    for _ in 0..2 {
        desk.done(&["call", "--from", &tool]);
    }
    let ran = desk.call(&[&tool]);
    let words = "your policy allows 3 calls a day, and none is left (`budget.calls_per_day` of this package in policy.toml)";
    let told = ran.stderr.strip_prefix(&format!("error: {words}\nhint: ")).unwrap();
    let set = "`budget.calls_per_day` of this package in policy.toml sets the limit; the next call fits in at ";
    let free = told.strip_prefix(set).unwrap();
    assert!(ran.code == 4 && free.ends_with("T00:00:00Z\n"), "{told}");
    let plan = desk.result(&[&tool, "--explain", "--json"]);
    assert_eq!((&plan["decision"], &plan["because"]), (&json!("denied"), &json!(words)));
    let rule = json!(format!("budget: {words}"));
    assert!(plan["reasons"].as_array().unwrap().contains(&rule), "{plan}");
    assert!(plan["hints"][0].as_str().unwrap().starts_with(set), "{plan}");
    let error = &desk.call(&[&tool, "--json"]).json()["error"];
    assert_eq!(error["details"]["reasons"], json!([rule]), "{error}");
    let limit = &error["details"]["limit"];
    assert_eq!((&limit["name"], &limit["allowed"]), (&json!("calls_per_day"), &json!(3)));
    let plan = desk.result(&["examples/jumith/dice.bundle.json", "--explain", "--json"]);
    assert!(plan["hooks"].as_str().unwrap().contains("requiresApproval"), "{plan}");
}

#[test]
fn a_plan_names_the_secrets_that_are_missing_and_how_to_keep_them() {
    let desk = Desk::new();
    let status = ["examples/mcpkg/http-status", r#"{"service":"x"}"#, "--explain"];
    let text = desk.call(&status).stdout;
    let command = "haft secret set mcpkg:demo.http.status STATUS_TOKEN";
    let page = "https://example.com/haft/status/tokens";
    let asks = "A token that may read the status of services.";
    let hint = format!(
        "`{command}` keeps it; the manifest asks for: {asks}; the manifest says where it is to be had: {page}"
    );
    assert!(text.contains(&format!("  - STATUS_TOKEN ({hint})\n")), "{text}");
    let plan = desk.result(&[&status[..], &["--json"]].concat());
    let missing = json!([{
        "name": "STATUS_TOKEN", "secret": true, "prompt": asks, "obtain_url": page, "hint": hint,
    }]);
    assert_eq!(plan["missing"], missing);
    let words: Vec<_> = command.split(' ').skip(1).collect();
    assert_eq!(desk.run_with(&words, Some(b"value-of-it")).code, 0);
    assert_eq!(desk.result(&[&status[..], &["--json"]].concat())["missing"], json!([]));
    // The vault knows it by the name that the reference says.
    let secrets = json!([{"name": "MY_KEY", "ref": "secret://OTHER"}]);
    let manifest = desk.capability(&shell("true"), "none", &secrets);
    let plan = desk.result(&[&manifest, "{}", "--explain", "--json"]);
    let hint = "`haft secret set capability:demo.tool OTHER` keeps it";
    assert_eq!(plan["missing"][0]["hint"], hint, "{plan}");
}

#[test]
fn the_command_of_a_bundle_is_shown_and_written_down_as_it_is_run() {
    let desk = Desk::new();
    let own = super::common::repository().join("examples/mcpb/coin/server/index.js");
    let argv = json!(["node", own.to_str().unwrap()]);
    let plan = desk.result(&["examples/mcpb/coin", "toss", "--explain", "--json"]);
    assert_eq!(plan["argv"], argv);
    desk.done(&["call", "--from", "examples/mcpb/coin", "toss"]);
    let log = desk.run(&["--json", "audit"]).stdout;
    assert!(log.contains(own.to_str().unwrap()) && !log.contains("__dirname"), "{log}");
}

#[test]
fn programs_are_told_the_same_kind_of_error_whether_it_is_explained_or_made() {
    let desk = Desk::new();
    let code = |more: &[&str]| {
        let call = ["examples/install-manifest/word-count", "no-such", "--json"];
        desk.call(&[&call, more].concat()).json()["error"]["code"].clone()
    };
    assert_eq!((code(&[]), code(&["--explain"])), (json!("unknown_tool"), json!("unknown_tool")));
}
