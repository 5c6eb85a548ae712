//! A home in odd circumstances: moved, read-only, on a full disk, and at another time.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::process::Command;

use common::{Desk, Ran, compiled, repository, run_in};
use serde_json::{Value, json};

/// The ways in which a home is changed, once echo is installed in it.
const CHANGES: [&[&str]; 7] = [
    &["install", "./two", "--yes"],
    &["rollback", "demo.echo"],
    &["disable", "demo.echo"],
    &["enable", "demo.echo"],
    &["revoke", "demo.echo", "--yes"],
    &["remove", "demo.echo"],
    &["reset", "--yes"],
];

const HELLO: &str = r#"{"message":"hi"}"#;

/// A desk on which there are two versions of echo, and a home with the first.
fn desk() -> Desk {
    let desk = Desk::new();
    for (version, name) in [("0.1.0", "one"), ("0.2.0", "two")] {
        let echo = repository().join("examples/mcpkg/echo");
        let copied = Command::new("cp").arg("-r").arg(echo).arg(desk.path(name)).status();
        assert!(copied.unwrap().success());
        let manifest = desk.path(name).join("manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        fs::write(&manifest, text.replace("\"0.1.0\"", &format!("\"{version}\""))).unwrap();
    }
    desk.done(&["install", "./one", "--yes", "-q"]);
    desk
}

