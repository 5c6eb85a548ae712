//! JSON text as a tree that remembers where each value stands.
//!
//! One pass over the text gives values *and* places, so a finding can point at
//! its line without a second parser. `serde_json` is the judge of what is JSON:
//! a property test holds the two against each other.

mod parse;
mod place;
mod pointer;

pub use parse::{Fault, MAX_DEPTH, MAX_VALUES, Parsed, parse};
pub use place::{Place, Places};
pub use pointer::{Path, Pointer, Step};

use std::borrow::Cow;

/// The bytes of the text that something occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The span as a range into the text.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The same place, but only its first byte.
    pub fn first_byte(self) -> Self {
        Self { start: self.start, end: (self.start + 1).min(self.end) }
    }
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node<'t> {
    /// Where the value stands in the text.
    pub span: Span,
    /// What it is.
    pub value: Value<'t>,
}

/// What a node holds. Strings borrow from the text unless they had escapes.
#[derive(Clone, Debug)]
pub enum Value<'t> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Any number.
    Number(Number),
    /// A string.
    Text(Cow<'t, str>),
    /// An array.
    List(Vec<Node<'t>>),
    /// An object, its members in the order of the text.
    Object(Vec<Member<'t>>),
}

/// A number: exact as an integer when it was written as one that fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Zero or more.
    Unsigned(u64),
    /// Below zero.
    Negative(i64),
    /// Written with a fraction or an exponent, or too long for an integer.
    Float(f64),
}

impl Number {
    /// The nearest floating-point value.
    #[expect(clippy::cast_precision_loss, reason = "the nearest value is what is asked for")]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Unsigned(n) => n as f64,
            Self::Negative(n) => n as f64,
            Self::Float(n) => n,
        }
    }

    /// Whether JSON Schema calls it an integer: `1.0` is one.
    pub fn is_integer(self) -> bool {
        match self {
            Self::Unsigned(_) | Self::Negative(_) => true,
            Self::Float(n) => n.fract() == 0.0,
        }
    }
}

/// One `"key": value` of an object.
#[derive(Clone, Debug)]
pub struct Member<'t> {
    /// The key, escapes resolved.
    pub key: Cow<'t, str>,
    /// Where the key stands, quotes included.
    pub key_span: Span,
    /// The value.
    pub value: Node<'t>,
}

impl<'t> Node<'t> {
    /// The member of that name, when this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Node<'t>> {
        self.member(key).map(|member| &member.value)
    }

    /// The member of that name with its key, when this is an object that has it.
    pub fn member(&self, key: &str) -> Option<&Member<'t>> {
        self.members().iter().find(|member| member.key == key)
    }

    /// The value at the end of a chain of keys.
    pub fn at(&self, keys: &[&str]) -> Option<&Node<'t>> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The string at that key.
    pub fn text_at(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_text()
    }

    /// The elements at that key; none when it is absent or no list.
    pub fn list_at(&self, key: &str) -> &[Node<'t>] {
        self.get(key).map_or(&[], Node::items)
    }

    /// The members of an object; none for anything else.
    pub fn members(&self) -> &[Member<'t>] {
        match &self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    /// The elements of a list; none for anything else.
    pub fn items(&self) -> &[Node<'t>] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The string, when it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The flag, when it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// The number, when it is one.
    pub fn as_number(&self) -> Option<Number> {
        match self.value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The number as a whole count, when it is one that is not negative.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the guard keeps the value within what u64 holds exactly"
    )]
    pub fn as_count(&self) -> Option<u64> {
        match self.as_number()? {
            Number::Unsigned(n) => Some(n),
            Number::Float(n) if n.fract() == 0.0 && (0.0..9.0e15).contains(&n) => Some(n as u64),
            _ => None,
        }
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        matches!(self.value, Value::Object(_))
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// What kind of value it is, in the words of JSON.
    pub fn type_name(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::Text(_) => "string",
            Value::List(_) => "array",
            Value::Object(_) => "object",
        }
    }

    /// The same value for libraries that speak `serde_json`.
    pub fn to_value(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(flag) => (*flag).into(),
            Value::Number(Number::Unsigned(n)) => (*n).into(),
            Value::Number(Number::Negative(n)) => (*n).into(),
            Value::Number(Number::Float(n)) => (*n).into(),
            Value::Text(text) => text.as_ref().into(),
            Value::List(items) => items.iter().map(Node::to_value).collect(),
            Value::Object(members) => {
                members.iter().map(|m| (m.key.to_string(), m.value.to_value())).collect()
            }
        }
    }
}
