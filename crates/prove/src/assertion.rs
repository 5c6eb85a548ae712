//! What must hold of one place in an answer.

use std::time::{Duration, Instant};

use manifest::dialect::mcpkg::OPERATORS;
use manifest::schema::matches_once;
use serde_json::Value;
use serde_json_path::JsonPath;

use crate::effort::{Size, is_bearable};
use crate::fault::{Fault, clipped};
use crate::value::{is_equal, shown};

/// How long one assertion may be held against the places that its path leads to.
const PATIENCE: Duration = Duration::from_secs(2);

/// What must hold of what a path leads to.
#[derive(Clone, Debug)]
pub struct Assertion {
    path: JsonPath,
    /// The path as it is written.
    written: String,
    asks: Asks,
}

/// What is asked; one thing at a time.
#[derive(Clone, Debug)]
enum Asks {
    Equals(Value),
    NotEquals(Value),
    Exists(bool),
    Contains(Value),
    Matches(String),
    LessThan(f64),
    GreaterThan(f64),
    Type(String),
    Length(u64),
}

impl Assertion {
    /// Reads an assertion; none where it is no path, or asks nothing or two things.
    pub fn read(value: &Value) -> Option<Self> {
        let written = value.get("path")?.as_str()?.to_owned();
        let path = JsonPath::parse(&written).ok()?;
        let is_asked = |(name, _): &(&String, &Value)| OPERATORS.contains(&name.as_str());
        let mut asked = value.as_object()?.iter().filter(is_asked);
        let (name, operand) = asked.next()?;
        let asks = Asks::read(name, operand)?;
        if asked.next().is_some() { None } else { Some(Self { path, written, asks }) }
    }

    /// What does not hold of an answer of this size. Where a path leads to several places, it must hold of each.
    pub fn fault(&self, answer: &Value, size: Size) -> Option<Fault> {
        let fault = |found| Some(Fault::new(&self.written, self.asks.expected(), found));
        if !is_bearable(&self.path.to_string(), size) {
            return fault(Some("too much work in an answer as large as this".to_owned()));
        }
        let found = self.path.query(answer).all();
        match &self.asks {
            Asks::Exists(true) if found.is_empty() => fault(None),
            Asks::Exists(false) if !found.is_empty() => fault(Some(shown(found[0]))),
            Asks::Exists(_) => None,
            // What is not there is not equal to anything.
            Asks::NotEquals(_) if found.is_empty() => None,
            _ if found.is_empty() => fault(None),
            asks => {
                let until = Instant::now() + PATIENCE;
                // What nobody has looked at in time does not hold.
                let is_wrong = |value: &&Value| Instant::now() > until || !asks.holds(value);
                let wrong = found.iter().position(is_wrong)?;
                if found.len() == 1 {
                    return fault(Some(shown(found[0])));
                }
                let place =
                    self.path.query_located(answer).iter().nth(wrong)?.location().to_string();
                let path = format!("{} ({place})", self.written);
                Some(Fault::new(&path, asks.expected(), Some(shown(found[wrong]))))
            }
        }
    }
}

impl Asks {
    /// None where that cannot be asked.
    fn read(name: &str, value: &Value) -> Option<Self> {
        let text = || value.as_str().map(str::to_owned);
        match name {
            "equals" => Some(Self::Equals(value.clone())),
            "notEquals" => Some(Self::NotEquals(value.clone())),
            "exists" => value.as_bool().map(Self::Exists),
            "notExists" => value.as_bool().map(|is_absent| Self::Exists(!is_absent)),
            "contains" => Some(Self::Contains(value.clone())),
            "matches" => text().map(Self::Matches),
            "lessThan" => value.as_f64().map(Self::LessThan),
            "greaterThan" => value.as_f64().map(Self::GreaterThan),
            "type" => text().map(Self::Type),
            "length" => value.as_f64().map(|length| {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the shape of a test allows whole numbers from zero alone"
                )]
                Self::Length(length as u64)
            }),
            _ => None,
        }
    }

    /// Whether it holds of a value that is there.
    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Equals(wanted) => is_equal(value, wanted),
            Self::NotEquals(unwanted) => !is_equal(value, unwanted),
            Self::Exists(is_there) => *is_there,
            Self::Contains(part) => contains(value, part),
            Self::Matches(pattern) => {
                // A pattern that takes too long matches nothing.
                let is_match = value.as_str().and_then(|text| matches_once(pattern, text));
                is_match == Some(true)
            }
            Self::LessThan(bound) => value.as_f64().is_some_and(|number| number < *bound),
            Self::GreaterThan(bound) => value.as_f64().is_some_and(|number| number > *bound),
            Self::Type(name) => has_type(value, name),
            Self::Length(length) => length_of(value) == Some(*length),
        }
    }

    /// What it asks for, in words.
    fn expected(&self) -> String {
        match self {
            Self::Equals(wanted) => shown(wanted),
            Self::NotEquals(unwanted) => format!("something else than {}", shown(unwanted)),
            Self::Exists(true) => "something".to_owned(),
            Self::Exists(false) => "nothing".to_owned(),
            Self::Contains(part) => format!("something that contains {}", shown(part)),
            Self::Matches(pattern) => format!("a text that matches `{}`", clipped(pattern, 200)),
            Self::LessThan(bound) => format!("less than {bound}"),
            Self::GreaterThan(bound) => format!("more than {bound}"),
            Self::Type(name) => format!("of the type {name}"),
            Self::Length(length) => format!("of the length {length}"),
        }
    }
}

fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        (Value::Array(elements), part) => elements.iter().any(|element| is_equal(element, part)),
        (Value::Object(members), Value::String(key)) => members.contains_key(key),
        (Value::Object(_), Value::Object(_)) => crate::value::missing(part, value).is_empty(),
        _ => false,
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match (value, name) {
        (Value::Null, "null")
        | (Value::Bool(_), "boolean")
        | (Value::Number(_), "number")
        | (Value::String(_), "string")
        | (Value::Array(_), "array")
        | (Value::Object(_), "object") => true,
        // As JSON Schema has it: `1.0` is a whole number too.
        (Value::Number(number), "integer") => {
            number.as_i128().is_some()
                || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

fn length_of(value: &Value) -> Option<u64> {
    let length = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(elements) => elements.len(),
        Value::Object(members) => members.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    };
    u64::try_from(length).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(assertion: &Value, answer: &Value) -> bool {
        let read = Assertion::read(assertion).expect("it can be read");
        read.fault(answer, Size::of(answer)).is_none()
    }

    #[test]
    fn each_operator_asks_what_it_says() {
        let answer = json!({
            "text": "caf\u{e9} au lait", "number": 7, "list": [1, 2, 2.0], "nothing": null,
            "object": {"a": 1, "b": {"c": true}}, "yes": true,
        });
        for (path, operator, good, bad) in [
            ("$.text", "equals", json!("caf\u{e9} au lait"), json!("tea")),
            ("$.nothing", "equals", json!(null), json!(false)),
            ("$.number", "equals", json!(7.0), json!(8)),
            ("$.number", "notEquals", json!(8), json!(7)),
            ("$.text", "exists", json!(true), json!(false)),
            ("$.missing", "exists", json!(false), json!(true)),
            ("$.missing", "notExists", json!(true), json!(false)),
            ("$.text", "contains", json!("au"), json!("tea")),
            ("$.list", "contains", json!(2), json!(3)),
            ("$.object", "contains", json!("a"), json!("c")),
            ("$.object", "contains", json!({"b": {"c": true}}), json!({"b": {"c": false}})),
            ("$.text", "matches", json!("^caf. "), json!("tea$")),
            ("$.number", "lessThan", json!(7.5), json!(7)),
            ("$.number", "greaterThan", json!(6), json!(7)),
            ("$.number", "type", json!("integer"), json!("string")),
            ("$.yes", "type", json!("boolean"), json!("object")),
            ("$.text", "length", json!(12), json!(13)),
            ("$.list", "length", json!(3), json!(2)),
            ("$.list[*]", "greaterThan", json!(0), json!(1)),
        ] {
            let assertion = |value: &Value| json!({"path": path, operator: value});
            assert!(holds(&assertion(&good), &answer), "{path} {operator} {good}");
            assert!(!holds(&assertion(&bad), &answer), "{path} {operator} {bad}");
        }
    }

    #[test]
    fn of_several_places_the_one_is_told_that_is_not_as_it_should_be() {
        let answer = json!({"l": [{"a": 1}, {"a": 9}, {"a": 2}]});
        for (written, told) in
            [("$.l[*].a", "$.l[*].a ($['l'][1]['a'])"), ("$..a", "$..a ($['l'][1]['a'])")]
        {
            let read = Assertion::read(&json!({"path": written, "lessThan": 5})).unwrap();
            let fault = read.fault(&answer, Size::of(&answer)).unwrap();
            assert_eq!((&*fault.path, fault.found.as_deref()), (told, Some("9")));
        }
        let one = Assertion::read(&json!({"path": "$.l[1].a", "lessThan": 5})).unwrap();
        assert_eq!(one.fault(&answer, Size::of(&answer)).unwrap().path, "$.l[1].a");
    }

    #[test]
    fn what_is_not_there_fulfils_nothing_but_its_absence() {
        let answer = json!({});
        for (operator, value) in [
            ("equals", json!(null)),
            ("contains", json!("")),
            ("matches", json!("")),
            ("lessThan", json!(1e9)),
            ("type", json!("null")),
            ("length", json!(0)),
        ] {
            assert!(!holds(&json!({"path": "$.x", operator: value}), &answer), "{operator}");
        }
        assert!(holds(&json!({"path": "$.x", "notEquals": 1}), &answer));
    }

    #[test]
    fn an_assertion_asks_one_thing() {
        for value in [
            json!({"path": "$.a"}),
            json!({"path": "a b c", "equals": 1}),
            json!({"path": "$.a", "equals": 1, "exists": true}),
            json!({"equals": 1}),
            json!({"path": "$.a", "exists": "yes"}),
        ] {
            assert!(Assertion::read(&value).is_none(), "{value}");
        }
    }
}