/// Runs it where these commands were run before, in a namespace for mounts of its own.
fn mounted(desk: &Desk, before: &str, words: &[&str]) -> Ran {
    let script = format!("set -e; {before}; shift; exec \"$0\" --home \"$HOME_OF_IT\" \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script]);
    command.arg(assert_cmd::cargo::cargo_bin("haft")).arg("shifted").args(words);
    command.env("HOME_OF_IT", desk.path("home")).current_dir(desk.0.path());
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn version(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.json()["packages"][0]["version"].clone()
}

#[test]
fn a_home_that_was_moved_works_and_can_be_changed() {
    let desk = desk();
    desk.done(&["install", "./two", "--yes", "-q"]);
    fs::rename(desk.path("home"), desk.path("moved")).unwrap();
    let moved = desk.path("moved");
    for words in [
        &["call", "demo.echo", HELLO][..],
        &["rollback", "demo.echo"],
        &["call", "demo.echo", HELLO],
        &["install", "./two", "--yes"],
        &["doctor", "-q"],
        &["revoke", "demo.echo", "--yes"],
        &["install", "./two", "--yes"],
        &["remove", "demo.echo"],
        &["audit", "verify"],
    ] {
        let all = [&["--home", moved.to_str().unwrap()], words].concat();
        let ran = run_in(desk.0.path(), &all, None);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
    }
    assert!(!desk.path("home").exists());
}

#[test]
fn a_home_that_can_only_be_read_is_read_and_says_so_when_it_is_to_be_changed() {
    let desk = desk();
    let read_only =
        "mount --bind \"$HOME_OF_IT\" \"$HOME_OF_IT\"; mount -o remount,bind,ro \"$HOME_OF_IT\"";
    for words in CHANGES {
        if words[0] == "enable" || words[0] == "rollback" {
            continue;
        }
        let ran = mounted(&desk, read_only, words);
        assert_eq!(ran.code, 6, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("Read-only file system"), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error: ") || words[0] == "install", "{}", ran.stderr);
    }
    for words in [
        &["list"][..],
        &["status", "demo.echo"],
        &["show", "./two"],
        &["audit"],
        &["lock"],
        &["call", "demo.echo", HELLO, "--explain"],
    ] {
        let ran = mounted(&desk, read_only, words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
    }
    let ran = mounted(&desk, read_only, &["doctor"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert!(ran.stdout.contains("it cannot be written"), "{}", ran.stdout);
    // A call that nobody can write down is not made.
    let ran = mounted(&desk, read_only, &["call", "demo.echo", HELLO]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert!(ran.stderr.contains("Read-only file system"), "{}", ran.stderr);
    assert_eq!(version(&desk.done(&["list", "--json"])), "0.1.0");
    desk.done(&["call", "demo.echo", HELLO]);
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    let desk = desk();
    // The home lies on a disk of its own that is filled up to the last byte.
    let full = |words: &[&str]| {
        let before = "cp -a \"$HOME_OF_IT\" \"$HOME_OF_IT.kept\"; mount -t tmpfs -o size=512k tmpfs \"$HOME_OF_IT\"; \
             cp -a \"$HOME_OF_IT.kept/.\" \"$HOME_OF_IT\"; rm -rf \"$HOME_OF_IT.kept\"; chmod 700 \"$HOME_OF_IT\"; \
             { cat /dev/zero > \"$HOME_OF_IT/filler\" || true; } 2>/dev/null";
        // What comes after it is looked at in the same namespace.
        let after = "code=0; \"$0\" --home \"$HOME_OF_IT\" \"$@\" || code=$?; rm \"$HOME_OF_IT/filler\"; \
             \"$0\" --home \"$HOME_OF_IT\" doctor -q >&2; \"$0\" --home \"$HOME_OF_IT\" list --json; exit $code";
        let script = format!("set -e; {before}; shift; {after}");
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &script]);
        command.arg(assert_cmd::cargo::cargo_bin("haft")).arg("shifted").args(words);
        command.env("HOME_OF_IT", desk.path("home")).current_dir(desk.0.path());
        command.output().unwrap()
    };
    for words in CHANGES {
        if words[0] == "enable" || words[0] == "rollback" {
            continue;
        }
        let output = full(words);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(6), "{words:?}: {told}");
        assert!(told.contains("No space left on device"), "{words:?}: {told}");
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let one = &listed["packages"][0];
        assert_eq!(
            (&one["version"], &one["enabled"]),
            (&"0.1.0".into(), &true.into()),
            "{words:?}"
        );
    }
}

/// Runs a verb whose clock is off by so many seconds.
fn off_by(desk: &Desk, seconds: i64, words: &[&str]) -> Ran {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
    command.arg("--home").arg(desk.path("home")).args(words).current_dir(desk.0.path());
    command.env("LD_PRELOAD", compiled::clock()).env("CLOCK_SHIFT", seconds.to_string());
    let output = command.output().unwrap();
    let ran = Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    assert_eq!(ran.code, 0, "{words:?}, off by {seconds}: {}", ran.stderr);
    ran
}

/// The year in which the active version of echo was installed.
fn year(ran: &Ran) -> i64 {
    ran.json()["installed"].as_str().unwrap()[..4].parse().unwrap()
}

#[test]
fn a_clock_that_is_ten_years_off_does_not_matter_then_nor_afterwards() {
    const TEN_YEARS: i64 = 10 * 365 * 86_400 + 86_400;
    const STATUS: &[&str] = &["status", "demo.echo", "--json"];
    let secret = |desk: &Desk| {
        let set = ["secret", "set", "mcpkg:demo.echo", "KEY"];
        assert_eq!(desk.haft_with(&set, Some("s3cret")).code, 0);
    };
    for shift in [TEN_YEARS, -TEN_YEARS] {
        let desk = desk();
        secret(&desk);
        let now = year(&desk.done(STATUS));
        let off = |words: &[&str]| off_by(&desk, shift, words);
        // What was installed by a clock that is right, and everything by one that is off.
        let said = off(&["call", "demo.echo", HELLO]);
        assert_eq!(said.stdout, "{\"message\":\"hi\"}\n");
        off(&["disable", "demo.echo"]);
        off(&["enable", "demo.echo"]);
        fs::remove_dir_all(desk.path("one")).unwrap();
        fs::rename(desk.path("two"), desk.path("one")).unwrap();
        assert_eq!(off(&["update", "--check", "--json"]).json()["packages"][0]["newer"], "0.2.0");
        off(&["update", "--yes"]);
        let then = year(&off(STATUS));
        assert!((then - now - shift.signum() * 10).abs() <= 1, "the clock is off: {then}");
        off(&["rollback", "demo.echo"]);
        off(&["install", "./one", "--yes"]);
        off(&["grant", "mcpkg:demo.echo", "--host", "api.example.com"]);
        off(&["audit", "verify"]);
        off(&["doctor", "-q"]);
        // And the other way round.
        desk.done(&["call", "demo.echo", HELLO]);
        desk.done(&["disable", "demo.echo"]);
        desk.done(&["enable", "demo.echo"]);
        assert_eq!(desk.done(&["update", "--check", "--json"]).json()["packages"], json!([]));
        desk.done(&["audit", "verify"]);
        desk.done(&["doctor", "-q"]);
        off(&["revoke", "demo.echo", "--yes"]);
        let since = desk.done(STATUS).json()["revoked"]["since"].as_str().unwrap()[..4].to_owned();
        assert!((since.parse::<i64>().unwrap() - then).abs() <= 1, "{since}");
        desk.done(&["revoke", "demo.echo", "--yes"]);
        desk.done(&["install", "./one", "--yes", "-q"]);
        off(&["call", "demo.echo", HELLO]);
        off(&["remove", "demo.echo"]);
        off(&["install", "./one", "--yes"]);
        desk.done(&["remove", "demo.echo"]);
        desk.done(&["audit", "verify"]);
        desk.done(&["doctor", "-q"]);
    }
}
