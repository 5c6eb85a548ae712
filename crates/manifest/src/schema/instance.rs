//! Holds a value against a schema.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};

use super::keywords::{Kind, kind};
use super::pattern::is_surely_fine;
use super::quick;
use super::refs::{Home, Refs, Target, for_each_subschema};
use crate::json::{Member, Node, Pointer, Value};
use crate::shape::clip;

/// How many mismatches of one value are told.
const MAX_MISMATCHES: usize = 20;

/// How many characters a message about one may have.
const LONGEST_MESSAGE: usize = 400;

/// How many steps a check may take before it is called off.
const MAX_STEPS: usize = 5_000_000;

/// How many are few.
const FEW_STEPS: usize = 50_000;

/// The longest schema that is built at once, in bytes.
const SHORT_SCHEMA: usize = 64 << 10;

/// How many patterns are few.
const FEW_PATTERNS: usize = 20;

/// The longest value, in bytes, in which patterns are looked for at once. An engine of linear time takes the size of the
/// pattern times the length of the text, and both are a stranger's.
const SHORT_VALUE: usize = 4 << 10;

/// How many bytes of a text count as much as a step.
const BYTES_OF_A_STEP: usize = 1 << 10;

/// How much memory the library may take for what it copies to tell what is wrong, in bytes.
const MOST_COPIED: usize = 128 << 20;

/// How many bytes a value takes at most for each byte of its text: a list of small objects takes so many.
const GROWTH: usize = 80;

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

/// How much work it is to hold a value against a schema, by counting and without doing it. Counting is little work itself: it
/// ends where much begins.
pub fn effort(schema: &Node<'_>, value: &Node<'_>) -> Effort {
    if quick::satisfies(schema, value, schema) == Some(true) {
        return Effort::Little;
    }
    let mut patterns = Patterns::default();
    patterns.count(schema);
    let is_plain = length(schema) <= SHORT_SCHEMA
        && !patterns.is_costly
        && patterns.count <= FEW_PATTERNS
        && (patterns.count == 0 || length(value) <= SHORT_VALUE);
    if !is_plain {
        return Effort::Much;
    }
    let refs = Refs::of(schema);
    match Steps::count(&refs, FEW_STEPS, schema, value) {
        Ok(_) => Effort::Little,
        Err(TooCostly) => Effort::Much,
    }
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
    let steps = Steps::count(&refs, MAX_STEPS, schema, value)?;
    let validator = match validator(schema) {
        Ok(validator) => validator,
        Err(reason) => {
            let message = format!("the schema cannot be run: {reason}");
            mismatches.push(Mismatch { pointer: Pointer::root(), message });
            return Ok(mismatches);
        }
    };
    let value = value.to_value();
    if steps.copied > MOST_COPIED {
        if !validator.is_valid(&value) {
            let message =
                "the value is not what the schema says, and too much of both to tell where";
            mismatches.push(Mismatch { pointer: Pointer::root(), message: message.to_owned() });
        }
        return Ok(mismatches);
    }
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
    let known = schema.get("properties").map(Node::members).unwrap_or_default();
    let known: HashSet<&str> = known.iter().map(|member| &*member.key).collect();
    value
        .members()
        .iter()
        .filter(|member| !known.contains(&*member.key))
        .take(MAX_MISMATCHES)
        .map(|member| Mismatch {
            pointer: Pointer::root().key(&member.key),
            message: format!(
                "`{}` is not a property of the schema, and unknown ones are refused",
                clip(&member.key)
            ),
        })
        .collect()
}

/// What of a schema costs more than steps: whoever builds it compiles all its patterns.
#[derive(Default)]
struct Patterns {
    count: usize,
    /// Whether one may go back and forth in its text or is large, or something is held against the same value again.
    is_costly: bool,
}

impl Patterns {
    fn count(&mut self, node: &Node<'_>) {
        for member in node.members() {
            match (&*member.key, &member.value.value) {
                ("pattern", Value::Text(pattern)) => self.add(pattern),
                ("patternProperties", Value::Object(members)) => {
                    for member in members {
                        self.add(&member.key);
                    }
                }
                ("unevaluatedProperties" | "unevaluatedItems" | "$dynamicRef", _) => {
                    self.is_costly = true;
                }
                _ => {}
            }
            self.count(&member.value);
        }
        node.items().iter().for_each(|item| self.count(item));
    }

    fn add(&mut self, pattern: &str) {
        self.count += 1;
        // Where there are many already, it does not matter what this one is like.
        self.is_costly |= self.count <= FEW_PATTERNS && !is_surely_fine(pattern);
    }
}

/// Walks the way a validator would, judging nothing, to learn how far it is and how much would be copied.
struct Steps<'r, 'n, 't> {
    refs: &'r Refs<'n, 't>,
    left: usize,
    /// Bytes that the library would take if nothing fitted.
    copied: usize,
}

/// How a value and a schema were reached.
#[derive(Clone, Copy, Default)]
struct Way {
    calls: usize,
    /// Bytes of the names on the way. Every mismatch has them.
    names: usize,
    /// Whether this is one of several that may fit: then every mismatch has a copy of its value.
    is_alternative: bool,
}

impl Way {
    fn through(self, name: &str) -> Self {
        Self { calls: self.calls + 1, names: self.names + name.len(), ..self }
    }
}

