//! Tests that are run again whenever a file changes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::common::Desk;

#[test]
fn tests_are_run_again_when_a_file_changes_until_somebody_ends_it() {
    let desk = Desk::new();
    let test = desk.echo().join("tests/echo.test.json");
    let mut haft = Command::new(assert_cmd::cargo::cargo_bin("haft"))
        .arg("--home")
        .arg(desk.path("home"))
        .args(["test", "./echo", "--watch"])
        .current_dir(desk.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(haft.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut totals = || lines.find(|line| line.contains(" passed, ")).unwrap();
    assert!(totals().starts_with("1 test: 1 passed, 0 failed"));
    let text = fs::read_to_string(&test).unwrap();
    fs::write(&test, text.replace("\"equals\": \"hello\"", "\"equals\": \"hullo!\"")).unwrap();
    assert!(totals().starts_with("1 test: 0 passed, 1 failed"));
    fs::write(&test, text).unwrap();
    assert!(totals().starts_with("1 test: 1 passed, 0 failed"));
    let interrupted = Command::new("kill").args(["-INT", &haft.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    assert_eq!(haft.wait().unwrap().code(), Some(130));
    desk.refused(&["test", "demo.echo", "--watch"], 2, "nothing to watch");
}
