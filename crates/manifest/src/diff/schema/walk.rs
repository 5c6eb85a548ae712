//! The walk over two schemas side by side.

use serde_json::{Map, Value};

use super::{Effect, Site, Step, bounds, values};
use crate::diff::Class;
use crate::diff::words::{both, quoted};
use crate::json::Pointer;

/// Keywords judged by the rest of the walk.
const JUDGED: [&str; 25] = [
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "pattern",
    "format",
    "uniqueItems",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "propertyNames",
    "patternProperties",
    "$defs",
    "definitions",
];

/// Keywords of which a change cannot be put in order, whether a schema, a list of them or neither.
const UNORDERED: [&str; 26] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
    "unevaluatedProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];

/// A walk, and what it has met so far.
pub(super) struct Walk<'s> {
    pub(super) site: &'s Site,
    pub(super) steps: Vec<Step>,
}

impl<'s> Walk<'s> {
    pub(super) fn new(site: &'s Site) -> Self {
        Self { site, steps: Vec::new() }
    }

    pub(super) fn tell(&mut self, effect: Effect, at: &Pointer, message: impl Into<String>) {
        self.steps.push(Step { effect, at: at.clone(), message: message.into() });
    }

    /// Compares the schemas that stand at a place. It goes no deeper than documents may be.
    pub(super) fn schema(&mut self, old: &Value, new: &Value, at: &Pointer) {
        if old == new {
            return;
        }
        match (old == &Value::Bool(false), new == &Value::Bool(false)) {
            (false, true) => {
                return self.tell(Effect::Narrowed, at, "nothing is accepted here any more");
            }
            (true, false) => {
                return self.tell(Effect::Widened, at, "something is accepted here now");
            }
            (true, true) => return,
            (false, false) => {}
        }
        // `true` accepts what the empty schema accepts.
        let nothing = Map::new();
        let old = old.as_object().unwrap_or(&nothing);
        let new = new.as_object().unwrap_or(&nothing);
        values::types(self, old, new, at);
        values::enumerated(self, old, new, at);
        bounds::compare(self, old, new, at);
        self.object(old, new, at);
        self.nested(old, new, at);
        for keyword in UNORDERED {
            self.unordered(keyword, old.get(keyword), new.get(keyword), at);
        }
        self.annotations(old, new, at);
    }

    /// Compares the schemas that a schema holds beside its properties.
    fn nested(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, at: &Pointer) {
        let anything = Value::Bool(true);
        for keyword in ["items", "propertyNames"] {
            let (was, is) = (old.get(keyword), new.get(keyword));
            self.schema(was.unwrap_or(&anything), is.unwrap_or(&anything), &at.key(keyword));
        }
        for keyword in ["patternProperties", "$defs", "definitions"] {
            let none = Map::new();
            let (was, is) = (members(old, keyword, &none), members(new, keyword, &none));
            let at = at.key(keyword);
            // A definition does nothing by itself; a pattern may overlap with anything.
            let effect = match keyword {
                "patternProperties" => Effect::Unordered,
                _ => Effect::Plain(Class::Cosmetic),
            };
            for (name, schema) in was {
                match is.get(name) {
                    Some(now) => self.schema(schema, now, &at.key(name)),
                    None => self.tell(effect, &at.key(name), "is gone"),
                }
            }
            for name in is.keys().filter(|name| !was.contains_key(*name)) {
                self.tell(effect, &at.key(name), "is new");
            }
        }
    }

    /// Tells that a keyword changed which cannot be put in order, unless only notes inside it did.
    fn unordered(&mut self, keyword: &str, old: Option<&Value>, new: Option<&Value>, at: &Pointer) {
        if old == new {
            return;
        }
        let mut inside = Walk::new(self.site);
        let at = at.key(keyword);
        let is_alike = match (old, new) {
            (Some(old @ Value::Object(_)), Some(new @ Value::Object(_))) => {
                let is_schema = !keyword.starts_with("depend");
                if is_schema {
                    inside.schema(old, new, &at);
                }
                is_schema
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) if old.len() == new.len() => {
                for (index, (old, new)) in old.iter().zip(new).enumerate() {
                    inside.schema(old, new, &at.index(index));
                }
                true
            }
            _ => false,
        };
        let is_note = |step: &Step| step.effect == Effect::Plain(Class::Cosmetic);
        if is_alike && inside.steps.iter().all(is_note) {
            return self.steps.extend(inside.steps);
        }
        let show = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
        let (was, is) = both(&show(old), &show(new));
        self.tell(Effect::Unordered, &at, format!("`{keyword}` was {was} and is now {is}"));
    }

    /// Tells of keywords that judge nothing.
    fn annotations(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, at: &Pointer) {
        let is_note = |keyword: &str| !JUDGED.contains(&keyword) && !UNORDERED.contains(&keyword);
        let gone = old.keys().filter(|keyword| !new.contains_key(*keyword));
        for keyword in new.keys().chain(gone).filter(|keyword| is_note(keyword)) {
            let show = |value: &Value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let message = match (old.get(keyword), new.get(keyword)) {
                (Some(was), Some(is)) if was != is => {
                    let (was, is) = both(&show(was), &show(is));
                    format!("{} was {was} and is now {is}", quoted(keyword))
                }
                (None, Some(is)) => format!("{} is {} now", quoted(keyword), quoted(&show(is))),
                (Some(was), None) => {
                    format!("{} was {} and is gone", quoted(keyword), quoted(&show(was)))
                }
                (Some(_), Some(_)) | (None, None) => continue,
            };
            // A default is used where a caller gives nothing.
            let class = if keyword == "default" { Class::Additive } else { Class::Cosmetic };
            self.tell(Effect::Plain(class), at, message);
        }
    }
}

/// The members of the object at a keyword.
pub(super) fn members<'v>(
    schema: &'v Map<String, Value>,
    keyword: &str,
    none: &'v Map<String, Value>,
) -> &'v Map<String, Value> {
    schema.get(keyword).and_then(Value::as_object).unwrap_or(none)
}
