//! What a schema says at first sight: types, properties, and what it demands or refuses.
//!
//! References into the same document and `allOf` are followed; every other way to say more is left
//! alone and noted, so that nobody takes silence for a statement.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use crate::json::{Member, Node, Value};
use crate::openapi::lookup::Lookup;
use crate::schema::Words;

/// The types a value may have, `null` apart, as a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

const NAMES: [(&str, u8); 6] = [
    ("boolean", 1),
    ("integer", 2),
    ("number", 2 | 4),
    ("string", 8),
    ("array", 16),
    ("object", 32),
];

impl Types {
    pub(super) const ALL: Types = Types(63);

    fn named(name: &str) -> Self {
        // `null` is nothing here: what may be null on both sides must still agree on the rest.
        Types(NAMES.iter().find(|(known, _)| *known == name).map_or(0, |(_, bits)| *bits))
    }

    fn of(value: &Node<'_>) -> Self {
        match &value.value {
            Value::Number(number) if number.is_integer() => Types(2),
            _ => Self::named(value.type_name()),
        }
    }

    fn and(self, other: Self) -> Self {
        Types(self.0 & other.0)
    }

    fn or(self, other: Self) -> Self {
        Types(self.0 | other.0)
    }

    /// Whether no value but null is of both.
    pub(super) fn exclude(self, other: Self) -> bool {
        self.0 != 0 && other.0 != 0 && self.and(other).0 == 0
    }

    pub(super) fn may_be_object(self) -> bool {
        self.0 & 32 != 0
    }

    pub(super) fn may_be_array(self) -> bool {
        self.0 & 16 != 0
    }

    /// The types, in words.
    pub(super) fn words(self) -> String {
        let is_number = self.0 & 4 != 0;
        let names = NAMES
            .iter()
            .filter(|(name, bits)| self.0 & bits == *bits && !(is_number && *name == "integer"));
        names.map(|(name, _)| *name).collect::<Vec<_>>().join("` or `")
    }
}

/// What a schema says of objects.
#[derive(Default)]
pub(super) struct View<'n, 't> {
    /// Every statement about each property; all of them hold.
    pub(super) properties: HashMap<&'n str, Vec<&'n Member<'t>>>,
    /// The names that must be there.
    pub(super) required: Vec<&'n str>,
    /// For each part that allows no others: the names it knows.
    closed: Vec<HashSet<&'n str>>,
    /// Whether the parts together allow no others.
    is_sealed: bool,
    /// Whether it lists properties at all.
    pub(super) has_list: bool,
    /// Whether it may say more than is seen here.
    pub(super) is_vague: bool,
}

impl View<'_, '_> {
    /// Whether it certainly refuses a property of that name.
    pub(super) fn refuses(&self, name: &str) -> bool {
        self.closed.iter().any(|known| !known.contains(name))
            || (self.is_sealed && !self.is_vague && !self.properties.contains_key(name))
    }

    /// Whether it allows no properties but those it knows.
    pub(super) fn is_closed(&self) -> bool {
        !self.closed.is_empty() || self.is_sealed
    }
}

/// How deep schemas are followed.
const MAX_DEPTH: usize = 12;

/// Reads the schemas of one document.
pub(super) struct Reader<'r, 'n, 't> {
    lookup: Lookup<'n, 't>,
    words: Words,
    /// How many schemas may still be looked at.
    steps: &'r Cell<u32>,
}

impl<'r, 'n, 't> Reader<'r, 'n, 't> {
    /// A reader of schemas whose references are read from `root`.
    pub(super) fn new(root: &'n Node<'t>, words: Words, steps: &'r Cell<u32>) -> Self {
        Self { lookup: Lookup::new(root), words, steps }
    }

