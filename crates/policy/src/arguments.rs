//! The arguments of a call: their digest, by which an approval is bound to them, and patterns
//! that an owner may approve once and for all.

use std::fmt::{self, Write};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The arguments of one call, and their digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    value: Value,
    digest: String,
}

impl Arguments {
    /// Takes the arguments as they will be used, defaults applied.
    pub fn new(value: Value) -> Self {
        let mut text = String::new();
        write_canonical(&value, &mut text);
        let digest = Sha256::digest(text.as_bytes());
        let digest = digest.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        Self { value, digest }
    }

    /// The arguments.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// SHA-256 of the arguments, whatever the order of their members, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// Members in the order of their names; everything else as it stands.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(b.0));
            text.push('{');
            for (name, value) in sorted {
                let _ = write!(text, "{}:", Value::from(name.as_str()));
                write_canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => {
            let _ = write!(text, "{plain}");
        }
    }
}

/// Which arguments an owner approved: an object whose members must all fit. `*` in a text stands
/// for any letters; members that are not named may be anything.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern(Value);

/// A text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAPattern;

impl fmt::Display for NotAPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a pattern is a JSON object, such as {\"to\":\"*@example.com\"}")
    }
}

impl std::error::Error for NotAPattern {}

impl Pattern {
    /// Fits every call.
    pub fn any() -> Self {
        Self(Value::Object(serde_json::Map::new()))
    }

    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, NotAPattern> {
        match serde_json::from_str(text) {
            Ok(value @ Value::Object(_)) => Ok(Self(value)),
            _ => Err(NotAPattern),
        }
    }

    /// Whether these arguments are meant.
    pub fn fits(&self, arguments: &Value) -> bool {
        fits(&self.0, arguments)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

fn fits(pattern: &Value, value: &Value) -> bool {
    match (pattern, value) {
        (Value::Object(wanted), Value::Object(found)) => wanted
            .iter()
            .all(|(name, wanted)| found.get(name).is_some_and(|found| fits(wanted, found))),
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(w, f)| fits(w, f))
        }
        (Value::String(wanted), Value::String(found)) => is_like(wanted, found),
        (wanted, found) => wanted == found,
    }
}

/// Whether a text is as a pattern says, where `*` stands for any letters.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_digest_does_not_depend_on_order_and_does_on_everything_else() {
        let digest = |value| Arguments::new(value).digest().to_owned();
        let one = json!({"a": 1, "b": [1, {"c": "x"}]});
        assert_eq!(digest(one.clone()), digest(json!({"b": [1, {"c": "x"}], "a": 1})));
        for other in [
            json!({"a": 1, "b": [{"c": "x"}, 1]}),
            json!({"a": "1", "b": [1, {"c": "x"}]}),
            json!({"a": 1, "b": [1, {"c": "x"}], "d": null}),
            json!({"a": 1, "b": [1, {"c": "x,"}]}),
        ] {
            assert_ne!(digest(one.clone()), digest(other));
        }
    }

    #[test]
    fn a_pattern_fits_what_it_names_and_leaves_the_rest_open() {
        let pattern = Pattern::parse(r#"{"to":"*@example.com","n":3}"#).unwrap();
        assert!(pattern.fits(&json!({"to": "a@example.com", "n": 3, "text": "x"})));
        assert!(!pattern.fits(&json!({"to": "a@example.com.evil", "n": 3})));
        assert!(!pattern.fits(&json!({"to": "a@example.com"})));
        assert!(!pattern.fits(&json!({"to": ["a@example.com"], "n": 3})));
        assert!(Pattern::any().fits(&json!({"anything": true})));
        assert!(Pattern::parse("[]").is_err());
        assert!(Pattern::parse("nonsense").is_err());
    }

    #[test]
    fn stars_stand_for_any_letters_and_nothing_is_used_twice() {
        for (pattern, text, fits) in [
            ("", "", true),
            ("*", "", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*.txt", "x.txt.sh", false),
            ("ab", "abc", false),
        ] {
            assert_eq!(is_like(pattern, text), fits, "{pattern} {text}");
        }
    }
}
