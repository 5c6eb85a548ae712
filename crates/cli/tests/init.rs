//! `haft init`: every package it makes is valid and works, and nothing is ever overwritten.

#![expect(clippy::unwrap_used, reason = "the helpers are tests too")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assert_cmd::assert::Assert;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Every dialect, with an id that it takes.
const STARTERS: [(&str, &str); 5] = [
    ("install-manifest", "word-count"),
    ("agentcli", "count_words"),
    ("mcpkg", "acme.text.count"),
    ("capability", "acme.text.count"),
    ("jumith", "tool:text.count"),
];

const CALC: &str = r#"
"""Sums."""

from typing import Literal, TypedDict

import helper


class Sum(TypedDict):
    total: float
    unit: str


def add(a: int, b: float = 0.2, unit: Literal["m", "km"] = "m") -> Sum:
    """Adds two lengths.

    Args:
        a: The first length.
    """
    print("noise")
    return {"total": helper.plus(a, b), "unit": unit}


def count(words: list[str]) -> int:
    return len(words)


def fails(a: int) -> int:
    raise RuntimeError("\x1b[31mnever")


def lies() -> int:
    return "x"


def reads() -> str:
    return open("data.txt").read()


def tick() -> int:
    import time

    return time.perf_counter_ns()
"#;

const SLUG: &str = r#"
import { fold } from "./lib/fold.js";

/**
 * Turns a title into a slug.
 * @param {string} title What to turn.
 * @param {number} [longest=80] Where to cut.
 * @returns {{slug: string}} The slug.
 */
export function slugify(title, longest = 80) {
  console.log("noise");
  return { slug: fold(title).slice(0, longest) };
}
"#;

const FOLD: &str = r#"
export const fold = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-");
"#;

const COMMON: &str = r"
/**
 * Doubles a number.
 * @param {number} x
 * @returns {number}
 */
module.exports = function double(x) { return x * 2.1; };
";

