//! `haft secret`: values that reach their tool and nothing else.

use std::path::Path;

use serde_json::json;

use crate::desk::{Desk, PACKAGE, closed};

/// A value that must be found nowhere.
const CANARY: &str = "c4n4ry-7Zq!x/9Kp";

#[test]
fn a_secret_reaches_its_tool_and_nothing_else() {
    let desk = Desk::new();
    let secrets = json!([{"name": "TOKEN", "ref": "secret://TOKEN"}]);
    let script = "printf '{\"length\":%s,\"said\":\"%s\",\"coded\":\"%s\"}' ${#TOKEN} \"$TOKEN\" $(printf %s \"$TOKEN\" | base64)";
    let manifest = desk.capability(script, &closed(), &secrets);
    let missing = desk.call(&manifest);
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    assert!(missing.stderr.contains("Missing required secret: TOKEN"), "{}", missing.stderr);
    let hint = format!("`haft secret set {PACKAGE} TOKEN` keeps it");
    assert!(missing.stderr.contains(&hint), "{}", missing.stderr);

    let kept =
        desk.run(&["secret", "set", PACKAGE, "TOKEN"], Some(format!("{CANARY}\n").as_bytes()));
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    let listed = desk.done(&["secret", "list"]).stdout;
    assert!(listed.starts_with(&format!("{PACKAGE} TOKEN 20")), "{listed}");
    let result = desk.call(&manifest).json();
    assert_eq!(result["length"], CANARY.len());
    assert_eq!(result["said"], "[secret TOKEN]");
    assert_eq!(result["coded"], "[secret TOKEN]");
    // Another package is not given it.
    let text = std::fs::read_to_string(&manifest).unwrap().replace("demo.tool", "demo.other");
    let other = desk.write("other/manifest.json", &text);
    let denied = desk.run(&["call", "--from", &other, "demo.other", "{}"], None);
    assert_eq!(denied.code, 2, "{}", denied.stderr);

    desk.done(&["secret", "rotate"]);
    assert_eq!(desk.call(&manifest).json()["length"], CANARY.len());
    let told = desk.done(&["audit", "--json"]).stdout;
    assert!(!told.contains(CANARY));
    assert_nowhere(&desk.home());
    desk.done(&["secret", "rm", PACKAGE, "TOKEN"]);
    assert_eq!(desk.call(&manifest).code, 2);
}

/// Looks through every file of a folder for the canary, as it is and in hexadecimal and base64.
fn assert_nowhere(folder: &Path) {
    use std::fmt::Write;
    let hex = CANARY.bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    // The middle of its base64, whatever it is aligned to, is among these.
    let coded = ["YzRuNHJ5LTdacSF4LzlL", "M0bjRyeS03WnEheC85S", "jNG40cnktN1pxIXgvOU"];
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_nowhere(&path);
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned();
        for form in [CANARY, &hex].into_iter().chain(coded) {
            assert!(!text.contains(form), "{form} in {}", path.display());
        }
    }
}

#[test]
fn references_outside_the_vault_need_the_owners_word() {
    let desk = Desk::new();
    let file = desk.write("token.txt", CANARY);
    for (reference, words) in [
        ("env://HOME".to_owned(), "your policy does not name it"),
        (format!("file://{file}"), "was not granted for reading"),
        ("vault://kv/a#b".to_owned(), "your policy does not name it"),
        ("keyring://a/b".to_owned(), "your policy does not name it"),
    ] {
        let secrets = json!([{"name": "TOKEN", "ref": reference}]);
        let manifest = desk.capability("echo '{}'", &closed(), &secrets);
        let ran = desk.call(&manifest);
        assert_eq!(ran.code, 4, "{reference}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{reference}: {}", ran.stderr);
    }
    let secrets = json!([{"name": "TOKEN", "ref": format!("file://{file}")}]);
    let manifest = desk.capability("printf %s ${#TOKEN}", &closed(), &secrets);
    desk.done(&["grant", PACKAGE, "--read", &file]);
    assert_eq!(desk.call(&manifest).json(), json!(CANARY.len()));
}

#[test]
fn a_secret_has_an_owner_and_a_name_that_make_sense() {
    let desk = Desk::new();
    let long = "x".repeat(257);
    for (package, name, words) in [
        ("", "X", "write the dialect and the id"),
        ("mcpkg:", "X", "the id of a package has 1 to 506 characters"),
        ("mcpkg:a\u{7}", "X", "all of which can be seen"),
        (PACKAGE, "", "the name of a secret has 1 to 256 characters"),
        (PACKAGE, "A B", "neither a blank nor `=`"),
        (PACKAGE, "A\u{1}", "all of which can be seen"),
        (PACKAGE, &long, "has 1 to 256 characters"),
        (PACKAGE, "A=hunter2", "hint: the value is no argument"),
    ] {
        for verb in ["set", "rm"] {
            let ran = desk.run(&["secret", verb, package, name], Some(b"value"));
            assert_eq!(ran.code, 2, "{verb} {package:?} {name:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(words), "{verb} {package:?} {name:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
        }
    }
    assert_eq!(desk.done(&["secret", "list"]).stdout, "");
}

#[test]
fn a_value_among_the_arguments_is_refused_and_not_repeated() {
    let desk = Desk::new();
    for more in [&["hunter2"][..], &["-zhunter2"], &["--hunter2"], &["a", "hunter2"]] {
        for json in [&["--json"][..], &[]] {
            let ran = desk.run(&[json, &["secret", "set", PACKAGE, "TOKEN"], more].concat(), None);
            assert_eq!(ran.code, 2, "{more:?}: {}", ran.stderr);
            let told = ran.stdout + &ran.stderr;
            assert!(told.contains("it is asked for, or read from standard input"), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
    // Another verb repeats what it does not know.
    let other = desk.run(&["secret", "list", "more"], None);
    assert!(other.code == 2 && other.stderr.contains("more"), "{}", other.stderr);
}

#[test]
fn a_value_that_is_no_text_is_refused() {
    let desk = Desk::new();
    let ran = desk.run(&["secret", "set", PACKAGE, "TOKEN"], Some(b"\xff"));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("the value is no UTF-8 text"), "{}", ran.stderr);
}

#[test]
fn a_value_that_is_too_short_to_be_hidden_is_told_of() {
    let desk = Desk::new();
    let set = |value: &[u8]| {
        let ran = desk.run(&["secret", "set", "haft:vault", "TOKEN"], Some(value));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    };
    let words = "warning: the value has fewer than 4 bytes: in results and errors it is hidden only where it is the whole text\n";
    assert!(set(b"abc\n").contains(words), "{}", set(b"abc\n"));
    assert!(!set(b"abcd\n").contains("warning"));
}