    /// What counts of a schema: before 3.1, nothing beside a reference.
    fn members(&self, schema: &'n Node<'t>) -> impl Iterator<Item = &'n Member<'t>> {
        let is_alone = self.words == Words::OpenApi30 && schema.get("$ref").is_some();
        schema.members().iter().filter(move |member| !is_alone || member.key == "$ref")
    }

    fn spend(&self, depth: usize) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0 && depth < MAX_DEPTH
    }

    /// The types that values of a schema may have; all of them when that is not clear.
    pub(super) fn types(&self, schema: &'n Node<'t>) -> Types {
        self.types_within(schema, 0)
    }

    fn types_within(&self, schema: &'n Node<'t>, depth: usize) -> Types {
        if !self.spend(depth) || schema.get("$id").is_some() {
            return Types::ALL;
        }
        let mut types = Types::ALL;
        let any = |list: &'n Node<'t>| {
            let each = list.items().iter().map(|item| self.types_within(item, depth + 1));
            each.reduce(Types::or).unwrap_or(Types::ALL)
        };
        for member in self.members(schema) {
            let value = &member.value;
            let said = match member.key.as_ref() {
                "type" => match &value.value {
                    Value::Text(name) => Types::named(name),
                    Value::List(names) => names
                        .iter()
                        .filter_map(Node::as_text)
                        .map(Types::named)
                        .reduce(Types::or)
                        .unwrap_or(Types::ALL),
                    _ => continue,
                },
                "const" => Types::of(value),
                "enum" => {
                    value.items().iter().map(Types::of).reduce(Types::or).unwrap_or(Types::ALL)
                }
                "$ref" => match value.as_text().and_then(|text| self.lookup.find(text)) {
                    Some(target) => self.types_within(target, depth + 1),
                    None => continue,
                },
                "allOf" => {
                    let each = value.items().iter().map(|item| self.types_within(item, depth + 1));
                    each.fold(Types::ALL, Types::and)
                }
                "anyOf" | "oneOf" => any(value),
                _ => continue,
            };
            types = types.and(said);
        }
        types
    }

    /// What a schema says of objects.
    pub(super) fn view(&self, schema: &'n Node<'t>) -> View<'n, 't> {
        let mut view = View::default();
        self.add(schema, &mut view, 0);
        view
    }

    fn add(&self, schema: &'n Node<'t>, view: &mut View<'n, 't>, depth: usize) {
        if !self.spend(depth) || !schema.is_object() || schema.get("$id").is_some() {
            view.is_vague = true;
            return;
        }
        let own = || schema.get("properties").map(Node::members).unwrap_or_default();
        for member in self.members(schema) {
            let value = &member.value;
            match member.key.as_ref() {
                "properties" => {
                    view.has_list = true;
                    for property in own() {
                        view.properties.entry(&property.key).or_default().push(property);
                    }
                }
                "required" => {
                    view.required.extend(value.items().iter().filter_map(Node::as_text));
                }
                "additionalProperties" if value.as_bool() == Some(false) => {
                    let names = own().iter().map(|property| property.key.as_ref()).collect();
                    view.closed.push(names);
                }
                "unevaluatedProperties" if value.as_bool() == Some(false) => view.is_sealed = true,
                "$ref" => match value.as_text().and_then(|text| self.lookup.find(text)) {
                    Some(target) => self.add(target, view, depth + 1),
                    None => view.is_vague = true,
                },
                "allOf" => {
                    for item in value.items() {
                        self.add(item, view, depth + 1);
                    }
                }
                "additionalProperties"
                | "unevaluatedProperties"
                | "patternProperties"
                | "propertyNames"
                | "anyOf"
                | "oneOf"
                | "not"
                | "if"
                | "then"
                | "else"
                | "dependentSchemas"
                | "dependentRequired"
                | "dependencies"
                | "$dynamicRef"
                | "$recursiveRef"
                | "discriminator" => view.is_vague = true,
                _ => {}
            }
        }
        if schema.get("patternProperties").is_some() {
            view.closed.clear();
        }
    }
}
