//! The input of a call: read strictly, completed with defaults, held against its schema.

use std::time::Instant;

use manifest::dialect::Dialect;
use manifest::json::{self, Node};
use manifest::model::Action;
use manifest::schema::Unknowns;
use policy::Arguments;
use serde_json::{Value, json};

use crate::error::{CallError, Kind};
use crate::judge::{DEADLINE, Mismatch, TooLong, mismatches};

/// The longest input.
const LONGEST: usize = 8 << 20;

/// How deep defaults are looked for.
const DEEPEST: usize = 32;

/// The input of a call that passed all checks.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// As the caller wrote it.
    pub(crate) verbatim: String,
    /// With the defaults of the schema.
    pub(crate) arguments: Arguments,
}

/// Reads and checks the input of an action.
pub(crate) fn read(text: &str, action: &Action, dialect: Dialect) -> Result<Input, CallError> {
    let verbatim = if text.trim().is_empty() { "{}" } else { text };
    if verbatim.len() > LONGEST {
        let message = format!("the input is longer than {} MiB", LONGEST >> 20);
        return Err(CallError::new(Kind::BadInput, message));
    }
    let value = object(verbatim)?;
    let value = match &action.input {
        Some(schema) => complete_and_check(value, schema.text(), dialect)?,
        // An action without a schema takes no input in the dialect that says so.
        None if dialect == Dialect::InstallManifest => match value.as_object() {
            Some(members) if !members.is_empty() => {
                let message = format!("`{}` takes no input", action.name);
                return Err(CallError::new(Kind::BadInput, message));
            }
            _ => value,
        },
        None => value,
    };
    Ok(Input { verbatim: verbatim.to_owned(), arguments: Arguments::new(value) })
}

fn object(text: &str) -> Result<Value, CallError> {
    let parsed = json::parse(text);
    if let Some(fault) = parsed.faults.first() {
        let message = format!("the input is no JSON: {}", fault.message);
        return Err(CallError::new(Kind::BadInput, message));
    }
    match parsed.root {
        Some(node) if node.is_object() => Ok(node.to_value()),
        Some(node) => {
            let message = format!("the input must be a JSON object, not {}", node.type_name());
            Err(CallError::new(Kind::BadInput, message))
        }
        None => Err(CallError::new(Kind::BadInput, "the input is no JSON")),
    }
}

fn complete_and_check(mut value: Value, text: &str, dialect: Dialect) -> Result<Value, CallError> {
    let parsed = json::parse(text);
    let Some(schema) = &parsed.root else { return Ok(value) };
    complete(&mut value, schema, 0);
    let unknowns = match dialect {
        Dialect::InstallManifest => Unknowns::Refused,
        _ => Unknowns::AsTheSchemaSays,
    };
    let until = Instant::now() + DEADLINE;
    match mismatches(text, &value.to_string(), unknowns, until) {
        Ok(found) if found.is_empty() => Ok(value),
        Ok(found) => Err(refused("the input does not fit the schema", Kind::BadInput, &found)),
        Err(TooLong) => Err(too_long(Kind::BadInput)),
    }
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

/// Holds an answer against the schema it was promised by, until the time of the call is over and a little longer: an answer in
/// the last moment is an answer.
pub(crate) fn check_output(value: &Value, schema: &str, until: Instant) -> Result<(), CallError> {
    let until = until + DEADLINE;
    match mismatches(schema, &value.to_string(), Unknowns::AsTheSchemaSays, until) {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(found) => Err(refused("the answer does not fit its schema", Kind::BadOutput, &found)),
        Err(TooLong) => Err(too_long(Kind::BadOutput)),
    }
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
