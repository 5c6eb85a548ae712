//! Limits of numbers, lengths and counts, and the grammar of texts.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::Effect;
use super::values::whole;
use super::walk::Walk;
use crate::diff::words::{both, quoted};
use crate::json::Pointer;

/// Which end of a range a limit stands at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lower,
    Upper,
}

/// Limits of lengths and counts.
const COUNTS: [(&str, End); 6] = [
    ("minLength", End::Lower),
    ("maxLength", End::Upper),
    ("minItems", End::Lower),
    ("maxItems", End::Upper),
    ("minProperties", End::Lower),
    ("maxProperties", End::Upper),
];

/// Compares every limit of a schema.
pub(super) fn compare(
    walk: &mut Walk<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    at: &Pointer,
) {
    for (end, noun) in [(End::Lower, "the least value"), (End::Upper, "the greatest value")] {
        limit(walk, noun, end, (tightest(old, end), tightest(new, end)), at);
    }
    for (keyword, end) in COUNTS {
        let count = |schema: &Map<String, Value>| {
            let value = schema.get(keyword)?.as_number()?.clone();
            // At least none is no limit.
            let is_idle = end == End::Lower && whole(&value) == Some(0);
            (!is_idle).then_some(Limit { value, is_open: false })
        };
        limit(walk, &format!("`{keyword}`"), end, (count(old), count(new)), at);
    }
    for keyword in ["pattern", "format"] {
        text(walk, keyword, old.get(keyword), new.get(keyword), at);
    }
    multiple(walk, old.get("multipleOf"), new.get("multipleOf"), at);
    let unique =
        |schema: &Map<String, Value>| schema.get("uniqueItems") == Some(&Value::Bool(true));
    match (unique(old), unique(new)) {
        (false, true) => walk.tell(Effect::Narrowed, at, "elements must differ now"),
        (true, false) => walk.tell(Effect::Widened, at, "elements may be alike now"),
        (true, true) | (false, false) => {}
    }
}

/// A limit; an open one is not itself within the range.
#[derive(Clone)]
struct Limit {
    value: Number,
    is_open: bool,
}

impl Limit {
    /// Which of two limits at that end leaves less room.
    fn tightness(&self, other: &Limit, end: End) -> Ordering {
        let by_value = order(&self.value, &other.value);
        let by_value = if end == End::Lower { by_value } else { by_value.reverse() };
        by_value.then(self.is_open.cmp(&other.is_open))
    }

    fn words(&self) -> String {
        let except = if self.is_open { ", itself excluded" } else { "" };
        format!("`{}`{except}", self.value)
    }
}

fn order(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
    }
}

fn tightest(schema: &Map<String, Value>, end: End) -> Option<Limit> {
    let (closed, open) = match end {
        End::Lower => ("minimum", "exclusiveMinimum"),
        End::Upper => ("maximum", "exclusiveMaximum"),
    };
    let read = |keyword: &str, is_open| {
        let value = schema.get(keyword)?.as_number()?.clone();
        Some(Limit { value, is_open })
    };
    let limits = [read(closed, false), read(open, true)];
    limits.into_iter().flatten().max_by(|a, b| a.tightness(b, end))
}

fn limit(
    walk: &mut Walk<'_>,
    noun: &str,
    end: End,
    (old, new): (Option<Limit>, Option<Limit>),
    at: &Pointer,
) {
    let (effect, message) = match (old, new) {
        (Some(was), Some(is)) => {
            let effect = match is.tightness(&was, end) {
                Ordering::Greater => Effect::Narrowed,
                Ordering::Less => Effect::Widened,
                Ordering::Equal => return,
            };
            (effect, format!("{noun} was {} and is now {}", was.words(), is.words()))
        }
        (None, Some(is)) => (Effect::Narrowed, format!("{noun} is {} now", is.words())),
        (Some(was), None) => (Effect::Widened, format!("{noun} was {} and is gone", was.words())),
        (None, None) => return,
    };
    walk.tell(effect, at, message);
}

/// One pattern or format cannot be held against another: some text is lost.
fn text(
    walk: &mut Walk<'_>,
    keyword: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    at: &Pointer,
) {
    let show = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (effect, message) = match (old, new) {
        (Some(was), Some(is)) if was != is => {
            let (was, is) = both(&show(was), &show(is));
            (Effect::Moved, format!("was {was} and is now {is}"))
        }
        (None, Some(is)) => (Effect::Narrowed, format!("is {} now", quoted(&show(is)))),
        (Some(was), None) => (Effect::Widened, format!("was {} and is gone", quoted(&show(was)))),
        (Some(_), Some(_)) | (None, None) => return,
    };
    walk.tell(effect, at, format!("`{keyword}` {message}"));
}

fn multiple(walk: &mut Walk<'_>, old: Option<&Value>, new: Option<&Value>, at: &Pointer) {
    let number = |value: Option<&Value>| value.and_then(Value::as_number).cloned();
    let (effect, message) = match (number(old), number(new)) {
        (Some(was), Some(is)) => {
            let effect = match (whole(&was), whole(&is)) {
                _ if order(&was, &is) == Ordering::Equal => return,
                (Some(was), Some(is)) if was != 0 && is % was == 0 => Effect::Narrowed,
                (Some(was), Some(is)) if is != 0 && was % is == 0 => Effect::Widened,
                _ => Effect::Moved,
            };
            (effect, format!("was `{was}` and is now `{is}`"))
        }
        (None, Some(is)) => (Effect::Narrowed, format!("is `{is}` now")),
        (Some(was), None) => (Effect::Widened, format!("was `{was}` and is gone")),
        (None, None) => return,
    };
    walk.tell(effect, at, format!("`multipleOf` {message}"));
}
