//! What a document of a dialect may look like, as data.
//!
//! One table per dialect serves four readers: [`check()`] finds what is wrong,
//! [`json_schema`] writes the published JSON Schema, the documentation lists its
//! fields, and a conversion sees from each field's [`Concept`] what the target
//! cannot carry.

mod check;
mod grammar;
mod published;
mod seen;
mod suggest;

pub(crate) use check::check_at;
pub use check::{SchemaSite, Structure, check, clip};
pub use grammar::{Format, Pattern, patterns};
pub use published::json_schema;
pub use seen::{escaped, is_hidden, is_unseen, mixes_alphabets};
pub use suggest::suggest;

use crate::concept::Concept;
use crate::finding::Code;

/// What a value may be.
#[derive(Debug)]
pub enum Shape {
    /// Any JSON value.
    Anything,
    /// A string.
    Text(Text),
    /// `true` or `false`.
    Flag,
    /// A whole number within bounds.
    Integer(Bounds),
    /// Any number within bounds.
    Number(Bounds),
    /// One string of a closed set.
    Word(Vec<&'static str>),
    /// A list.
    List(List),
    /// An object with known fields.
    Object(Object),
    /// An object whose keys are the author's own, each value of one shape.
    Map(Box<Shape>),
    /// An object that is one of several, told apart by the value of one field.
    Choice(Choice),
    /// A JSON Schema (2020-12), always written as an object.
    Schema,
    /// The shape, or `null`.
    Nullable(Box<Shape>),
    /// Published as the shape; when it is broken, the dialect's own rules say so in fixed words.
    /// Here only the JSON type is checked.
    Ruled(Box<Shape>),
}

/// Limits of a string. Lengths count characters.
#[derive(Debug, Default)]
pub struct Text {
    /// Shortest.
    pub min: usize,
    /// Longest.
    pub max: Option<usize>,
    /// The grammar it follows.
    pub pattern: Option<&'static Pattern>,
    /// What it should be, as advice.
    pub format: Option<Format>,
}

/// Limits of a number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// Smallest allowed.
    pub min: Option<f64>,
    /// Largest allowed.
    pub max: Option<f64>,
    /// The number must be greater than this.
    pub above: Option<f64>,
}

/// Limits of a list.
#[derive(Debug)]
pub struct List {
    /// What each element is.
    pub item: Box<Shape>,
    /// Fewest elements.
    pub min: usize,
    /// Most elements.
    pub max: Option<usize>,
}

/// An object with known fields.
#[derive(Debug)]
pub struct Object {
    /// The fields, in the order of the documentation.
    pub fields: Vec<Field>,
    /// What becomes of keys that are not among them.
    pub unknown: Unknown,
    /// What holds between the fields.
    pub rules: Vec<Rule>,
}

/// What becomes of a key the dialect does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The document is refused.
    Refuse,
    /// The dialect ignores it; the author is told.
    Warn,
    /// The author may put anything here.
    Allow,
}

/// One field of an object.
#[derive(Debug)]
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// What it is for, in one sentence.
    pub about: &'static str,
    /// What becomes of it in a conversion.
    pub concept: Concept,
    /// Whether it must be there.
    pub presence: Presence,
    /// What it may be.
    pub shape: Shape,
    /// Fixed words in which every fault of this field is told, its absence apart.
    pub says: Option<(Code, &'static str)>,
}

/// Whether a field must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It must.
    Required,
    /// It may.
    Optional,
    /// It must, and the dialect's own rules say so in fixed words.
    Ruled,
}

/// What holds between fields of one object, as far as JSON Schema can say it.
#[derive(Debug)]
pub enum Rule {
    /// Exactly one of these fields.
    ExactlyOne(&'static [&'static str]),
    /// None of the second fields beside the first.
    Excludes(&'static str, &'static [&'static str]),
    /// At least one of these fields (an empty list counts as none), else this code and message.
    AnyOf(&'static [&'static str], Code, &'static str),
    /// When the first field is that word, the second must be there.
    Needs(&'static str, &'static str, &'static str),
    /// When the text at the path is one of the words, the list field must be there and not empty.
    NeedsList {
        /// Keys from this object to the deciding text.
        path: &'static [&'static str],
        /// The words that decide.
        among: &'static [&'static str],
        /// The list that must not be empty then.
        field: &'static str,
        /// The code of the finding.
        code: Code,
    },
}

/// An object that is one of several.
#[derive(Debug)]
pub struct Choice {
    /// The field whose value decides.
    pub tag: &'static str,
    /// What the deciding field is for.
    pub about: &'static str,
    /// The alternatives: the tag's value, what it stands for, and the object (without the tag).
    pub branches: Vec<Branch>,
}

/// One alternative of a choice.
#[derive(Debug)]
pub struct Branch {
    /// The tag's value.
    pub name: &'static str,
    /// The other fields.
    pub object: Object,
}

/// A required field.
pub fn must(name: &'static str, about: &'static str, shape: Shape) -> Field {
    Field { name, about, concept: Concept::Part, presence: Presence::Required, shape, says: None }
}

