//! Whether it is the owner who says yes: at a terminal, or with the passphrase.

use serde_json::json;

use crate::desk::{Desk, PACKAGE, at_terminal, closed, leave, without_terminal};

#[test]
fn a_yes_counts_when_the_owner_has_shown_who_they_are() {
    let desk = Desk::new();
    let manifest = desk.capability("cat", &closed(), &json!([]));
    let set = ["secret", "passphrase", "--passphrase-stdin"];
    assert_eq!(without_terminal(&desk, &set, "open sesame\n").code, 0);
    desk.write(
        "home/policy.toml",
        "[approval]\nowner_presence = \"passphrase\"\n[package.\"demo.tool\"]\napproval = \"ask\"\n",
    );
    let call = ["call", "--from", &manifest, "demo.tool", "{}"];
    for answers in [["y", "wrong"], ["a", "wrong"]] {
        let (code, screen) = at_terminal(&desk, &answers, &call);
        assert!(code == Some(4) && screen.contains("Passphrase for the vault:"), "{screen}");
    }
    assert_eq!(desk.done(&["approve", "rules"]).stdout, "");
    let (code, screen) = at_terminal(&desk, &["y", "open sesame"], &call);
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(screen.matches("Passphrase for").count(), 1, "{screen}");
    let (code, screen) = at_terminal(&desk, &["n"], &call);
    assert!(code == Some(4) && !screen.contains("Passphrase for"), "{screen}");
}

#[test]
fn a_passphrase_guards_what_the_policy_says() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[approval]\nowner_presence = \"passphrase\"\n");
    for arguments in [
        vec!["grant", PACKAGE, "--env", "X"],
        vec!["approve", "always", PACKAGE, "demo.tool"],
        vec!["secret", "rm", PACKAGE, "X"],
    ] {
        let ran = desk.run(&arguments, None);
        assert_eq!(ran.code, 4, "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(desk.done(&["grant", PACKAGE]).stdout, "");
    assert_eq!(desk.run(&["policy", "check"], None).code, 0);
    desk.write("home/policy.toml", "[aproval]\n");
    let bad = desk.run(&["policy", "check"], None);
    assert_eq!(bad.code, 2);
    assert!(
        bad.stderr.contains(
            "line 1, column 2: `aproval`: there is no such key; did you mean `approval`?"
        ),
        "{}",
        bad.stderr
    );
}

#[test]
fn a_terminal_is_needed_where_the_policy_says_so() {
    let desk = Desk::new();
    let grant = ["grant", PACKAGE, "--env", "X"];
    assert_eq!(without_terminal(&desk, &grant, "").code, 0, "by default scripts may grant");
    desk.done(&["ungrant", PACKAGE, "--all"]);
    let manifest = desk.capability("cat", &closed(), &json!([]));
    desk.write(
        "home/policy.toml",
        "[approval]\nowner_presence = \"terminal\"\n[package.\"demo.tool\"]\napproval = \"ask\"\n",
    );
    let call = ["call", "--approve", "--from", &manifest, "demo.tool", "{}"];
    let ticket = leave(&desk.home(), "one");
    for arguments in [
        &grant[..],
        &["approve", "always", PACKAGE, "demo.tool"],
        &["approve", "allow", &ticket],
        &["secret", "set", PACKAGE, "X"],
        &["secret", "rm", PACKAGE, "X"],
        &["secret", "rotate"],
        &["secret", "passphrase", "--passphrase-stdin"],
        &["secret", "passphrase", "--remove"],
        &["login", "--from", &manifest],
        &call,
    ] {
        let ran = without_terminal(&desk, arguments, "value\n");
        assert_eq!(ran.code, 4, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("wants a terminal"), "{arguments:?}: {}", ran.stderr);
    }
    for list in [&["grant", PACKAGE][..], &["approve", "rules"], &["secret", "list"]] {
        assert_eq!(without_terminal(&desk, list, "").stdout, "", "{list:?}");
    }
    let (code, screen) = at_terminal(&desk, &[], &grant);
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(without_terminal(&desk, &["ungrant", PACKAGE, "--all"], "").code, 0);
    let (code, screen) = at_terminal(&desk, &[], &call);
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn a_passphrase_is_set_from_standard_input_and_asked_for_at_a_terminal_alone() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[approval]\nowner_presence = \"passphrase\"\n");
    let grant = ["grant", PACKAGE, "--env", "X"];
    // Nobody is asked for a passphrase that there is not.
    let (code, screen) = at_terminal(&desk, &[], &grant);
    assert!(code == Some(4) && !screen.contains("Passphrase for"), "{screen}");
    assert!(screen.contains("`haft secret passphrase` sets one"), "{screen}");
    let nobody = without_terminal(&desk, &["secret", "passphrase"], "");
    assert_eq!(nobody.code, 2, "{}", nobody.stderr);
    assert!(nobody.stderr.contains("hint: --passphrase-stdin reads it"), "{}", nobody.stderr);
    assert!(!nobody.stderr.contains("--no-passphrase"), "{}", nobody.stderr);
    let set = ["secret", "passphrase", "--passphrase-stdin"];
    assert_eq!(without_terminal(&desk, &set, "open sesame\n").code, 0);
    let again = without_terminal(&desk, &set, "another\n");
    assert_eq!(again.code, 4, "whoever changes it knows the old one: {}", again.stderr);
    let nobody = without_terminal(&desk, &grant, "open sesame\n");
    assert_eq!(nobody.code, 4, "{}", nobody.stderr);
    assert!(nobody.stderr.contains("hint: run it at a terminal"), "{}", nobody.stderr);
    assert!(!nobody.stderr.contains("--passphrase"), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("your policy wants the passphrase"), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("`[approval] owner_presence` in policy.toml"));
    assert_eq!(at_terminal(&desk, &["wrong"], &grant).0, Some(4));
    let (code, screen) = at_terminal(&desk, &["open sesame"], &grant);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("Passphrase for the vault:"), "{screen}");
    let (code, screen) =
        at_terminal(&desk, &["open sesame", "new", "new"], &["secret", "passphrase"]);
    assert_eq!(code, Some(0), "{screen}");
    let (old, new) = (screen.find("Old passphrase for the vault:"), screen.find("New passphrase"));
    assert!(old.is_some() && old < new, "{screen}");
}

