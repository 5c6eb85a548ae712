//! JSON kept as it was written.

use std::sync::Arc;

use crate::json::Node;

/// A JSON value, verbatim. Two are equal when they say the same, however they are laid out.
#[derive(Clone, Debug)]
pub struct Json(Arc<str>);

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.value() == other.value()
    }
}

impl Eq for Json {}

impl Json {
    /// The value of a node, as it stands in its text.
    pub fn of(node: &Node<'_>, text: &str) -> Self {
        Self(text[node.span.range()].into())
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The value.
    pub fn value(&self) -> serde_json::Value {
        crate::json::parse(&self.0).root.map_or(serde_json::Value::Null, |node| node.to_value())
    }
}
