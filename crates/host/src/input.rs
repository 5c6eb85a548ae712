//! The input of a call: read strictly, completed with defaults, held against its schema.

use std::time::Instant;

use manifest::dialect::Dialect;
use manifest::json::{self, Node};
use manifest::model::Action;
use manifest::schema::{Unknowns, follow};
use policy::Arguments;
use serde_json::{Value, json};

use crate::clip;
use crate::error::{CallError, Kind};
use crate::judge::{DEADLINE, Mismatch, PATIENCE, TooLong, mismatches, mismatches_of};
use crate::strict;

/// The longest input.
const LONGEST: usize = 8 << 20;

/// How deep defaults are looked for.
const DEEPEST: usize = 32;

/// How many of the members that an input may have are told to whoever gave others, and how much of each name.
const MOST_TOLD: usize = 32;
const LONGEST_NAME: usize = 64;

/// How many times it is looked elsewhere what a member is.
const MOST_HOPS: usize = 8;

/// How many of the values that a member may have are told; longer ones than a name are not.
const MOST_VALUES: usize = 32;

/// The input of a call that passed all checks.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// As the caller wrote it.
    pub(crate) verbatim: String,
    /// As they are used: with the defaults of the schema, unless the tool gets the text as it was written.
    pub(crate) arguments: Arguments,
}

impl Input {
    /// What the owner is shown of it: all that the tool gets.
    pub(crate) fn shown(&self) -> String {
        if self.arguments.is_whole() {
            self.arguments.value().to_string()
        } else {
            self.verbatim.clone()
        }
    }
}

/// Reads and checks the input of an action.
pub(crate) fn read(text: &str, action: &Action, dialect: Dialect) -> Result<Input, CallError> {
    let verbatim = if text.trim().is_empty() { "{}" } else { text };
    if verbatim.len() > LONGEST {
        let message = format!("the input is longer than {} MiB", LONGEST >> 20);
        return Err(CallError::new(Kind::BadInput, message).with("longest", LONGEST));
    }
    let (mut numbers, object) = (Vec::new(), object(verbatim)?);
    // Where the tool gets the text, there are numbers that no value holds as they are written.
    if dialect == Dialect::Agentcli {
        odd_numbers(&object, verbatim, &mut numbers);
    }
    let value = match &action.input {
        Some(schema) => complete_and_check((verbatim, &object), schema.text(), dialect)?,
        // An action without a schema takes no input in the dialect that says so.
        None if dialect == Dialect::InstallManifest && !object.members().is_empty() => {
            let message = format!("`{}` takes no input", action.name);
            return Err(CallError::new(Kind::BadInput, message));
        }
        None => object.to_value(),
    };
    let arguments = Arguments::with_numbers(value, &numbers);
    Ok(Input { verbatim: verbatim.to_owned(), arguments })
}

/// The object that a text is.
fn object(text: &str) -> Result<Node<'_>, CallError> {
    let node = strict::tree(text).map_err(|fault| fault.told(Kind::BadInput, "the input"))?;
    if !node.is_object() {
        let found = match node.type_name() {
            "null" => "null".to_owned(),
            "array" => "an array".to_owned(),
            other => format!("a {other}"),
        };
        let message = format!("the input must be a JSON object, not {found}");
        return Err(CallError::new(Kind::BadInput, message));
    }
    Ok(node)
}

fn odd_numbers<'t>(node: &Node<'_>, text: &'t str, into: &mut Vec<&'t str>) {
    match &node.value {
        json::Value::Number(_) => {
            let (written, held) = (&text[node.span.range()], node.to_value().to_string());
            if held != written {
                into.push(written);
            }
        }
        json::Value::List(items) => items.iter().for_each(|one| odd_numbers(one, text, into)),
        json::Value::Object(members) => {
            for member in members {
                odd_numbers(&member.value, text, into);
            }
        }
        json::Value::Null | json::Value::Bool(_) | json::Value::Text(_) => {}
    }
}

