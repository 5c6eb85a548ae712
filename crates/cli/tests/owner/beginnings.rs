//! A home that is not there yet, or is none; and files of it that are missing.

use std::process::Command;

use serde_json::json;

use crate::common::run_in;
use crate::desk::{Desk, PACKAGE, closed};

/// What only looks.
const LOOKS: [&[&str]; 7] = [
    &["secret", "list"],
    &["approve", "rules"],
    &["approve", "waiting"],
    &["grant", PACKAGE],
    &["grant", "--learn", PACKAGE],
    &["audit"],
    &["policy", "show"],
];

#[test]
fn looking_makes_no_home() {
    let desk = Desk::new();
    for look in LOOKS {
        desk.done(look);
        assert!(!desk.home().exists(), "{look:?}");
    }
    let rotated = desk.done(&["secret", "rotate"]);
    assert_eq!(rotated.stderr, "there is nothing to rotate: no secrets are kept\n");
    assert_eq!(desk.run(&["approve", "forget", "1"], None).code, 3);
    assert_eq!(desk.run(&["secret", "rm", PACKAGE, "X"], None).code, 3);
    desk.done(&["ungrant", PACKAGE, "--all"]);
    assert!(!desk.home().exists());
}

#[test]
fn a_policy_that_is_none_keeps_nobody_from_looking() {
    let desk = Desk::new();
    desk.done(&["grant", PACKAGE, "--env", "X"]);
    desk.done(&["approve", "always", PACKAGE, "send"]);
    desk.write("home/policy.toml", "[nonsense]\n");
    assert_eq!(desk.done(&["grant", PACKAGE]).stdout, "env X\n");
    assert!(desk.done(&["approve", "rules"]).stdout.contains("send"));
    desk.done(&["secret", "list"]);
    desk.done(&["audit"]);
}

#[test]
fn a_home_that_is_a_file_is_told_so() {
    let desk = Desk::new();
    let file = desk.write("home", "");
    for arguments in LOOKS.into_iter().chain([&["key", "list"][..], &["secret", "rotate"]]) {
        let ran = desk.run(arguments, None);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert_eq!(
            ran.stderr,
            format!(
                "error: `{file}` is no folder, and a home is one\nhint: name another with --home or HAFT_HOME\n"
            ),
            "{arguments:?}"
        );
    }
}

#[test]
fn whoever_has_no_home_folder_is_told_which_variable_names_one() {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
    command.env_remove("HAFT_HOME").env("HOME", "relative");
    let output = command.args(["secret", "list"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: the variable `HOME` does not name your home folder: it is `relative`, which is no whole path\nhint: set HOME, or name the folder for haft itself with --home or HAFT_HOME\n"
    );
}

#[test]
fn a_file_of_the_vault_that_is_missing_is_named_with_what_to_do() {
    let desk = Desk::new();
    let secrets = json!([{"name": "TOKEN", "ref": "secret://TOKEN"}]);
    let manifest = desk.capability("printf %s ${#TOKEN}", &closed(), &secrets);
    let set = |name: &str| desk.run(&["secret", "set", PACKAGE, name], Some(b"value"));
    assert_eq!(set("TOKEN").code, 0);
    let vault = desk.home().join("vault");
    let (key, sealed) = (vault.join("key"), vault.join("secrets.json"));
    let aside = vault.join("aside");
    std::fs::rename(&key, &aside).unwrap();
    let words = format!("`{}`, the key of the vault, is missing", key.display());
    let hint = format!(
        "hint: put it back from a copy; without one the secrets are lost: remove `{}` and keep them anew",
        sealed.display()
    );
    for ran in [set("TOKEN"), desk.run(&["secret", "rotate"], None), desk.call(&manifest)] {
        assert!(ran.stderr.contains(&words) && ran.stderr.contains(&hint), "{}", ran.stderr);
    }
    assert!(desk.done(&["secret", "list"]).stdout.contains("TOKEN"), "listing needs no key");
    std::fs::rename(&aside, &key).unwrap();
    std::fs::rename(&sealed, &aside).unwrap();
    let words = format!(
        "warning: `{}` is missing, though the key of the vault is there; put it back from a copy, or keep the secrets anew",
        sealed.display()
    );
    for arguments in [["secret", "list"], ["secret", "rotate"]] {
        let told = desk.done(&arguments).stderr;
        assert!(told.contains(&words), "{told}");
    }
    std::fs::rename(&aside, &sealed).unwrap();
    assert_eq!(desk.call(&manifest).json(), json!(5));
}

#[test]
fn what_is_said_when_there_is_no_policy_can_be_read_here() {
    let desk = Desk::new();
    let shown = desk.done(&["policy", "show"]);
    assert!(!shown.stderr.contains("docs/"), "{}", shown.stderr);
    let hint = "`haft policy show --defaults` shows every key with its default";
    assert!(shown.stderr.contains(hint), "{}", shown.stderr);
    let defaults = desk.done(&["policy", "show", "--defaults"]).stdout;
    assert!(defaults.contains("allow = [\"local\", \"verified\"]"), "{defaults}");
    desk.write("home/policy.toml", &defaults);
    desk.done(&["policy", "check"]);
    let help = run_in(&desk.home(), &["policy", "--help"], None).stdout;
    assert!(!help.contains("docs/"), "{help}");
}
