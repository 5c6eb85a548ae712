//! JSON texts of others, read strictly: what says two things at once is refused, and told with its place.

use manifest::json::{self, Node, Place, Places};
use serde_json::Value;

use crate::error::{CallError, Kind};

/// A JSON value, without twins among its members.
pub(crate) fn strict(text: &str) -> Option<Value> {
    // Most of what is no JSON shows that at once, and nobody is told what is wrong with it.
    let first = text.trim_start().bytes().next()?;
    if !matches!(first, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') {
        return None;
    }
    tree(text).ok().map(|node| node.to_value())
}

/// The same as a tree, or the first thing that is wrong with it.
pub(crate) fn tree(text: &str) -> Result<Node<'_>, Fault<'_>> {
    let json::Parsed { root, faults } = json::parse(text);
    let is_json = root.is_some();
    match faults.into_iter().next() {
        Some(first) => Err(Fault { text, first, is_json, lines_before: 0 }),
        None => Ok(root.expect("a text that breaks off has a fault")),
    }
}

/// What is wrong with a text.
#[derive(Debug)]
pub(crate) struct Fault<'t> {
    text: &'t str,
    first: json::Fault,
    /// Whether it is JSON all the same: a value could be made of it, and another reader may make another one.
    pub(crate) is_json: bool,
    lines_before: u32,
}

impl Fault<'_> {
    /// The same, in a text that begins after so many lines of the whole.
    pub(crate) fn after_lines(self, lines_before: u32) -> Self {
        Self { lines_before, ..self }
    }

    /// The failure of a call in which this is the text.
    pub(crate) fn told(&self, kind: Kind, whose: &str) -> CallError {
        let Place { line, column } = Places::new(self.text).of(self.first.span);
        let line = line.saturating_add(self.lines_before);
        let what = if self.is_json { "cannot be used" } else { "is no JSON" };
        let words = &self.first.message;
        let message = format!("{whose} {what}: {words} (line {line}, column {column})");
        CallError::new(kind, message).with("line", line).with("column", column)
    }

    /// The failure of a call that was answered with this. One that is no JSON at all is told with its beginning.
    pub(crate) fn in_answer(&self, whose: &str) -> CallError {
        let error = match self.text {
            "" => CallError::new(Kind::BadOutput, format!("{whose} is no JSON")),
            _ => self.told(Kind::BadOutput, whose),
        };
        if self.is_json { error } else { error.with("answer", self.text) }
    }
}
