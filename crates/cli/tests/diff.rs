//! `haft diff`: what changed, and whether the owner must be asked.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{haft, repository, run_in};

const OLD: &str = "examples/install-manifest/word-count/manifest.json";

/// The diff of the example against an edited copy of it.
fn diff(edit: impl Fn(&mut serde_json::Value), more: &[&str]) -> common::Ran {
    let folder = tempfile::tempdir().unwrap();
    let old = repository().join(OLD);
    let mut document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&old).unwrap()).unwrap();
    edit(&mut document);
    let new = folder.path().join("new.json");
    std::fs::write(&new, document.to_string()).unwrap();
    let mut arguments = vec!["diff", old.to_str().unwrap(), new.to_str().unwrap()];
    arguments.extend(more);
    run_in(folder.path(), &arguments, None)
}

#[test]
fn a_package_does_not_differ_from_itself() {
    let ran = haft(&["diff", OLD, OLD, "--upgrade-safe"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", "no changes\n"));
}

#[test]
fn a_changed_body_under_the_same_version_is_breaking() {
    let ran = diff(|document| document["tool"]["summary"] = "Other words.".into(), &[]);
    assert_eq!(ran.code, 0);
    assert!(
        ran.stdout.starts_with(
            "breaking      version: the body changed under the same version `1.2.0`\n"
        ),
        "{}",
        ran.stdout
    );
}

#[test]
fn growth_needs_review_and_upgrade_safe_says_so() {
    let grow = |document: &mut serde_json::Value| {
        document["tool"]["version"] = "1.3.0".into();
        document["scopes"] = serde_json::json!([{"resource": "net.outbound", "actions": ["send"], "rationale": "New."}]);
        document["cost"]["monthly_fee_cents"] = 500.into();
    };
    let ran = diff(grow, &["--upgrade-safe"]);
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    assert!(ran.stdout.contains("needs-review  scope net.outbound"), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("needs-review  cost: the monthly fee rose from `0 cents` to `500 cents`"),
        "{}",
        ran.stdout
    );
    assert_eq!(diff(grow, &[]).code, 0, "without the flag it only tells");
}

#[test]
fn a_cosmetic_release_is_upgrade_safe() {
    let ran = diff(
        |document| {
            document["tool"]["version"] = "1.2.1".into();
            document["tool"]["summary"] = "Other words.".into();
        },
        &["--upgrade-safe", "--json"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let json = ran.json();
    assert_eq!(json["upgrade_safe"], true);
    assert_eq!(json["counts"]["breaking"], 0);
    assert!(json["changes"].as_array().unwrap().iter().any(|change| change["class"] == "cosmetic"));
}

#[test]
fn a_removed_action_is_breaking() {
    let ran = diff(
        |document| {
            document["tool"]["version"] = "2.0.0".into();
            document["actions"].as_array_mut().unwrap().pop();
        },
        &["--json"],
    );
    assert!(ran.json()["counts"]["breaking"].as_u64().unwrap() >= 1, "{}", ran.stdout);
}

#[test]
fn a_companion_that_asks_for_more_needs_review() {
    let folder = tempfile::tempdir().unwrap();
    for (name, version, hosts) in
        [("old", "1.0.0", r#"["a.example"]"#), ("new", "1.1.0", r#"["a.example", "b.example"]"#)]
    {
        let package = folder.path().join(name);
        std::fs::create_dir(&package).unwrap();
        let manifest = format!(
            r#"{{"toolId": "a.b.c", "name": "n", "version": "{version}", "description": "d", "capabilities": [],
            "endpoint": {{"type": "local", "command": "true"}}, "input_schema": {{}}, "output_schema": {{}}}}"#
        );
        std::fs::write(package.join("manifest.json"), manifest).unwrap();
        std::fs::write(
            package.join("haft.json"),
            format!(r#"{{"haft": "1", "permissions": {{"network": {hosts}}}}}"#),
        )
        .unwrap();
    }
    let ran = run_in(folder.path(), &["diff", "old", "new", "--upgrade-safe"], None);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("b.example"), "{}", ran.stdout);
}
