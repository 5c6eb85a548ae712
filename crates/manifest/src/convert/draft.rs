//! A document in the making: what is known, what is asked for, what was lost.

use serde_json::{Map, Value};

use super::{ConvertError, Loss};
use crate::concept::Weight;
use crate::json::Pointer;

/// Something the target demands and the source does not know.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Missing {
    /// Where it belongs in the target.
    pub pointer: Pointer,
    /// What it is.
    pub what: String,
}

/// A document in the making.
#[derive(Debug, Default)]
pub(super) struct Draft {
    document: Value,
    missing: Vec<Missing>,
    losses: Vec<Loss>,
}

impl Draft {
    /// Puts a value at a path of keys.
    pub(super) fn put(&mut self, pointer: &str, value: impl Into<Value>) {
        let pointer = Pointer::parse(pointer).expect("the writers' pointers are pointers");
        let placed = place(&mut self.document, &pointer, value.into());
        debug_assert!(placed, "the writers put values where they fit");
    }

    /// Puts a value, when there is one.
    pub(super) fn put_some(&mut self, pointer: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(pointer, value);
        }
    }

    /// Puts a value, or asks for it.
    pub(super) fn put_or_ask(
        &mut self,
        pointer: &str,
        value: Option<impl Into<Value>>,
        what: &str,
    ) {
        match value {
            Some(value) => self.put(pointer, value),
            None => self.ask(pointer, what),
        }
    }

    /// Asks for a value.
    pub(super) fn ask(&mut self, pointer: &str, what: &str) {
        let pointer = Pointer::parse(pointer).expect("the writers' pointers are pointers");
        self.missing.push(Missing { pointer, what: what.to_owned() });
    }

    /// Says that something of the source has no place.
    pub(super) fn lose(&mut self, pointer: Pointer, weight: Weight, reason: impl Into<String>) {
        self.losses.push(Loss { pointer, reason: reason.into(), weight });
    }

    /// Puts in what was said from outside; what is still missing stays so.
    pub(super) fn finish(
        mut self,
        set: &[(Pointer, Value)],
    ) -> Result<(Value, Vec<Missing>, Vec<Loss>), ConvertError> {
        if self.document.is_null() {
            self.document = Value::Object(Map::new());
        }
        for (pointer, value) in set {
            if !place(&mut self.document, pointer, value.clone()) {
                return Err(ConvertError::BadSet(pointer.clone()));
            }
        }
        let document = self.document;
        self.missing.retain(|missing| document.pointer(missing.pointer.as_str()).is_none());
        Ok((document, self.missing, self.losses))
    }
}

/// Puts a value at a pointer, making objects on the way, and a list where an index is next.
/// A list grows by one element at a time.
fn place(document: &mut Value, pointer: &Pointer, value: Value) -> bool {
    let steps = pointer.steps().peekable();
    let mut current = document;
    for step in steps {
        if current.is_null() {
            *current =
                if step == "0" { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
        }
        current = match current {
            Value::Object(members) => members.entry(step).or_insert(Value::Null),
            Value::Array(items) => {
                let index = match step.as_str() {
                    "-" => items.len(),
                    digits => match digits.parse::<usize>() {
                        Ok(index) if index <= items.len() => index,
                        _ => return false,
                    },
                };
                if index == items.len() {
                    items.push(Value::Null);
                }
                &mut items[index]
            }
            _ => return false,
        };
    }
    *current = value;
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_placed_with_what_leads_to_them() {
        let mut document = Value::Null;
        let mut put = |pointer: &str, value: Value| {
            place(&mut document, &Pointer::parse(pointer).unwrap(), value)
        };
        assert!(put("/a/b", json!(1)));
        assert!(put("/list/0/x", json!("y")));
        assert!(put("/list/1", json!(2)));
        assert!(!put("/list/5", json!(2)));
        assert!(!put("/a/b/c", json!(2)));
        assert_eq!(document, json!({"a": {"b": 1}, "list": [{"x": "y"}, 2]}));
    }
}
