//! A desktop session of its own for a test.

use std::process::Command;

/// Starts GNOME's keyring, empty and open.
pub const KEYRING: &str =
    "printf pass | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1;";

/// Runs an ignored test of the calling file in a session of its own, in which `prepare` has been run by a shell.
pub fn in_session(test: &str, prepare: &str) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let line =
        format!("{prepare} exec \"$0\" {test} --exact --ignored --nocapture --test-threads=1");
    let done = Command::new("dbus-run-session")
        .args(["--", "sh", "-c", &line])
        .arg(std::env::current_exe().expect("a program that runs"))
        .env("HOME", home.path())
        .env("XDG_RUNTIME_DIR", home.path())
        .env_remove("XDG_DATA_HOME")
        .output()
        .expect("dbus is installed");
    let said = String::from_utf8_lossy(&done.stdout);
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("1 passed"), "{said}\n{complaint}");
}
