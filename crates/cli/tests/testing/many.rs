//! Many tests: in order, side by side, and in little memory.

use std::process::Command;

use serde_json::json;

use super::common::Desk;
use super::packages::python;

const CODE: &str = "def run(input):\n    return {'n': input['n']}\n";

#[test]
fn tests_that_run_side_by_side_are_told_in_order() {
    let desk = Desk::new();
    // The first take longest.
    let code = "import time\ndef run(input):\n    time.sleep(max(0, 0.2 - input['n'] * 0.01))\n    return input\n";
    let tests: Vec<_> = (0..24)
        .map(|n| json!({"name": format!("test {n}"), "input": {"n": n}, "expected": {"n": n}}))
        .collect();
    python(&desk, code, &tests);
    let document = desk.done(&["test", "./python", "--jobs", "8", "--json"]).json();
    let told = document["tests"].as_array().unwrap();
    let names: Vec<_> = told.iter().map(|test| test["name"].as_str().unwrap()).collect();
    let wanted: Vec<_> = (0..24).map(|n| format!("test {n}")).collect();
    assert_eq!(names, wanted);
    assert_eq!(document["passed"], 24);
}

/// How many KiB a run took at most, by what the system says of it.
fn memory(desk: &Desk, arguments: &[&str]) -> u64 {
    let script = "import resource, subprocess, sys\n\
        done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n\
        assert done.returncode == 0, done.returncode\n\
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(assert_cmd::cargo::cargo_bin("haft"));
    command.arg("--home").arg(desk.path("home")).args(arguments).current_dir(desk.0.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn thousands_of_tests_are_run_in_little_memory() {
    const MANY: usize = 2_500;
    let desk = Desk::new();
    // Together they are forty MiB.
    let ballast = "x".repeat(16 << 10);
    let tests: Vec<_> = (0..MANY)
        .map(|n| {
            json!({"name": format!("test {n}"), "input": {"n": n, "ballast": ballast},
                "expected": {"n": n}})
        })
        .collect();
    python(&desk, CODE, &tests);
    let few = memory(&desk, &["test", "./python", "--only", "test 77"]);
    let many = memory(&desk, &["test", "./python"]);
    let document = desk.done(&["test", "./python", "--only", "test 24", "--json"]).json();
    assert_eq!(document["passed"], 111, "{}", document["failed"]);
    assert!(many < few + (16 << 10), "{few} KiB for some, {many} KiB for all");
}
