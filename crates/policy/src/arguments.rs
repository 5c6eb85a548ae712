//! The arguments of a call: their digest, by which an approval is bound to them, and patterns
//! that an owner may approve once and for all.

use std::fmt::{self, Write};
use std::sync::OnceLock;

use manifest::json::{self, Node};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The arguments of one call, and their digest, which most calls need not know.
#[derive(Clone, Debug)]
pub struct Arguments {
    value: Value,
    /// The numbers that the value holds otherwise than they were written, in their order.
    numbers: Vec<String>,
    digest: OnceLock<String>,
}

impl PartialEq for Arguments {
    fn eq(&self, other: &Self) -> bool {
        (&self.value, &self.numbers) == (&other.value, &other.numbers)
    }
}

impl Arguments {
    /// Takes the arguments as they will be used.
    pub fn new(value: Value) -> Self {
        Self::with_numbers(value, &[])
    }

    /// The same for a tool that gets the text itself: the numbers of it that the value holds otherwise than
    /// they are written, in their order, belong to the digest too.
    pub fn with_numbers(value: Value, numbers: &[&str]) -> Self {
        let numbers = numbers.iter().map(|&one| one.to_owned()).collect();
        Self { value, numbers, digest: OnceLock::new() }
    }

    /// The arguments.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Whether the value holds all that was written.
    pub fn is_whole(&self) -> bool {
        self.numbers.is_empty()
    }

    /// SHA-256 of the arguments, whatever the order of their members, in hexadecimal.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let mut text = String::new();
            write_canonical(&self.value, &mut text);
            for number in &self.numbers {
                let _ = write!(text, " {number}");
            }
            hex_digest(&text)
        })
    }
}

/// SHA-256 of a value, whatever the order of the members in it, in hexadecimal.
pub fn digest_of(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    hex_digest(&text)
}

fn hex_digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
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

/// Which arguments an owner approved. Two kinds are written: an object whose members must all fit, where `*`
/// in a text stands for any letters and members that are not named may be anything; and, with `=` before
/// the object, these arguments and no others.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern(Form);

#[derive(Clone, Debug, PartialEq)]
enum Form {
    Open(Value),
    Exact(Arguments),
}

/// A text is no pattern, because of this if it is no JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAPattern(Option<String>);

impl fmt::Display for NotAPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a pattern is a JSON object, such as {\"to\":\"*@example.com\"}")?;
        self.0.as_ref().map_or(Ok(()), |fault| write!(out, "; here {fault}"))
    }
}

impl std::error::Error for NotAPattern {}

impl Pattern {
    /// Fits every call.
    pub fn any() -> Self {
        Self(Form::Open(Value::Object(serde_json::Map::new())))
    }

    /// Fits these arguments and no others. Those that the pattern could not hold as they were written have none.
    pub fn exactly(arguments: &Arguments) -> Option<Self> {
        let is_object = arguments.value.is_object();
        (arguments.is_whole() && is_object).then(|| Self(Form::Exact(arguments.clone())))
    }

    /// Reads a pattern, as strictly as the input of a call is read.
    pub fn parse(text: &str) -> Result<Self, NotAPattern> {
        let exact = text.strip_prefix('=');
        let parsed = json::parse(exact.unwrap_or(text));
        if let Some(fault) = parsed.faults.into_iter().next() {
            return Err(NotAPattern(Some(fault.message)));
        }
        let object = parsed.root.filter(Node::is_object).ok_or(NotAPattern(None))?;
        let value = object.to_value();
        Ok(Self(match exact {
            Some(_) => Form::Exact(Arguments::new(value)),
            None => Form::Open(value),
        }))
    }

    /// The arguments it names, and what they must be like.
    pub fn wanted(&self) -> &Value {
        match &self.0 {
            Form::Open(pattern) => pattern,
            Form::Exact(wanted) => &wanted.value,
        }
    }

    /// Whether these arguments are meant.
    pub fn fits(&self, arguments: &Arguments) -> bool {
        match &self.0 {
            // Numbers that look alike here may be different ones where they are used.
            Form::Open(pattern) if !arguments.is_whole() && has_number(pattern) => false,
            Form::Open(pattern) => fits(pattern, &arguments.value),
            Form::Exact(wanted) => wanted.digest() == arguments.digest(),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Open(pattern) => pattern.fmt(out),
            Form::Exact(wanted) => write!(out, "={}", wanted.value),
        }
    }
}

fn has_number(pattern: &Value) -> bool {
    match pattern {
        Value::Number(_) => true,
        Value::Array(items) => items.iter().any(has_number),
        Value::Object(members) => members.values().any(has_number),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
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
        let fits = |value| pattern.fits(&Arguments::new(value));
        assert!(fits(json!({"to": "a@example.com", "n": 3, "text": "x"})));
        assert!(!fits(json!({"to": "a@example.com.evil", "n": 3})));
        assert!(!fits(json!({"to": "a@example.com"})));
        assert!(!fits(json!({"to": ["a@example.com"], "n": 3})));
        assert!(Pattern::any().fits(&Arguments::new(json!({"anything": true}))));
        for text in ["[]", "nonsense", "=", "=[]", "={"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_exact_pattern_fits_what_it_was_made_of_and_nothing_else() {
        for value in [json!({}), json!({"path": "x"}), json!({"to": "*", "n": [1, {"a": null}]})] {
            let pattern = Pattern::exactly(&Arguments::new(value.clone())).unwrap();
            let again = Pattern::parse(&pattern.to_string()).unwrap();
            assert_eq!(pattern, again);
            assert!(again.fits(&Arguments::new(value.clone())), "{value}");
            let mut more = value.clone();
            more["force"] = true.into();
            assert!(!again.fits(&Arguments::new(more)), "{value}");
        }
        let star = Pattern::parse(r#"={"to":"*"}"#).unwrap();
        assert!(!star.fits(&Arguments::new(json!({"to": "x"}))));
    }

    #[test]
    fn numbers_that_only_look_alike_are_not_the_same() {
        let of = |number: &str| {
            let value = json!({"n": number.parse::<f64>().unwrap()});
            Arguments::with_numbers(value, &[number])
        };
        let (one, other) = (of("100000000000000000000001"), of("100000000000000000000002"));
        assert_eq!(one.value(), other.value());
        assert_ne!(one.digest(), other.digest());
        assert_eq!(Pattern::exactly(&one), None);
        assert!(!Pattern::parse(r#"{"n":1e23}"#).unwrap().fits(&one));
        assert!(Pattern::any().fits(&one));
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
