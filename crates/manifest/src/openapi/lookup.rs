//! Where the references of a document lead.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::parts::{Inside, Kind};
use super::{METHODS, Version};
use crate::json::{Node, Pointer, Value};
use crate::schema::{self, Words, percent_decoded};

/// How many references may lead to one another.
const MAX_HOPS: usize = 32;

/// How many members an object may have before it is worth an index.
const MANY: usize = 16;

/// A tree in which parts are found by their pointers, however many are looked for.
pub(super) struct Lookup<'n, 't> {
    root: &'n Node<'t>,
    index: RefCell<HashMap<*const Node<'t>, HashMap<&'n str, &'n Node<'t>>>>,
}

impl<'n, 't> Lookup<'n, 't> {
    pub(super) fn new(root: &'n Node<'t>) -> Self {
        Self { root, index: RefCell::default() }
    }

    /// The steps of a reference into this very document, and whether there are any.
    pub(super) fn steps(reference: &str) -> Option<Vec<String>> {
        let fragment = reference.strip_prefix('#')?;
        Some(Pointer::parse(&percent_decoded(fragment)?)?.steps().collect())
    }

    /// What a reference into this very document leads to.
    pub(super) fn find(&self, reference: &str) -> Option<&'n Node<'t>> {
        Self::steps(reference)?.iter().try_fold(self.root, |node, step| self.step(node, step))
    }

    /// One step down.
    fn step(&self, node: &'n Node<'t>, step: &str) -> Option<&'n Node<'t>> {
        match &node.value {
            Value::List(items) => items.get(step.parse::<usize>().ok()?),
            Value::Object(members) if members.len() > MANY => {
                let mut index = self.index.borrow_mut();
                let known = index.entry(std::ptr::from_ref(node)).or_insert_with(|| {
                    // The first of two members of one name counts, as everywhere else.
                    let backwards = members.iter().rev();
                    backwards.map(|member| (member.key.as_ref(), &member.value)).collect()
                });
                known.get(step).copied()
            }
            _ => node.get(step),
        }
    }
}

/// Where a reference leads.
pub(super) enum Lead<'n, 't> {
    /// To an object of this kind.
    Part(Kind, &'n Node<'t>),
    /// To something that is no object of its own: a list of parameters, all the schemas.
    Group,
    /// To a place of which OpenAPI says nothing.
    Stray(&'n Node<'t>),
    /// To a schema by its address or anchor.
    Named,
    /// To nothing that is there.
    Missing,
    /// Out of the document.
    Remote,
}

/// A document, with what must be known of the whole to judge a part.
pub(super) struct Document<'n, 't> {
    pub(super) root: &'n Node<'t>,
    pub(super) version: Version,
    lookup: Lookup<'n, 't>,
    addresses: HashSet<&'n str>,
    anchors: HashSet<&'n str>,
    /// The ids of its operations.
    pub(super) operations: HashSet<&'n str>,
    /// The names of its security schemes.
    pub(super) schemes: BTreeSet<&'n str>,
}

impl<'n, 't> Document<'n, 't> {
    pub(super) fn new(root: &'n Node<'t>, version: Version) -> Self {
        let schemes = root.at(&["components", "securitySchemes"]);
        let schemes = schemes.map(Node::members).unwrap_or_default();
        let mut document = Self {
            root,
            version,
            lookup: Lookup::new(root),
            addresses: HashSet::new(),
            anchors: HashSet::new(),
            operations: HashSet::new(),
            schemes: schemes.iter().map(|member| member.key.as_ref()).collect(),
        };
        document.gather(root, "");
        document
    }

    /// Gathers the names in the value that stands under a key.
    fn gather(&mut self, node: &'n Node<'t>, key: &str) {
        for member in node.members() {
            match (member.key.as_ref(), member.value.as_text()) {
                ("$id", Some(text)) => {
                    let address = text.trim_end_matches('#');
                    self.addresses.insert(address);
                    self.addresses.extend(address.rsplit('/').next());
                }
                ("$anchor" | "$dynamicAnchor", Some(text)) => {
                    self.anchors.insert(text);
                }
                // A link has an `operationId` too.
                ("operationId", Some(text)) if METHODS.contains(&key) => {
                    self.operations.insert(text);
                }
                _ => self.gather(&member.value, &member.key),
            }
        }
        for item in node.items() {
            self.gather(item, "");
        }
    }

    /// The words its schemas are written in.
    pub(super) fn words(&self) -> Words {
        match self.version {
            Version::V3_0 => Words::OpenApi30,
            Version::V3_1 => Words::Draft2020,
        }
    }

    /// Where a reference leads.
    pub(super) fn lead(&self, reference: &str) -> Lead<'n, 't> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if !address.is_empty() {
            let is_known = self.addresses.contains(address);
            return if is_known { Lead::Named } else { Lead::Remote };
        }
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return if self.anchors.contains(fragment) { Lead::Named } else { Lead::Missing };
        }
        let Some(steps) = Lookup::steps(reference) else { return Lead::Missing };
        let mut at = Standing::Part(Kind::Document);
        let mut node = self.root;
        for step in &steps {
            let Some(next) = self.lookup.step(node, step) else { return Lead::Missing };
            at = at.step(step, self.version);
            node = next;
        }
        match at {
            Standing::Part(kind) => Lead::Part(kind, node),
            Standing::Group(_) => Lead::Group,
            Standing::Stray => Lead::Stray(node),
        }
    }

    /// The object itself, once every reference in its place has been followed.
    pub(super) fn settled(&self, node: &'n Node<'t>) -> Option<&'n Node<'t>> {
        let mut node = node;
        for _ in 0..MAX_HOPS {
            match node.text_at("$ref") {
                Some(reference) => node = self.lookup.find(reference)?,
                None => return Some(node),
            }
        }
        None
    }

    /// One step down from a part.
    pub(super) fn step(&self, node: &'n Node<'t>, step: &str) -> Option<&'n Node<'t>> {
        self.lookup.step(node, step)
    }

    /// Whether the references from here lead to one another for ever, or nearly so. One that leads
    /// nowhere is told where it stands.
    pub(super) fn is_endless(&self, node: &'n Node<'t>) -> bool {
        let next = |node: &'n Node<'t>| self.lookup.find(node.text_at("$ref")?);
        let way = std::iter::successors(Some(node), |node| next(node));
        way.take(MAX_HOPS + 1).count() > MAX_HOPS
    }
}

/// What stands at a place, seen from the way there.
#[derive(Clone, Copy)]
enum Standing {
    Part(Kind),
    Group(Kind),
    Stray,
}

impl Standing {
    fn step(self, step: &str, version: Version) -> Self {
        let inside = match self {
            Standing::Group(kind) => return Standing::Part(kind),
            Standing::Stray => return Standing::Stray,
            Standing::Part(Kind::Schema) => match Words::Draft2020.kind(step) {
                Some(schema::Kind::Schema) => Some(Inside::One(Kind::Schema)),
                Some(
                    schema::Kind::Schemas
                    | schema::Kind::SchemaMap
                    | schema::Kind::PatternMap
                    | schema::Kind::Dependencies,
                ) => Some(Inside::Named(Kind::Schema)),
                _ => None,
            },
            Standing::Part(kind) => kind.part(version).inside(step),
        };
        match inside {
            Some(Inside::One(kind)) => Standing::Part(kind),
            Some(Inside::Each(kind) | Inside::Named(kind)) => Standing::Group(kind),
            None => Standing::Stray,
        }
    }
}
