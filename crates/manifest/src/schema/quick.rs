//! A quick yes or no for the plain schemas that most manifests have.
//!
//! Compiling a schema costs more than reading the manifest it stands in. Most
//! schemas use a dozen keywords; for those the answer is found by looking. What
//! goes beyond them gets no answer here and is left to the library. A property
//! test holds every answer against the library's.

use std::cell::Cell;

use super::pattern::{is_surely_fine, look_once, may_go_back};
use super::refs::follow;
use crate::json::{Node, Number, Value};

/// Whether the value satisfies the schema, which is or stands in `root`; `None` when that takes
/// the library to say.
pub(super) fn satisfies(schema: &Node<'_>, value: &Node<'_>, root: &Node<'_>) -> Option<bool> {
    Quick { root, steps: Cell::new(MAX_STEPS), looks: Cell::new(MAX_LOOKS) }
        .satisfies(schema, value)
}

/// How many subschemas are looked at before the question is left to the library.
const MAX_STEPS: u32 = 2_000;

/// How many names and values are compared before, each with one other.
const MAX_LOOKS: usize = 200_000;

/// How many steps it is worth to compile a pattern for one text, and one that may be large.
const COST_OF_A_PATTERN: u32 = 100;
const COST_OF_A_LARGE_PATTERN: u32 = 500;

/// The longest text that is held against a compiled pattern.
const LONGEST_TEXT: usize = 1 << 10;

struct Quick<'q, 't> {
    root: &'q Node<'t>,
    steps: Cell<u32>,
    looks: Cell<usize>,
}

impl Quick<'_, '_> {
    /// Takes some steps; none where there are too few left.
    fn step(&self, steps: u32) -> Option<()> {
        self.steps.set(self.steps.get().checked_sub(steps)?);
        Some(())
    }

    /// Counts what a keyword compares, each with one other; none where that is too much.
    fn look(&self, name: &str, rule: &Node<'_>, schema: &Node<'_>, value: &Node<'_>) -> Option<()> {
        let known = || schema.get("properties").map_or(0, |known| known.members().len());
        let looks = match name {
            "minLength" | "maxLength" => value.as_text().map_or(0, str::len),
            "enum" => rule.items().len(),
            "required" => rule.items().len().checked_mul(value.members().len())?,
            "properties" | "additionalProperties" => known().checked_mul(value.members().len())?,
            _ => 0,
        };
        self.looks.set(self.looks.get().checked_sub(looks)?);
        Some(())
    }

    fn matches(&self, pattern: &str, text: &str) -> Option<bool> {
        // Nobody knows how long that takes.
        if may_go_back(pattern) || text.len() > LONGEST_TEXT {
            return None;
        }
        if let Some(verdict) = look_once(pattern, text) {
            return Some(verdict);
        }
        let is_fine = is_surely_fine(pattern);
        self.step(if is_fine { COST_OF_A_PATTERN } else { COST_OF_A_LARGE_PATTERN })?;
        super::matches_once(pattern, text)
    }

    fn satisfies(&self, schema: &Node<'_>, value: &Node<'_>) -> Option<bool> {
        self.step(1)?;
        let members = match &schema.value {
            Value::Bool(verdict) => return Some(*verdict),
            Value::Object(members) => members,
            _ => return None,
        };
        let mut all = true;
        for member in members {
            all &= self.keyword(&member.key, &member.value, schema, value)?;
        }
        Some(all)
    }

