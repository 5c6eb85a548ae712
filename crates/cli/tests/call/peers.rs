//! Programs and functions that others wrote, one for each way to run that needs no server: Python's own
//! `json.tool`, git, sed, echo, and functions of Python's library.

use serde_json::{Value, json};

use super::desk::{Desk, shell};

/// What comes back as it went.
const INPUT: &str = r#"{"text":"ä \" \\ \n","list":[1,2.5,null,true],"more":{"a":{}}}"#;

fn input() -> Value {
    serde_json::from_str(INPUT).unwrap()
}

#[test]
fn a_tools_json_calls_a_program_of_others() {
    let desk = Desk::new();
    let tools = json!({"tools": [
        {"name": "compact", "description": "Writes JSON in short.",
            "command": ["/usr/bin/python3", "-m", "json.tool", "--compact"],
            "schema": {"type": "object", "properties": {}}},
        {"name": "blob", "description": "Names what it is given as git would.",
            "command": ["/usr/bin/git", "hash-object", "--stdin"],
            "schema": {"type": "object", "properties": {}}},
    ]});
    let from = desk.write("pkg/tools.json", &tools.to_string());
    assert_eq!(desk.result(&[&from, "compact", INPUT]), input());
    // The input is the bytes as they were written, so its name is theirs.
    let expected = std::process::Command::new("sh")
        .args(["-c", "printf %s \"$0\" | git hash-object --stdin", INPUT])
        .output()
        .unwrap();
    let named = desk.call(&[&from, "blob", INPUT]);
    assert_eq!(named.stdout.trim(), String::from_utf8_lossy(&expected.stdout).trim());
}

#[test]
fn an_install_manifest_calls_a_module_of_others() {
    let desk = Desk::new();
    let from = "examples/install-manifest/json-format";
    let said = desk.call(&[from, "sort_keys", r#"{"b":1,"a":[]}"#]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(said.stdout.trim(), r#"{"a":[],"b":1}"#);
}

#[test]
fn a_package_calls_a_program_of_others() {
    let desk = Desk::new();
    let manifest = json!({
        "toolId": "demo.echo", "name": "Echo", "version": "1.0.0",
        "description": "Says what it is told.", "capabilities": ["echo"],
        "implementations": [{
            "id": "system", "language": "shell", "runtime": "sh",
            "platforms": ["linux-x64", "linux-arm64"],
            "endpoint": {"type": "local", "command": "/bin/echo"},
        }],
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
        "tests": ["tests/one.test.json"], "examples": ["examples/one.md"],
        "meta": {"publisher": {"id": "demo", "name": "Demo"}, "license": "MIT"},
    });
    let from = desk.write("pkg/manifest.json", &manifest.to_string());
    assert_eq!(desk.result(&[&from, "demo.echo", INPUT]), input());
}

#[test]
fn a_capability_calls_a_program_and_a_function_of_others() {
    let desk = Desk::new();
    let tidy = shell("sed 's/text/word/' | python3 -m json.tool --compact");
    let from = desk.capability(&tidy, "none", &json!([]));
    assert_eq!(desk.result(&[&from, "demo.tool", r#"{"text":1}"#]), json!({"word": 1}));
    for (callable, expected) in [
        ("copy:deepcopy", input()),
        ("json:dumps", json!(r#"{"a": 1}"#)),
        ("builtins:sorted", json!(["a"])),
    ] {
        let python = json!({"kind": "python", "python": {"callable": callable}});
        let from = desk.capability(&python, "none", &json!([]));
        let input = if callable == "copy:deepcopy" { INPUT } else { r#"{"a":1}"# };
        assert_eq!(desk.result(&[&from, "demo.tool", input]), expected, "{callable}");
    }
}
