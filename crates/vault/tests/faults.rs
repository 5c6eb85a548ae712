//! Whatever fails, and whenever: afterwards the vault is exactly as before, or exactly as it was to be.
//! Faults are put into system calls with strace.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{names, of, secret, shared, value};
use vault::FileVault;

/// The calls that change the disk.
const WRITES: [&str; 5] =
    ["openat", "write", "fsync", "rename,renameat,renameat2", "unlink,unlinkat"];
/// The calls that look at it.
const LOOKS: [&str; 3] = ["flock", "fstat,newfstatat,statx", "read"];
/// Every way in which a call is disturbed.
const FAULTS: [&str; 3] = ["error=EIO", "error=ENOSPC", "signal=KILL"];
/// How the child ends when it has done its work.
const DONE: i32 = 42;

#[test]
fn a_value_is_the_old_or_the_new_one() {
    let tried = sweep("set", &WRITES, &FAULTS) + sweep("set", &LOOKS, &["error=EIO"]);
    assert!(tried > 40, "{tried}");
}

#[test]
fn the_key_and_everything_under_it_change_together() {
    let tried = sweep("rotate", &WRITES, &FAULTS);
    assert!(tried > 50, "{tried}");
}

#[test]
fn a_passphrase_is_there_or_not() {
    let calls = ["write", "fsync", "rename,renameat,renameat2", "unlink,unlinkat"];
    assert!(sweep("passphrase", &calls, &["signal=KILL"]) > 5);
    assert!(sweep("plain", &calls, &["signal=KILL"]) > 5);
}

#[test]
fn the_first_secret_makes_a_vault_or_none() {
    let calls = ["mkdir,mkdirat", "write", "fsync", "rename,renameat,renameat2"];
    assert!(sweep("first", &calls, &["error=EIO", "signal=KILL"]) > 10);
}

/// Runs the child once for every call of a kind and every fault, and looks at the vault afterwards; says
/// how often it was disturbed.
fn sweep(work: &str, calls: &[&str], faults: &[&str]) -> usize {
    let model = tempfile::tempdir().unwrap();
    prepare(work, &model.path().join("vault"));
    let mut tried = 0;
    for call in calls {
        for fault in faults {
            for place in 1.. {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("vault");
                copy(&model.path().join("vault"), &path);
                let log = tempfile::NamedTempFile::new().unwrap();
                let done = Command::new("strace")
                    .args(["-f", "-qq", "-o", log.path().to_str().unwrap()])
                    .args(["-e", &format!("trace={call}")])
                    .args(["-e", &format!("inject={call}:{fault}:when={place}")])
                    .arg(std::env::current_exe().unwrap())
                    .args(["a_child_works", "--exact", "--ignored", "--test-threads=1"])
                    .env("HAFT_VAULT", &path)
                    .env("HAFT_WORK", work)
                    .env("RUST_BACKTRACE", "0")
                    .output()
                    .expect("strace is installed");
                let said = fs::read_to_string(log.path()).unwrap();
                let is_done = done.status.code() == Some(DONE);
                let was_disturbed = said.contains("INJECTED") || said.contains("killed by SIGKILL");
                check(work, &path, is_done, &format!("{fault} at {call} {place}"));
                if !was_disturbed {
                    assert!(is_done, "undisturbed, it is done: {call}");
                    break;
                }
                tried += 1;
            }
        }
    }
    tried
}

/// The vault before the work.
fn prepare(work: &str, path: &Path) {
    if work == "first" {
        return;
    }
    let vault = FileVault::open(path, || Some(secret("one"))).unwrap();
    if work == "plain" {
        vault.set_passphrase(&secret("one")).unwrap();
    }
    vault.set(&shared("kept"), &secret("kept")).unwrap();
    vault.set(&of("a", "name"), &secret("old")).unwrap();
}

/// The child of the tests above.
#[test]
#[ignore = "runs as a child of the tests that disturb it"]
fn a_child_works() {
    let path = std::env::var_os("HAFT_VAULT").unwrap();
    let worked =
        FileVault::open(path, || Some(secret("one"))).and_then(|vault| {
            match std::env::var("HAFT_WORK").unwrap().as_str() {
                "rotate" => vault.rotate(),
                "passphrase" => vault.set_passphrase(&secret("one")),
                "plain" => vault.remove_passphrase(),
                _ => vault.set(&of("a", "name"), &secret("new")),
            }
        });
    std::process::exit(if worked.is_ok() { DONE } else { 1 });
}

/// Whether everything is old or everything is new, and the vault can be used as if nothing had happened.
fn check(work: &str, path: &Path, is_done: bool, fault: &str) {
    let vault = FileVault::open(path, || Some(secret("one"))).unwrap();
    let got = value(&vault, &of("a", "name"));
    let old = (work != "first").then(|| "old".to_owned());
    let is_new = match work {
        "set" | "first" => got.as_deref() == Some("new"),
        "passphrase" => vault.is_sealed().unwrap(),
        "plain" => !vault.is_sealed().unwrap(),
        _ => is_done,
    };
    let changes_the_value = matches!(work, "set" | "first");
    assert!(is_new || !is_done, "{work} said it was done, with {fault}");
    assert!(got == old || (is_new && changes_the_value), "{work}: {got:?} with {fault}");
    if work == "first" {
        vault.set(&shared("kept"), &secret("kept")).unwrap();
    }
    assert_eq!(value(&vault, &shared("kept")).unwrap(), "kept", "{work} with {fault}");
    // The next change takes away whatever a killed one left.
    vault.set(&shared("more"), &secret("more")).unwrap();
    assert_eq!(value(&vault, &shared("more")).unwrap(), "more");
    let expected: &[&str] = if vault.is_sealed().unwrap() {
        &["lock", "secrets.json"]
    } else {
        let keys = fs::read_to_string(path.join("key")).unwrap();
        assert_eq!(keys.matches("\"id\"").count(), 1, "{work} with {fault}");
        &["key", "lock", "secrets.json"]
    };
    assert_eq!(names(path), expected, "{work} with {fault}");
}

/// Copies a vault with the modes of its files.
fn copy(from: &Path, to: &Path) {
    if !from.exists() {
        return;
    }
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}
