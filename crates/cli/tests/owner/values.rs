//! A value that a call needs and is not given: what is told says how to go on.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::common::Ran;
use crate::desk::{Desk, PACKAGE, at_terminal, closed, without_terminal};

/// Calls a tool whose one secret is a reference, in a home with this policy.
fn call_with(desk: &Desk, reference: &str, policy: &str) -> Ran {
    desk.write("home/policy.toml", policy);
    let secrets = json!([{"name": "MYSEC", "ref": reference}]);
    desk.call(&desk.capability("echo '{}'", &closed(), &secrets))
}

#[test]
fn a_value_that_is_missing_is_told_with_where_it_is_looked_for() {
    let desk = Desk::new();
    let server =
        "[secrets]\nreferences = [\"vault://kv/a#b\"]\nvault_address = \"http://127.0.0.1:1\"\n";
    for (reference, policy, hint) in [
        ("vault://kv/a#b", server, "`haft secret set haft:vault TOKEN` keeps it"),
        ("secret://NAME1", "", "`haft secret set capability:demo.tool NAME1` keeps it"),
        (
            "env://MYFOO",
            "[secrets]\nenvironment = [\"MYFOO\"]\n",
            "set the variable `MYFOO` of your environment: it is read from there",
        ),
    ] {
        let ran = call_with(&desk, reference, policy);
        assert_eq!(ran.code, 2, "{reference}: {}", ran.stderr);
        let hints: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("hint")).collect();
        assert_eq!(hints, [format!("hint: {hint}")], "{}", ran.stderr);
    }
}

