//! What the objects of a document may hold, as data.
//!
//! The objects of OpenAPI hold each other, in circles too, so each is a flat [`Shape`] and a list of
//! the fields in which another object stands.

use std::sync::LazyLock;

use super::{Version, tables};
use crate::shape::{
    Branch, Choice, Field, Object, Presence, Rule, Shape, Unknown, list, may, open, text,
};

/// An object of a document.
pub(super) struct Part {
    /// Its own fields.
    pub(super) shape: Shape,
    /// The fields in which other objects stand.
    inside: Vec<(&'static str, Inside)>,
    /// What each entry is, when the keys are the author's own.
    entries: Option<Kind>,
}

/// How other objects stand in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// One of them.
    One(Kind),
    /// A list of them.
    Each(Kind),
    /// Each under a name.
    Named(Kind),
}

macro_rules! kinds {
    ($($kind:ident $noun:literal)*) => {
        /// What an object of a document is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum Kind { $(#[doc = $noun] $kind,)* }

        impl Kind {
            const ALL: &[Kind] = &[$(Kind::$kind,)*];

            /// What it is called.
            pub(super) fn noun(self) -> &'static str {
                match self { $(Kind::$kind => $noun,)* }
            }
        }
    };
}

kinds! {
    Document "a document"
    Information "information"
    Contact "a contact"
    License "a licence"
    Server "a server"
    Variable "a server variable"
    Paths "paths"
    PathItem "a path item"
    Operation "an operation"
    ExternalDocs "external documentation"
    Parameter "a parameter"
    RequestBody "a request body"
    MediaType "a media type"
    Encoding "an encoding"
    Responses "responses"
    Response "a response"
    Callback "a callback"
    Example "an example"
    Link "a link"
    Header "a header"
    Tag "a tag"
    Components "components"
    SecurityScheme "a security scheme"
    Flows "OAuth flows"
    ImplicitFlow "an implicit flow"
    PasswordFlow "a password flow"
    ClientFlow "a client credentials flow"
    CodeFlow "an authorisation code flow"
    Requirement "a security requirement"
    Reference "a reference"
    Schema "a schema"
}

impl Kind {
    /// Whether a reference may stand in its place. (A schema refers by its own rules.)
    pub(super) fn may_be_referred_to(self) -> bool {
        matches!(
            self,
            Kind::Parameter
                | Kind::RequestBody
                | Kind::Response
                | Kind::Callback
                | Kind::Example
                | Kind::Link
                | Kind::Header
                | Kind::SecurityScheme
        )
    }

    /// What objects of this kind may hold.
    pub(super) fn part(self, version: Version) -> &'static Part {
        &PARTS[version as usize][self as usize]
    }
}

impl Part {
    /// What stands at that key.
    pub(super) fn inside(&self, key: &str) -> Option<Inside> {
        match self.entries {
            Some(kind) if !key.starts_with("x-") => Some(Inside::One(kind)),
            Some(_) => None,
            None => self.inside.iter().find(|(name, _)| *name == key).map(|(_, inside)| *inside),
        }
    }
}

static PARTS: LazyLock<[Vec<Part>; 2]> = LazyLock::new(|| {
    Version::ALL.map(|version| Kind::ALL.iter().map(|k| tables::part(*k, version)).collect())
});

/// A field, and what stands in it.
pub(super) struct Row(Field, Option<Inside>);

/// A field of its own.
pub(super) fn leaf(field: Field) -> Row {
    Row(field, None)
}

/// A field in which one other object may stand.
pub(super) fn one(name: &'static str, about: &'static str, kind: Kind) -> Row {
    Row(may(name, about, Shape::Anything), Some(Inside::One(kind)))
}

/// A field in which a list of other objects may stand.
pub(super) fn each(name: &'static str, about: &'static str, kind: Kind) -> Row {
    Row(may(name, about, list(Shape::Anything)), Some(Inside::Each(kind)))
}

/// A field in which other objects may stand under names.
pub(super) fn named(name: &'static str, about: &'static str, kind: Kind) -> Row {
    Row(may(name, about, anything_named()), Some(Inside::Named(kind)))
}

impl Row {
    /// The same, but it must be there.
    pub(super) fn required(mut self) -> Self {
        self.0.presence = Presence::Required;
        self
    }
}

/// An object whose keys are the author's own.
pub(super) fn anything_named() -> Shape {
    Shape::Map(Box::new(Shape::Anything))
}

/// What nearly every object has.
pub(super) fn description() -> Row {
    leaf(may("description", "What it is, in words.", text()))
}

/// What many objects have.
pub(super) fn summary() -> Row {
    leaf(may("summary", "What it is, in short.", text()))
}

/// A field that is true or false.
pub(super) fn flag(name: &'static str, about: &'static str) -> Row {
    leaf(may(name, about, Shape::Flag))
}

/// An object of these fields.
pub(super) fn rows(rows: Vec<Row>) -> Part {
    let (fields, inside) = split(rows);
    Part { shape: open(fields), inside, entries: None }
}

fn split(rows: Vec<Row>) -> (Vec<Field>, Vec<(&'static str, Inside)>) {
    let inside = rows.iter().filter_map(|Row(field, inside)| Some((field.name, (*inside)?)));
    let inside = inside.collect();
    (rows.into_iter().map(|Row(field, _)| field).collect(), inside)
}

/// An object whose keys are the author's own.
pub(super) fn entries(kind: Kind) -> Part {
    Part { shape: anything_named(), inside: Vec::new(), entries: Some(kind) }
}

/// One of several objects, told apart by one field.
pub(super) fn alternatives(
    tag: &'static str,
    branches: Vec<(&'static str, Vec<Row>)>,
    rules: fn() -> Vec<Rule>,
) -> Part {
    let mut inside = Vec::new();
    let branches = branches.into_iter().map(|(name, rows)| {
        let (fields, held) = split(rows);
        inside.extend(held);
        Branch { name, object: Object { fields, unknown: Unknown::Warn, rules: rules() } }
    });
    let branches = branches.collect();
    let shape = Shape::Choice(Choice { tag, about: "Which kind.", branches });
    Part { shape, inside, entries: None }
}

impl Part {
    /// Adds a rule between the fields.
    pub(super) fn rule(mut self, rule: Rule) -> Self {
        self.shape = self.shape.rule(rule);
        self
    }
}

/// An object that is described elsewhere, or by nothing but this shape.
pub(super) fn bare(shape: Shape) -> Part {
    Part { shape, inside: Vec::new(), entries: None }
}
