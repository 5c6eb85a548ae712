//! Packages, secrets and actions that nobody knows: what is said of them is kept, and told of.

use serde_json::json;

use crate::desk::{Desk, PACKAGE, closed};

const UNSEEN: &str = "is known here";

#[test]
fn a_package_that_nobody_has_seen_is_told_of_by_every_verb_that_takes_one() {
    let desk = Desk::new();
    let learned = desk.done(&["grant", "--learn", PACKAGE]);
    assert!(learned.stderr.contains(UNSEEN), "{}", learned.stderr);
    let set = |package: &str| {
        let ran = desk.run(&["secret", "set", package, "TOKEN"], Some(b"value"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    };
    assert!(set(PACKAGE).contains(UNSEEN));
    assert!(!set("haft:vault").contains("warning"), "it is no package");
    let granted = desk.done(&["grant", PACKAGE, "--host", "x.example"]);
    assert!(granted.stderr.contains("Granted") && granted.stderr.contains(UNSEEN));
    for told in [
        desk.done(&["grant", PACKAGE, "--host", "x.example"]).stderr,
        desk.done(&["grant", "--learn", PACKAGE]).stderr,
        set(PACKAGE),
    ] {
        assert!(!told.contains("warning"), "it was granted something: {told}");
    }
    desk.done(&["ungrant", PACKAGE, "--all"]);
    assert!(set(PACKAGE).contains(UNSEEN), "it is not, once nothing is granted to it");
    desk.done(&["grant", PACKAGE, "--host", "x.example"]);
    let near =
        format!("warning: no package `capability:demo.tol` {UNSEEN}; did you mean `{PACKAGE}`?");
    for told in [
        desk.done(&["grant", "--learn", "capability:demo.tol"]).stderr,
        set("capability:demo.tol"),
        desk.done(&["grant", "capability:demo.tol", "--host", "x.example"]).stderr,
    ] {
        assert!(told.contains(&near), "{told}");
    }
}

#[test]
fn a_name_that_nobody_knows_is_told_with_the_one_that_may_be_meant() {
    let desk = Desk::new();
    desk.done(&["grant", PACKAGE, "--host", "x.example"]);
    let kept = desk.run(&["secret", "set", PACKAGE, "API_TOKEN"], Some(b"value"));
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    let near = format!("no package `capability:demo.tol` {UNSEEN}; did you mean `{PACKAGE}`?");
    let fails = |arguments: &[&str], hint: &str| {
        let ran = desk.run(arguments, None);
        assert_eq!(ran.code, 3, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("hint: {hint}\n")), "{arguments:?}: {}", ran.stderr);
    };
    fails(&["ungrant", "capability:demo.tol", "--host", "x.example"], &near);
    fails(
        &["ungrant", PACKAGE, "--host", "y.example"],
        "`haft grant capability:demo.tool` shows what is",
    );
    for told in [
        desk.done(&["ungrant", "capability:demo.tol", "--all"]).stderr,
        desk.done(&["audit", "--package", "capability:demo.tol"]).stderr,
    ] {
        assert!(told.contains(&format!("warning: {near}\n")), "{told}");
    }
    let told = desk.done(&["audit", "--package", PACKAGE]).stderr;
    assert_eq!(told, "no record fits\n", "it is known, and was not called");
    let meant = format!("did you mean `haft secret rm {PACKAGE} API_TOKEN`?");
    fails(&["secret", "rm", PACKAGE, "API_TOKNE"], &meant);
    fails(&["secret", "rm", "capability:demo.tol", "API_TOKEN"], &meant);
    let other = desk.run(&["secret", "rm", PACKAGE, "SOMETHING"], None);
    assert!(!other.stderr.contains("did you mean"), "{}", other.stderr);
}

#[test]
fn a_name_that_the_package_does_not_have_is_kept_and_told_of() {
    let desk = Desk::new();
    let secrets = json!([{"name": "TOKEN", "ref": "secret://KEPT_AS"}]);
    let manifest = desk.capability("echo '{}'", &closed(), &secrets);
    let set = |name: &str| {
        let ran = desk.run(&["secret", "set", PACKAGE, name], Some(b"value"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    };
    assert!(!set("KEPT_AS").contains("declares"), "nobody knows yet what it declares");
    assert_eq!(desk.call(&manifest).code, 0);
    assert!(!set("KEPT_AS").contains("warning"));
    let told = set("KEPT_A");
    let words = format!("warning: {PACKAGE} declares no secret `KEPT_A`; did you mean `KEPT_AS`?");
    assert!(told.contains(&words), "{told}");
    let always = |action: &str| desk.done(&["approve", "always", PACKAGE, action]).stderr;
    assert!(!always("demo.tool").contains("warning"));
    let told = always("demo.tol");
    let words = format!("warning: {PACKAGE} has no action `demo.tol`; did you mean `demo.tool`?");
    assert!(told.contains(&words), "{told}");
    // What is not there any more, or is no package any more, says nothing.
    std::fs::write(&manifest, "no manifest").unwrap();
    assert!(!always("demo.tol").contains("warning"));
}

#[test]
fn a_name_without_its_dialect_is_told_with_the_packages_that_have_it() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    let verbs: [&[&str]; 7] = [
        &["grant", "demo.tool", "--env", "X"],
        &["grant", "--learn", "demo.tool"],
        &["ungrant", "demo.tool", "--all"],
        &["approve", "always", "demo.tool", "demo.tool"],
        &["secret", "rm", "demo.tool", "X"],
        &["audit", "--package", "demo.tool"],
        &["logout", "demo.tool"],
    ];
    let told = |hints: &str| {
        for verb in verbs {
            let ran = desk.run(verb, None);
            let error =
                format!("error: `demo.tool` is not installed, and its dialect is missing\n{hints}");
            assert_eq!((ran.code, ran.stderr), (2, error), "{verb:?}");
        }
    };
    told(
        "hint: write it in front, such as `mcpkg:demo.tool`\nhint: `haft call … --explain` shows the whole name\n",
    );
    assert_eq!(desk.call(&manifest).code, 0);
    told(&format!("hint: did you mean `{PACKAGE}`?\n"));
    assert_eq!(desk.done(&["grant", PACKAGE]).stdout, "");
}

#[test]
fn a_rule_that_no_call_fits_is_told_and_one_said_twice_is_one() {
    let desk = Desk::new();
    let (id, from) = ("install-manifest:word-count", "examples/install-manifest/word-count");
    desk.done(&["call", "--from", from, "count", "{\"text\":\"a\"}"]);
    let always = |pattern: &str| desk.done(&["approve", "always", id, "count", pattern]).stderr;
    for (pattern, words) in [
        (r#"{"txt":"*"}"#, "takes no `txt`; did you mean `text`?"),
        (r#"={"text":"a","more":1}"#, "takes no `more`"),
        (r#"{"text":3}"#, "takes string as `text`"),
    ] {
        let (told, words) = (always(pattern), format!("no call fits this: `count` {words}\n"));
        assert!(told.contains(&words), "{pattern}: {told}");
    }
    for pattern in ["{}", r#"{"text":"*"}"#, r#"={"text":"a"}"#] {
        let told = [always(pattern), always(pattern)];
        assert!(!told[0].contains("warning") && told[0] == told[1], "{told:?}");
    }
    assert_eq!(desk.done(&["approve", "rules"]).stdout.lines().count(), 6);
}

#[test]
fn what_a_package_says_is_known_from_its_first_call_on_and_binds_nothing() {
    let desk = Desk::new();
    let (id, from) = ("install-manifest:word-count", "examples/install-manifest/word-count");
    let call = |from: &str| desk.done(&["call", "--from", from, "count", "{\"text\":\"a\"}"]);
    call(from);
    // Nothing is kept for it, so it may be called from anywhere.
    let folder = crate::common::repository().join(from);
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        desk.write(&format!("copy/{}", entry.file_name().to_str().unwrap()), &text);
    }
    call(desk.home().with_file_name("copy").to_str().unwrap());
    call(from);
    assert_eq!(desk.done(&["grant", id]).stdout, "");
    let told = desk.done(&["approve", "always", id, "cuont"]).stderr;
    let words = format!("warning: {id} has no action `cuont`; did you mean `count`?");
    assert!(told.contains(&words), "{told}");
    assert!(!desk.done(&["approve", "always", id, "count"]).stderr.contains("warning"));
}

#[test]
fn a_secret_that_only_the_hook_of_a_tool_knows_is_no_misspelt_one() {
    let desk = Desk::new();
    let (id, from) = ("jumith:tool:demo.hook", desk.write("hook/tool.json", HOOKED));
    desk.write(
        "hook/index.mjs",
        "export const tool = { requiredSecrets: () => ['OTHER'], execute: () => ({}) };\n",
    );
    let set = |name: &str| desk.run(&["secret", "set", id, name], Some(b"value")).stderr;
    assert_eq!(desk.run(&["call", "--from", &from], None).code, 2, "it needs both");
    set("DECLARED");
    set("OTHER");
    desk.done(&["call", "--from", &from]);
    assert_eq!(set("OTHER"), format!("Kept `OTHER` of `{id}`\n"));
    let near = format!("warning: {id} declares no secret `DECLARD`; did you mean `DECLARED`?");
    assert!(set("DECLARD").contains(&near));
}

const HOOKED: &str = r#"{"id": "tool:demo.hook", "name": "demo.hook", "version": "1.0.0",
    "summary": "A test", "description": "A test", "tags": [], "provider": "tests",
    "requiredSecrets": ["DECLARED"], "entry": {"runtime": "node", "main": "index.mjs"}}"#;