#[test]
fn a_reference_that_is_refused_is_told_with_what_would_allow_it() {
    let desk = Desk::new();
    let file = desk.write("token.txt", "value");
    for (reference, hint) in [
        (
            "env://HOME".to_owned(),
            "`environment = [\"HOME\"]` below `[secrets]` in policy.toml lets it be given to every tool that names it".to_owned(),
        ),
        (
            "vault://kv/a#b".to_owned(),
            "`references = [\"vault://kv/a#b\"]` below `[secrets]` in policy.toml lets it be given to every tool that names it".to_owned(),
        ),
        (
            "keyring://a/b".to_owned(),
            "`references = [\"keyring://a/b\"]` below `[secrets]` in policy.toml lets it be given to every tool that names it".to_owned(),
        ),
        (format!("file://{file}"), format!("`haft grant {PACKAGE} --read {file}` lets it be given")),
    ] {
        let ran = call_with(&desk, &reference, "");
        assert_eq!(ran.code, 4, "{reference}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("hint: {hint}\n")), "{reference}: {}", ran.stderr);
    }
    // What is hinted at is enough.
    desk.done(&["grant", PACKAGE, "--read", &file]);
    assert_eq!(call_with(&desk, &format!("file://{file}"), "").code, 0);
    assert_eq!(call_with(&desk, "env://HOME", "[secrets]\nenvironment = [\"HOME\"]\n").code, 0);
    std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    let ran = call_with(&desk, &format!("file://{file}"), "");
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let hint = format!("hint: `chmod go-w {file}` keeps them from it, once you have looked at it");
    assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
}

#[test]
fn all_that_is_not_given_is_told_at_once_with_the_lists_as_they_have_to_be() {
    let desk = Desk::new();
    let policy = "[secrets]\nenvironment = [\"OTHER\"]\nreferences = [\"keyring://x/y\"]\n";
    desk.write("home/policy.toml", policy);
    let named = |name: &str, reference: &str| json!({"name": name, "ref": reference});
    let secrets = json!([
        named("A", "secret://A"),
        named("B", "env://HOME"),
        named("C", "keyring://a/b"),
        named("D", "env://PATH"),
    ]);
    let manifest = desk.capability("echo '{}'", &closed(), &secrets);
    let list = |list: &str, names: &str| {
        format!(
            "`{list} = [{names}]` below `[secrets]` in policy.toml lets it be given to every tool that names it"
        )
    };
    let keep = format!("`haft secret set {PACKAGE} A` keeps it");
    let environment = list("environment", r#""OTHER", "HOME", "PATH""#);
    let references = list("references", r#""keyring://x/y", "keyring://a/b""#);
    let unnamed = |reference: &str, list: &str| {
        format!("`{reference}` is not given: your policy does not name it in [secrets] {list}")
    };
    let (home, path) = (unnamed("env://HOME", "environment"), unnamed("env://PATH", "environment"));
    let keyring = unnamed("keyring://a/b", "references");
    let error = format!(
        "error: Missing required secret: A; {home}; {keyring}; {path}\n\
         hint: {keep}\nhint: {environment}\nhint: {references}\n"
    );
    let ran = desk.call(&manifest);
    assert_eq!((ran.code, ran.stderr), (4, error));
    let explained =
        desk.done(&["call", "--from", &manifest, "demo.tool", "{}", "--explain"]).stdout;
    let missing = format!(
        "missing:\n  - A ({keep})\n  - B: {home} ({environment})\n  \
         - C: {keyring} ({references})\n  - D: {path} ({environment})\n"
    );
    assert!(explained.contains(&missing), "{explained}");
    let told = desk.run(&["--json", "call", "--from", &manifest, "demo.tool", "{}"], None).json();
    let details = &told["error"]["details"]["missing"];
    let codes: Vec<_> = details.as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, [&json!(null), &json!("denied"), &json!("denied"), &json!("denied")]);
    assert_eq!(details[3]["value"], "PATH");
    // What is hinted at is enough.
    let secrets =
        json!([named("A", "secret://A"), named("B", "env://HOME"), named("D", "env://PATH")]);
    let manifest = desk.capability("echo '{}'", &closed(), &secrets);
    assert_eq!(desk.run(&["secret", "set", PACKAGE, "A"], Some(b"value")).code, 0);
    let line = environment.split('`').nth(1).unwrap();
    desk.write("home/policy.toml", &format!("[secrets]\n{line}\n"));
    let ran = desk.call(&manifest);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_vault_that_is_open_to_others_is_refused_by_every_verb_with_the_same_words() {
    let desk = Desk::new();
    let set = ["secret", "set", PACKAGE, "KEPT"];
    assert_eq!(desk.run(&set, Some(b"value")).code, 0);
    let vault = desk.home().join("vault");
    std::fs::set_permissions(&vault, Permissions::from_mode(0o755)).unwrap();
    let hint = format!("hint: `chmod go-rwx {}` keeps them from it", vault.display());
    let ran = call_with(&desk, "secret://KEPT", "");
    for ran in [desk.run(&set, Some(b"value")), desk.run(&["secret", "list"], None), ran] {
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
    }
}

#[test]
fn a_call_without_the_passphrase_is_refused_as_the_other_verbs_are() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["secret", "set", PACKAGE, "KEPT"], Some(b"value")).code, 0);
    let set = ["secret", "passphrase", "--passphrase-stdin"];
    assert_eq!(without_terminal(&desk, &set, "open sesame\n").code, 0);
    let ran = call_with(&desk, "secret://KEPT", "");
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: run it at a terminal"), "{}", ran.stderr);
    let manifest =
        desk.capability("echo '{}'", &closed(), &json!([{"name": "X", "ref": "secret://KEPT"}]));
    let call = ["call", "--from", &manifest, "demo.tool", "{}"];
    let (code, screen) = at_terminal(&desk, &["wrong"], &call);
    assert_eq!(code, Some(4), "{screen}");
    assert!(screen.contains("the passphrase does not open the vault"), "{screen}");
    let (code, screen) = at_terminal(&desk, &["open sesame"], &call);
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn a_value_that_cannot_be_delivered_is_told_by_name_with_what_keeps_another() {
    let desk = Desk::new();
    let set = |id: &str, name: &str, value: &[u8]| {
        let ran = desk.run(&["secret", "set", id, name], Some(value));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    };
    let inner = "warning: the value holds line ends or other control characters: no header can have them, and no program a NUL\n";
    let last = "warning: the value ends in white space, which is kept with it\n";
    let (id, name) = ("mcpkg:demo.http.status", "STATUS_TOKEN");
    for (value, warned) in [
        (&b"plain value\n"[..], (false, false)),
        (b"with a\ttab", (false, false)),
        (b"one\ntwo\n", (true, false)),
        (b"one\0two", (true, false)),
        (b"one\n\n", (false, true)),
        (b"one \r\n", (false, true)),
        (b"one\ntwo \n", (true, true)),
    ] {
        let said = set(id, name, value);
        assert_eq!((said.contains(inner), said.contains(last)), warned, "{value:?}: {said}");
        assert!(!said.contains("beyond ASCII"), "{said}");
    }
    let beyond = "warning: the value holds characters beyond ASCII, which no header is sent with\n";
    assert!(set(id, name, "t\u{f6}ken".as_bytes()).contains(beyond));
    // A header and a variable of a process can have different things; each says which value it is.
    let call = ["call", "--from", "examples/mcpkg/http-status", r#"{"service":"a"}"#];
    for value in [&b"one\ntwo"[..], "t\u{f6}ken".as_bytes()] {
        set(id, name, value);
        let words = "the value of `STATUS_TOKEN` holds a character that no header is sent with: only letters, digits and signs of ASCII are";
        let hint = "`haft secret set mcpkg:demo.http.status STATUS_TOKEN` keeps another";
        let ran = desk.run(&call, None);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert_eq!(ran.stderr, format!("error: {words}\nhint: {hint}\n"));
        // Nothing is sent, so the plan is shown all the same, with what is in its way.
        let ran = desk.run(&[&call[..], &["--explain"]].concat(), None);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
        assert!(ran.stdout.contains(hint), "{}", ran.stdout);
    }
    set(PACKAGE, "KEPT", b"one\0two");
    let ran = call_with(&desk, "secret://KEPT", "");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let error = format!(
        "error: `MYSEC` is not given: its value holds a NUL, which no program can be given\n\
         hint: `haft secret set {PACKAGE} KEPT` keeps another\n"
    );
    assert_eq!(ran.stderr, error);
    set(PACKAGE, "KEPT", b"one\ntwo");
    assert_eq!(call_with(&desk, "secret://KEPT", "").code, 0);
}

#[test]
fn a_value_that_the_manifest_does_not_take_is_refused_before_the_tool_runs() {
    let desk = Desk::new();
    let (id, name) = ("install-manifest:dice-server", "DICE_MAX_SIDES");
    let call = ["--json", "call", "--from", "examples/install-manifest/dice-server", "roll"];
    let set = |value: &str| desk.run(&["secret", "set", id, name], Some(value.as_bytes())).stderr;
    assert!(!set("1x").contains("cannot be called"), "nobody knows yet what it takes");
    let refused = desk.run(&call, None);
    let error = &refused.json()["error"];
    assert_eq!((refused.code, &error["code"]), (2, &json!("bad_input")), "{error}");
    let details = &error["details"];
    assert_eq!((&details["name"], &details["kept_as"]), (&json!(name), &json!(name)), "{error}");
    let message = error["message"].as_str().unwrap();
    for words in [name, "does not match `^([2-9]|", "The largest die that may be rolled."] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert!(!error.to_string().contains("1x"), "{error}");
    let hint = format!("`haft secret set {id} {name}` keeps another");
    assert_eq!(error["hints"], json!([hint]));
    let told = set("1x");
    assert!(told.contains("cannot be called with it: the value does not match"), "{told}");
    assert!(!told.contains("1x"), "{told}");
    assert!(!set("20").contains("warning"));
    desk.done(&call);
    // A setting of a bundle has bounds.
    let line_finder = "examples/mcpb/line-finder";
    desk.done(&["--json", "call", "--from", line_finder, "--explain", "find"]);
    assert_eq!(desk.run(&["secret", "set", "mcpb:line-finder", "limit"], Some(b"201")).code, 0);
    let refused = desk.run(&["call", "--from", line_finder, "find", "{}"], None);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("its value is above 200"), "{}", refused.stderr);
}
