//! What shows that the tool works, and how the owner gets rid of it.

use serde_json::Value;

use super::Class;
use super::changes::Changes;
use super::words::{both, gained, listed, quoted};
use crate::concept::Concept;
use crate::model::Json;

/// A smoke test may ask for more; one that asks for something else is put before the owner.
pub(super) fn smoke(changes: &mut Changes, old: Option<&Json>, new: Option<&Json>) {
    let mut topic = changes.about("smoke test");
    let (before, after) = match (old, new) {
        (Some(old), Some(new)) => (old.value(), new.value()),
        (Some(old), None) => {
            return topic.removed(Class::NeedsReview, Concept::Smoke, old.text());
        }
        (None, Some(new)) => return topic.added(Class::Additive, Concept::Smoke, new.text()),
        (None, None) => return,
    };
    if before == after {
        return;
    }
    let success = |smoke: &Value| smoke.get("success").cloned().unwrap_or(Value::Null);
    let rest = |smoke: &Value| {
        let mut rest = smoke.as_object().cloned().unwrap_or_default();
        rest.shift_remove("success");
        rest.shift_remove("timeout_seconds");
        rest
    };
    let (was, is) = (success(&before), success(&after));
    let (class, what) = if rest(&before) != rest(&after) {
        (Class::NeedsReview, "tries something else")
    } else if !holds_all(&was, &is) {
        (Class::NeedsReview, "no longer asks for all it did")
    } else if was != is {
        (Class::Additive, "asks for more")
    } else {
        (Class::Cosmetic, "has another time limit")
    };
    let (before, after) = both(&before.to_string(), &after.to_string());
    topic.tell(class, Concept::Smoke, format!("{what}: was {before} and is now {after}"));
}

/// Whether everything in the first value is in the second, unchanged.
fn holds_all(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.iter().all(|(key, value)| new.get(key).is_some_and(|other| holds_all(value, other)))
        }
        (Value::Null, _) => true,
        _ => old == new,
    }
}

/// Fewer tests show less.
pub(super) fn tests(changes: &mut Changes, old: &[String], new: &[String]) {
    let mut topic = changes.about("package tests");
    let (more, less) = (gained(old, new), gained(new, old));
    if !less.is_empty() {
        let message = format!("{} is gone", listed(less));
        topic.tell(Class::NeedsReview, Concept::Tests, message);
    }
    if !more.is_empty() {
        topic.tell(Class::Additive, Concept::Tests, format!("{} is new", listed(more)));
    }
}

/// How the tool is revoked: a secret may go where it says, a command may run as it says.
pub(super) fn kill_switch(changes: &mut Changes, old: Option<&Json>, new: Option<&Json>) {
    if old.map(Json::value) == new.map(Json::value) {
        return;
    }
    let strength = |switch: Option<&Json>| {
        let value = switch.map(Json::value);
        match value.as_ref().and_then(|value| value["kind"].as_str()) {
            Some("url" | "shell") => 2,
            Some("manual") => 1,
            _ => 0,
        }
    };
    let (was, is) = (strength(old), strength(new));
    let (class, what) = match is.cmp(&was) {
        std::cmp::Ordering::Less => (Class::NeedsReview, "is weaker"),
        std::cmp::Ordering::Greater if is == 1 => (Class::Additive, "is stronger"),
        std::cmp::Ordering::Greater => (Class::NeedsReview, "is stronger, and acts by itself"),
        std::cmp::Ordering::Equal => (Class::NeedsReview, "is another"),
    };
    let show = |switch: Option<&Json>| quoted(switch.map_or("nothing", Json::text));
    let (before, after) = match (old, new) {
        (Some(old), Some(new)) => both(old.text(), new.text()),
        _ => (show(old), show(new)),
    };
    let message = format!("{what}: was {before} and is now {after}");
    changes.about("kill switch").tell(class, Concept::KillSwitch, message);
}

/// Which way a promised figure gets better.
#[derive(Clone, Copy)]
enum Better {
    Higher,
    Lower,
}

/// The figures an author stands by.
const FIGURES: [(&str, &str, Better); 5] = [
    ("suite", "pass_threshold", Better::Higher),
    ("suite", "case_count", Better::Higher),
    ("sla", "p50_latency_ms", Better::Lower),
    ("sla", "p95_latency_ms", Better::Lower),
    ("sla", "error_rate_max", Better::Lower),
];

/// What the author promises over time: a weaker promise is put before the owner.
pub(super) fn verify(changes: &mut Changes, old: Option<&Json>, new: Option<&Json>) {
    let mut topic = changes.about("verification");
    let (mut before, mut after) = match (old, new) {
        (Some(old), Some(new)) => (old.value(), new.value()),
        (Some(old), None) => {
            return topic.removed(Class::NeedsReview, Concept::Verify, old.text());
        }
        (None, Some(new)) => return topic.added(Class::Additive, Concept::Verify, new.text()),
        (None, None) => return,
    };
    for (part, key, better) in FIGURES {
        let (was, is) = (take(&mut before, part, key), take(&mut after, part, key));
        let is_weaker = match (was, is, better) {
            (Some(was), Some(is), Better::Higher) => is < was,
            (Some(was), Some(is), Better::Lower) => is > was,
            (was, is, _) => was.is_some() && is.is_none(),
        };
        if was != is {
            let class = if is_weaker { Class::NeedsReview } else { Class::Additive };
            let show = |figure: Option<f64>| {
                figure.map_or("undeclared".to_owned(), |figure| format!("`{figure}`"))
            };
            let message = format!("`{key}` was {} and is now {}", show(was), show(is));
            topic.tell(class, Concept::Verify, message);
        }
    }
    for part in ["suite", "schedule"] {
        let (class, message) = match (before.get(part), after.get(part)) {
            (Some(was), Some(is)) if was != is => {
                let (was, is) = both(&was.to_string(), &is.to_string());
                (Class::NeedsReview, format!("was {was} and is now {is}"))
            }
            (Some(was), None) => {
                (Class::NeedsReview, format!("{} is gone", quoted(&was.to_string())))
            }
            (None, Some(is)) => (Class::Additive, format!("{} is new", quoted(&is.to_string()))),
            (Some(_), Some(_)) | (None, None) => continue,
        };
        topic.tell(class, Concept::Verify, format!("the {part} {message}"));
    }
}

/// Takes a figure out, so that what is left can be compared as a whole.
fn take(verify: &mut Value, part: &str, key: &str) -> Option<f64> {
    verify.get_mut(part)?.as_object_mut()?.shift_remove(key)?.as_f64()
}