    fn keyword(
        &self,
        name: &str,
        rule: &Node<'_>,
        schema: &Node<'_>,
        value: &Node<'_>,
    ) -> Option<bool> {
        let number = value.as_number().map(Number::as_f64);
        let limit = || rule.as_number().map(Number::as_f64);
        self.look(name, rule, schema, value)?;
        let length = || value.as_text().map(|text| text.chars().count() as u64);
        let items = || matches!(value.value, Value::List(_)).then(|| value.items().len() as u64);
        let size = || value.is_object().then(|| value.members().len() as u64);
        Some(match name {
            "title" | "description" | "default" | "examples" | "$comment" | "$schema"
            | "deprecated" | "readOnly" | "writeOnly" | "format" | "contentEncoding"
            | "contentMediaType" => true,
            "type" => match &rule.value {
                Value::Text(name) => is_of_type(value, name),
                Value::List(names) => names
                    .iter()
                    .any(|name| name.as_text().is_some_and(|name| is_of_type(value, name))),
                _ => return None,
            },
            "enum" => {
                let mut any = false;
                for item in rule.items() {
                    any |= equal(item, value)?;
                }
                any
            }
            "const" => equal(rule, value)?,
            "minimum" => number.is_none_or(|n| limit().is_some_and(|l| n >= l)),
            "maximum" => number.is_none_or(|n| limit().is_some_and(|l| n <= l)),
            "exclusiveMinimum" => number.is_none_or(|n| limit().is_some_and(|l| n > l)),
            "exclusiveMaximum" => number.is_none_or(|n| limit().is_some_and(|l| n < l)),
            "minLength" => length().is_none_or(|n| rule.as_count().is_some_and(|l| n >= l)),
            "maxLength" => length().is_none_or(|n| rule.as_count().is_some_and(|l| n <= l)),
            "minItems" => items().is_none_or(|n| rule.as_count().is_some_and(|l| n >= l)),
            "maxItems" => items().is_none_or(|n| rule.as_count().is_some_and(|l| n <= l)),
            "minProperties" => size().is_none_or(|n| rule.as_count().is_some_and(|l| n >= l)),
            "maxProperties" => size().is_none_or(|n| rule.as_count().is_some_and(|l| n <= l)),
            "pattern" => match (rule.as_text()?, value.as_text()) {
                (pattern, Some(text)) => self.matches(pattern, text)?,
                (_, None) => true,
            },
            "uniqueItems" => rule.as_bool() == Some(false) || are_different(value.items())?,
            "required" => {
                !value.is_object()
                    || rule
                        .items()
                        .iter()
                        .all(|name| name.as_text().is_some_and(|n| value.get(n).is_some()))
            }
            "properties" => {
                let mut all = true;
                for member in value.members() {
                    if let Some(sub) = rule.get(&member.key) {
                        all &= self.satisfies(sub, &member.value)?;
                    }
                }
                all
            }
            "additionalProperties" => {
                if schema.get("patternProperties").is_some() {
                    return None;
                }
                let known = schema.get("properties");
                let mut all = true;
                for member in value.members() {
                    if known.is_none_or(|known| known.get(&member.key).is_none()) {
                        all &= self.satisfies(rule, &member.value)?;
                    }
                }
                all
            }
            "items" => {
                if schema.get("prefixItems").is_some() {
                    return None;
                }
                let mut all = true;
                for item in value.items() {
                    all &= self.satisfies(rule, item)?;
                }
                all
            }
            "$defs" | "definitions" | "then" | "else" => true,
            "allOf" => self.satisfied(rule, value)? == rule.items().len(),
            "anyOf" => self.satisfied(rule, value)? > 0,
            "oneOf" => self.satisfied(rule, value)? == 1,
            "not" => !self.satisfies(rule, value)?,
            "if" => {
                let branch = if self.satisfies(rule, value)? { "then" } else { "else" };
                schema.get(branch).map_or(Some(true), |branch| self.satisfies(branch, value))?
            }
            "$ref" => {
                let pointer =
                    rule.as_text()?.strip_prefix('#').filter(|rest| !rest.contains('%'))?;
                self.satisfies(follow(self.root, pointer)?, value)?
            }
            _ => return None,
        })
    }

    /// How many of the schemas the value satisfies.
    fn satisfied(&self, schemas: &Node<'_>, value: &Node<'_>) -> Option<usize> {
        let mut count = 0;
        for schema in schemas.items() {
            count += usize::from(self.satisfies(schema, value)?);
        }
        Some(count)
    }
}

fn is_of_type(value: &Node<'_>, name: &str) -> bool {
    match &value.value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && number.is_integer()),
        Value::Text(_) => name == "string",
        Value::List(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

/// Whether no two of a few values are equal.
fn are_different(items: &[Node<'_>]) -> Option<bool> {
    if items.len() > 32 {
        return None;
    }
    for (index, item) in items.iter().enumerate() {
        for earlier in &items[..index] {
            if equal(item, earlier)? {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// Equality of plain values; lists and objects are left to the library.
fn equal(left: &Node<'_>, right: &Node<'_>) -> Option<bool> {
    Some(match (&left.value, &right.value) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number(Number::Unsigned(a)), Value::Number(Number::Unsigned(b))) => a == b,
        (Value::Number(Number::Negative(a)), Value::Number(Number::Negative(b))) => a == b,
        (Value::Number(_), Value::Number(_)) => return None,
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::List(_), Value::List(_)) | (Value::Object(_), Value::Object(_)) => return None,
        _ => false,
    })
}
