//! Holds a value against a schema.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};

use super::keywords::{Kind, kind};
use super::pattern::may_go_back;
use super::quick;
use super::refs::{Home, Refs, Target, for_each_subschema};
use crate::json::{Member, Node, Pointer, Value};
use crate::shape::clip;

/// How many mismatches of one value are told.
const MAX_MISMATCHES: usize = 20;

/// How many characters a message about one may have.
const LONGEST_MESSAGE: usize = 400;

/// How many steps a check may take before it is called off.
const MAX_STEPS: usize = 500_000;

/// How many are few.
const FEW_STEPS: usize = 20_000;

/// How deep one check may call another on the way.
const MAX_CALLS: usize = 400;

/// How many steps a single pattern may go back.
const MAX_BACKTRACKS: usize = 100_000;

/// One place where a value does not satisfy a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where in the value.
    pub pointer: Pointer,
    /// What is wrong there.
    pub message: String,
}

/// Holding the value against the schema could take practically forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooCostly;

/// How much work it is to hold a value against a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// It is done at once.
    Little,
    /// It may take a while: somebody should look at the clock.
    Much,
}

/// What becomes of properties of which the schema says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknowns {
    /// The schema alone decides.
    AsTheSchemaSays,
    /// They are refused where the schema lists properties and is silent about others.
    Refused,
}

/// How much work it is to hold a value against a schema, by counting and without doing it.
pub fn effort(schema: &Node<'_>, value: &Node<'_>) -> Result<Effort, TooCostly> {
    if quick::satisfies(schema, value, schema) == Some(true) {
        return Ok(Effort::Little);
    }
    let refs = Refs::of(schema);
    let mut steps = Steps { refs: &refs, left: MAX_STEPS, has_pattern: false };
    steps.walk(schema, Home::ROOT, value, 0)?;
    let is_little = MAX_STEPS - steps.left <= FEW_STEPS && !steps.has_pattern;
    Ok(if is_little { Effort::Little } else { Effort::Much })
}

/// Holds a value against a schema that has passed [`super::check()`].
pub fn judge(
    schema: &Node<'_>,
    value: &Node<'_>,
    unknowns: Unknowns,
) -> Result<Vec<Mismatch>, TooCostly> {
    let mut mismatches = Vec::new();
    if unknowns == Unknowns::Refused && is_silent_about_others(schema) {
        mismatches.extend(strangers(schema, value));
    }
    if quick::satisfies(schema, value, schema) == Some(true) {
        return Ok(mismatches);
    }
    let refs = Refs::of(schema);
    Steps { refs: &refs, left: MAX_STEPS, has_pattern: false }.walk(
        schema,
        Home::ROOT,
        value,
        0,
    )?;
    let validator = match validator(schema) {
        Ok(validator) => validator,
        Err(reason) => {
            let message = format!("the schema cannot be run: {reason}");
            mismatches.push(Mismatch { pointer: Pointer::root(), message });
            return Ok(mismatches);
        }
    };
    let value = value.to_value();
    mismatches.extend(validator.iter_errors(&value).take(MAX_MISMATCHES).map(|error| Mismatch {
        pointer: Pointer::parse(error.instance_path().as_str()).unwrap_or_default(),
        message: words(&error),
    }));
    Ok(mismatches)
}

/// Compiles a schema: 2020-12, no formats, nothing fetched, patterns that cannot run away.
pub(super) fn validator(schema: &Node<'_>) -> Result<Validator, String> {
    let schema = runnable(schema);
    let options = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(false)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS))
        .offline();
    // It takes for granted that no two parts have one address, and panics when they do.
    let built = catch_unwind(AssertUnwindSafe(|| options.build(&schema)));
    match built {
        Ok(built) => built.map_err(|error| error.to_string()),
        Err(_) => Err("its references are beyond the library that would follow them".to_owned()),
    }
}

/// The schema as the library takes it: all of it is 2020-12, whatever drafts it names, and its
/// references are URIs to the letter.
fn runnable(schema: &Node<'_>) -> serde_json::Value {
    if !schema.is_object() {
        return schema.to_value();
    }
    let map = |members: &[Member<'_>]| -> serde_json::Value {
        members.iter().map(|inner| (inner.key.to_string(), runnable(&inner.value))).collect()
    };
    let keyword = |member: &Member<'_>| match (kind(&member.key), &member.value.value) {
        (Some(Kind::Schema), _) => runnable(&member.value),
        (Some(Kind::Schemas), Value::List(items)) => items.iter().map(runnable).collect(),
        (Some(Kind::SchemaMap | Kind::PatternMap | Kind::Dependencies), Value::Object(members)) => {
            map(members)
        }
        (Some(Kind::Ref), Value::Text(text)) => to_the_letter(text).into(),
        _ => member.value.to_value(),
    };
    let others = schema.members().iter().filter(|member| member.key != "$schema");
    others.map(|member| (member.key.to_string(), keyword(member))).collect()
}

/// A reference with its path written as a URI demands: authors write `#/$defs/List<a>`.
fn to_the_letter(reference: &str) -> String {
    let Some((address, path)) = reference.split_once("#/") else { return reference.to_owned() };
    let mut written = format!("{address}#/");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte) {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}

/// Keywords of other vocabularies that look like mistyped ones and are none.
pub(super) fn is_known_annotation(name: &str) -> bool {
    matches!(
        name,
        "enumNames"
            | "enumDescriptions"
            | "xml"
            | "units"
            | "unit"
            | "order"
            | "name"
            | "id"
            | "label"
    )
}

