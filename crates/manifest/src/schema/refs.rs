//! Where the references of a schema lead.

use crate::json::{Node, Pointer, Value};

use super::keywords::{Kind, kind};

/// What a reference turned out to be.
#[derive(Debug)]
pub(super) enum Target<'n, 't> {
    /// A part of this schema.
    Found(&'n Node<'t>),
    /// Nothing that is there.
    Missing,
    /// Something outside the document.
    Remote,
}

/// The parts of a schema that references can lead to.
#[derive(Debug)]
pub(super) struct Refs<'n, 't> {
    root: &'n Node<'t>,
    ids: Vec<(&'n str, &'n Node<'t>)>,
    anchors: Vec<(&'n str, &'n Node<'t>)>,
}

impl<'n, 't> Refs<'n, 't> {
    /// Gathers ids and anchors.
    pub(super) fn of(root: &'n Node<'t>) -> Self {
        let mut refs = Refs { root, ids: Vec::new(), anchors: Vec::new() };
        refs.gather(root);
        refs
    }

    fn gather(&mut self, schema: &'n Node<'t>) {
        for member in schema.members() {
            match (member.key.as_ref(), member.value.as_text()) {
                ("$id", Some(id)) => self.ids.push((id.trim_end_matches('#'), schema)),
                ("$anchor" | "$dynamicAnchor", Some(name)) => self.anchors.push((name, schema)),
                _ => {}
            }
        }
        for_each_subschema(schema, &mut |_, sub| self.gather(sub));
    }

    /// Whether its references are all plain: within the schema, by path.
    pub(super) fn are_plain(&self) -> bool {
        self.ids.is_empty() && self.anchors.is_empty() && has_only_plain_refs(self.root)
    }

    /// Whether it has references or addresses at all.
    pub(super) fn are_used(&self) -> bool {
        !self.ids.is_empty() || !self.anchors.is_empty() || has_ref(self.root)
    }

    /// Where a reference leads that stands in the resource `home`.
    pub(super) fn resolve(&self, reference: &str, home: &'n Node<'t>) -> Target<'n, 't> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if address.is_empty() {
            home
        } else if let Some((_, found)) = self.ids.iter().find(|(id, _)| is_address_of(address, id))
        {
            found
        } else if address.contains(':') || address.starts_with("//") {
            return Target::Remote;
        } else {
            return Target::Missing;
        };
        let found = if fragment.is_empty() {
            Some(resource)
        } else if fragment.starts_with('/') {
            percent_decoded(fragment).and_then(|pointer| follow(resource, &pointer))
        } else {
            self.anchors.iter().find(|(name, _)| *name == fragment).map(|(_, node)| *node)
        };
        found.map_or(Target::Missing, Target::Found)
    }

    /// Every schema that a dynamic reference of that name could lead to.
    pub(super) fn dynamic_targets(&self, reference: &str) -> impl Iterator<Item = &'n Node<'t>> {
        let name = reference.rsplit('#').next().unwrap_or_default().to_owned();
        self.anchors
            .clone()
            .into_iter()
            .filter(move |(anchor, _)| *anchor == name)
            .map(|(_, node)| node)
    }
}

/// Calls back for each subschema that stands directly in a schema, with its keyword.
pub(super) fn for_each_subschema<'n, 't>(
    schema: &'n Node<'t>,
    visit: &mut impl FnMut(&'n str, &'n Node<'t>),
) {
    for member in schema.members() {
        let keyword = member.key.as_ref();
        match (kind(keyword), &member.value.value) {
            (Some(Kind::Schema), _) => visit(keyword, &member.value),
            (Some(Kind::Schemas), Value::List(items)) => {
                for item in items {
                    visit(keyword, item);
                }
            }
            (Some(Kind::SchemaMap | Kind::PatternMap), Value::Object(members)) => {
                for inner in members {
                    visit(keyword, &inner.value);
                }
            }
            (Some(Kind::Dependencies), Value::Object(members)) => {
                // A list there names properties; it is no schema.
                for inner in members {
                    if !matches!(inner.value.value, Value::List(_)) {
                        visit(keyword, &inner.value);
                    }
                }
            }
            _ => {}
        }
    }
}

fn has_only_plain_refs(schema: &Node<'_>) -> bool {
    let mut plain = schema.members().iter().all(|member| match kind(&member.key) {
        Some(Kind::Ref) => {
            member.key == "$ref"
                && member
                    .value
                    .as_text()
                    .is_some_and(|text| text.starts_with('#') && !text.contains('%'))
        }
        _ => true,
    });
    for_each_subschema(schema, &mut |_, sub| plain = plain && has_only_plain_refs(sub));
    plain
}

fn has_ref(schema: &Node<'_>) -> bool {
    let here = schema.members().iter().any(|member| kind(&member.key) == Some(Kind::Ref));
    let mut beneath = false;
    for_each_subschema(schema, &mut |_, sub| beneath = beneath || has_ref(sub));
    here || beneath
}

/// An address is an id itself, or a relative one whose last segment is that of the id.
fn is_address_of(address: &str, id: &str) -> bool {
    let is_relative = !address.contains(':') && !address.starts_with('/');
    id == address || (is_relative && id.rsplit('/').next() == Some(address))
}

pub(super) fn follow<'n, 't>(root: &'n Node<'t>, pointer: &str) -> Option<&'n Node<'t>> {
    Pointer::parse(pointer)?.steps().try_fold(root, |node, step| match &node.value {
        Value::List(items) => items.get(step.parse::<usize>().ok()?),
        _ => node.get(&step),
    })
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let hex = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}
