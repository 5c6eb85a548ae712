//! Which private data the tool reads, sends away and keeps.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Class;
use super::changes::Changes;
use super::words::{listed, quoted};
use crate::concept::Concept;
use crate::model::Json;

/// How long a recipient keeps data, shortest first; what is not known is longest.
const RETENTION: [&str; 6] = [
    "none-per-vendor-tos",
    "session-only",
    "persistent-30d",
    "persistent-90d",
    "persistent-indefinite",
    "unknown",
];

const SENSITIVITY: [&str; 3] = ["low", "medium", "high"];

/// Compares the boundaries: more data, further or longer, is put before the owner.
pub(super) fn compare(changes: &mut Changes, old: Option<&Json>, new: Option<&Json>) {
    if old.map(Json::value) == new.map(Json::value) {
        return;
    }
    let (before, after) = match (old, new) {
        (Some(old), None) => {
            let message = format!("was {} and is not declared any more", quoted(old.text()));
            return tell(changes, "data boundary", Class::NeedsReview, message);
        }
        (old, new) => {
            let value = |json: Option<&Json>| json.map_or(Value::Null, Json::value);
            (value(old), value(new))
        }
    };
    if old.is_none() {
        tell(changes, "data boundary", Class::Additive, "is declared now".to_owned());
    }
    reads(changes, &before, &after);
    transmits(changes, &before, &after);
    persists(changes, &before, &after);
    retention(changes, &before, &after);
}

/// What goes to one recipient.
#[derive(Default, PartialEq)]
struct Transfer {
    fields: BTreeSet<String>,
    purposes: BTreeSet<String>,
    constraints: BTreeSet<String>,
    terms: BTreeSet<String>,
    retention: usize,
}

fn tell(changes: &mut Changes, subject: &str, class: Class, message: String) {
    changes.about(subject).tell(class, Concept::DataBoundary, message);
}

fn reads(changes: &mut Changes, old: &Value, new: &Value) {
    let (before, after) = (sensitivities(old), sensitivities(new));
    for (resource, is) in &after {
        let subject = format!("data read from {resource}");
        let level = quoted(SENSITIVITY[*is]);
        match before.get(resource) {
            Some(was) if was == is => {}
            Some(was) => {
                let class = if is > was { Class::NeedsReview } else { Class::Additive };
                let was = quoted(SENSITIVITY[*was]);
                let message = format!("its sensitivity was {was} and is now {level}");
                tell(changes, &subject, class, message);
            }
            None => {
                let message = format!("is new, of sensitivity {level}");
                tell(changes, &subject, Class::NeedsReview, message);
            }
        }
    }
    for resource in before.keys().filter(|resource| !after.contains_key(*resource)) {
        let subject = format!("data read from {resource}");
        tell(changes, &subject, Class::Additive, "is read no more".to_owned());
    }
}

fn transmits(changes: &mut Changes, old: &Value, new: &Value) {
    let (before, after) = (transfers(old), transfers(new));
    for (recipient, is) in &after {
        let subject = format!("data sent to {recipient}");
        let Some(was) = before.get(recipient) else {
            let fields = listed(is.fields.iter().map(String::as_str));
            tell(changes, &subject, Class::NeedsReview, format!("is new: {fields}"));
            continue;
        };
        sets(changes, &subject, "the fields", &was.fields, &is.fields, Class::NeedsReview);
        sets(changes, &subject, "the purposes", &was.purposes, &is.purposes, Class::NeedsReview);
        sets(changes, &subject, "the terms", &was.terms, &is.terms, Class::Cosmetic);
        // Each constraint holds the tool back, so that losing one is the growth.
        for lost in was.constraints.difference(&is.constraints) {
            let message = format!("no longer refuses {}", quoted(lost));
            tell(changes, &subject, Class::NeedsReview, message);
        }
        for gained in is.constraints.difference(&was.constraints) {
            let message = format!("now refuses {}", quoted(gained));
            tell(changes, &subject, Class::Additive, message);
        }
        if was.retention != is.retention {
            let is_longer = is.retention > was.retention;
            let class = if is_longer { Class::NeedsReview } else { Class::Additive };
            let (was, is) = (RETENTION[was.retention], RETENTION[is.retention]);
            tell(changes, &subject, class, format!("was kept `{was}` and is now kept `{is}`"));
        }
    }
    for recipient in before.keys().filter(|recipient| !after.contains_key(*recipient)) {
        let subject = format!("data sent to {recipient}");
        tell(changes, &subject, Class::Additive, "is sent no more".to_owned());
    }
}