impl<'r, 'n, 't> Steps<'r, 'n, 't> {
    fn count(
        refs: &'r Refs<'n, 't>,
        most: usize,
        schema: &'n Node<'t>,
        value: &Node<'_>,
    ) -> Result<Self, TooCostly> {
        let mut steps = Self { refs, left: most, copied: 0 };
        steps.walk(schema, Home::ROOT, value, Way::default())?;
        Ok(steps)
    }

    fn take(&mut self, steps: usize) -> Result<(), TooCostly> {
        self.left = self.left.checked_sub(steps).ok_or(TooCostly)?;
        Ok(())
    }

    /// Counts what the library keeps of a value that does not fit.
    fn copy(&mut self, schema: &Node<'_>, value: &Node<'_>, way: Way) {
        let of_value = if way.is_alternative { length(value).saturating_mul(GROWTH) } else { 0 };
        let of_each = of_value.saturating_add(way.names.saturating_mul(2));
        let lists_names = ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|one| schema.get(one).is_some());
        let listed = if lists_names { length(value) } else { 0 };
        // A mismatch of this keyword has a copy of what it says.
        let denied = schema.get("not").map_or(0, |denied| length(denied).saturating_mul(GROWTH));
        let all = most_mismatches(schema).saturating_mul(of_each);
        self.copied = self.copied.saturating_add(all).saturating_add(listed).saturating_add(denied);
    }

    fn walk(
        &mut self,
        schema: &'n Node<'t>,
        home: Home,
        value: &Node<'_>,
        way: Way,
    ) -> Result<(), TooCostly> {
        self.take(1 + breadth(schema) * (1 + text_length(value) / BYTES_OF_A_STEP))?;
        if way.calls > MAX_CALLS {
            return Err(TooCostly);
        }
        self.copy(schema, value, way);
        let home = self.refs.home_of(schema, home);
        for reference in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(text) = schema.text_at(reference) else { continue };
            if let Target::Found(target, home) = self.refs.resolve(text, home) {
                self.walk(target, home, value, way.through(text))?;
            }
            if reference == "$dynamicRef" {
                for (target, home) in self.refs.dynamic_targets(text) {
                    self.walk(target, *home, value, way.through(text))?;
                }
            }
        }
        self.properties(schema, home, value, way)?;
        let mut applied = Vec::new();
        for_each_subschema(schema, &mut |keyword, sub| applied.push((keyword, sub)));
        for (keyword, sub) in applied {
            match keyword {
                "$defs" | "definitions" | "contentSchema" | "properties" => {}
                "additionalProperties" | "unevaluatedProperties" | "patternProperties" => {
                    for member in value.members() {
                        self.walk(sub, home, &member.value, way.through(&member.key))?;
                    }
                }
                "items" | "prefixItems" | "contains" | "unevaluatedItems" => {
                    for item in value.items() {
                        self.walk(sub, home, item, way.through(""))?;
                    }
                }
                "propertyNames" => {
                    for member in value.members() {
                        let name = Node { span: member.key_span, value: Value::Null };
                        let way = Way { is_alternative: true, ..way.through("") };
                        self.walk(sub, home, &name, way)?;
                    }
                }
                "anyOf" | "oneOf" => {
                    let way = Way { is_alternative: true, ..way.through("") };
                    self.walk(sub, home, value, way)?;
                }
                _ => self.walk(sub, home, value, way.through(""))?,
            }
        }
        Ok(())
    }

    /// Only a member of its name is held against a property.
    fn properties(
        &mut self,
        schema: &'n Node<'t>,
        home: Home,
        value: &Node<'_>,
        way: Way,
    ) -> Result<(), TooCostly> {
        let properties = schema.get("properties").map(Node::members).unwrap_or_default();
        if properties.is_empty() || value.members().is_empty() {
            return Ok(());
        }
        self.take(value.members().len())?;
        let members: HashMap<&str, &Node<'_>> =
            value.members().iter().map(|member| (&*member.key, &member.value)).collect();
        for property in properties {
            if let Some(member) = members.get(&*property.key) {
                self.walk(&property.value, home, member, way.through(&property.key))?;
            }
        }
        Ok(())
    }
}

/// How much of a schema is looked at for one value: its keywords, the names that these list, and all of the values.
fn breadth(schema: &Node<'_>) -> usize {
    let listed = |member: &Member<'_>| match &*member.key {
        "const" | "enum" => nodes(&member.value),
        _ => member.value.members().len() + member.value.items().len(),
    };
    schema.members().iter().map(|member| 1 + listed(member)).sum()
}

/// How many values there are within one, and itself.
fn nodes(node: &Node<'_>) -> usize {
    let inner = node.members().iter().map(|member| &member.value).chain(node.items());
    1 + inner.map(nodes).sum::<usize>()
}

/// How many mismatches a schema can tell of one value: one by keyword, and one for each name that must be there.
fn most_mismatches(schema: &Node<'_>) -> usize {
    let names = |member: &Member<'_>| match &*member.key {
        "required" => member.value.items().len(),
        "dependentRequired" | "dependencies" => nodes(&member.value),
        _ => 1,
    };
    schema.members().iter().map(names).sum::<usize>().max(1)
}

/// How long a value is where it stands.
fn length(node: &Node<'_>) -> usize {
    (node.span.end - node.span.start) as usize
}

/// How long a text is.
fn text_length(value: &Node<'_>) -> usize {
    value.as_text().map_or(0, str::len)
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
