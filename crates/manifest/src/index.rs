//! The well-known index: which install-manifests a publisher stands by.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::model::Package;
use crate::shape::{
    Format, Rule, Shape, closed, list_within, may, must, patterns, text_as, text_like, text_within,
    word,
};

/// The most manifests one index may list.
pub const MAX_ENTRIES: usize = 256;

static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
    closed(vec![
        must("version", "The version of this format.", word(&["1"])),
        must(
            "publisher",
            "Who publishes the index.",
            closed(vec![
                must("kind", "How the publisher is known.", word(&["github", "https", "atproto"])),
                must("id", "The publisher, as that kind writes it.", text_within(1, 200)),
                must("display_name", "The name people see.", text_within(1, 80)),
                may("homepage", "The publisher's page.", text_as(Format::Uri)),
                may("contact", "An address for questions.", text_as(Format::Email)),
                may(
                    "atproto_record_uri",
                    "The signed record, for kind atproto.",
                    text_within(6, 1000),
                ),
            ])
            .rule(Rule::Needs("kind", "atproto", "atproto_record_uri")),
        ),
        must("generated_at", "When the index was made.", text_as(Format::DateTime)),
        must(
            "manifests",
            "The manifests.",
            list_within(
                0,
                Some(MAX_ENTRIES),
                closed(vec![
                    must(
                        "id",
                        "The tool's id, as the manifest has it.",
                        text_like(&patterns::KEBAB_ID),
                    ),
                    must("manifest_url", "Where the manifest is.", text_as(Format::Uri)),
                    must(
                        "manifest_version",
                        "Its format version.",
                        word(&["0.1", "0.2", "0.3", "0.3.1", "0.4"]),
                    ),
                    must(
                        "status",
                        "Its state.",
                        word(&["active", "deprecated", "broken", "quarantined"]),
                    ),
                    may("summary", "One line on what it does.", text_within(1, 280)),
                    may(
                        "tags",
                        "Words to find it by.",
                        list_within(0, Some(16), text_like(&patterns::TAG)),
                    ),
                    may(
                        "deprecated_in_favor_of",
                        "What to use instead.",
                        text_like(&patterns::KEBAB_ID),
                    ),
                ])
                .rule(Rule::Needs(
                    "status",
                    "deprecated",
                    "deprecated_in_favor_of",
                )),
            ),
        ),
    ])
});

/// The shape of an index.
pub fn shape() -> &'static Shape {
    &SHAPE
}

/// Who publishes an index.
#[derive(Clone, Debug)]
pub struct Publisher {
    /// github, https or atproto.
    pub kind: String,
    /// The publisher, as that kind writes it.
    pub id: String,
    /// The name people see.
    pub display_name: String,
}

/// A manifest to be listed, and where it will be found.
#[derive(Clone, Debug)]
pub struct Listed<'p> {
    /// The manifest.
    pub package: &'p Package,
    /// Its address.
    pub url: String,
}

/// Writes an index of install-manifests.
pub fn write(publisher: &Publisher, generated_at: &str, manifests: &[Listed<'_>]) -> Value {
    let entry = |listed: &Listed<'_>| {
        let mut entry = json!({
            "id": listed.package.id,
            "manifest_url": listed.url,
            "manifest_version": listed.package.format_version,
            "status": "active",
        });
        if let Some(summary) = &listed.package.summary {
            entry["summary"] = summary.as_str().into();
        }
        if !listed.package.tags.is_empty() {
            entry["tags"] = listed.package.tags.clone().into();
        }
        entry
    };
    json!({
        "version": "1",
        "publisher": {"kind": publisher.kind, "id": publisher.id, "display_name": publisher.display_name},
        "generated_at": generated_at,
        "manifests": manifests.iter().map(entry).collect::<Vec<_>>(),
    })
}