fn complete_and_check(
    (verbatim, object): (&str, &Node<'_>),
    text: &str,
    dialect: Dialect,
) -> Result<Value, CallError> {
    let value = object.to_value();
    // Most schemas have none, and need not be read for them; a name may be written with escapes.
    let may_have_any = text.contains("default") || text.contains("\\u");
    let defaults = may_have_any.then(|| json::parse(text));
    let completed = defaults.as_ref().and_then(|parsed| parsed.root.as_ref()).map(|schema| {
        let mut completed = value.clone();
        complete(&mut completed, schema, 0);
        completed
    });
    let checked = completed.as_ref().map(ToString::to_string);
    let unknowns = match dialect {
        Dialect::InstallManifest => Unknowns::Refused,
        _ => Unknowns::AsTheSchemaSays,
    };
    let until = Instant::now() + PATIENCE;
    let found = match &checked {
        Some(completed) => mismatches(text, completed, unknowns, until),
        None => mismatches_of(text, (verbatim, object), unknowns, until),
    };
    match found {
        // There the defaults are for the check alone: the tool gets what was written.
        Ok(found) if found.is_empty() && dialect == Dialect::Agentcli => Ok(value),
        Ok(found) if found.is_empty() => Ok(completed.unwrap_or(value)),
        Ok(found) => {
            let error = refused("the input does not fit the schema", Kind::BadInput, &found);
            Err(match &json::parse(text).root {
                Some(schema) => error.with("takes", taken(schema, &[])),
                None => error,
            })
        }
        Err(TooLong) => Err(too_long(Kind::BadInput)),
    }
}

/// Tells what an action takes, with an input that it cannot do with; it also needs these members, whatever its schema says.
pub(crate) fn tell_taken(error: CallError, action: &Action, needed: &[&str]) -> CallError {
    let parsed = action.input.as_ref().map(|schema| json::parse(schema.text()));
    match parsed.as_ref().and_then(|parsed| parsed.root.as_ref()) {
        Some(schema) if error.kind == Kind::BadInput => error.with("takes", taken(schema, needed)),
        _ => error,
    }
}

/// The members that an input may have, those that it must have first.
fn taken(schema: &Node<'_>, needed: &[&str]) -> Vec<Value> {
    let required = schema.list_at("required").iter().filter_map(Node::as_text);
    let required: Vec<_> = required.chain(needed.iter().copied()).collect();
    let properties = schema.get("properties").map_or(&[][..], Node::members);
    let mut taken: Vec<_> = properties
        .iter()
        .map(|one| (&one.value, required.contains(&&*one.key), &*one.key))
        .collect();
    taken.sort_by_key(|(_, is_required, _)| !is_required);
    let told = taken.into_iter().take(MOST_TOLD).map(|(member, is_required, name)| {
        let member = meant(member, schema);
        let (name, kind) = (clip::start(name, LONGEST_NAME), member.text_at("type"));
        let mut told = json!({ "name": name, "type": kind, "required": is_required });
        put_values(member, &mut told);
        told
    });
    told.collect()
}

/// What a member of a schema is, where that stands somewhere else in it, or beside that it may be null.
fn meant<'s, 't>(member: &'s Node<'t>, schema: &'s Node<'t>) -> &'s Node<'t> {
    let mut found = member;
    for _ in 0..MOST_HOPS {
        if found.get("type").is_some() || found.get("enum").is_some() {
            return found;
        }
        let others = ["anyOf", "oneOf", "allOf"].iter().flat_map(|key| found.list_at(key));
        let mut others = others.filter(|one| one.text_at("type") != Some("null"));
        found = match (found.text_at("$ref"), others.next(), others.next()) {
            (Some(reference), ..) => {
                let there = reference.strip_prefix('#').and_then(|path| follow(schema, path));
                let Some(there) = there else { return found };
                there
            }
            (None, Some(only), None) => only,
            _ => return found,
        };
    }
    found
}

/// Tells the values of a member that takes only some.
fn put_values(member: &Node<'_>, told: &mut Value) {
    let all = member.list_at("enum");
    if all.is_empty() {
        return;
    }
    let short = all.iter().map(Node::to_value).filter(|one| one.to_string().len() <= LONGEST_NAME);
    let values: Vec<_> = short.take(MOST_VALUES).collect();
    if values.len() < all.len() {
        told["more_values"] = (all.len() - values.len()).into();
    }
    told["values"] = values.into();
}

/// Puts in what the schema says where the caller said nothing.
fn complete(value: &mut Value, schema: &Node<'_>, depth: usize) {
    let (Value::Object(members), Some(properties)) = (value, schema.get("properties")) else {
        return;
    };
    if depth > DEEPEST {
        return;
    }
    for property in properties.members() {
        if !members.contains_key(&*property.key)
            && let Some(default) = property.value.get("default")
        {
            members.insert(property.key.to_string(), default.to_value());
        }
        if let Some(member) = members.get_mut(&*property.key) {
            complete(member, &property.value, depth + 1);
        }
    }
}

/// Holds what an answer is said to be against the schema it was promised by.
pub(crate) fn check_output(
    said: &str,
    value: &Value,
    schema: &str,
    until: Instant,
) -> Result<(), CallError> {
    match unfit(value, schema, until)?.as_slice() {
        [] => Ok(()),
        found => {
            let message = format!("{said} does not fit its schema");
            Err(refused(&message, Kind::BadOutput, found))
        }
    }
}

/// What of an answer does not fit, until the time of the call is over and a little longer: an answer in the
/// last moment is an answer.
pub(crate) fn unfit(
    value: &Value,
    schema: &str,
    until: Instant,
) -> Result<Vec<Mismatch>, CallError> {
    let until = until + DEADLINE;
    mismatches(schema, &value.to_string(), Unknowns::AsTheSchemaSays, until)
        .map_err(|TooLong| too_long(Kind::BadOutput))
}

fn refused(message: &str, kind: Kind, found: &[Mismatch]) -> CallError {
    let said: Vec<_> = found
        .iter()
        .map(|(pointer, message)| json!({ "pointer": pointer, "message": message }))
        .collect();
    let words = found.iter().map(|(pointer, message)| match pointer.as_str() {
        "" => message.clone(),
        pointer => format!("{pointer}: {message}"),
    });
    let words: Vec<_> = words.collect();
    CallError::new(kind, format!("{message}: {}", words.join("; "))).with("errors", said)
}

fn too_long(kind: Kind) -> CallError {
    CallError::new(kind, "to hold this against the schema takes too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_they_are_written_where_the_tool_gets_them_so() {
        let action = crate::run::mcp::assumed("look");
        let digest = |text: &str, dialect| {
            let input = read(text, &action, dialect).unwrap();
            input.arguments.digest().to_owned()
        };
        let (one, other) = (r#"{"n":10000000000000000000001}"#, r#"{"n":10000000000000000000002}"#);
        assert_ne!(digest(one, Dialect::Agentcli), digest(other, Dialect::Agentcli));
        // Here both reach the tool as the same number.
        assert_eq!(digest(one, Dialect::Mcpkg), digest(other, Dialect::Mcpkg));
        let spaced = digest(r#"{ "n": 3, "x": 0.5 }"#, Dialect::Agentcli);
        assert_eq!(spaced, digest(r#"{"x":0.5,"n":3}"#, Dialect::Agentcli));
        assert_eq!(read(one, &action, Dialect::Agentcli).unwrap().shown(), one);
    }
}
