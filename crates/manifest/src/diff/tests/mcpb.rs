use serde_json::{Value, json};

use super::Edit::{Remove, Set};
use super::{beside_version, check_basics, check_nothing_goes_unseen, check_rows, edited, read};
use crate::diff::Class::{Additive, Breaking, Cosmetic, NeedsReview};

fn sample(version: &str) -> Value {
    json!({
        "manifest_version": "0.3", "name": "notes", "display_name": "Notes", "version": version,
        "description": "Finds notes.", "long_description": "By words.",
        "author": {"name": "Ada", "email": "ada@example.com", "url": "https://example.com/ada"},
        "homepage": "https://example.com/", "support": "https://example.com/help",
        "server": {
            "type": "node", "entry_point": "server/index.js",
            "mcp_config": {
                "command": "node",
                "args": ["${__dirname}/server/index.js", "${user_config.folders}"],
                "env": {"TOKEN": "${user_config.token}", "MODE": "plain"},
                "platform_overrides": {"win32": {"command": "node.exe"}}
            }
        },
        "tools": [{"name": "find", "description": "Finds."}],
        "keywords": ["notes"], "license": "MIT",
        "compatibility": {"platforms": ["win32", "linux"], "runtimes": {"node": ">=20"}},
        "user_config": {
            "folders": {
                "type": "directory", "title": "Folders", "description": "Where?",
                "multiple": true, "required": true, "default": ["${HOME}/Notes"]
            },
            "limit": {
                "type": "number", "title": "Limit", "description": "How many?",
                "default": 20, "min": 1, "max": 100
            },
            "token": {"type": "string", "title": "Token", "description": "Which?", "sensitive": true}
        }
    })
}

#[test]
fn nothing_but_the_version_changes_nothing() {
    check_basics(&sample("1.0.0"), &sample("1.1.0"));
}

#[test]
fn every_value_that_may_change_is_looked_at() {
    // The version is left out by the test itself; what is started is said in `mcp_config`.
    let unseen = ["/version", "/server/entry_point"];
    check_nothing_goes_unseen(&sample("1.0.0"), &sample("1.1.0"), &unseen);
}

#[test]
fn each_field_is_classed() {
    check_rows(
        &sample("1.0.0"),
        &sample("1.1.0"),
        vec![
            ("/name", Set(json!("memos")), Breaking, "id"),
            ("/display_name", Set(json!("Memos")), Cosmetic, "display name"),
            ("/server/mcp_config/command", Set(json!("deno")), NeedsReview, "implementation main"),
            ("/server/mcp_config/args/-", Set(json!("--all")), NeedsReview, "implementation win32"),
            ("/server/mcp_config/env/MODE", Set(json!("x")), NeedsReview, "implementation main"),
            ("/server/mcp_config/platform_overrides", Remove, NeedsReview, "implementation win32"),
            ("/compatibility/platforms/0", Remove, Breaking, "platforms"),
            (
                "/compatibility/platforms/-",
                Set(json!("darwin")),
                NeedsReview,
                "implementation main",
            ),
            ("/tools/0", Remove, Breaking, "action find"),
            ("/tools/-", Set(json!({"name": "drop"})), NeedsReview, "action drop"),
            ("/user_config/limit/max", Set(json!(50)), Breaking, "variable limit"),
            ("/user_config/limit/max", Remove, Additive, "variable limit"),
            ("/user_config/limit/default", Set(json!(30)), Additive, "variable limit"),
            ("/user_config/limit/required", Set(json!(true)), Breaking, "variable limit"),
            ("/user_config/folders/multiple", Remove, Breaking, "variable folders"),
            ("/user_config/token/sensitive", Set(json!(false)), NeedsReview, "secret token"),
        ],
    );
}

#[test]
fn a_change_of_a_variable_alone_can_be_seen() {
    let new = edited(&sample("1.1.0"), "/server/mcp_config/env/MODE", Set(json!("wild")));
    let changes = beside_version(&read(&sample("1.0.0"))[0], &read(&new)[0]);
    let message = &changes[0].message;
    assert!(message.contains("`MODE=plain`") && message.contains("`MODE=wild`"), "{message}");
    assert_eq!(changes[0].pointer.as_ref().unwrap().as_str(), "/server/mcp_config");
}
