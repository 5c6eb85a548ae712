//! `haft rank --replace`: what could take the place of a step, proven by running both.

use std::fs;

use serde_json::{Value, json};

use super::common::{Desk, write_below};

/// Counts the words of a text after a while.
fn counting(millis: u32, extra: u32) -> String {
    format!(
        "import json, sys, time\ntime.sleep({millis} / 1000)\n\
         print(json.dumps({{'words': len(json.load(sys.stdin)['text'].split()) + {extra}}}))\n"
    )
}

/// A tool with a test, in the folder of tools.
fn tool(desk: &Desk, id: &str, program: &str, more: &Value) {
    let folder = desk.path("tools").join(id);
    let mut manifest = json!({
        "toolId": id, "name": id, "version": "1.0.0", "description": "Counts words.",
        "capabilities": ["text", "count"],
        "endpoint": {"type": "local", "command": "python3 ./tool.py"},
        "input_schema": {
            "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
        },
        "output_schema": {
            "type": "object", "properties": {"words": {"type": "integer"}}, "required": ["words"],
        },
        "tests": ["tests/two.test.json"],
    });
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let test = json!({"name": "two", "input": {"text": "one two"}, "expected": {"words": 2}});
    fs::create_dir_all(folder.join("tests")).unwrap();
    write_below(&folder, "manifest.json", &manifest.to_string());
    write_below(&folder, "tests/two.test.json", &test.to_string());
    write_below(&folder, "tool.py", program);
}

/// A chain of one slow step, beside tools that could take its place or could not.
fn desk() -> Desk {
    let desk = Desk::new();
    tool(&desk, "demo.count.slow", &counting(150, 0), &json!({}));
    tool(&desk, "demo.count.fast", &counting(0, 0), &json!({}));
    tool(&desk, "demo.count.wrong", &counting(0, 1), &json!({}));
    tool(&desk, "demo.count.later", &counting(250, 0), &json!({}));
    let other = json!({"capabilities": ["pdf"]});
    tool(&desk, "demo.count.other", &counting(0, 0), &other);
    let chain = json!({
        "toolId": "demo.count.chain", "name": "Chain", "version": "1.4.0", "description": "Counts.",
        "capabilities": ["text"],
        "chain": [{
            "step": "count", "tool": "demo.count.slow", "inputMapping": {"text": "$.input.text"},
        }],
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
        "tests": ["tests/three.test.json"],
    });
    let test = json!({"name": "three", "input": {"text": "a b c"}, "expected": {"words": 3}});
    let folder = desk.path("chain");
    fs::create_dir_all(folder.join("tests")).unwrap();
    write_below(&folder, "manifest.json", &chain.to_string());
    write_below(&folder, "tests/three.test.json", &test.to_string());
    desk
}

#[test]
fn a_faster_tool_is_proposed_once_its_tests_and_those_of_the_chain_pass_on_both() {
    let desk = desk();
    let replace = ["rank", "--replace", "./chain", "--with", "./tools", "--repeat", "12"];
    let told = desk.done(&[&replace[..], &["--output", "next", "--json"]].concat()).json();
    let outcome = |id: &str| {
        let trials = told["trials"].as_array().unwrap();
        let found = trials.iter().find(|one| one["tool"] == format!("mcpkg:demo.count.{id}"));
        found.map(|one| one["outcome"].as_str().unwrap().to_owned())
    };
    assert_eq!(outcome("fast").as_deref(), Some("faster"), "{told}");
    assert_eq!(outcome("wrong").as_deref(), Some("fails"), "{told}");
    assert_eq!(outcome("later").as_deref(), Some("not_faster"), "{told}");
    assert_eq!((outcome("other"), outcome("slow")), (None, None), "{told}");
    assert_eq!((&told["together"]["good"], &told["together"]["lost"]), (&true.into(), &json!([])));
    assert!(told["together"]["ratio"].as_f64().unwrap() > 1.2, "{told}");
    assert_eq!(told["written"], "./next");
    let written: Value =
        serde_json::from_slice(&fs::read(desk.path("next/manifest.json")).unwrap()).unwrap();
    assert_eq!(
        (&written["version"], &written["chain"][0]["tool"]),
        (&"1.4.1".into(), &"demo.count.fast".into())
    );
    desk.done(&["test", "./next", "--with", "./tools"]);
    desk.done(&["chain", "compare", "./chain", "./next", "--with", "./tools", "--repeat", "2"]);
    // What is there stays, and nothing is run for it.
    desk.refused(&[&replace[..], &["--output", "next"]].concat(), 5, "already there");
}

#[test]
fn a_faster_implementation_makes_the_calls_from_then_on() {
    let desk = desk();
    let local = |id: &str, file: &str| json!({"id": id, "endpoint": {"type": "local", "command": format!("python3 ./{file}")}});
    let slow = json!({"endpoint": null, "implementations": [local("a", "tool.py"), local("b", "quick.py")]});
    tool(&desk, "demo.count.slow", &counting(150, 0), &slow);
    let folder = desk.path("tools/demo.count.slow");
    let manifest = folder.join("manifest.json");
    let mut document: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    document.as_object_mut().unwrap().remove("endpoint");
    fs::write(&manifest, document.to_string()).unwrap();
    write_below(&folder, "quick.py", &counting(0, 0));
    for name in ["fast", "later", "other"] {
        fs::remove_dir_all(desk.path("tools").join(format!("demo.count.{name}"))).unwrap();
    }
    let replace = ["rank", "--replace", "./chain", "--with", "./tools", "--repeat", "12"];
    let told = desk.done(&replace).stdout;
    for words in [
        "count  demo.count.slow\n",
        "  its implementation b: ",
        " times as fast (",
        "    `implementation = \"b\"` in the policy chooses it\n",
        "  mcpkg:demo.count.wrong: fails 1 test: two\n",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // What is installed is measured by that.
    desk.done(&["install", "./tools/demo.count.slow", "--yes", "-q"]);
    let told = desk.done(&["rank", "--replace", "./chain", "--repeat", "12"]).stdout;
    assert!(told.contains("    it makes its calls from now on\n"), "{told}");
    let call = ["call", "demo.count.slow", r#"{"text":"a"}"#, "--json"];
    assert_eq!(desk.done(&call).json()["implementation"], "b");
}

#[test]
fn what_is_no_chain_or_has_no_tests_proves_nothing() {
    let desk = desk();
    desk.refused(&["rank", "--replace", "./tools/demo.count.slow"], 2, "is no chain");
    desk.refused(&["rank", "--replace", "./chain"], 3, "it is not installed");
    fs::remove_dir_all(desk.path("chain/tests")).unwrap();
    let manifest = desk.path("chain/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"tests/three.test.json\"", "")).unwrap();
    let replace = ["rank", "--replace", "./chain", "--with", "./tools"];
    desk.refused(&replace, 3, "has no tests to prove anything by");
    desk.refused(&["rank", "--repeat", "3"], 2, "CAPABILITY");
    desk.refused(&["rank", "text", "--output", "x"], 2, "--output is about a chain");
    desk.refused(&["rank", "pdf", "--replace", "./chain"], 2, "cannot be used");
}