/// A message of the library names the whole value and all it may be, whatever their size. What makes it too
/// long is left out and not cut: a value may hold a secret, and half of one is not recognised later on.
fn words(error: &ValidationError<'_>) -> String {
    let is_short = |message: &String| message.chars().nth(LONGEST_MESSAGE).is_none();
    let whole = Some(error.to_string()).filter(is_short);
    whole
        .or_else(|| Some(error.masked().to_string()).filter(is_short))
        .unwrap_or_else(|| format!("the value is not what `{}` says", clip(error.kind().keyword())))
}

fn is_silent_about_others(schema: &Node<'_>) -> bool {
    let has = |keyword| schema.get(keyword).is_some();
    has("properties")
        && !has("additionalProperties")
        && !has("patternProperties")
        && !has("unevaluatedProperties")
}

fn strangers(schema: &Node<'_>, value: &Node<'_>) -> Vec<Mismatch> {
    let known = schema.get("properties");
    let is_stranger = |key: &str| known.is_some_and(|known| known.get(key).is_none());
    value
        .members()
        .iter()
        .filter(|member| is_stranger(&member.key))
        .map(|member| Mismatch {
            pointer: Pointer::root().key(&member.key),
            message: format!(
                "`{}` is not a property of the schema, and unknown ones are refused",
                clip(&member.key)
            ),
        })
        .collect()
}

/// Walks the way a validator would, judging nothing, to learn how far it is.
struct Steps<'r, 'n, 't> {
    refs: &'r Refs<'n, 't>,
    left: usize,
    /// Whether there is a pattern on the way that may go back and forth in its text.
    has_pattern: bool,
}

impl<'n, 't> Steps<'_, 'n, 't> {
    fn walk(
        &mut self,
        schema: &'n Node<'t>,
        home: Home,
        value: &Node<'_>,
        calls: usize,
    ) -> Result<(), TooCostly> {
        self.left = self.left.checked_sub(1).ok_or(TooCostly)?;
        if calls > MAX_CALLS {
            return Err(TooCostly);
        }
        self.has_pattern |= schema.text_at("pattern").is_some_and(may_go_back);
        let home = self.refs.home_of(schema, home);
        for reference in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(text) = schema.text_at(reference) else { continue };
            if let Target::Found(target, home) = self.refs.resolve(text, home) {
                self.walk(target, home, value, calls + 1)?;
            }
            if reference == "$dynamicRef" {
                for (target, home) in self.refs.dynamic_targets(text) {
                    self.walk(target, *home, value, calls + 1)?;
                }
            }
        }
        let mut applied = Vec::new();
        for_each_subschema(schema, &mut |keyword, sub| applied.push((keyword, sub)));
        for (keyword, sub) in applied {
            match keyword {
                "$defs" | "definitions" | "contentSchema" => {}
                "properties" => {
                    // Which property this is matters: only a member of that name is looked at.
                    let name = schema.get("properties").and_then(|properties| {
                        properties
                            .members()
                            .iter()
                            .find(|member| std::ptr::eq(&raw const member.value, sub))
                    });
                    if let Some(member) = name.and_then(|name| value.get(&name.key)) {
                        self.walk(sub, home, member, calls + 1)?;
                    }
                }
                "additionalProperties" | "unevaluatedProperties" | "patternProperties" => {
                    let patterns = schema.get("patternProperties");
                    self.has_pattern |= patterns.is_some_and(|patterns| {
                        patterns.members().iter().any(|member| may_go_back(&member.key))
                    });
                    for member in value.members() {
                        self.walk(sub, home, &member.value, calls + 1)?;
                    }
                }
                "items" | "prefixItems" | "contains" | "unevaluatedItems" => {
                    for item in value.items() {
                        self.walk(sub, home, item, calls + 1)?;
                    }
                }
                "propertyNames" => {
                    let name = Node { span: value.span, value: Value::Null };
                    for _ in value.members() {
                        self.walk(sub, home, &name, calls + 1)?;
                    }
                }
                _ => self.walk(sub, home, value, calls + 1)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_long_value_is_left_out_and_never_cut() {
        let secret = "s3cret-of-somebody";
        for before in 300..420 {
            let value = format!(r#"{{"n":"{}{secret}"}}"#, "y".repeat(before));
            let schemas = [
                r#"{"properties":{"n":{"type":"integer"}}}"#,
                r#"{"type":"array"}"#,
                r#"{"additionalProperties":false,"properties":{"m":{}}}"#,
            ];
            for schema in schemas {
                let (schema, value) = (json::parse(schema), json::parse(&value));
                let (schema, value) = (schema.root.unwrap(), value.root.unwrap());
                let found = judge(&schema, &value, Unknowns::AsTheSchemaSays).unwrap();
                let message = &found[0].message;
                assert!(message.chars().count() <= LONGEST_MESSAGE + 1, "{message}");
                assert!(!message.contains("s3cret") || message.contains(secret), "{message}");
            }
        }
        let long = format!(r#"{{"{}":1}}"#, "k".repeat(1000));
        let schema = json::parse(r#"{"properties":{"m":{}},"additionalProperties":false}"#);
        let value = json::parse(&long);
        let found = judge(&schema.root.unwrap(), &value.root.unwrap(), Unknowns::AsTheSchemaSays);
        let message = found.unwrap().remove(0).message;
        assert_eq!(message, "the value is not what `additionalProperties` says");
    }
}