#[test]
fn one_command_asks_for_the_passphrase_once() {
    let desk = Desk::new();
    let set = ["secret", "passphrase", "--passphrase-stdin"];
    assert_eq!(without_terminal(&desk, &set, "open sesame\n").code, 0);
    desk.write(
        "home/policy.toml",
        "[approval]\nowner_presence = \"passphrase\"\n[package.\"demo.tool\"]\napproval = \"ask\"\n",
    );
    let secrets = json!([{"name": "TOKEN", "ref": "secret://TOKEN"}]);
    let manifest = desk.capability("printf %s ${#TOKEN}", &closed(), &secrets);
    let call = ["call", "--from", &manifest, "demo.tool", "{}"];
    for (answers, arguments) in [
        (&["open sesame", "value"][..], &["secret", "set", PACKAGE, "TOKEN"][..]),
        (&["y", "open sesame"], &call),
        (&["open sesame"], &["secret", "rotate"]),
        (&["y", "open sesame"], &call),
        (&["open sesame"], &["secret", "rm", PACKAGE, "TOKEN"]),
        (&["open sesame"], &["secret", "passphrase", "--remove"]),
    ] {
        let (code, screen) = at_terminal(&desk, answers, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {screen}");
        assert_eq!(screen.matches("Passphrase for").count(), 1, "{arguments:?}: {screen}");
    }
}

#[test]
fn taking_back_needs_nobody_and_no_policy() {
    let desk = Desk::new();
    desk.done(&["grant", PACKAGE, "--env", "X"]);
    desk.done(&["approve", "always", PACKAGE, "demo.tool"]);
    let ticket = leave(&desk.home(), "one");
    for policy in ["[approval]\nowner_presence = \"terminal\"\n", "[nonsense]\n"] {
        desk.write("home/policy.toml", policy);
        let logout = without_terminal(&desk, &["logout", PACKAGE], "");
        assert_eq!(logout.code, 3, "{}", logout.stderr);
        assert!(logout.stderr.contains("nobody is signed in"), "{}", logout.stderr);
    }
    for arguments in [
        &["ungrant", PACKAGE, "--all"][..],
        &["approve", "refuse", &ticket],
        &["approve", "forget", "1"],
    ] {
        let ran = without_terminal(&desk, arguments, "");
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    }
}
