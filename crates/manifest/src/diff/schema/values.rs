//! Types and enumerated values, and when two values are the same.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::Effect;
use super::walk::Walk;
use crate::diff::words::listed;
use crate::json::Pointer;

/// Every type; `number` stands for those that are not whole.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Compares which types are accepted.
pub(super) fn types(
    walk: &mut Walk<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    at: &Pointer,
) {
    if old.get("type") == new.get("type") {
        return;
    }
    let (was, is) = (accepted(old), accepted(new));
    let effect = match (was.is_subset(&is), is.is_subset(&was)) {
        (true, true) => return,
        (true, false) => Effect::Widened,
        (false, true) => Effect::Narrowed,
        (false, false) => Effect::Moved,
    };
    let message = format!("the type was {} and is now {}", type_words(&was), type_words(&is));
    walk.tell(effect, at, message);
}

/// The types a schema accepts: those it names, else those of its enumerated values.
fn accepted(schema: &Map<String, Value>) -> BTreeSet<&'static str> {
    let known = |name: &str| TYPES.into_iter().find(|known| *known == name);
    let named: BTreeSet<&'static str> = match schema.get("type") {
        Some(Value::String(name)) => known(name).into_iter().collect(),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).filter_map(known).collect()
        }
        _ => match values(schema) {
            Some(values) => values.into_iter().map(type_of).collect(),
            None => TYPES.into(),
        },
    };
    let is_any_number = schema.contains_key("type") && named.contains("number");
    named.into_iter().chain(is_any_number.then_some("integer")).collect()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if whole(number).is_some() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn type_words(types: &BTreeSet<&'static str>) -> String {
    if types.len() == TYPES.len() {
        return "anything".to_owned();
    }
    listed(types.iter().copied().filter(|name| *name != "integer" || !types.contains("number")))
}

/// Compares `enum` and `const`, which is an `enum` of one.
pub(super) fn enumerated(
    walk: &mut Walk<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    at: &Pointer,
) {
    let canonical = |schema| -> Option<BTreeSet<String>> {
        Some(values(schema)?.into_iter().map(canonical).collect())
    };
    let show = |values: &BTreeSet<String>| listed(values.iter().map(String::as_str));
    match (canonical(old), canonical(new)) {
        (None, None) => {}
        (None, Some(is)) => {
            let message = format!("only {} are accepted now", show(&is));
            walk.tell(Effect::Narrowed, at, message);
        }
        (Some(was), None) => {
            let message = format!("no longer only {} are accepted", show(&was));
            walk.tell(Effect::Widened, at, message);
        }
        (Some(was), Some(is)) => {
            let lost = show(&was.difference(&is).cloned().collect());
            if !lost.is_empty() {
                walk.tell(Effect::Narrowed, at, format!("{lost} is not among the values any more"));
            }
            let won = show(&is.difference(&was).cloned().collect());
            if !won.is_empty() {
                walk.tell(Effect::Widened, at, format!("{won} is among the values now"));
            }
        }
    }
}

fn values(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        (None, _) => None,
    }
}

/// A value in one way of writing: two are the same to a schema when these are.
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => match whole(number) {
            Some(whole) => whole.to_string(),
            None => number.to_string(),
        },
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Value::Object(members) => {
            let mut members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.to_string(),
    }
}

/// The number as a whole one, when it is: `1.0` is.
#[expect(clippy::cast_possible_truncation, reason = "the guard keeps what i128 holds exactly")]
pub(super) fn whole(number: &Number) -> Option<i128> {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    integer.or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e30)?;
        Some(float as i128)
    })
}