/// An optional field.
pub fn may(name: &'static str, about: &'static str, shape: Shape) -> Field {
    Field { presence: Presence::Optional, ..must(name, about, shape) }
}

impl Field {
    /// Names what a conversion must carry for this field not to be lost.
    pub fn is(mut self, concept: Concept) -> Self {
        self.concept = concept;
        self
    }

    /// Tells every fault of this field in fixed words.
    pub fn says(mut self, code: Code, message: &'static str) -> Self {
        self.says = Some((code, message));
        self
    }

    /// Leaves it to the dialect's own rules to say that the field is missing.
    pub fn ruled(mut self) -> Self {
        self.presence = Presence::Ruled;
        self
    }
}

/// Any string.
pub fn text() -> Shape {
    Shape::Text(Text::default())
}

/// A string of so many characters.
pub fn text_within(min: usize, max: usize) -> Shape {
    Shape::Text(Text { min, max: Some(max), ..Text::default() })
}

/// A string that is not empty.
pub fn filled_text() -> Shape {
    Shape::Text(Text { min: 1, ..Text::default() })
}

/// A string that follows a grammar.
pub fn text_like(pattern: &'static Pattern) -> Shape {
    Shape::Text(Text { pattern: Some(pattern), ..Text::default() })
}

/// A string that should be of a format.
pub fn text_as(format: Format) -> Shape {
    Shape::Text(Text { format: Some(format), ..Text::default() })
}

/// One of these strings.
pub fn word(words: &[&'static str]) -> Shape {
    Shape::Word(words.to_vec())
}

/// Any list of these.
pub fn list(item: Shape) -> Shape {
    list_within(0, None, item)
}

/// A list of these, so many of them.
pub fn list_within(min: usize, max: Option<usize>, item: Shape) -> Shape {
    Shape::List(List { item: Box::new(item), min, max })
}

/// An object with just these fields.
pub fn closed(fields: Vec<Field>) -> Shape {
    Shape::Object(Object { fields, unknown: Unknown::Refuse, rules: Vec::new() })
}

/// An object with these fields; others are ignored by the dialect.
pub fn open(fields: Vec<Field>) -> Shape {
    Shape::Object(Object { fields, unknown: Unknown::Warn, rules: Vec::new() })
}

/// An object with these fields and whatever else the author likes.
pub fn free(fields: Vec<Field>) -> Shape {
    Shape::Object(Object { fields, unknown: Unknown::Allow, rules: Vec::new() })
}

/// One of several objects, each with just its own fields.
pub fn choice(
    tag: &'static str,
    about: &'static str,
    branches: Vec<(&'static str, Vec<Field>)>,
) -> Shape {
    let branch = |(name, fields)| Branch {
        name,
        object: Object { fields, unknown: Unknown::Refuse, rules: Vec::new() },
    };
    Shape::Choice(Choice { tag, about, branches: branches.into_iter().map(branch).collect() })
}

/// A whole number of at least `min`.
pub fn integer_from(min: f64) -> Shape {
    Shape::Integer(Bounds { min: Some(min), ..Bounds::default() })
}

/// A whole number within bounds, both included.
pub fn integer_within(min: f64, max: f64) -> Shape {
    Shape::Integer(Bounds { min: Some(min), max: Some(max), above: None })
}

/// A number within bounds, both included.
pub fn number_within(min: f64, max: f64) -> Shape {
    Shape::Number(Bounds { min: Some(min), max: Some(max), above: None })
}

impl Shape {
    /// Adds a rule between the fields of an object.
    pub fn rule(mut self, rule: Rule) -> Self {
        if let Shape::Object(object) = &mut self {
            object.rules.push(rule);
        }
        self
    }

    /// Lets an object, and each alternative of a choice, ignore unknown keys with a warning.
    pub fn lenient(mut self) -> Self {
        match &mut self {
            Shape::Object(object) => object.unknown = Unknown::Warn,
            Shape::Choice(choice) => {
                for branch in &mut choice.branches {
                    branch.object.unknown = Unknown::Warn;
                }
            }
            _ => {}
        }
        self
    }

    /// The shape, or `null`.
    pub fn or_null(self) -> Self {
        Shape::Nullable(Box::new(self))
    }

    /// Leaves faults beyond the JSON type to the dialect's own rules.
    pub fn ruled(self) -> Self {
        Shape::Ruled(Box::new(self))
    }

    /// The JSON type, in words.
    pub(crate) fn type_words(&self) -> &'static str {
        match self {
            Shape::Anything => "any value",
            Shape::Text(_) | Shape::Word(_) => "a string",
            Shape::Flag => "true or false",
            Shape::Integer(_) => "a whole number",
            Shape::Number(_) => "a number",
            Shape::List(_) => "an array",
            Shape::Object(_) | Shape::Map(_) | Shape::Choice(_) => "an object",
            Shape::Schema => "a JSON Schema object",
            Shape::Nullable(inner) | Shape::Ruled(inner) => inner.type_words(),
        }
    }
}
