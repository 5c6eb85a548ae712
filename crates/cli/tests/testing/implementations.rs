//! A package with several implementations: which one makes its calls and its tests, and how that is told.

use std::fs;

use serde_json::Value;

use super::common::Desk;

/// Puts another program in the place of the Python of the echo example, which its author has first.
fn break_python(desk: &Desk, program: &str) {
    fs::write(desk.echo().join("echo.py"), program).unwrap();
}

fn statuses(desk: &Desk) -> Vec<(String, bool, Option<String>)> {
    let status = desk.done(&["status", "demo.echo", "--json"]).json();
    let told = |one: &Value| {
        let why = one["why"].as_str().map(str::to_owned);
        (one["id"].as_str().unwrap().to_owned(), one["chosen"] == true, why)
    };
    status["implementations"].as_array().unwrap().iter().map(told).collect()
}

#[test]
fn status_says_why_each_is_chosen_or_is_not_and_one_may_be_named() {
    let desk = Desk::new();
    let manifest = desk.echo().join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"18.0.0\"", "\"999.0.0\"")).unwrap();
    desk.done(&["install", "./echo", "--yes", "-q"]);
    let told = desk.done(&["status", "demo.echo"]).stdout;
    assert!(
        told.contains(
            "implementation python  chosen: of those that run here its author has it first"
        ),
        "{told}"
    );
    assert!(told.contains("implementation node  not here: needs Node >=999.0.0, and"), "{told}");
    let [python, node] = statuses(&desk).try_into().unwrap();
    assert_eq!((&*python.0, python.1, python.2), ("python", true, None));
    assert_eq!((&*node.0, node.1), ("node", false));
    let call = ["call", "demo.echo", r#"{"message":"a"}"#, "--json"];
    assert_eq!(desk.done(&call).json()["implementation"], "python");
    // Whoever names it means it, whatever it lacks.
    let named = desk.done(&[&call[..], &["--implementation", "node"]].concat()).json();
    assert_eq!(
        (&named["implementation"], &named["result"]["message"]),
        (&"node".into(), &"a".into())
    );
    let other = [&call[..3], &["--implementation", "ruby"]].concat();
    desk.refused(&other, 2, "hint: there are `python`, `node`");
    fs::write(
        desk.path("home/policy.toml"),
        "[package.\"demo.echo\"]\nimplementation = \"node\"\n",
    )
    .unwrap();
    assert_eq!(desk.done(&call).json()["implementation"], "node");
    fs::write(
        desk.path("home/policy.toml"),
        "[package.\"demo.echo\"]\nimplementation = \"ruby\"\n",
    )
    .unwrap();
    desk.refused(&call[..3], 2, "has no implementation `ruby`, which your policy names");
    let told = desk.done(&["status", "demo.echo"]).stdout;
    assert!(told.contains("ruby  not here: your policy names it, and there is none"), "{told}");
    let checked = desk.done(&["policy", "check"]);
    assert!(checked.stderr.contains("it has no implementation `ruby`"), "{}", checked.stderr);
}

#[test]
fn tests_are_run_by_one_or_by_all_and_that_measures_them() {
    let desk = Desk::new();
    desk.echo();
    let told = desk.done(&["test", "./echo", "--implementation", "all"]).stdout;
    let [python, node] = ["by `python`", "by `node`"].map(|words| told.find(words).unwrap());
    assert!(python < node && told.contains("2 tests: 2 passed"), "{told}");
    let one = desk.done(&["test", "./echo", "--implementation", "node", "--json"]).json();
    assert_eq!((&one["total"], &one["tests"][0]["implementation"]), (&1.into(), &"node".into()));
    desk.refused(
        &["test", "./echo", "--implementation", "nod"],
        2,
        "there are python, node, and `all`",
    );
    break_python(&desk, "print('{\"message\": 7}')\n");
    let told = desk.haft(&["test", "./echo", "--implementation", "all"]);
    assert_eq!(told.code, 1, "{}", told.stdout);
    assert!(told.stdout.contains("2 tests: 1 passed, 1 failed"), "{}", told.stdout);
}

#[test]
fn what_breaks_is_told_and_the_next_one_answers() {
    let desk = Desk::new();
    break_python(&desk, "import no_such_module\n");
    // A test may be made twice, so the package is tested by what works, and its owner is told.
    let ran = desk.done(&["test", "./echo"]);
    assert!(ran.stdout.contains("1 test: 1 passed"), "{}", ran.stdout);
    assert!(ran.stderr.contains("the implementation `python` broke"), "{}", ran.stderr);
    let ran = desk.done(&["test", "./echo", "--json", "--implementation", "node"]).json();
    assert_eq!(ran["fallen"], Value::Array(Vec::new()));
    // A folder may have been mended since, so it is told each time.
    let again = desk.done(&["test", "./echo"]);
    assert!(again.stderr.contains("the implementation `python` broke"), "{}", again.stderr);
    desk.done(&["install", "./echo", "--yes", "-q"]);
    let call = ["call", "demo.echo", r#"{"message":"a"}"#];
    desk.refused(&call, 1, "hint: `node` makes the next call; it was not made twice");
    let made = desk.done(&[&call[..], &["--json"]].concat()).json();
    assert_eq!((&made["implementation"], &made["fallen"]), (&"node".into(), &Value::Null));
    let [node, python] = statuses(&desk).try_into().unwrap();
    assert_eq!((&*node.0, node.1), ("node", true));
    let why = python.2.unwrap();
    assert!(why.starts_with("it broke") && why.contains("no_such_module"), "{why}");
}

#[test]
fn what_is_found_out_while_it_is_installed_is_known_to_the_first_call() {
    let desk = Desk::new();
    break_python(&desk, "import no_such_module\n");
    fs::create_dir_all(desk.path("home")).unwrap();
    fs::write(desk.path("home/policy.toml"), "[tests]\non_install = \"run\"\n").unwrap();
    let ran = desk.done(&["install", "./echo", "--yes"]);
    assert!(ran.stderr.contains("the implementation `python` broke"), "{}", ran.stderr);
    let made = desk.done(&["call", "demo.echo", r#"{"message":"a"}"#, "--json"]).json();
    assert_eq!((&made["implementation"], &made["fallen"]), (&"node".into(), &Value::Null));
}
