//! What the policy decides: agents are told who can change it, the log by which of its keys, and the owner's page with that key.

use serde_json::{Value, json};

use crate::common::{Desk, greeting, write_below};
use crate::gate::{Gate, home, server};

/// What a call came to, for the one who made it and in the log.
struct Told {
    error: Value,
    record: Value,
}

fn call(desk: &Desk, gate: &Gate, tool: &str, arguments: Value) -> Told {
    let told = gate.call("/mcp", tool, arguments);
    let log = desk.done(&["audit", "--json", "--limit", "1"]).stdout;
    let last = log.trim().lines().last().unwrap();
    let record = serde_json::from_str(last).unwrap_or_else(|_| panic!("{log}"));
    Told { error: told["structuredContent"]["error"].clone(), record }
}

/// A tool of a command that says what it changes, and what more its manifest says.
fn command(desk: &Desk, name: &str, more: &Value) {
    let mut manifest = greeting(name);
    manifest["actions"][0]["side_effects"] = "write".into();
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let file = write_below(desk.0.path(), "manifest.json", &manifest.to_string());
    desk.done(&["install", &file, "--yes"]);
}

#[test]
fn each_key_of_the_policy_that_decides_is_named_in_the_log() {
    let scripts = Desk::new();
    let body = "what = arguments.get('what')\nif what == 'long': time.sleep(30)\nreturn str(what)";
    let path = server(scripts.0.path(), "work", "act", body);
    let desk = home(&[("work", &path)], "[environment]\nallow = [\"NODE_OPTIONS\"]\n");
    command(&desk, "says", &json!({}));
    let variable = json!([{ "name": "NODE_OPTIONS", "secret": false, "required": false, "prompt": "A text.", "default": "--require ./x.js" }]);
    let manual = json!({ "kind": "manual", "instructions_url": "https://example.com/revoke" });
    command(&desk, "steers", &json!({ "env": variable, "kill_switch": manual }));
    let gate = Gate::open(&desk, &["--without-token"]);
    let never = "[agents]\ninstall = \"never\"\n";
    let open = "[approval]\nundeclared = \"allow\"\n";
    let cases = [
        ("[trust]\nallow = [\"verified\"]", "work_act", "denied", "trust.allow"),
        ("[package.\"mcpb:work\"]\nallow = false", "work_act", "denied", "package.allow"),
        ("[approval]\nundeclared = \"deny\"", "work_act", "denied", "approval.undeclared"),
        ("[approval]\nundeclared = \"ask\"", "work_act", "needs_approval", "approval.undeclared"),
        ("[approval]\nwrite = \"deny\"", "says_say", "denied", "approval.write"),
        ("[package.\"mcpb:work\"]\napproval = \"deny\"", "work_act", "denied", "package.approval"),
        (
            "[package.\"mcpb:work\"]\nactions.act = \"deny\"",
            "work_act",
            "denied",
            "package.actions",
        ),
        ("[budget]\ncalls_per_day = 0", "says_say", "denied", "budget.calls_per_day"),
        ("[budget]\ncalls_per_minute = 0", "says_say", "denied", "budget.calls_per_minute"),
        (
            "[package.\"install-manifest:says\"]\nbudget.calls_per_day = 0",
            "says_say",
            "denied",
            "package.budget",
        ),
        ("[environment]\nallow = []", "steers_say", "denied", "environment.allow"),
        ("[approval]\nwrite = \"allow\"", "says_say", "", "approval.write"),
        (
            "[package.\"install-manifest:says\"]\napproval = \"allow\"",
            "says_say",
            "",
            "package.approval",
        ),
    ];
    for (policy, tool, code, rule) in cases {
        write_below(&desk.path("home"), "policy.toml", &format!("{never}{policy}\n"));
        let Told { error, record } = call(&desk, &gate, tool, json!({}));
        assert_eq!(record["rule"], rule, "{policy}: {record}");
        assert_eq!(error["code"].as_str().unwrap_or_default(), code, "{policy}: {error}");
        if !code.is_empty() {
            assert_eq!(error["who"], "owner", "{policy}: {error}");
            for words in ["message", "grant", "retry"] {
                assert!(error[words].as_str().is_some_and(|words| words.len() > 5), "{error}");
            }
        }
    }
    // What runs out only while it works is told by its key too.
    let short = "[package.\"mcpb:work\"]\ntimeout = \"1s\"";
    for (policy, rule) in
        [("[sandbox]\ntimeout = \"1s\"", "sandbox.timeout"), (short, "package.timeout")]
    {
        write_below(&desk.path("home"), "policy.toml", &format!("{never}{open}{policy}\n"));
        let Told { error, record } = call(&desk, &gate, "work_act", json!({ "what": "long" }));
        assert_eq!(
            (&error["code"], &record["rule"]),
            (&json!("timed_out"), &json!(rule)),
            "{record}"
        );
    }
    // An answer of the owner was asked for by the same key.
    write_below(
        &desk.path("home"),
        "policy.toml",
        &format!("{never}[approval]\nundeclared = \"ask\"\n"),
    );
    let told = call(&desk, &gate, "work_act", json!({ "what": "no" }));
    let ticket = told.error["details"]["ticket"].as_str().unwrap().to_owned();
    desk.done(&["approve", "deny", &ticket]);
    let Told { error, record } = call(&desk, &gate, "work_act", json!({ "what": "no" }));
    assert_eq!(error["code"], "denied", "{error}");
    assert_eq!(record["rule"], "approval.undeclared", "{record}");
    // What no rule refuses names none.
    desk.done(&["disable", "mcpb:work"]);
    let Told { error, record } = call(&desk, &gate, "work_act", json!({}));
    assert_eq!((&error["code"], &error["who"]), (&json!("denied"), &json!("owner")), "{error}");
    assert_eq!(record.get("rule"), None, "{record}");
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}
