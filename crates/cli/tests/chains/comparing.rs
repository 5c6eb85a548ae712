//! Two chains on the same tests.

use serde_json::json;

use super::common::{Desk, write_below};
use super::{chain, tool};

/// Writes a test into the folder of a chain, and lists it.
fn test(desk: &Desk, folder: &str, name: &str, expected: &serde_json::Value) {
    let test = json!({"name": name, "input": {"n": 1}, "expected": expected});
    write_below(desk.0.path(), &format!("{folder}/tests/{name}.test.json"), &test.to_string());
    let path = desk.path(folder).join("manifest.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let listed = manifest["tests"].as_array().cloned().unwrap_or_default();
    let listed: Vec<_> =
        listed.into_iter().chain([json!(format!("tests/{name}.test.json"))]).collect();
    manifest["tests"] = listed.into();
    std::fs::write(path, manifest.to_string()).unwrap();
}

fn desk() -> Desk {
    let desk = Desk::new();
    let answer = |wait: &str| {
        format!(
            "import json, sys, time; time.sleep({wait}); print(json.dumps({{'n': json.load(sys.stdin)['n']}}))"
        )
    };
    tool(&desk, "tools/fast", "fast", &answer("0"), "none");
    tool(&desk, "tools/slow", "slow", &answer("0.6"), "none");
    let step = |name: &str, tool: &str| json!({"step": name, "tool": tool, "inputMapping": {"n": "$.input.n"}, "outputKey": name});
    chain(&desk, "one", "demo.test.one", "1.0.0", &json!([step("a", "slow")]));
    chain(&desk, "two", "demo.test.one", "2.0.0", &json!([step("a", "fast")]));
    test(&desk, "one", "right", &json!({"n": 1}));
    desk
}

#[test]
fn the_faster_of_two_versions_is_found_on_the_same_tests() {
    let desk = desk();
    let compare = ["chain", "compare", "./one", "./two", "--with", "./tools", "--repeat", "8"];
    let told = desk.done(&[&compare[..], &["--json"]].concat()).json();
    assert_eq!((&told["faster"], &told["lost"]), (&json!("b"), &json!([])), "{told}");
    assert!(told["p"].as_f64().unwrap() < 0.01 && told["ratio"].as_f64().unwrap() > 1.5, "{told}");
    assert_eq!((&told["a"]["version"], &told["b"]["version"]), (&json!("1.0.0"), &json!("2.0.0")));
    let text = desk.done(&compare).stdout;
    assert!(
        text.contains("times as fast as A") && text.contains("B passes what A passes"),
        "{text}"
    );
    assert!(text.contains("1 of 1") && text.contains("unknown"), "{text}");
}

#[test]
fn the_second_that_fails_what_the_first_passes_ends_with_1() {
    let desk = desk();
    test(&desk, "two", "wrong", &json!({"n": 2}));
    let steps = json!([{"step": "a", "tool": "fast", "inputMapping": {"n": {"value": 2}}}]);
    chain(&desk, "three", "demo.test.three", "1.0.0", &steps);
    let compare = ["chain", "compare", "./two", "./three", "--with", "./tools", "--repeat", "1"];
    let ran = desk.haft(&compare);
    // What neither or only the second passes is no loss: there is no test that both have but `wrong`.
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    test(&desk, "two", "right", &json!({"n": 1}));
    let ran = desk.haft(&compare);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("B fails 1 test that A passes"), "{}", ran.stdout);
    assert!(ran.stdout.contains("B fails right"), "{}", ran.stdout);
}

#[test]
fn versions_of_an_installed_chain_are_compared_and_what_has_no_tests_is_told() {
    let desk = desk();
    for name in ["fast", "slow"] {
        desk.done(&["install", &format!("./tools/{name}"), "--yes"]);
    }
    test(&desk, "two", "right", &json!({"n": 1}));
    desk.done(&["install", "./one", "--yes"]);
    desk.done(&["install", "./two", "--yes"]);
    let compare = ["chain", "compare", "demo.test.one@1.0.0", "demo.test.one", "--repeat", "8"];
    let told = desk.done(&[&compare[..], &["--json"]].concat()).json();
    assert_eq!((&told["tests"], &told["faster"]), (&json!(1), &json!("b")), "{told}");
    desk.refused(&["chain", "compare", "demo.test.one@9.9.9", "demo.test.one"], 3, "is not here");
    chain(&desk, "bare", "demo.test.bare", "1.0.0", &json!([{"step": "a", "tool": "fast"}]));
    desk.refused(&["chain", "compare", "./bare", "./bare"], 3, "neither of them has a test");
}
