//! Tools that agents bring in themselves: where the policy lets them, and then only what it lets in without a question.

use serde_json::{Value, json};

use crate::common::served::Served;
use crate::common::{Desk, repository};
use crate::gate::{Gate, home};

/// A policy by which agents may call what is here, and by which this becomes of what is not.
fn policy(install: &str, more: &str) -> String {
    format!(
        "[approval]\nundeclared = \"allow\"\n[agents]\ninstall = \"{install}\"\ntools = 1\n{more}"
    )
}

/// A home with a policy, and a registry with one tool.
fn shop(policy: &str) -> (Desk, Served) {
    let desk = home(&[], policy);
    let shop = Served::known_to(&desk, "shop");
    let folder = repository().join("examples/mcpkg/echo");
    desk.done(&["pack", folder.to_str().unwrap(), "-o", "echo.mcpkg"]);
    desk.done(&["publish", "echo.mcpkg", "--registry", "shop"]);
    (desk, shop)
}

fn names(gate: &Gate) -> Vec<String> {
    let listed = gate.ask("/mcp", "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

fn install(gate: &Gate, id: &str) -> Value {
    gate.call("/mcp", "install_tool", json!({ "tool": id }))
}

#[test]
fn an_agent_installs_what_the_policy_lets_in_and_calls_it() {
    let trust = "[trust]\nallow = [\"local\", \"verified\", \"community\"]\n";
    let (desk, _shop) = shop(&policy("allow", trust));
    let gate = Gate::open(&desk, &["--without-token"]);
    assert!(names(&gate).contains(&"install_tool".to_owned()), "{:?}", names(&gate));
    let told = install(&gate, "demo.echo");
    assert_eq!(told.get("isError"), None, "{told}");
    let echoed = gate.call("/mcp", "demo_echo", json!({ "message": "hi" }));
    assert_eq!(echoed["structuredContent"]["message"], "hi", "{echoed}");
    // Paths and addresses are the owner's to install.
    let folder = repository().join("examples/mcpkg/text-clean");
    for odd in [folder.to_str().unwrap(), "https://example.com/a.b", "../a.b"] {
        let told = install(&gate, odd);
        let error = &told["structuredContent"]["error"];
        assert_eq!(
            (&told["isError"], &error["code"]),
            (&json!(true), &json!("bad_input")),
            "{told}"
        );
    }
    let told = install(&gate, "demo.nothing");
    assert_eq!(told["structuredContent"]["error"]["code"], "not_found", "{told}");
    let log = desk.done(&["audit", "--json", "--limit", "50"]).stdout;
    assert!(log.contains("\"change\":\"install\""), "{log}");
}

#[test]
fn an_agent_installs_nothing_that_the_policy_would_ask_about() {
    let (desk, _shop) = shop(&policy("allow", ""));
    let before = desk.done(&["list", "--json"]).json();
    let gate = Gate::open(&desk, &["--without-token"]);
    let told = install(&gate, "demo.echo");
    let error = &told["structuredContent"]["error"];
    assert_eq!((&told["isError"], &error["code"]), (&json!(true), &json!("denied")), "{told}");
    assert_eq!(error["who"], "owner", "{told}");
    for key in ["message", "grant", "retry"] {
        assert!(error[key].as_str().is_some_and(|words| !words.is_empty()), "{key}: {told}");
    }
    let words = told["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("The owner can") && words.contains("(code: denied)"), "{words}");
    assert!(!words.contains("your policy"), "{words}");
    assert_eq!(desk.done(&["list", "--json"]).json(), before);
}

#[test]
fn where_agents_install_nothing_there_is_nothing_to_install_with() {
    for (rule, asks) in [("request", true), ("never", false)] {
        let desk = home(&[], &policy(rule, ""));
        let gate = Gate::open(&desk, &["--without-token"]);
        let names = names(&gate);
        assert!(!names.contains(&"install_tool".to_owned()), "{names:?}");
        assert_eq!(names.contains(&"request_tool".to_owned()), asks, "{names:?}");
        let told = gate.ask(
            "/mcp",
            "tools/call",
            json!({ "name": "install_tool", "arguments": { "tool": "demo.echo" } }),
        );
        assert_eq!(told["error"]["code"], -32602, "{told}");
    }
}

#[test]
fn where_no_registry_is_named_an_agent_is_told_that_its_owner_names_one() {
    let desk = home(&[], &policy("allow", ""));
    let gate = Gate::open(&desk, &["--without-token"]);
    let told = install(&gate, "demo.echo");
    let error = &told["structuredContent"]["error"];
    assert_eq!((&error["code"], &error["who"]), (&json!("no_registry"), &json!("owner")), "{told}");
    assert!(error["retry"].as_str().unwrap().contains("before the owner has named"), "{told}");
}
