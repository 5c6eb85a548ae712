//! Whether a schema accepts less or more than it did.
//!
//! What goes in must be accepted as before, so a narrower input is breaking. What comes out must
//! be no more than callers know, so there it is the wider schema that breaks.

mod bounds;
mod object;
mod values;
mod walk;

use serde_json::Value;

use super::{Change, Class};
use crate::json::Pointer;
use crate::model::Json;
use crate::schema::Unknowns;
use walk::Walk;

/// Which way values pass through a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// From the caller.
    Input,
    /// To the caller.
    Output,
}

/// The schema that is compared.
#[derive(Debug)]
pub(super) struct Site {
    /// Which way values pass through it.
    pub(super) side: Side,
    /// What its changes are about.
    pub(super) subject: String,
    /// Where it stands.
    pub(super) pointer: Option<Pointer>,
    /// What becomes of properties of which it says nothing.
    pub(super) unknowns: Unknowns,
}

/// What a change does to the values a schema accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Fewer.
    Narrowed,
    /// More.
    Widened,
    /// Others: some are lost, some are won.
    Moved,
    /// There is something new that nobody has to use.
    Grown,
    /// That cannot be told.
    Unordered,
    /// None: it has a class of its own.
    Plain(Class),
}

/// A step of a comparison: what happened, and where in the schema.
#[derive(Debug)]
struct Step {
    effect: Effect,
    at: Pointer,
    message: String,
}

/// Compares two schemas that have passed [`crate::schema::check`].
pub(super) fn compare(old: &Json, new: &Json, site: &Site) -> Vec<Change> {
    if old == new {
        return Vec::new();
    }
    let (old, new) = (old.value(), new.value());
    let mut walk = Walk::new(site);
    walk.schema(&old, &new, &Pointer::root());
    let is_winding = is_winding(&old) || is_winding(&new);
    let at_best = if is_winding { Class::NeedsReview } else { Class::Cosmetic };
    let told = walk.steps.into_iter().map(|Step { effect, at, message }| Change {
        class: match effect {
            Effect::Plain(class) => class,
            _ => class_of(effect, site.side).min(at_best),
        },
        subject: match at.as_str() {
            "" => site.subject.clone(),
            at => format!("{} at {at}", site.subject),
        },
        message: match effect {
            Effect::Unordered => format!("{message}; the two cannot be compared"),
            _ => message,
        },
        pointer: site.pointer.as_ref().map(|base| at.beneath(base)),
    });
    told.collect()
}

fn class_of(effect: Effect, side: Side) -> Class {
    match (effect, side) {
        (Effect::Moved, _) | (Effect::Narrowed, Side::Input) | (Effect::Widened, Side::Output) => {
            Class::Breaking
        }
        (Effect::Narrowed, Side::Output) | (Effect::Widened, Side::Input) | (Effect::Grown, _) => {
            Class::Additive
        }
        (Effect::Unordered, _) => Class::NeedsReview,
        (Effect::Plain(class), _) => class,
    }
}

/// Whether a part of the schema may be applied in a sense that turns less into more: it is used
/// by reference, and somewhere what it accepts is held against the value.
fn is_winding(schema: &Value) -> bool {
    has_key(schema, &["$ref", "$dynamicRef", "$recursiveRef"])
        && has_key(schema, &["not", "if", "oneOf"])
}

fn has_key(value: &Value, keys: &[&str]) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().any(|(key, value)| keys.contains(&key.as_str()) || has_key(value, keys))
        }
        Value::Array(items) => items.iter().any(|item| has_key(item, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests;
