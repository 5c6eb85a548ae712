//! Properties: named, required, and all others.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::walk::{Walk, members};
use super::{Effect, Side};
use crate::diff::Class;
use crate::diff::words::quoted;
use crate::json::Pointer;
use crate::schema::Unknowns;

/// What a schema says of properties it does not name.
#[derive(PartialEq)]
enum Others<'v> {
    /// They may be anything.
    Free,
    /// They are refused.
    Refused,
    /// They have a schema of their own.
    Of(&'v Value),
}

impl Walk<'_> {
    /// Compares what is said of the properties of an object.
    pub(super) fn object(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        at: &Pointer,
    ) {
        let none = Map::new();
        let (was, is) = (members(old, "properties", &none), members(new, "properties", &none));
        let (old_required, new_required) = (required(old), required(new));
        let (old_others, new_others) = (self.others(old, at), self.others(new, at));
        let home = at.key("properties");
        for (name, schema) in was {
            match is.get(name) {
                Some(now) => self.schema(schema, now, &home.key(name)),
                None => self.property_gone(schema, &new_others, &home.key(name)),
            }
        }
        for (name, schema) in is.iter().filter(|(name, _)| !was.contains_key(*name)) {
            let at = home.key(name);
            match self.site.side {
                Side::Input if new_required.contains(name.as_str()) => {
                    self.tell(Effect::Plain(Class::Breaking), &at, "is new and required");
                }
                Side::Input | Side::Output => self.property_new(schema, &old_others, &at),
            }
        }
        // A property that came with a requirement, or went with one, has been told already.
        let is_new = |name: &str| is.contains_key(name) && !was.contains_key(name);
        let is_gone = |name: &str| was.contains_key(name) && !is.contains_key(name);
        for name in new_required.difference(&old_required).filter(|name| !is_new(name)) {
            let message = format!("{} is required now", quoted(name));
            self.tell(Effect::Narrowed, &home.key(name), message);
        }
        for name in old_required.difference(&new_required).filter(|name| !is_gone(name)) {
            let message = format!("{} is not required any more", quoted(name));
            self.tell(Effect::Widened, &home.key(name), message);
        }
        if old_others != new_others {
            self.others_changed(&old_others, &new_others, &at.key("additionalProperties"));
        }
    }

    /// A property that was one of the others before is held to what was said of those.
    fn property_new(&mut self, schema: &Value, others: &Others<'_>, at: &Pointer) {
        match others {
            Others::Of(before) => self.schema(before, schema, at),
            Others::Free | Others::Refused => self.tell(Effect::Grown, at, "is new"),
        }
    }

    fn property_gone(&mut self, schema: &Value, others: &Others<'_>, at: &Pointer) {
        match (self.site.side, others) {
            (Side::Output, _) => {
                self.tell(Effect::Plain(Class::Breaking), at, "is gone: it is promised no more");
            }
            (Side::Input, Others::Refused) => {
                self.tell(Effect::Plain(Class::Breaking), at, "is gone: it is refused now");
            }
            (Side::Input, Others::Of(after)) => self.schema(schema, after, at),
            (Side::Input, Others::Free) => {
                let message = "is gone: it is still accepted, but perhaps not read";
                self.tell(Effect::Plain(Class::NeedsReview), at, message);
            }
        }
    }

    fn others_changed(&mut self, old: &Others<'_>, new: &Others<'_>, at: &Pointer) {
        let anything = Value::Bool(true);
        match (old, new) {
            // Callers look past what they do not know, as past any new property.
            (_, Others::Refused) if self.site.side == Side::Output => {
                self.tell(Effect::Grown, at, "there are no other properties now");
            }
            (Others::Refused, _) if self.site.side == Side::Output => {
                self.tell(Effect::Grown, at, "there may be other properties now");
            }
            (_, Others::Refused) => {
                self.tell(Effect::Narrowed, at, "other properties are refused now");
            }
            (Others::Refused, _) => {
                self.tell(Effect::Widened, at, "other properties are accepted now");
            }
            (Others::Of(was), Others::Of(is)) => self.schema(was, is, at),
            (Others::Of(was), Others::Free) => self.schema(was, &anything, at),
            (Others::Free, Others::Of(is)) => self.schema(&anything, is, at),
            (Others::Free, Others::Free) => {}
        }
    }

    /// What is said of other properties; at the top, silence may be a refusal.
    fn others<'v>(&self, schema: &'v Map<String, Value>, at: &Pointer) -> Others<'v> {
        let has = |keyword| schema.contains_key(keyword);
        let is_refusal = self.site.unknowns == Unknowns::Refused
            && *at == Pointer::root()
            && has("properties")
            && !has("patternProperties")
            && !has("unevaluatedProperties");
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => Others::Refused,
            Some(schema @ Value::Object(members)) if !members.is_empty() => Others::Of(schema),
            None if is_refusal => Others::Refused,
            Some(_) | None => Others::Free,
        }
    }
}

fn required(schema: &Map<String, Value>) -> BTreeSet<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}
