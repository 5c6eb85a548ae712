//! The desktop's keyring: a real one, in a session of its own.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::Write;
use std::process::{Command, Stdio};

use common::secret;
use testkit::desktop::{KEYRING, in_session};
use vault::keyring::{Keyring, KeyringError};

#[test]
fn a_value_is_kept_found_and_removed() {
    in_session("a_child_keeps_and_finds", KEYRING);
}

#[test]
fn a_locked_keyring_is_told_and_nobody_is_asked() {
    in_session("a_child_is_locked_out", KEYRING);
}

#[test]
fn without_a_keyring_there_is_an_error() {
    in_session("a_child_finds_no_keyring", "export DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere;");
}

#[test]
#[ignore = "runs as a child of another test"]
fn a_child_keeps_and_finds() {
    let keyring = Keyring::connect().unwrap();
    assert!(matches!(keyring.get("github.com", "me"), Err(KeyringError::Missing)));
    assert!(!keyring.remove("github.com", "me").unwrap());
    keyring.set("github.com", "me", &secret("first ü")).unwrap();
    keyring.set("github.com", "me", &secret("second ü")).unwrap();
    keyring.set("github.com", "you", &secret("other")).unwrap();
    assert_eq!(keyring.get("github.com", "me").unwrap().expose(), "second ü");
    // The desktop's own program reads what we wrote, and we read what it wrote.
    let theirs = ["lookup", "service", "github.com", "username", "me"];
    let theirs = Command::new("secret-tool").args(theirs).output().unwrap();
    assert_eq!(String::from_utf8(theirs.stdout).unwrap(), "second ü");
    store("theirs", &["service", "example.com", "username", "me"]);
    assert_eq!(keyring.get("example.com", "me").unwrap().expose(), "theirs");
    // Another program's entry that has one attribute more is the second of that name.
    store("twice", &["service", "example.com", "username", "me", "application", "x"]);
    assert!(matches!(keyring.get("example.com", "me"), Err(KeyringError::Ambiguous)));
    assert!(keyring.remove("github.com", "me").unwrap());
    assert!(matches!(keyring.get("github.com", "me"), Err(KeyringError::Missing)));
    assert_eq!(keyring.get("github.com", "you").unwrap().expose(), "other");
}

#[test]
#[ignore = "runs as a child of another test"]
fn a_child_is_locked_out() {
    let keyring = Keyring::connect().unwrap();
    keyring.set("github.com", "me", &secret("value")).unwrap();
    let lock = Command::new("gdbus")
        .args(["call", "--session", "--dest", "org.freedesktop.secrets"])
        .args(["--object-path", "/org/freedesktop/secrets"])
        .args(["--method", "org.freedesktop.Secret.Service.Lock"])
        .arg("[objectpath '/org/freedesktop/secrets/collection/login']")
        .output()
        .unwrap();
    assert!(lock.status.success(), "{}", String::from_utf8_lossy(&lock.stderr));
    for refused in [
        keyring.get("github.com", "me").map(drop),
        keyring.set("github.com", "me", &secret("other")),
        keyring.set("github.com", "new", &secret("other")),
        keyring.remove("github.com", "me").map(drop),
    ] {
        assert!(matches!(refused, Err(KeyringError::Locked)), "{refused:?}");
    }
}

#[test]
#[ignore = "runs as a child of another test"]
fn a_child_finds_no_keyring() {
    assert!(matches!(Keyring::connect(), Err(KeyringError::Service(_))));
}

/// Has the desktop's own program keep a value.
fn store(value: &str, attributes: &[&str]) {
    let mut tool = Command::new("secret-tool")
        .args(["store", "--label=theirs"])
        .args(attributes)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    tool.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    assert!(tool.wait().unwrap().success());
}
