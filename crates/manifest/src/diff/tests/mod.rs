mod agentcli;
mod capability;
mod install_manifest;
mod jumith;
mod mcpb;
mod mcpkg;
mod promises;
mod sets;

use serde_json::Value;

use super::{Change, Class, diff, is_upgrade_safe};
use crate::document::{self, Options};
use crate::model::Package;

/// What a valid document says.
fn read(document: &Value) -> Vec<Package> {
    try_read(document).unwrap_or_else(|report| panic!("{document}: {:#?}", report.findings))
}

fn try_read(document: &Value) -> Result<Vec<Package>, document::Report> {
    let options = Options { fallback_id: Some("demo"), ..Options::default() };
    document::read(document.to_string().as_bytes(), &options).map(|(_, packages)| packages)
}

/// What is done to one place of a document.
#[derive(Clone, Debug)]
enum Edit {
    /// The value there becomes this one; `-` at the end of a pointer appends to a list.
    Set(Value),
    /// The value there goes away.
    Remove,
}

/// The document after an edit.
fn edited(document: &Value, pointer: &str, edit: Edit) -> Value {
    let mut document = document.clone();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let last = last.replace("~1", "/");
    let parent = document.pointer_mut(parent).unwrap_or_else(|| panic!("no parent of {pointer}"));
    match (parent, edit) {
        (Value::Object(members), Edit::Set(value)) => {
            members.insert(last, value);
        }
        (Value::Object(members), Edit::Remove) => {
            members.shift_remove(&last).unwrap_or_else(|| panic!("nothing at {pointer}"));
        }
        (Value::Array(items), Edit::Set(value)) if last == "-" => items.push(value),
        (Value::Array(items), Edit::Set(value)) => items[last.parse::<usize>().unwrap()] = value,
        (Value::Array(items), Edit::Remove) => {
            items.remove(last.parse().unwrap());
        }
        (other, _) => panic!("{pointer} leads into {other}"),
    }
    document
}

/// One edit of a document, and the worst of what it must lead to.
type Row = (&'static str, Edit, Class, &'static str);

/// Makes each edit in a new version of the document, and looks at the worst change.
fn check_rows(old: &Value, new: &Value, rows: Vec<Row>) {
    let before = read(old);
    for (pointer, edit, class, subject) in rows {
        let after = read(&edited(new, pointer, edit.clone()));
        let changes = beside_version(&before[0], &after[0]);
        let worst = changes.first().map(|change| change.class);
        assert_eq!(worst, Some(class), "{pointer} {edit:?} {changes:#?}");
        let is_told = changes.iter().any(|it| (it.class, it.subject.as_str()) == (class, subject));
        assert!(is_told, "{pointer} {edit:?} says nothing of {subject}: {changes:#?}");
        assert_eq!(is_upgrade_safe(&changes), class > Class::NeedsReview);
    }
}

/// What changed but the version, which moved forward.
fn beside_version(old: &Package, new: &Package) -> Vec<Change> {
    let mut changes = diff(old, new);
    changes.retain(|change| change.subject != "version");
    changes
}

/// Changes each value of a document in turn; wherever it stays valid, something must be told.
fn check_nothing_goes_unseen(old: &Value, new: &Value, unseen: &[&str]) {
    let before = read(old);
    let mut tried = 0;
    for pointer in leaves(new) {
        let value = match new.pointer(&pointer).unwrap() {
            Value::String(text) => Value::from(format!("{text}x")),
            Value::Number(number) => Value::from(number.as_f64().unwrap() + 1.0),
            Value::Bool(flag) => Value::from(!flag),
            other => panic!("{other}"),
        };
        for edit in [Edit::Set(value), Edit::Remove] {
            let after = edited(new, &pointer, edit.clone());
            let Ok(after) = try_read(&after) else { continue };
            tried += 1;
            let is_told = !beside_version(&before[0], &after[0]).is_empty();
            let may_be_silent = unseen.iter().any(|prefix| pointer.starts_with(prefix));
            assert!(is_told || may_be_silent, "{pointer} {edit:?}");
        }
    }
    assert!(tried > 10, "only {tried} edits were valid");
}

fn leaves(value: &Value) -> Vec<String> {
    let beneath = |step: String, value: &Value| -> Vec<String> {
        leaves(value).into_iter().map(|rest| format!("/{step}{rest}")).collect()
    };
    match value {
        Value::Object(members) => {
            members.iter().flat_map(|(key, value)| beneath(key.replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(index, value)| beneath(index.to_string(), value))
            .collect(),
        _ => vec![String::new()],
    }
}

/// The most usual questions, asked of each dialect's sample.
fn check_basics(old: &Value, new: &Value) {
    let (before, after) = (read(old).remove(0), read(new).remove(0));
    assert_eq!(diff(&before, &before), []);
    assert_eq!(beside_version(&before, &after), []);
    assert!(is_upgrade_safe(&diff(&before, &after)));
}