fn persists(changes: &mut Changes, old: &Value, new: &Value) {
    let (before, after) = (kept(old), kept(new));
    let nothing = BTreeSet::new();
    let places: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for place in places {
        let fields =
            |kept: &BTreeMap<String, BTreeSet<String>>| kept.get(place).unwrap_or(&nothing).clone();
        let subject = format!("data kept in {place}");
        let (was, is) = (fields(&before), fields(&after));
        sets(changes, &subject, "the fields", &was, &is, Class::NeedsReview);
    }
}

fn retention(changes: &mut Changes, old: &Value, new: &Value) {
    for key in ["tool_local_days", "tool_cloud_days", "transmit_log_days"] {
        let days = |boundary: &Value| boundary["retention"][key].as_f64();
        let (class, message) = match (days(old), days(new)) {
            (Some(was), Some(is)) if is > was => {
                (Class::NeedsReview, format!("`{key}` was raised from `{was}` to `{is}`"))
            }
            (Some(was), Some(is)) if is < was => {
                (Class::Additive, format!("`{key}` was lowered from `{was}` to `{is}`"))
            }
            (Some(was), None) => {
                (Class::NeedsReview, format!("`{key}` was `{was}` and is not said any more"))
            }
            (None, Some(is)) => (Class::Additive, format!("`{key}` is `{is}` now")),
            (Some(_), Some(_)) | (None, None) => continue,
        };
        tell(changes, "data retention", class, message);
    }
}

/// Tells what a set gained, in the class of growth, and what it lost.
fn sets(
    changes: &mut Changes,
    subject: &str,
    what: &str,
    old: &BTreeSet<String>,
    new: &BTreeSet<String>,
    growth: Class,
) {
    let more = listed(new.difference(old).map(String::as_str));
    if !more.is_empty() {
        tell(changes, subject, growth, format!("{what} {more} are new"));
    }
    let less = listed(old.difference(new).map(String::as_str));
    if !less.is_empty() {
        let class = growth.max(Class::Additive);
        tell(changes, subject, class, format!("{what} {less} are gone"));
    }
}

fn list<'v>(boundary: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    boundary[key].as_array().into_iter().flatten()
}

fn text(entry: &Value, key: &str) -> Option<String> {
    entry[key].as_str().map(str::to_owned)
}

fn fields(entry: &Value) -> impl Iterator<Item = String> {
    list(entry, "fields").filter_map(Value::as_str).map(str::to_owned)
}

/// The place of a word in an order; a word that is not in it is the worst.
fn rank(order: &[&str], word: Option<&str>) -> usize {
    order.iter().position(|known| Some(*known) == word).unwrap_or(order.len() - 1)
}

fn sensitivities(boundary: &Value) -> BTreeMap<String, usize> {
    let mut levels: BTreeMap<String, usize> = BTreeMap::new();
    for entry in list(boundary, "reads") {
        let level = levels.entry(text(entry, "resource").unwrap_or_default()).or_default();
        *level = rank(&SENSITIVITY, entry["sensitivity"].as_str()).max(*level);
    }
    levels
}

fn transfers(boundary: &Value) -> BTreeMap<String, Transfer> {
    let mut transfers: BTreeMap<String, Transfer> = BTreeMap::new();
    for entry in list(boundary, "transmits") {
        let recipient = text(entry, "to").unwrap_or_else(|| "whoever the agent names".to_owned());
        let transfer = transfers.entry(recipient).or_default();
        transfer.fields.extend(fields(entry));
        transfer.purposes.extend(text(entry, "purpose"));
        transfer.constraints.extend(text(entry, "to_constraint"));
        transfer.terms.extend(text(entry, "vendor_tos_url"));
        let retention = rank(&RETENTION, entry["third_party_retention"].as_str());
        transfer.retention = retention.max(transfer.retention);
    }
    transfers
}

fn kept(boundary: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let mut kept: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in list(boundary, "persists") {
        kept.entry(text(entry, "where").unwrap_or_default()).or_default().extend(fields(entry));
    }
    kept
}
