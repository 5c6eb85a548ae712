use serde_json::{Value, json};

use super::capability::sample;
use super::read;
use crate::diff::{Change, Class, diff, diff_sets};

fn entry(id: &str, version: &str) -> Value {
    let mut entry = sample(version);
    entry["id"] = json!(id);
    entry
}

fn compared(old: &[Value], new: &[Value]) -> Vec<(Class, String)> {
    let catalog = |entries: &[Value]| read(&json!({"capabilities": entries}));
    let changes = diff_sets(&catalog(old), &catalog(new));
    changes.into_iter().map(|Change { class, subject, .. }| (class, subject)).collect()
}

#[test]
fn entries_are_matched_by_id() {
    let (a, b, c) = (entry("a", "1.0.0"), entry("b", "1.0.0"), entry("c", "1.0.0"));
    assert_eq!(compared(&[a.clone(), b.clone()], &[b.clone(), a.clone()]), []);
    assert_eq!(
        compared(&[a, b.clone()], &[c, b]),
        [(Class::Breaking, "package a".into()), (Class::NeedsReview, "package c".into())]
    );
}

#[test]
fn an_entry_that_changed_under_its_version_breaks_and_its_neighbours_do_not() {
    let mut changed = entry("a", "1.0.0");
    changed["trust_level"] = json!("untrusted");
    let (a, b) = (entry("a", "1.0.0"), entry("b", "1.0.0"));
    assert_eq!(
        compared(&[a, b.clone()], &[changed, b]),
        [(Class::Breaking, "a: version".into()), (Class::Additive, "a: trust".into())]
    );
}

#[test]
fn an_entry_of_a_new_version_is_compared_field_by_field() {
    let mut next = entry("a", "1.1.0");
    next["permissions"]["network_allowlist"] = json!(["a.test", "b.test"]);
    assert_eq!(
        compared(&[entry("a", "1.0.0")], &[next]),
        [(Class::NeedsReview, "a: host b.test".into()), (Class::Cosmetic, "a: version".into())]
    );
}

#[test]
fn another_dialect_is_another_contract() {
    let tools = json!({"tools": [{"name": "a", "command": ["./tools/bin/a"]}]});
    let (old, new) = (read(&sample("1.0.0")).remove(0), read(&tools).remove(0));
    let changes = diff(&old, &new);
    let dialect = changes.iter().find(|change| change.subject == "dialect").unwrap();
    assert_eq!(dialect.class, Class::Breaking);
    assert_eq!(dialect.message, "the dialect was `capability` and is now `agentcli`");
    // Two packages that are not the same have no version in common.
    assert!(changes.iter().all(|change| !change.message.contains("under the same version")));
}

#[test]
fn changes_come_worst_first_and_then_by_subject() {
    let mut next = entry("a", "1.1.0");
    next["description"] = json!("Other words.");
    next["enabled"] = json!(false);
    next["permissions"]["network_allowlist"] = json!(["z.test", "b.test"]);
    let changes = diff(&read(&entry("a", "1.0.0"))[0], &read(&next)[0]);
    let told: Vec<_> = changes.iter().map(|it| (it.class, it.subject.as_str())).collect();
    assert_eq!(
        told,
        [
            (Class::Breaking, "enabled"),
            (Class::NeedsReview, "host b.test"),
            (Class::NeedsReview, "host z.test"),
            (Class::Additive, "host a.test"),
            (Class::Cosmetic, "description"),
            (Class::Cosmetic, "version"),
        ]
    );
    assert_eq!(changes[0].pointer.as_ref().unwrap().as_str(), "/enabled");
    assert_eq!(changes[4].pointer.as_ref().unwrap().as_str(), "/description");
}

#[test]
fn classes_have_stable_names() {
    let names = Class::ALL.map(Class::name);
    assert_eq!(names, ["breaking", "needs-review", "additive", "cosmetic"]);
    for class in Class::ALL {
        assert_eq!(serde_json::to_value(class).unwrap(), class.name());
    }
}
