//! What a package says of its making: `meta/publisher.json` and `meta/provenance.json`.
//!
//! Both are the author's word. They are shown, never believed.

use std::sync::LazyLock;

use crate::finding::{Code, Finding};
use crate::json::{Node, Pointer};
use crate::shape::{Format, Shape, clip, filled_text, list, may, open, text_as};

/// Who publishes the package.
pub const PUBLISHER: &str = "meta/publisher.json";
/// Which source it was made from.
pub const PROVENANCE: &str = "meta/provenance.json";

static PUBLISHER_SHAPE: LazyLock<Shape> = LazyLock::new(|| {
    open(vec![
        may("id", "Id in a registry.", filled_text()),
        may("name", "Name people see.", filled_text()),
        may("website", "Its page.", text_as(Format::Uri)),
        may("contact", "Where to write to.", filled_text()),
    ])
});

static PROVENANCE_SHAPE: LazyLock<Shape> = LazyLock::new(|| {
    open(vec![
        may("sourceRepo", "Where the source is.", filled_text()),
        may("commit", "Which commit.", filled_text()),
        may("builtAt", "When, in RFC 3339.", text_as(Format::DateTime)),
        may("builtBy", "By whom or what.", filled_text()),
        may("notInCommit", "Files the commit does not have; ours.", list(filled_text())),
    ])
});

/// The shape of `meta/publisher.json`.
pub fn publisher_shape() -> &'static Shape {
    &PUBLISHER_SHAPE
}

/// The shape of `meta/provenance.json`.
pub fn provenance_shape() -> &'static Shape {
    &PROVENANCE_SHAPE
}

/// A manifest and the file about its publisher must name the same one.
pub(crate) fn check_publisher(manifest: &Node<'_>, publisher: &Node<'_>) -> Option<Finding> {
    let stated = manifest.at(&["meta", "publisher", "id"])?;
    let (here, there) = (stated.as_text()?, publisher.text_at("id")?);
    if here == there {
        return None;
    }
    let pointer = Pointer::root().key("meta").key("publisher").key("id");
    let message = format!(
        "the manifest names the publisher `{}`, and `{PUBLISHER}` names `{}`",
        clip(here),
        clip(there)
    );
    Some(Finding::new(Code::PublisherMismatch, pointer, stated.span, message))
}
