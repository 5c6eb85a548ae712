//! JSON values held against each other.

use serde_json::{Number, Value};

use crate::fault::{Fault, clipped};

/// Whether two values mean the same; `1` and `1.0` do.
pub fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => is_same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Whole numbers are compared to their last digit, whatever they look like.
fn is_same_number(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a == b,
        _ => a.as_f64() == b.as_f64(),
    }
}

/// What is missing: the places at which a value does not hold what is expected. Objects may have more members, lists
/// have as many elements.
pub fn missing(expected: &Value, found: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    compare(expected, found, "$", &mut faults);
    faults
}

/// How many faults of one answer are told.
const MOST: usize = 20;

fn compare(expected: &Value, found: &Value, at: &str, faults: &mut Vec<Fault>) {
    if faults.len() >= MOST {
        return;
    }
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (key, expected) in expected {
                let at = format!("{at}.{key}");
                match found.get(key) {
                    Some(found) => compare(expected, found, &at, faults),
                    None => faults.push(Fault::new(&at, shown(expected), None)),
                }
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                compare(expected, found, &format!("{at}[{index}]"), faults);
            }
        }
        (expected, found) if is_equal(expected, found) => {}
        (expected, found) => {
            faults.push(Fault::new(at, shown(expected), Some(shown(found))));
        }
    }
}

/// A value in a message, of which no more is told than can be read.
pub fn shown(value: &Value) -> String {
    const LONGEST: usize = 200;
    clipped(&value.to_string(), LONGEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_equal_by_what_they_mean() {
        assert!(is_equal(&json!(1), &json!(1.0)));
        assert!(is_equal(&json!({"a": [1, 2.50]}), &json!({"a": [1.0, 2.5]})));
        assert!(!is_equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64)));
        assert!(!is_equal(&json!(1), &json!("1")));
        assert!(!is_equal(&json!(null), &json!(false)));
        assert!(!is_equal(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
    }

    #[test]
    fn an_answer_may_say_more_than_is_expected() {
        let found = json!({"status": "ok", "items": [{"id": 1, "more": true}, {"id": 2}]});
        assert_eq!(missing(&json!({"items": [{"id": 1}, {"id": 2}]}), &found), []);
        let faults = missing(&json!({"items": [{"id": 2}, {}], "next": null}), &found);
        let words: Vec<_> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            ["$.items[0].id is 1, expected 2", "$.next leads to nothing, expected null"]
        );
        assert_eq!(missing(&json!({"items": []}), &found).len(), 1);
    }
}
