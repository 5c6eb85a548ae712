//! Known values taken out of whatever is shown, stored or sent.
//!
//! A [`Redactor`] knows values and looks for each in the forms in which programs write it: as it is,
//! escaped for JSON, HTML and addresses, in hex, in base64 at any place, and line by line. It is a net
//! against accidents. A program that wants to smuggle a value out can write it in a form of its own.
//!
//! Values of fewer than four bytes would be found everywhere, so they are only replaced where they are
//! the whole text.

mod forms;
mod stream;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use aho_corasick::MatchKind;
use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use serde_json::{Map, Value};

pub use stream::Stream;

use crate::secret::Secret;

/// Knows values, and puts `[secret NAME]` in their place. Cloning it is cheap.
///
/// The values are in its memory, in a form that is searched quickly, until the last clone is dropped;
/// that memory is not cleared.
#[derive(Clone)]
pub struct Redactor(Arc<Known>);

pub(crate) struct Known {
    /// Finds every form, also those that overlap; `None` where there is nothing to find.
    forms: Option<NFA>,
    /// What is put in place of each form.
    replacements: Vec<Arc<str>>,
    /// The values that are too short to be looked for.
    short: Vec<(Secret, Arc<str>)>,
}

impl Redactor {
    /// The bytes that a value must have to be found in the middle of a text. A shorter one is in too many that have
    /// nothing to do with it, and is replaced only where it is the whole text.
    pub const SHORTEST: usize = forms::SHORTEST;

    /// Knows these values, each by a name that may be shown.
    pub fn new<'v>(values: impl IntoIterator<Item = (&'v str, &'v Secret)>) -> Self {
        /// Many tools have no secrets, and share this.
        static NOTHING: LazyLock<Redactor> = LazyLock::new(|| {
            Redactor(Arc::new(Known { forms: None, replacements: Vec::new(), short: Vec::new() }))
        });
        let values: Vec<_> = values.into_iter().collect();
        if values.is_empty() {
            return NOTHING.clone();
        }
        // A form that two values share is replaced by the first one's name.
        let mut forms = BTreeMap::new();
        for (index, (_, value)) in values.iter().enumerate() {
            for form in forms::of(value.expose()) {
                forms.entry(form).or_insert(index);
            }
        }
        let replacements: Vec<_> =
            values.iter().map(|(name, _)| replacement(name, &forms)).collect();
        let short = values.iter().zip(&replacements);
        let short = short.filter(|((_, value), _)| value.expose().len() < forms::SHORTEST);
        let short = short.map(|((_, value), text)| ((*value).clone(), Arc::clone(text))).collect();
        let automaton = (!forms.is_empty()).then(|| {
            let mut builder = NFA::builder();
            builder.match_kind(MatchKind::Standard).prefilter(false);
            builder.build(forms.keys()).expect("values are far below the limits of the search")
        });
        let replacements = forms.values().map(|index| Arc::clone(&replacements[*index])).collect();
        Self(Arc::new(Known { forms: automaton, replacements, short }))
    }

    /// Redacts bytes that come in pieces.
    pub fn stream(&self) -> Stream {
        Stream::new(Arc::clone(&self.0))
    }

    /// Whether it knows nothing, so that everything stays as it is.
    fn knows_nothing(&self) -> bool {
        self.0.forms.is_none() && self.0.short.is_empty()
    }

    /// Redacts bytes.
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        if self.knows_nothing() {
            return bytes.to_vec();
        }
        if let Some((_, text)) =
            self.0.short.iter().find(|(value, _)| value.expose().as_bytes() == bytes)
        {
            return text.as_bytes().to_vec();
        }
        let mut stream = self.stream();
        let mut redacted = stream.push(bytes);
        redacted.extend(stream.finish());
        redacted
    }

    /// Redacts a text.
    pub fn text(&self, text: &str) -> String {
        // Forms are whole characters, so what is left between them is text.
        String::from_utf8(self.bytes(text.as_bytes()))
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// Redacts the keys and values of a document. A number that shows a value becomes a text.
    pub fn json(&self, document: &mut Value) {
        if self.knows_nothing() {
            return;
        }
        match document {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                let text = number.to_string();
                let redacted = self.text(&text);
                if redacted != text {
                    *document = Value::String(redacted);
                }
            }
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(members) => {
                let mut redacted = Map::new();
                for (key, mut value) in std::mem::take(members) {
                    self.json(&mut value);
                    let mut key = self.text(&key);
                    // Two keys that read the same now are both kept.
                    while redacted.contains_key(&key) {
                        key.push('_');
                    }
                    redacted.insert(key, value);
                }
                *members = redacted;
            }
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Redactor(..)")
    }
}

impl Known {
    /// How many bytes the longest form has.
    fn longest(&self) -> usize {
        self.forms.as_ref().map_or(0, Automaton::max_pattern_len)
    }
}

/// What stands for a value. Where the usual text would itself show a form, or together with what is
/// around it make one up, another is taken.
fn replacement(name: &str, forms: &BTreeMap<Vec<u8>, usize>) -> Arc<str> {
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    let ways = [format!("[secret {name}]"), format!("<secret {name}>"), "***".to_owned()];
    let blocks = ('\u{2580}'..='\u{259f}').map(String::from);
    let is_clear = |way: &String| !forms.keys().any(|form| touches(form, way.as_bytes()));
    let way = ways.into_iter().chain(blocks).find(is_clear);
    way.map_or_else(|| "\u{fffd}".into(), Arc::from)
}

/// Whether a form and a replacement can share bytes: one within the other, or the end of one being the
/// beginning of the other.
fn touches(form: &[u8], replacement: &[u8]) -> bool {
    (1..form.len() + replacement.len()).any(|end| {
        // The form ends so many bytes after the replacement begins.
        let start = end.saturating_sub(form.len());
        let length = end.min(replacement.len()) - start;
        let from = form.len() - end.min(form.len());
        form[from..from + length] == replacement[start..start + length]
    })
}
