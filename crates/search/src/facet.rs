//! What documents are filtered by.

use crate::limits;

/// A property that a document has in no, one or several values.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Facet {
    /// What it can do: its tags and what it accesses.
    Capability,
    /// Language it is written in.
    Language,
    /// System it runs on.
    Platform,
    /// What runs it.
    Runtime,
    /// What kind of package it is.
    Kind,
    /// How far it is trusted.
    Trust,
    /// A tag.
    Tag,
    /// The dialect it was written in.
    Dialect,
    /// Whose names it is among.
    Namespace,
    /// Who publishes it.
    Provider,
    /// How far along it is offered; a registry says so.
    Channel,
    /// A tool that its chain calls.
    Uses,
}

impl Facet {
    /// Every facet with its name.
    pub const ALL: [(Facet, &'static str); 12] = [
        (Facet::Capability, "capability"),
        (Facet::Language, "language"),
        (Facet::Platform, "platform"),
        (Facet::Runtime, "runtime"),
        (Facet::Kind, "kind"),
        (Facet::Trust, "trust"),
        (Facet::Tag, "tag"),
        (Facet::Dialect, "dialect"),
        (Facet::Namespace, "namespace"),
        (Facet::Provider, "provider"),
        (Facet::Channel, "channel"),
        (Facet::Uses, "uses"),
    ];

    /// What whoever searches may filter by, beside tags; a channel is a matter of who asks.
    pub const FILTERS: [Facet; 10] = [
        Facet::Capability,
        Facet::Language,
        Facet::Platform,
        Facet::Runtime,
        Facet::Kind,
        Facet::Trust,
        Facet::Dialect,
        Facet::Namespace,
        Facet::Provider,
        Facet::Uses,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The facet of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(facet, _)| *facet)
    }
}

/// A value as it is compared: trimmed and in lower case. None, when there is nothing or too much.
pub(crate) fn value(text: &str) -> Option<Box<str>> {
    let value = text.trim().to_lowercase();
    (!value.is_empty() && value.len() <= limits::FACET_BYTES).then(|| value.into())
}
