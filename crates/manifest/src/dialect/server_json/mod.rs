//! server.json: how the registries of the MCP world describe a server. It is read, never written here.
//!
//! Its author is seldom at hand: what registries of that world hold has passed their checks, not ours. So an
//! error is what the published schema refuses and what could not be fetched safely; the rest is a warning.

mod rules;
mod shape;

pub(crate) mod lower;

pub(crate) use rules::check_rules;
pub use shape::{NAME, shape};

use crate::json::{Node, Value};

/// The version of the schema that is read.
pub const VERSION: &str = "2025-12-11";

/// Whether a document is a server.json, seen from its keys.
pub(crate) fn is_server_json(document: &Node<'_>) -> bool {
    let is_list =
        |key: &str| document.get(key).is_some_and(|node| matches!(node.value, Value::List(_)));
    if document.text_at("$schema").is_some_and(|schema| schema.ends_with("/server.schema.json")) {
        return true;
    }
    let is_named = document.text_at("name").is_some_and(|name| name.contains('/'));
    is_named && (is_list("packages") || is_list("remotes"))
}
