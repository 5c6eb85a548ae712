use serde_json::{Value, json};

use super::Edit::{Remove, Set};
use super::{check_basics, check_nothing_goes_unseen, check_rows};
use crate::diff::Class::{Additive, Breaking, Cosmetic, NeedsReview};

fn sample(version: &str) -> Value {
    json!({
        "id": "tool:text.slug", "name": "text.slug", "version": version, "summary": "Makes slugs",
        "description": "From titles.", "tags": ["text"], "provider": "acme",
        "entry": {"runtime": "node", "main": "dist/index.js", "export": "tool"},
        "schema": {"input": {"type": "object"}, "output": {"type": "object"}},
        "requiresApproval": true, "requiredSecrets": ["key"]
    })
}

#[test]
fn nothing_but_the_version_changes_nothing() {
    check_basics(&sample("1.0.0"), &sample("1.1.0"));
}

#[test]
fn every_value_that_may_change_is_looked_at() {
    check_nothing_goes_unseen(&sample("1.0.0"), &sample("1.1.0"), &[]);
}

#[test]
fn each_field_is_classed() {
    check_rows(
        &sample("1.0.0"),
        &sample("1.1.0"),
        vec![
            ("/id", Set(json!("tool:text.other")), Breaking, "id"),
            // The name is what is called.
            ("/name", Set(json!("text.slugs")), Breaking, "action text.slug"),
            ("/summary", Set(json!("Slugs")), Cosmetic, "summary"),
            ("/provider", Set(json!("evil")), NeedsReview, "publisher"),
            ("/entry/main", Set(json!("dist/other.js")), NeedsReview, "implementation node"),
            ("/entry/export", Remove, NeedsReview, "implementation node"),
            ("/requiresApproval", Set(json!(false)), NeedsReview, "action text.slug"),
            ("/requiresApproval", Remove, NeedsReview, "action text.slug"),
            ("/requiredSecrets/-", Set(json!("other")), Breaking, "secret other"),
            ("/requiredSecrets/0", Remove, Additive, "secret key"),
            ("/schema/input", Remove, NeedsReview, "input schema of text.slug"),
            ("/schema/output", Remove, Breaking, "output schema of text.slug"),
        ],
    );
    let mut silent = sample("1.0.0");
    silent["requiresApproval"] = json!(false);
    check_rows(
        &silent,
        &sample("1.1.0"),
        vec![("/requiresApproval", Set(json!(true)), Additive, "action text.slug")],
    );
}

#[test]
fn one_change_is_told_once() {
    let changes = super::beside_version(
        &super::read(&sample("1.0.0"))[0],
        &super::read(&super::edited(&sample("1.1.0"), "/description", Set(json!("Of titles."))))[0],
    );
    assert_eq!(changes.len(), 1, "{changes:#?}");
    assert_eq!(
        changes[0].message,
        "the description was `From titles.` and is now `Of titles.`; agents read it"
    );
}

#[test]
fn other_files_under_a_new_version_need_review() {
    let bundle = |version: &str, code: &str| {
        let document = serde_json::json!({
            "manifest": {"id": "tool:a", "name": "a", "version": version, "summary": "s", "entry": {"runtime": "node", "main": "i.js"}},
            "files": [{"path": "i.js", "content": code}],
        });
        super::read(&document).remove(0)
    };
    let changes = crate::diff::diff(&bundle("1.0.0", "1"), &bundle("1.0.1", "2"));
    assert!(!crate::diff::is_upgrade_safe(&changes), "{changes:?}");
    let same = crate::diff::diff(&bundle("1.0.0", "1"), &bundle("1.0.1", "1"));
    assert!(crate::diff::is_upgrade_safe(&same), "{same:?}");
}