/// A folder to work in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let place = Self::new();
        for (path, content) in files {
            place.write(path, content);
        }
        place
    }

    fn python() -> Self {
        Self::with(&[
            ("calc.py", CALC),
            ("helper.py", "def plus(a, b):\n    return a + b + 0.1\n"),
            ("data.txt", "data"),
        ])
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(path)).unwrap()).unwrap()
    }

    fn haft(&self, arguments: &[&str]) -> Assert {
        assert_cmd::Command::new(env!("CARGO_BIN_EXE_haft"))
            .current_dir(self.0.path())
            .args(arguments)
            .assert()
    }

    fn init(&self, arguments: &[&str]) -> Assert {
        self.haft(&[&["init"], arguments].concat())
    }

    fn is_strictly_valid(&self, folder: &str) {
        self.haft(&["validate", "--strict", folder]).code(0);
    }

    /// Every path below the folder, with what is in the files.
    fn content(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.0.path().to_owned()];
        while let Some(folder) = left.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    left.push(path.clone());
                }
                let content = (!path.is_dir()).then(|| std::fs::read(&path).unwrap());
                found.insert(path, content);
            }
        }
        found
    }
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// Runs a command in a folder and reads the one line it answers.
fn answer(folder: &Path, argv: &[String], input: &str) -> Value {
    let mut child = Command::new(&argv[0])
        .args(&argv[1..])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A tool that takes the argument does not read this.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{argv:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Runs the one test of an mcpkg package as a host would, and gives what the tool answered.
fn passes_its_test(place: &Place, folder: &str) -> Value {
    let manifest = place.json(&format!("{folder}/manifest.json"));
    let tests = texts(&manifest["tests"]);
    assert_eq!(tests.len(), 1);
    let test = place.json(&format!("{folder}/{}", tests[0]));
    let command = manifest["implementations"][0]["endpoint"]["command"].as_str().unwrap();
    let mut argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
    argv.push(test["input"].to_string());
    let answered = answer(&place.path(folder), &argv, "");
    let mut asked = 0;
    for (key, value) in test["expected"].as_object().into_iter().flatten() {
        assert_eq!(answered[key], *value, "{key}");
        asked += 1;
    }
    for assertion in test["assertions"].as_array().into_iter().flatten() {
        assert_eq!(assertion["path"], "$");
        match assertion.get("equals") {
            Some(value) => assert_eq!(answered, *value),
            None => assert_eq!(assertion["type"], "number"),
        }
        asked += 1;
    }
    assert!(asked > 0, "the test asks nothing");
    answered
}

#[test]
fn every_starter_is_strictly_valid() {
    for (dialect, id) in STARTERS {
        let place = Place::new();
        let made = place.init(&["pack", "--dialect", dialect, "--id", id]).code(0);
        assert!(stderr(&made).contains("haft validate pack"), "{}", stderr(&made));
        for line in stdout(&made).lines() {
            assert!(place.path(line).is_file(), "{line}");
        }
        place.is_strictly_valid("pack");
    }
}

#[test]
fn the_install_manifest_starter_answers_as_its_smoke_test_says() {
    let place = Place::new();
    place.init(&["--dialect", "install-manifest", "--id", "word-count"]).code(0);
    let manifest = place.json("word-count/manifest.json");
    let argv = texts(&manifest["runtime"]["entrypoint"]["command"]);
    let input = manifest["smoke"]["arguments"].to_string();
    let answered = answer(&place.path("word-count"), &argv, &input);
    assert_eq!(answered, json!({ "words": 3, "characters": 13 }));
    assert_eq!(answered, manifest["actions"][0]["examples"][0]["output"]);
}

#[cfg(unix)]
#[test]
fn the_agentcli_starter_is_a_program_that_runs() {
    let place = Place::new();
    place.init(&["--dialect", "agentcli", "--id", "count_words"]).code(0);
    let argv = texts(&place.json("count_words/tools.json")["tools"][0]["command"]);
    let answered = answer(&place.path("count_words"), &argv, r#"{"text": "a b"}"#);
    assert_eq!(answered["words"], 2);
}

#[test]
fn the_mcpkg_starter_passes_its_test() {
    let place = Place::new();
    place.init(&["--dialect", "mcpkg", "--id", "acme.text.count"]).code(0);
    assert_eq!(passes_its_test(&place, "count")["words"], 3);
}

#[test]
fn the_capability_starter_runs() {
    let place = Place::new();
    place.init(&["--dialect", "capability", "--id", "acme.text.count"]).code(0);
    let manifest = place.json("count/manifest.json");
    let argv = texts(&manifest["implementation"]["command"]["argv"]);
    assert_eq!(answer(&place.path("count"), &argv, r#"{"text": "é è"}"#)["characters"], 3);
}

#[test]
fn the_jumith_starter_runs_under_a_hostile_name() {
    let place = Place::new();
    let name = "\"; process.exit(9); \"@SUMMARY@\" \\";
    let arguments = ["--dialect", "jumith", "--id", "tool:text.count", "--name", name];
    place.init(&arguments).code(0);
    let script = "import('./dist/index.js').then(async ({ tool }) => \
        console.log(JSON.stringify([tool.name, await tool.execute({ text: ' a b ' })])))";
    let argv = ["node", "-e", script].map(str::to_owned);
    let answered = answer(&place.path("count"), &argv, "");
    assert_eq!(answered, json!([name, { "words": 2, "characters": 5 }]));
    assert_eq!(place.json("count/tool.json")["name"], name);
}

#[test]
fn name_and_summary_are_taken_over() {
    let place = Place::new();
    let arguments = ["x", "--dialect", "mcpkg", "--id", "a.b.c", "--name", "N", "--summary", "S."];
    place.init(&arguments).code(0);
    let manifest = place.json("x/manifest.json");
    assert_eq!((&manifest["name"], &manifest["description"]), (&json!("N"), &json!("S.")));
}

#[test]
fn json_output_is_one_document() {
    let place = Place::new();
    let made = place.init(&["x", "--dialect", "mcpkg", "--id", "demo.echo", "--json"]).code(0);
    let document: Value = serde_json::from_str(&stdout(&made)).unwrap();
    assert_eq!(document["dir"], "x");
    assert_eq!(document["id"], "demo.echo");
    assert_eq!(document["dialect"], "mcpkg");
    assert_eq!(document["files"][0], "manifest.json");
    assert!(document["warnings"][0].as_str().unwrap().contains("two segments"));
}

#[test]
fn nothing_is_overwritten_and_nothing_is_written_beside() {
    for (dialect, id) in STARTERS {
        let place = Place::with(&[("pack/README.md", "mine")]);
        let before = place.content();
        let refused = place.init(&["pack", "--dialect", dialect, "--id", id]).code(5);
        assert!(stderr(&refused).contains("README.md"), "{}", stderr(&refused));
        assert_eq!(stdout(&refused), "");
        assert_eq!(place.content(), before);
    }
}

#[test]
fn a_function_package_overwrites_nothing_either() {
    let place = Place::python();
    place.write("taken/helper.py", "mine");
    let before = place.content();
    let refused = place.init(&["taken", "--python", "calc:add"]).code(5);
    assert!(stderr(&refused).contains("helper.py"));
    // It is refused before the function is called.
    assert!(!stderr(&refused).contains("calling"));
    place.init(&[".", "--python", "calc:add"]).code(5);
    assert_eq!(place.content(), before);
}

#[test]
fn a_file_where_the_folder_should_be_is_left_alone() {
    let place = Place::with(&[("pack", "mine")]);
    let before = place.content();
    place.init(&["pack", "--dialect", "mcpkg", "--id", "a.b.c"]).code(5);
    place.init(&["pack/deeper", "--dialect", "mcpkg", "--id", "a.b.c"]).code(5);
    assert_eq!(place.content(), before);
}

#[test]
fn a_folder_that_nobody_named_must_be_new() {
    let place = Place::with(&[("count/mine.txt", "mine")]);
    place.init(&["--dialect", "mcpkg", "--id", "acme.text.count"]).code(5);
    place.init(&["count", "--dialect", "mcpkg", "--id", "acme.text.count"]).code(0);
    assert!(place.path("count/mine.txt").is_file());
}

#[test]
fn missing_flags_are_told_with_what_to_type() {
    let place = Place::new();
    for (arguments, missing) in [
        (&["x"][..], "`--dialect` and `--id` are missing"),
        (&["x", "--dialect", "mcpkg"], "`--id` is missing"),
        (&["x", "--id", "a.b.c"], "`--dialect` is missing"),
    ] {
        let told = stderr(&place.init(arguments).code(2));
        assert!(told.contains(missing) && told.contains("haft init DIR --dialect"), "{told}");
    }
    for arguments in [
        &["x", "--dialect", "nope", "--id", "a.b.c"][..],
        &["--python", "a:b", "--node", "a.js"],
        &["--python", "a:b", "--dialect", "jumith"],
        &["x", "--dialect", "mcpkg", "--id", "a.b.c", "--no-run"],
    ] {
        place.init(arguments).code(2);
    }
    assert!(place.content().is_empty());
}

#[test]
fn wrong_ids_are_refused_with_the_grammar_in_words() {
    let place = Place::python();
    let before = place.content();
    for (dialect, id, words) in [
        ("install-manifest", "Word_Count", "3 to 64 lower-case letters, digits and hyphens"),
        ("agentcli", "a.b", "a letter, then at most 63"),
        ("mcpkg", "single", "two or more segments joined by dots"),
        ("capability", "a b", "at most 128 letters"),
        ("jumith", "-x", "at most 128 letters"),
    ] {
        let told = stderr(&place.init(&["x", "--dialect", dialect, &format!("--id={id}")]).code(2));
        assert!(told.contains(words), "{told}");
    }
    let told = stderr(&place.init(&["x", "--python", "calc:add", "--id", "Nope"]).code(2));
    assert!(told.contains("two or more segments"), "{told}");
    assert_eq!(place.content(), before);
}

#[test]
fn hostile_ids_write_nothing_and_cannot_steer_the_terminal() {
    let place = Place::new();
    for (dialect, _) in STARTERS {
        for id in ["../../up", "/etc/x", "a\",\"b", "a.b\n", "\x1b[31m.x", "$(touch x).y", ""] {
            let told = stderr(&place.init(&["--dialect", dialect, &format!("--id={id}")]).code(2));
            assert!(!told.contains('\x1b'), "{told}");
        }
    }
    assert!(place.content().is_empty());
}

#[test]
fn a_python_function_becomes_a_package_that_passes_its_test() {
    let place = Place::python();
    let made = place.init(&["--python", "calc:add"]).code(0);
    insta::assert_snapshot!(stderr(&made), @r#"
    the id is local.calc.add; --id gives it another
    calling calc:add with {"a":1,"b":0.2,"unit":"m"} to record what it answers; --no-run leaves the test out
    Made local.calc.add (mcpkg) in add; next: haft validate add
    "#);
    insta::assert_snapshot!(stdout(&made), @r"
    add/manifest.json
    add/tests/add.test.json
    add/README.md
    add/run.py
    add/calc.py
    add/helper.py
    ");
    place.is_strictly_valid("add");
    let manifest = place.json("add/manifest.json");
    assert_eq!(manifest["description"], "Adds two lengths.");
    let properties = &manifest["input_schema"]["properties"];
    assert_eq!(properties["a"], json!({ "type": "integer", "description": "The first length." }));
    assert_eq!(properties["b"], json!({ "type": "number", "default": 0.2 }));
    assert_eq!(properties["unit"]["enum"], json!(["m", "km"]));
    assert_eq!(manifest["input_schema"]["required"], json!(["a"]));
    // The sum of 1, 0.2 and 0.1 is written down to the last bit.
    let answered = passes_its_test(&place, "add");
    assert_eq!(answered, json!({ "total": 1.3, "unit": "m" }));
    assert!(!place.path("add/__pycache__").exists());
}

#[test]
fn the_input_and_the_id_can_be_given() {
    let place = Place::python();
    let input = r#"{"words": ["it's", "a"]}"#;
    let id = "acme.text.count";
    let arguments = ["made/here", "--python", "calc:count", "--id", id, "--input", input];
    place.init(&arguments).code(0);
    place.is_strictly_valid("made/here");
    assert_eq!(passes_its_test(&place, "made/here"), 2);
    assert_eq!(place.json("made/here/manifest.json")["toolId"], id);
    let readme = std::fs::read_to_string(place.path("made/here/README.md")).unwrap();
    assert!(readme.contains(r#"python3 run.py '{"words":["it'\''s","a"]}'"#), "{readme}");
}

#[test]
fn a_function_that_answers_differently_is_tested_by_type() {
    let place = Place::python();
    let made = place.init(&["--python", "calc:tick"]).code(0);
    assert!(stderr(&made).contains("differently each time"), "{}", stderr(&made));
    place.is_strictly_valid("tick");
    passes_its_test(&place, "tick");
}

#[test]
fn without_a_run_there_is_no_test() {
    let place = Place::python();
    place.write("loud.py", "def shout():\n    open('called', 'w')\n");
    let made = place.init(&["--python", "loud:shout", "--no-run"]).code(0);
    assert!(stderr(&made).contains("is not called"));
    assert!(!place.path("called").exists());
    assert!(!place.path("shout/tests").exists());
    assert_eq!(place.json("shout/manifest.json")["tests"], json!([]));
    place.is_strictly_valid("shout");
}

#[test]
fn functions_that_cannot_be_packaged_leave_nothing_behind() {
    let place = Place::python();
    let before = place.content();
    for (function, words) in [
        ("calc:fails", "--input"),
        ("calc:lies", "does not answer as its types say"),
        ("calc:reads", "works where it is, but not in the package"),
        ("calc:nope", "has no function"),
        ("nowhere:f", "there is no module"),
        ("calc.py:add", "names a file, not a module"),
        ("calc", "is not of the form module:function"),
        ("--call", "is not of the form module:function"),
    ] {
        let told = stderr(&place.init(&[&format!("--python={function}")]).code(2));
        assert!(told.contains(words), "{function}: {told}");
        assert!(!told.contains('\x1b'), "{told}");
    }
    let told = stderr(&place.init(&["--python", "calc:add", "--input", "[1]"]).code(2));
    assert!(told.contains("not a JSON object"), "{told}");
    assert_eq!(place.content(), before);
}

#[test]
fn a_crash_is_told_in_the_last_words_of_the_program() {
    let place = Place::with(&[(
        "boom.py",
        "import os, sys\nsys.stderr.write('gone\\n')\nsys.stderr.flush()\nos._exit(7)\n",
    )]);
    let told = stderr(&place.init(&["--python", "boom:f"]).code(2));
    assert!(told.contains("could not describe `boom:f`") && told.contains("gone"), "{told}");
}

#[test]
fn a_missing_interpreter_is_told_with_what_to_install() {
    let place = Place::python();
    let empty = place.path("empty");
    std::fs::create_dir(&empty).unwrap();
    for (flag, target, needed) in [("--python", "calc:add", "Python"), ("--node", "a.js", "Node")] {
        let told = assert_cmd::Command::new(env!("CARGO_BIN_EXE_haft"))
            .current_dir(place.0.path())
            .env("PATH", &empty)
            .args(["init", flag, target])
            .assert()
            .code(6);
        assert!(stderr(&told).contains(&format!("install {needed}")), "{}", stderr(&told));
    }
}

#[test]
fn a_module_called_run_keeps_its_name() {
    let place = Place::with(&[("run.py", "def f(x: int = 4) -> int:\n    return x\n")]);
    place.init(&["--python", "run:f"]).code(0);
    assert_eq!(passes_its_test(&place, "f"), 4);
    assert!(place.path("f/run_tool.py").is_file());
}

#[test]
fn an_es_module_becomes_a_package_that_passes_its_test() {
    let place = Place::with(&[
        ("src/slug.js", SLUG),
        ("src/lib/fold.js", FOLD),
        ("src/package.json", r#"{"type": "module"}"#),
    ]);
    let made = place.init(&["--node", "src/slug.js"]).code(0);
    assert!(stderr(&made).contains("the id is local.slug.slugify"), "{}", stderr(&made));
    place.is_strictly_valid("slugify");
    let manifest = place.json("slugify/manifest.json");
    assert_eq!(manifest["description"], "Turns a title into a slug.");
    assert_eq!(manifest["input_schema"]["required"], json!(["title"]));
    assert_eq!(manifest["input_schema"]["properties"]["longest"]["default"], 80);
    assert_eq!(passes_its_test(&place, "slugify"), json!({ "slug": "example" }));
    assert!(place.path("slugify/lib/fold.js").is_file());
}

#[test]
fn a_commonjs_module_becomes_a_package_that_passes_its_test() {
    let place = Place::with(&[("double.js", COMMON)]);
    place.init(&["twice", "--node", "double.js", "--input", r#"{"x": 3}"#]).code(0);
    place.is_strictly_valid("twice");
    assert_eq!(place.json("twice/package.json")["type"], "commonjs");
    assert_eq!(passes_its_test(&place, "twice"), 3.0 * 2.1);
}

#[test]
fn an_export_is_named_after_a_colon() {
    let two = "export function one() { return 1; }\nexport const two = () => null;\n";
    let place = Place::with(&[("both.mjs", two)]);
    let told = stderr(&place.init(&["--node", "both.mjs"]).code(2));
    assert!(told.contains("several functions"), "{told}");
    place.init(&["--node", "both.mjs:two"]).code(0);
    assert_eq!(passes_its_test(&place, "two"), Value::Null);
    place.init(&["--node", "both.mjs:three"]).code(2);
    place.init(&["--node", "neither.mjs"]).code(2);
}

#[test]
fn files_the_function_shares_with_a_package_are_refused() {
    let place = Place::with(&[
        (
            "a.cjs",
            "const m = require('./manifest.json');\nmodule.exports = function f() { return m; };\n",
        ),
        ("manifest.json", "{}"),
    ]);
    let told = stderr(&place.init(&["pack", "--node", "a.cjs"]).code(5));
    assert!(told.contains("needs a file `manifest.json`"), "{told}");
    assert!(!place.path("pack").exists());
}

#[test]
fn what_npm_must_install_is_told() {
    let place = Place::with(&[
        ("a.mjs", "import one from 'one';\nexport function f() { return one; }\n"),
        ("node_modules/one/package.json", r#"{"name": "one", "main": "index.js"}"#),
        ("node_modules/one/index.js", "module.exports = 1;\n"),
    ]);
    let made = place.init(&["--node", "a.mjs:f"]).code(0);
    assert!(stderr(&made).contains("npm install one"), "{}", stderr(&made));
    let manifest = place.json("f/manifest.json");
    assert_eq!(manifest["implementations"][0]["requirements"]["packages"], json!(["one"]));
}
