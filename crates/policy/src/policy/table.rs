//! A TOML document that is read key by key, with everything that is wrong in it.
//!
//! Whoever reads takes the keys they know out of a [`Table`]; what is left in the end is not known. A value
//! that is not what was expected is noted, and reading goes on.

use std::collections::BTreeMap;

use manifest::shape::suggest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, PolicyError};

/// A text while it is read, and what was found wrong so far.
pub(super) struct Document<'t> {
    text: &'t str,
    /// Each with the byte it is about.
    faults: Vec<(usize, Fault)>,
}

/// A value, and where it stands.
pub(super) struct Node<'t> {
    value: &'t DeValue<'t>,
    key: String,
    at: usize,
}

/// Where a key stands.
#[derive(Clone, Copy)]
pub(super) struct Key(usize);

/// A table of which keys are taken.
pub(super) struct Table<'t> {
    /// What was not taken yet: where the key stands, and the value.
    left: BTreeMap<&'t str, (usize, Node<'t>)>,
    /// Every key that somebody wanted.
    known: Vec<&'static str>,
}

impl<'t> Document<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, faults: Vec::new() }
    }

    /// What was read, unless something was wrong.
    pub(super) fn finish<T>(mut self, read: T) -> Result<T, PolicyError> {
        if self.faults.is_empty() {
            return Ok(read);
        }
        self.faults.sort_by_key(|(at, _)| *at);
        Err(PolicyError { faults: self.faults.into_iter().map(|(_, fault)| fault).collect() })
    }

    /// Notes what is wrong with a value.
    pub(super) fn wrong(&mut self, node: &Node<'_>, message: impl Into<String>) {
        self.note(node.at, node.key.clone(), message.into());
    }

    /// Notes what is wrong with the key of a value.
    pub(super) fn wrong_key(&mut self, key: Key, node: &Node<'_>, message: impl Into<String>) {
        self.note(key.0, node.key.clone(), message.into());
    }

    /// Notes what is wrong with the text itself.
    pub(super) fn wrong_at(&mut self, at: usize, message: impl Into<String>) {
        self.note(at, String::new(), message.into());
    }

    fn note(&mut self, at: usize, key: String, message: String) {
        let before = &self.text[..self.text.floor_char_boundary(at)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        self.faults.push((at, Fault { line, column, key, message }));
    }

    /// A table, or that something else stands there.
    pub(super) fn table(&mut self, node: &Node<'t>, wanted: &str) -> Option<Table<'t>> {
        match node.value {
            DeValue::Table(entries) => Some(Table::new(&node.key, entries)),
            _ => self.expected(node, wanted),
        }
    }

    /// A text.
    pub(super) fn text(&mut self, node: &Node<'t>, wanted: &str) -> Option<&'t str> {
        match node.value {
            DeValue::String(text) => Some(text),
            _ => self.expected(node, wanted),
        }
    }

    /// A list, entry by entry.
    pub(super) fn list(&mut self, node: &Node<'t>, wanted: &str) -> Option<Vec<Node<'t>>> {
        let DeValue::Array(entries) = node.value else { return self.expected(node, wanted) };
        let entry = |entry: &'t Spanned<DeValue<'t>>| Node::new(node.key.clone(), entry);
        Some(entries.iter().map(entry).collect())
    }

    /// A whole number that is not negative.
    pub(super) fn number(&mut self, node: &Node<'t>, wanted: &str) -> Option<u64> {
        let number = match node.value {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        // More than this is no number to other readers of TOML.
        match number.filter(|number| i64::try_from(*number).is_ok()) {
            Some(number) => Some(number),
            None => self.expected(node, wanted),
        }
    }

    /// A number from 0 to 1.
    pub(super) fn part(&mut self, node: &Node<'t>) -> Option<f64> {
        let number = match node.value {
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
            _ => None,
        };
        match number.filter(|number| (0.0..=1.0).contains(number)) {
            Some(number) => Some(number),
            None => self.expected(node, "a number from 0 to 1 such as 0.3"),
        }
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, node: &Node<'t>) -> Option<bool> {
        match node.value {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.expected(node, "true or false"),
        }
    }

    /// Notes that something else stands there than is expected.
    pub(super) fn expected<T>(&mut self, node: &Node<'_>, wanted: &str) -> Option<T> {
        self.wrong(node, format!("write {wanted}, not {}", told(node.value)));
        None
    }

    /// Ends a table: whatever nobody took is not known.
    pub(super) fn end(&mut self, table: Table<'_>) {
        for (name, (at, node)) in table.left {
            let known = &table.known;
            let message = match suggest(name, known.iter().copied()) {
                Some(near) => format!("there is no such key; did you mean `{near}`?"),
                None => format!("there is no such key; there is {}", known.join(", ")),
            };
            self.note(at, node.key, message);
        }
    }
}

impl<'t> Node<'t> {
    fn new(key: String, value: &'t Spanned<DeValue<'t>>) -> Self {
        Self { value: value.get_ref(), key, at: value.span().start }
    }
}

impl<'t> Table<'t> {
    pub(super) fn new(key: &str, entries: &'t DeTable<'t>) -> Self {
        let left = entries.iter().map(|(name, value)| {
            let at = name.span().start;
            let name: &str = name.get_ref();
            (name, (at, Node::new(joined(key, name), value)))
        });
        Self { left: left.collect(), known: Vec::new() }
    }

    /// The value of a key that is known, if it is there.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Node<'t>> {
        self.known.push(name);
        self.left.remove(name).map(|(_, node)| node)
    }

    /// All of them, where the keys are names that the owner chose.
    pub(super) fn take_all(self) -> impl Iterator<Item = (&'t str, Key, Node<'t>)> {
        self.left.into_iter().map(|(name, (at, node))| (name, Key(at), node))
    }
}

/// A key below another, as it could be written.
pub(super) fn joined(key: &str, name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let name = if !name.is_empty() && name.bytes().all(is_bare) {
        name.to_owned()
    } else {
        format!("\"{name}\"")
    };
    if key.is_empty() { name } else { format!("{key}.{name}") }
}

/// What stands there, in words.
fn told(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{text}\""),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => format!("{flag}"),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
