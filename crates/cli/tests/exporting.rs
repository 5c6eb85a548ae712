//! `haft export` of what is installed: servers by what was approved of them, examples and tests beside them, within a budget.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::process::Command;

use common::{Desk, repository, run_in};
use serde_json::{Value, json};

/// A home with a tool, a server that declares nothing, and a package of several actions.
fn furnished() -> Desk {
    let desk = Desk::new();
    for example in ["mcpkg/echo", "mcpb/coin", "install-manifest/word-count"] {
        let path = repository().join("examples").join(example);
        desk.done(&["install", path.to_str().unwrap(), "--yes"]);
    }
    desk
}

fn exported(desk: &Desk, arguments: &[&str]) -> Value {
    desk.done(&[&["export", "--json"], arguments].concat()).json()
}

/// The names of an export, with the packages they stand for.
fn names(exported: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = exported["names"].as_array().unwrap();
    all.iter().map(|name| (text(&name["exposed"]), text(&name["package"]))).collect()
}

fn exposed(exported: &Value) -> Vec<String> {
    names(exported).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn what_is_installed_is_exported_in_every_format() {
    let desk = furnished();
    for format in ["openai", "openai-responses", "anthropic", "mcp", "agentcli", "mcpkg"] {
        let told = exported(&desk, &["--format", format]);
        let packages: Vec<_> = names(&told).into_iter().map(|(_, package)| package).collect();
        let word_count = "install-manifest:word-count";
        assert_eq!(packages, [word_count, word_count, "mcpb:coin", "mcpkg:demo.echo"], "{format}");
        assert_eq!(told["notes"], json!([]), "{format}");
    }
    // A server says what it takes, and was approved with it.
    let tools = exported(&desk, &["--format", "mcp"])["document"]["tools"].clone();
    let coin = &tools[2];
    assert_eq!(
        (&coin["name"], &coin["_meta"]["haft/action"]),
        (&json!("coin_toss"), &json!("toss"))
    );
    assert!(coin["inputSchema"]["properties"].is_object(), "{coin}");
    // What is switched off is left out, and told.
    desk.done(&["disable", "coin"]);
    let told = exported(&desk, &["--format", "mcp"]);
    assert!(!exposed(&told).contains(&"coin_toss".to_owned()));
    assert_eq!(told["notes"], json!(["`mcpb:coin` is left out: it is disabled"]));
    desk.done(&["revoke", "coin", "--yes"]);
    let told = exported(&desk, &["--format", "mcp"]);
    assert_eq!(told["notes"], json!(["`mcpb:coin` is left out: it was revoked"]));
    // So is what is no more what was agreed to.
    let active = desk.path("home/tools/demo.echo").canonicalize().unwrap();
    fs::write(active.join("echo.py"), "print(1)").unwrap();
    let ran = desk.done(&["export", "--format", "openai"]);
    assert!(
        ran.stderr.contains(
            "`mcpkg:demo.echo` is left out: `mcpkg:demo.echo` was changed after it was installed"
        ),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.json().as_array().unwrap().len(), 2);
}

#[test]
fn what_a_project_names_counts_once_it_is_agreed_to() {
    let desk = furnished();
    fs::create_dir_all(desk.path("project/.mcp")).unwrap();
    desk.done(&["lock", "-o", "project/.mcp/haft.lock"]);
    desk.done(&["remove", "coin"]);
    let home = desk.path("home");
    let home = ["--home", home.to_str().unwrap()];
    let in_project = |arguments: &[&str]| {
        let ran = run_in(&desk.path("project"), &[&home[..], arguments].concat(), None);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran
    };
    let ran = in_project(&["export", "--format", "mcp"]);
    assert!(ran.stderr.contains("a project that you do not trust"), "{}", ran.stderr);
    assert_eq!(ran.json()["tools"].as_array().unwrap().len(), 3);
    in_project(&["trust", "."]);
    let told = in_project(&["export", "--format", "mcp", "--budget", "100000", "--json"]).json();
    assert_eq!(names(&told).len(), 3);
    let note = "`mcpb:coin` is left out: the project's lockfile names `mcpb:coin` 0.1.0, which is not installed with those bytes";
    assert_eq!(told["notes"], json!([note]));
}

#[test]
fn nothing_is_an_empty_list() {
    let desk = Desk::new();
    let ran = desk.done(&["export", "--format", "mcp"]);
    assert_eq!(ran.json(), json!({"tools": []}));
    assert!(ran.stderr.contains("nothing is installed"), "{}", ran.stderr);
    assert!(!desk.path("home").exists(), "to look makes no home");
    desk.refused(&["export", "--format", "mcp", "--context"], 2, "--context goes with mcpkg");
    desk.refused(&["export", "--format", "mcp", "--budget", "0"], 2, "invalid value '0'");
    desk.refused(&["export", "--format", "mcp", "--dialect", "mcpkg"], 2, "<FILE>");
    desk.refused(
        &["export", "x.json", "--format", "mcp", "--budget", "9"],
        2,
        "cannot be used with",
    );
}

#[test]
fn programs_of_a_tools_json_call_what_is_installed() {
    let desk = furnished();
    desk.done(&["export", "--format", "agentcli", "--output", "out"]);
    assert_eq!(run_in(&desk.path("."), &["validate", "out/tools.json"], None).code, 0);
    let shim = fs::read_to_string(desk.path("out/tools/bin/demo_echo")).unwrap();
    let home = desk.path("home").canonicalize().unwrap();
    assert!(
        shim.contains(&format!(" --home={} call -- mcpkg:demo.echo demo.echo -\n", home.display())),
        "{shim}"
    );
    // As a loop of agentcli starts it: with two variables and nothing else.
    let mut command = Command::new(desk.path("out/tools/bin/word-count_count"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", desk.path("."));
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(
        &mut child.stdin.take().unwrap(),
        b"{\"text\":\"to be or not to be\"}",
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["words"], 6, "{answer}");
    // From files it says what they need first.
    let echo = repository().join("examples/mcpkg/echo");
    let ran = desk.done(&["export", echo.to_str().unwrap(), "--format", "agentcli"]);
    assert!(ran.stderr.contains("which finds a package once it is installed"), "{}", ran.stderr);
}

#[test]
fn examples_and_the_last_tests_are_told_where_they_are_wanted() {
    let desk = furnished();
    let echo = |told: &Value| told["document"].as_array().unwrap().last().unwrap().clone();
    let plain = echo(&exported(&desk, &["--format", "mcpkg"]));
    assert_eq!((plain.get("examples"), plain.get("test_summary")), (None, None));
    let context = ["--format", "mcpkg", "--context"];
    let untested = echo(&exported(&desk, &context));
    let text =
        fs::read_to_string(repository().join("examples/mcpkg/echo/examples/basic.md")).unwrap();
    assert_eq!(untested["examples"], json!([text]));
    assert_eq!(untested.get("test_summary"), None, "nobody has run them");
    desk.done(&["test", "demo.echo"]);
    let tested = echo(&exported(&desk, &context));
    let summary = &tested["test_summary"];
    assert_eq!(
        (&summary["total"], &summary["passed"], &summary["failed"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert!(summary["average_latency_ms"].as_f64().unwrap() > 0.0, "{summary}");
}

#[test]
fn a_budget_keeps_the_best_that_fit() {
    let desk = furnished();
    let all = exported(&desk, &["--format", "openai", "--budget", "100000"]);
    assert_eq!(all["notes"], json!([]));
    let budget = &all["budget"];
    assert_eq!((&budget["tokens"], &budget["left_out"]), (&json!(100_000), &json!([])));
    assert_eq!(budget["estimate"], "a token for every 3.5 bytes of a definition");
    let tokens = |definition: &Value| (definition.to_string().len() as u64 * 2).div_ceil(7);
    let definitions = all["document"].as_array().unwrap();
    let used: u64 = definitions.iter().map(tokens).sum();
    assert_eq!(budget["used"], used);
    // The best come first: of one that was tested and called more is known.
    desk.done(&["test", "demo.echo"]);
    let ranked = exported(&desk, &["--format", "openai", "--budget", "100000"]);
    assert_eq!(exposed(&ranked)[0], "demo_echo", "{:?}", exposed(&ranked));
    let first = tokens(&ranked["document"][0]);
    let (one, few) = (first.to_string(), (first - 1).to_string());
    let told = exported(&desk, &["--format", "openai", "--budget", &one]);
    assert_eq!(exposed(&told)[0], "demo_echo");
    let told = exported(&desk, &["--format", "openai", "--budget", &few]);
    assert!(!exposed(&told).contains(&"demo_echo".to_owned()));
    let left = told["budget"]["left_out"].as_array().unwrap();
    let echo = left.iter().find(|one| one["package"] == "mcpkg:demo.echo").unwrap();
    assert_eq!((&echo["exposed"], &echo["tokens"]), (&json!("demo_echo"), &json!(first)));
    let note = format!(
        "`demo_echo` is left out: it takes about {first} tokens, and does not fit into the budget"
    );
    assert!(told["notes"].as_array().unwrap().contains(&json!(note)), "{}", told["notes"]);
    let ran = desk.done(&["export", "--format", "openai", "--budget", &one]);
    let words =
        format!(" tokens, of {one}; counted is a token for every 3.5 bytes of a definition");
    assert!(ran.stderr.contains(&words), "{}", ran.stderr);
    for wrong in ["0", "-1", "99999999999999999999999", "many"] {
        let words = ["export", "--format", "openai", "--budget", wrong];
        desk.refused(&words, 2, "write a number of tokens, 1 or more");
    }
    let file = ["export", "--format", "openai", "--output", "my.json"];
    desk.refused(&file, 2, "without --output the document is printed, and `> my.json` keeps it");
    assert!(!desk.path("my.json").exists());
    // The programs of what is left out are not written.
    desk.done(&["export", "--format", "agentcli", "--budget", "1", "--output", "out"]);
    assert!(!desk.path("out/tools").exists());
}
