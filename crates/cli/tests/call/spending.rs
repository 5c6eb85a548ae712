//! What a call of a Node tool costs, which is asked what it needs before it is made.

use serde_json::{Value, json};

use super::desk::Desk;

/// A Node tool whose manifest says this beside what it must, and whose object has these hooks.
fn node(desk: &Desk, manifest: &Value, hooks: &str) -> String {
    let mut whole = json!({"id": "tool:demo.node", "name": "demo.node", "version": "1.0.0",
        "summary": "A test", "description": "A test.",
        "entry": {"runtime": "node", "main": "index.js"},
        "schema": {"input": {"type": "object"}, "output": {}}});
    whole.as_object_mut().unwrap().extend(manifest.as_object().unwrap().clone());
    let code = format!(
        "export const tool = {{ name: 'demo.node', async execute() {{ return 1; }}, {hooks} }};"
    );
    let bundle = json!({"manifest": whole, "files": [{"path": "index.js", "content": code}]});
    desk.write("pkg/node.json", &bundle.to_string())
}

/// How often anything of a tool has begun to run.
fn begun(desk: &Desk) -> usize {
    desk.done(&["audit", "--json"]).stdout.matches(r#""kind":"begin""#).count()
}

#[test]
fn a_call_that_is_refused_costs_nothing_whoever_says_what_it_lacks() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[budget]\ncalls_per_day = 1\n");
    // The manifest says it: nothing of the tool runs.
    let lacking = json!({"requiredSecrets": ["user"]});
    let hooks = "requiredSecrets: () => ['user']";
    let declared = [
        (lacking, 2, "Missing required secret: user"),
        (json!({"requiresApproval": true}), 4, "the owner has to be asked"),
    ];
    for (manifest, code, words) in declared {
        let from = node(&desk, &manifest, hooks);
        for _ in 0..2 {
            let ran = desk.call(&[&from]);
            assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
            assert!(ran.stderr.contains(words), "{}", ran.stderr);
        }
    }
    assert_eq!(begun(&desk), 0);
    // Only a hook says it.
    for (hooks, code) in [(hooks, 2), ("requiresApproval: () => true", 4)] {
        let from = node(&desk, &json!({}), hooks);
        for _ in 0..2 {
            let ran = desk.call(&[&from]);
            assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
        }
    }
    assert_eq!(begun(&desk), 4);
    // What goes on is paid for once, and then no hook runs either.
    let from = node(&desk, &json!({}), hooks);
    let set = ["secret", "set", "jumith:tool:demo.node", "user"];
    assert_eq!(desk.run_with(&set, Some(b"somebody")).code, 0);
    assert_eq!(desk.result(&[&from]), json!(1));
    let ran = desk.call(&[&from]);
    assert!(ran.stderr.contains("allows 1 call a day, and none is left"), "{}", ran.stderr);
    assert_eq!((ran.code, begun(&desk)), (4, 5));
}

#[test]
fn a_call_that_fails_in_its_hooks_was_made() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[budget]\ncalls_per_day = 1\n");
    let from = node(&desk, &json!({}), "requiresApproval: () => { process.exit(3); }");
    assert_eq!(desk.call(&[&from]).code, 1);
    let ran = desk.call(&[&from]);
    assert!(ran.stderr.contains("allows 1 call a day, and none is left"), "{}", ran.stderr);
}

#[test]
fn of_several_limits_the_one_that_is_free_last_is_told() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[budget]\ncalls_per_minute = 1\ncalls_per_day = 1\n");
    let from = node(&desk, &json!({}), "");
    assert_eq!(desk.result(&[&from]), json!(1));
    let limit = || desk.call(&[&from, "--json"]).json()["error"]["details"]["limit"].clone();
    assert_eq!(limit()["name"], "calls_per_day");
    // Whichever of them comes first.
    let package = "[package.\"jumith:tool:demo.node\"]\nbudget.calls_per_minute = 0\n";
    let policy = format!("[budget]\ncalls_per_day = 1\n{package}");
    desk.write("home/policy.toml", &policy);
    assert_eq!((&limit()["name"], &limit()["free_at"]), (&json!("calls_per_minute"), &json!(null)));
    let policy = "[budget]\ncalls_per_day = 1\n[package.\"jumith:tool:demo.node\"]\nbudget.calls_per_minute = 1\n";
    desk.write("home/policy.toml", policy);
    assert_eq!(limit()["name"], "calls_per_day");
}

#[test]
fn a_limit_that_is_new_counts_no_call_that_was_made_before() {
    let desk = Desk::new();
    let tool = desk.script("true");
    desk.write("home/policy.toml", "[package.pkg]\nbudget.calls_per_day = 50\n");
    for _ in 0..2 {
        desk.done(&["call", "--from", &tool]);
    }
    desk.write("home/policy.toml", "[budget]\ncalls_per_day = 1\n");
    desk.done(&["call", "--from", &tool]);
    assert_eq!(desk.call(&[&tool]).code, 4);
}
