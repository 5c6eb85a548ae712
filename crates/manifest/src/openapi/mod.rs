//! `openapi.json`: what an HTTP interface says about itself, in OpenAPI 3.0 or 3.1.
//!
//! | module | what it is |
//! |---|---|
//! | `parts`, `tables` | what the objects of a document may hold, as data |
//! | `lookup` | where its references lead |
//! | `walk` | every part of a document, looked at once |
//! | `rules`, `paths` | what no table can say |
//! | `compare` | where a document contradicts the manifest beside it |
//!
//! A document is a stranger's: nothing it refers to is fetched, none of its schemas is run, and the
//! work grows with its size alone.

mod compare;
mod lookup;
mod parts;
mod paths;
mod rules;
mod tables;
mod walk;

#[cfg(test)]
mod tests;

pub(crate) use compare::contradictions;
pub(crate) use walk::check;

use crate::finding::{Code, Finding};
use crate::json::{Node, Pointer};
use crate::shape::clip;

/// The name of the file in a package.
pub const FILE_NAME: &str = "openapi.json";

/// The largest document, in bytes.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What a path can be asked to do.
pub const METHODS: [&str; 8] =
    ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// The versions that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// With a dialect of JSON Schema of its own.
    V3_0,
    /// With JSON Schema 2020-12.
    V3_1,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Version; 2] = [Version::V3_0, Version::V3_1];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Version::V3_0 => "3.0",
            Version::V3_1 => "3.1",
        }
    }

    /// The version of that number, as documents write it: `3.0.3`.
    pub fn named(number: &str) -> Option<Self> {
        let mut parts = number.split(['.', '-']);
        let version = match (parts.next(), parts.next()) {
            (Some("3"), Some("0")) => Version::V3_0,
            (Some("3"), Some("1")) => Version::V3_1,
            _ => return None,
        };
        let patch = parts.next()?;
        let is_number = !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(version)
    }

    /// The version that a document names.
    pub fn of(document: &Node<'_>) -> Option<Self> {
        document.text_at("openapi").and_then(Self::named)
    }
}

/// Its title and version, and how many operations it has.
pub(crate) fn title_of(document: &Node<'_>) -> String {
    let info = document.get("info");
    let text = |key| info.and_then(|info| info.text_at(key));
    let items = document.get("paths").map(Node::members).unwrap_or_default();
    let is_operation = |key: &str| METHODS.contains(&key);
    let count = items
        .iter()
        .flat_map(|item| item.value.members())
        .filter(|member| is_operation(&member.key))
        .count();
    let name: Vec<_> =
        [text("title"), text("version")].into_iter().flatten().filter(|t| !t.is_empty()).collect();
    let operations = format!("{count} {}", if count == 1 { "operation" } else { "operations" });
    match name.as_slice() {
        [] => operations,
        name => format!("{}, {operations}", name.join(" ")),
    }
}

/// The version a document is to be read as, or why it cannot be read.
///
/// One that names none is read as the newest; that the name is missing is told with the rest.
fn version_to_read(document: &Node<'_>) -> Result<Version, Box<Finding>> {
    let refuse = |key: &str, node: &Node<'_>, what: String| {
        let pointer = Pointer::root().key(key);
        let message = format!("{what} is not read here; OpenAPI 3.0 and 3.1 are");
        Box::new(
            Finding::new(Code::UnknownVersion, pointer, node.span, message)
                .help("convert the document, or write `3.0.3` or `3.1.0` if that is what it is"),
        )
    };
    match (document.get("openapi"), document.get("swagger")) {
        (Some(named), _) => match named.as_text() {
            Some(text) => Version::named(text)
                .ok_or_else(|| refuse("openapi", named, format!("OpenAPI `{}`", clip(text)))),
            None => Ok(Version::V3_1),
        },
        (None, Some(named)) => {
            let number = named.as_text().unwrap_or("2.0");
            Err(refuse("swagger", named, format!("Swagger `{}`", clip(number))))
        }
        (None, None) => Ok(Version::V3_1),
    }
}
