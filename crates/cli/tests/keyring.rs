//! A gateway that finds the passphrase of its vault in the desktop's keyring: a real one, in a session of its own.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[path = "gateway/gate.rs"]
#[allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of it")]
mod gate;
#[path = "gateway/sealed.rs"]
mod sealed;

use std::process::Command;

use gate::Gate;
use testkit::desktop;

/// Runs a test of this file where a keyring is open.
fn in_session(test: &str) {
    desktop::in_session(test, desktop::KEYRING);
}

#[test]
fn a_vault_is_opened_by_the_keyring() {
    in_session("a_child_opens_a_vault");
}

#[test]
fn a_passphrase_that_is_taken_away_is_kept_nowhere() {
    in_session("a_child_takes_the_passphrase_away");
}

#[test]
#[ignore = "runs as a child of another test"]
fn a_child_opens_a_vault() {
    let desk = sealed::with_secret("secret://KEPT");
    let set = ["secret", "passphrase", "--passphrase-stdin", "--keyring"];
    let set = desk.haft_with(&set, Some("open sesame\n"));
    assert_eq!(set.code, 0, "{}", set.stderr);
    let gate = Gate::open(&desk, &["--without-token"]);
    sealed::assert_made(&gate);
    drop(gate);
    // What is kept there changes with the passphrase.
    let change = |answers: &[&str], more: &[&str]| {
        let verb = [&["secret", "passphrase"], more].concat();
        let (code, screen) = desk.at_terminal(answers, &verb);
        assert_eq!(code, Some(0), "{screen}");
    };
    change(&["open sesame", "another", "another"], &[]);
    assert_eq!(kept(&desk).as_deref(), Some("another"));
    let gate = Gate::open(&desk, &["--without-token"]);
    sealed::assert_made(&gate);
    drop(gate);
    // Nobody is asked to open a keyring: one that is not open gives nothing.
    let lock = Command::new("gdbus")
        .args(["call", "--session", "--dest", "org.freedesktop.secrets"])
        .args(["--object-path", "/org/freedesktop/secrets"])
        .args(["--method", "org.freedesktop.Secret.Service.Lock"])
        .arg("[objectpath '/org/freedesktop/secrets/collection/login']")
        .output()
        .unwrap();
    assert!(lock.status.success(), "{}", String::from_utf8_lossy(&lock.stderr));
    let gate = Gate::open(&desk, &["--without-token"]);
    sealed::assert_refused(&gate, "denied", "`haft secret passphrase --keyring` keeps it");
    for more in [&["--keyring"][..], &[], &["--remove"]] {
        let verb = [&["secret", "passphrase"], more].concat();
        let (code, screen) = desk.at_terminal(&["another", "third", "third"], &verb);
        assert!(code != Some(0) && screen.contains("keyring is locked"), "{more:?}: {screen}");
    }
    // Both are as they were.
    let anew = desktop::KEYRING.replace("--unlock", "--replace --unlock");
    assert!(Command::new("sh").args(["-c", &anew]).status().unwrap().success());
    gate::until("it is open", || kept(&desk).as_deref() == Some("another"));
    change(&["another"], &["--remove"]);
    assert_eq!(kept(&desk), None);
    sealed::assert_made(&gate);
}

#[test]
#[ignore = "runs as a child of another test"]
fn a_child_takes_the_passphrase_away() {
    let desk = sealed::with_secret("secret://KEPT");
    let set = ["secret", "passphrase", "--passphrase-stdin", "--keyring"];
    assert_eq!(desk.haft_with(&set, Some("open sesame\n")).code, 0);
    let remove = ["secret", "passphrase", "--remove"];
    assert_eq!(desk.at_terminal(&["open sesame"], &remove).0, Some(0));
    assert_eq!(kept(&desk), None);
}

/// What the desktop's own program finds of a home.
fn kept(desk: &common::Desk) -> Option<String> {
    let home = desk.path("home").canonicalize().unwrap();
    let lookup = ["lookup", "service", "haft-vault", "username", home.to_str().unwrap()];
    let found = Command::new("secret-tool").args(lookup).output().unwrap();
    found.status.success().then(|| String::from_utf8(found.stdout).unwrap())
}
