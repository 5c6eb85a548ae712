//! What is run, and what is told of it.

use std::fs;

use serde_json::{Value, json};

use super::common::{Desk, write_below};
use super::packages::python;

/// The echo example with these tests beside its own.
fn echo(desk: &Desk, tests: &[(&str, &str)]) {
    let manifest = desk.echo().join("manifest.json");
    let mut document: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    for (name, text) in tests {
        let path = format!("tests/{name}.test.json");
        write_below(&desk.path("echo"), &path, text);
        document["tests"].as_array_mut().unwrap().push(path.into());
    }
    fs::write(&manifest, document.to_string()).unwrap();
}

fn column(document: &Value, name: &str) -> Vec<String> {
    let tests = document["tests"].as_array().unwrap();
    tests.iter().map(|test| test[name].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_folder_an_archive_a_manifest_and_an_installed_package_are_tested_alike() {
    let desk = Desk::new();
    echo(&desk, &[]);
    desk.done(&["pack", "echo", "--output", "echo.mcpkg"]);
    desk.done(&["install", "./echo", "--yes", "-q"]);
    for what in ["./echo", "echo.mcpkg", "echo/manifest.json", "demo.echo", "mcpkg:demo.echo"] {
        let ran = desk.done(&["test", what]);
        let lines: Vec<_> = ran.stdout.lines().collect();
        assert_eq!(lines[0], "OUTCOME      MS  TEST", "{what}");
        assert!(lines[1].starts_with("passed  "), "{what}: {}", ran.stdout);
        assert!(lines[1].ends_with("  gives_the_message_back"), "{what}: {}", ran.stdout);
        assert!(lines[2].starts_with("1 test: 1 passed, 0 failed  ("), "{what}: {}", ran.stdout);
        assert_eq!(lines.len(), 3, "{what}: {}", ran.stdout);
    }
    // Each was a call like any other, and can be told from those that somebody wanted for themselves.
    let log = desk.done(&["audit", "--json"]).stdout;
    let records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let surfaces: Vec<_> = records
        .filter(|record| record["kind"] == "end" && record["action"] == "demo.echo")
        .map(|record| record["surface"].clone())
        .collect();
    assert_eq!(surfaces, ["test"; 5], "{log}");
    desk.refused(&["test", "echo"], 3, "`./echo` is the folder of that name");
    desk.refused(&["test", "./nothing"], 3, "nothing");
}

#[test]
fn every_assertion_that_fails_is_told_and_what_is_no_test_too() {
    let desk = Desk::new();
    let wrong = r#"{"name": "wrong", "input": {"message": "a"}, "expected": {"message": "b"},
        "assertions": [{"path": "$.message", "equals": "c"}, {"path": "$.x", "exists": true},
        {"path": "$.message", "exists": true}]}"#;
    let unfit = r#"{"name": "unfit", "input": {"message": 7}}"#;
    echo(&desk, &[("wrong", wrong), ("unfit", unfit), ("broken", "{")]);
    let ran = desk.haft(&["test", "./echo"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for words in [
        "  wrong\n",
        "$.message is \"a\", expected \"b\"\n",
        "$.message is \"a\", expected \"c\"\n",
        "$.x leads to nothing, expected something\n",
        "the input does not fit the schema",
        "it is no test: ",
        "4 tests: 1 passed, 3 failed",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    let ran = desk.haft(&["test", "./echo", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let document = ran.json();
    let counts = ["total", "passed", "failed"].map(|key| document[key].as_u64().unwrap());
    assert_eq!((counts, &document["ok"]), ([4, 1, 3], &json!(false)));
    assert_eq!(column(&document, "outcome"), ["passed", "failed", "invalid", "invalid"]);
    assert_eq!(
        document["tests"][1]["faults"],
        json!([
            {"path": "$.message", "expected": "\"b\"", "found": "\"a\""},
            {"path": "$.message", "expected": "\"c\"", "found": "\"a\""},
            {"path": "$.x", "expected": "something", "found": null},
        ])
    );
    assert_eq!(document["tests"][2]["error"]["code"], "bad_input");
    assert_eq!(document["tests"][3]["error"]["code"], "bad_test");
}

#[test]
fn only_some_are_run_where_that_is_wanted() {
    let desk = Desk::new();
    echo(&desk, &[("other", r#"{"name": "another", "input": {"message": "x"}}"#)]);
    let names = |arguments: &[&str]| {
        let all = [&["test", "./echo", "--json"], arguments].concat();
        column(&desk.done(&all).json(), "name")
    };
    assert_eq!(names(&[]), ["gives_the_message_back", "another"]);
    assert_eq!(names(&["--only", "noth"]), ["another"]);
    assert_eq!(names(&["--only", "tests/echo"]), ["gives_the_message_back"]);
    assert_eq!(names(&["--only", "another", "--only", "gives"]).len(), 2);
    desk.refused(
        &["test", "./echo", "--only", "nobody"],
        3,
        "no test of `./echo` is called `nobody`",
    );
    fs::write(desk.path("tools.json"), r#"{"tools": []}"#).unwrap();
    desk.refused(&["test", "./tools.json"], 3, "has no tests");
}

#[test]
fn junit_is_xml_whatever_a_test_is_called_and_a_tool_says() {
    let desk = Desk::new();
    let odd = json!({"name": "a <b> & \"c\"\u{1b}[31m ]]>", "input": {"message": "\u{1}<x>&\u{7f}"},
        "expected": {"message": "</failure>"}});
    echo(&desk, &[("odd", &odd.to_string()), ("broken", "<")]);
    let ran = desk.haft(&["test", "./echo", "--junit", "results.xml"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let script = "import sys, xml.etree.ElementTree as t\n\
        root = t.parse(sys.argv[1]).getroot()\n\
        suite = root.find('testsuite')\n\
        print(root.tag, [suite.get(k) for k in ('name', 'tests', 'failures', 'errors', 'skipped')])\n\
        for case in suite: print(case.get('file'), [child.tag for child in case])\n\
        print(suite[1].find('failure').text)";
    let file = desk.path("results.xml");
    let read = std::process::Command::new("python3").args(["-c", script]).arg(&file).output();
    let read = read.unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let text = String::from_utf8(read.stdout).unwrap();
    for words in [
        "testsuites ['mcpkg:demo.echo', '3', '1', '1', '0']",
        "tests/echo.test.json []",
        "tests/odd.test.json ['failure']",
        "tests/broken.test.json ['error']",
        "expected \"</failure>\"",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // A terminal is not steered by them either.
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{1}'), "{}", ran.stdout);
    desk.refused(&["test", "./echo", "--junit", "no/such/results.xml"], 3, "there is no folder");
}

#[test]
fn a_test_has_its_own_time_and_one_that_takes_longer_is_ended() {
    let desk = Desk::new();
    let code = "import time\ndef run(input):\n    time.sleep(input.get('s', 0))\n    return {'ok': True}\n";
    let test = |name: &str, seconds: f64, time: u64| json!({"name": name, "input": {"s": seconds}, "expected": {"ok": true}, "timeoutMs": time});
    python(&desk, code, &[test("slow", 30.0, 300), test("quick", 0.0, 10_000)]);
    let ran = desk.haft(&["test", "./python", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let document = ran.json();
    assert_eq!(column(&document, "outcome"), ["error", "passed"], "{document}");
    let error = &document["tests"][0]["error"];
    assert_eq!(error["code"], "timed_out");
    let told = error["message"].as_str().unwrap();
    assert!(told.contains("300 ms (set by `timeoutMs` of the test)"), "{told}");
    assert!(document["ms"].as_u64().unwrap() < 20_000, "{document}");
}

#[test]
fn a_tool_that_does_not_always_answer_the_same_is_flaky() {
    let desk = Desk::new();
    // Each worker counts its own calls, and one job is served by one.
    let code = "calls = 0\ndef run(input):\n    global calls\n    calls += 1\n    return {'odd': calls % 2 == 1, 'n': 7}\n";
    let tests = [
        json!({"name": "sometimes", "input": {}, "expected": {"odd": true}}),
        json!({"name": "always", "input": {}, "expected": {"n": 7}}),
        json!({"name": "never", "input": {}, "expected": {"n": 8}}),
    ];
    python(&desk, code, &tests);
    let ran = desk.haft(&["test", "./python", "--repeat", "4", "--jobs", "1"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for words in [
        "FLAKY   ",
        "it passed 2 of 4 times; when it did not (failed):",
        "$.odd is false, expected true",
        "3 tests: 1 passed, 2 failed, 1 of them flaky",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    let all = ["test", "./python", "--repeat", "4", "--jobs", "1", "--json"];
    let document = desk.haft(&all).json();
    assert_eq!(column(&document, "outcome"), ["flaky", "passed", "failed"], "{document}");
    assert_eq!(document["tests"][0]["calls"], json!({"total": 4, "passed": 2}));
    // Whoever looks once may take it for sound, and it is not tried again to be sure.
    let once = desk.haft(&["test", "./python", "--jobs", "1", "--json", "--only", "sometimes"]);
    assert_eq!(column(&once.json(), "outcome"), ["passed"]);
}

#[test]
fn what_needs_the_owners_word_is_not_run_without_it() {
    let desk = Desk::new();
    echo(&desk, &[]);
    fs::create_dir_all(desk.path("home")).unwrap();
    let policy = "[package.\"mcpkg:demo.echo\"]\napproval = \"ask\"\n";
    fs::write(desk.path("home/policy.toml"), policy).unwrap();
    let asked = desk.haft(&["--non-interactive", "test", "./echo"]);
    assert_eq!(asked.code, 1, "{}", asked.stderr);
    assert!(asked.stdout.contains("--approve approves the calls of this run"), "{}", asked.stdout);
    desk.done(&["--non-interactive", "test", "./echo", "--approve"]);
    let again = desk.haft(&["--non-interactive", "test", "./echo"]);
    assert_eq!(again.code, 1, "an approval is for one call: {}", again.stdout);
}

#[test]
fn tests_of_a_bundle_call_what_its_server_offers() {
    let desk = Desk::new();
    let source = super::common::repository().join("examples/mcpb/coin");
    let mut copying = std::process::Command::new("cp");
    let copied = copying.arg("-r").args([&source, &desk.path("coin")]).status();
    assert!(copied.unwrap().success());
    let test = |action: &str| json!({"name": action, "action": action, "input": {}}).to_string();
    write_below(&desk.path("coin"), "tests/toss.test.json", &test("toss"));
    desk.done(&["pack", "coin", "--output", "coin.mcpkg"]);
    desk.done(&["install", "./coin", "--yes", "-q"]);
    for what in ["./coin", "coin.mcpkg", "mcpb:coin"] {
        let document = desk.done(&["test", what, "--json"]).json();
        assert_eq!(document["passed"], 1, "{what}: {document}");
    }
    write_below(&desk.path("coin"), "tests/steal.test.json", &test("steal"));
    let ran = desk.haft(&["test", "./coin"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("there is no action `steal`"), "{}", ran.stdout);
}

#[test]
fn a_path_that_would_never_end_fails_its_test_and_not_the_run() {
    let desk = Desk::new();
    let code = "def run(input):\n    return {'a': [[i, [i]] for i in range(20000)]}\n";
    let path = format!("$.a{}", "[*,*]".repeat(40));
    let test = |path: &str| json!({"name": path, "input": {}, "assertions": [{"path": path, "exists": true}]});
    python(&desk, code, &[test("$.a[0][1]"), test(&path), test("$..*..*..*")]);
    let ran = desk.haft(&["test", "./python"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("3 tests: 1 passed, 2 failed"), "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("too much work in an answer").count(), 2, "{}", ran.stdout);
}

#[test]
fn questions_of_tests_that_run_side_by_side_come_one_at_a_time() {
    let desk = Desk::new();
    echo(&desk, &[("two", r#"{"name": "two", "input": {"message": "zwei"}}"#)]);
    fs::create_dir_all(desk.path("home")).unwrap();
    let policy = "[package.\"mcpkg:demo.echo\"]\napproval = \"ask\"\n";
    fs::write(desk.path("home/policy.toml"), policy).unwrap();
    let (code, screen) = desk.at_terminal(&["y", "y"], &["test", "./echo", "--jobs", "2"]);
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(screen.matches("is about to be called with").count(), 2, "{screen}");
    assert!(screen.contains("2 tests: 2 passed, 0 failed"), "{screen}");
}

#[test]
fn a_tool_that_fights_its_walls_in_a_test_is_switched_off_where_the_policy_says_so() {
    let desk = Desk::new();
    let code = "import socket\ndef run(input):\n    try:\n        socket.getaddrinfo('evil.example.net', 80)\n    except OSError:\n        pass\n    return {}\n";
    python(&desk, code, &[json!({"name": "reaches", "input": {}})]);
    let manifest = desk.path("python/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let allowing = "\"network\":\"allowlist\",\"network_allowlist\":[\"a.example.com\"]";
    fs::write(&manifest, text.replace("\"network\":\"deny\"", allowing)).unwrap();
    desk.done(&["install", "./python", "--yes", "-q"]);
    fs::write(desk.path("home/policy.toml"), "[sandbox]\non_violation = \"disable\"\n").unwrap();
    let ran = desk.done(&["test", "demo.python"]);
    assert!(ran.stderr.contains("reached for evil.example.net"), "{}", ran.stderr);
    let listed = desk.done(&["list", "--json"]).json();
    assert_eq!(listed["packages"][0]["enabled"], false, "{listed}");
    let ran = desk.haft(&["test", "demo.python"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("capability disabled"), "{}", ran.stdout);
}
