//! A document, as the caller hands it over.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::facet::{self, Facet};
use crate::field::Field;
use crate::{limits, words};

/// A document: its key, its texts by field, its facets and its rank.
///
/// Whoever has one knows that it is within [limits]. It is written and read with `serde`, so that
/// a store can keep it beside the package and need not read the manifest again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Row", into = "Row")]
pub struct Entry {
    pub(crate) key: Box<str>,
    pub(crate) rank: f32,
    pub(crate) texts: [String; Field::COUNT],
    pub(crate) facets: BTreeSet<(Facet, Box<str>)>,
}

/// Why a document is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// The key is empty.
    NoKey,
    /// The key is too long.
    LongKey,
    /// The rank is not a number.
    NoRank,
    /// A value of a facet is empty or too long.
    Value(Facet),
    /// A facet has too many values.
    Values(Facet),
    /// A row has more texts than there are fields.
    Fields,
}

impl std::fmt::Display for EntryError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EntryError::NoKey => write!(out, "the key is empty"),
            EntryError::LongKey => write!(out, "the key has more than {} bytes", limits::KEY_BYTES),
            EntryError::NoRank => write!(out, "the rank is not a number"),
            EntryError::Value(facet) => write!(
                out,
                "a value of `{}` is empty or has more than {} bytes",
                facet.name(),
                limits::FACET_BYTES
            ),
            EntryError::Values(facet) => {
                write!(out, "`{}` has more than {} values", facet.name(), limits::FACET_VALUES)
            }
            EntryError::Fields => write!(out, "there are more than {} texts", Field::COUNT),
        }
    }
}

impl std::error::Error for EntryError {}

impl Entry {
    /// A document without texts. The key is the caller's: it comes back with each hit.
    pub fn new(key: &str) -> Result<Self, EntryError> {
        check_key(key)?;
        Ok(Self { key: key.into(), rank: 1.0, texts: Default::default(), facets: BTreeSet::new() })
    }

    /// Its key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The same document under another key; the same key when the other cannot be one.
    pub fn renamed(mut self, key: &str) -> Self {
        if check_key(key).is_ok() {
            self.key = key.into();
        }
        self
    }

    /// Adds a text; what is longer than a field may be is left out.
    pub fn text(mut self, field: Field, text: &str) -> Self {
        let known = &mut self.texts[field as usize];
        if !known.is_empty() {
            known.push('\n');
        }
        known.push_str(words::beginning(text, limits::FIELD_BYTES.saturating_sub(known.len())));
        self
    }

    /// Adds a value to a facet. Values are compared in lower case.
    pub fn facet(mut self, facet: Facet, value: &str) -> Result<Self, EntryError> {
        let value = facet::value(value).ok_or(EntryError::Value(facet))?;
        self.facets.insert((facet, value));
        let count = self.facets.iter().filter(|(known, _)| *known == facet).count();
        if count > limits::FACET_VALUES { Err(EntryError::Values(facet)) } else { Ok(self) }
    }

    /// Adds a value to a facet where it fits.
    pub fn facet_if_it_fits(mut self, facet: Facet, value: &str) -> Self {
        let count = self.facets.iter().filter(|(known, _)| *known == facet).count();
        if count < limits::FACET_VALUES
            && let Some(value) = facet::value(value)
        {
            self.facets.insert((facet, value));
        }
        self
    }

    /// Sets what the score is multiplied by: 1 unless it is set, and brought within [`limits::RANKS`].
    pub fn rank(mut self, rank: f32) -> Result<Self, EntryError> {
        if rank.is_nan() {
            return Err(EntryError::NoRank);
        }
        self.rank = rank.clamp(limits::RANKS.0, limits::RANKS.1);
        Ok(self)
    }
}

/// A document as it is written.
#[derive(Serialize, Deserialize)]
struct Row {
    key: String,
    rank: f32,
    texts: Vec<String>,
    facets: Vec<(Facet, String)>,
}

impl TryFrom<Row> for Entry {
    type Error = EntryError;

    fn try_from(row: Row) -> Result<Self, EntryError> {
        if row.texts.len() > Field::COUNT {
            return Err(EntryError::Fields);
        }
        let mut entry = Entry::new(&row.key)?.rank(row.rank)?;
        for ((field, _), text) in Field::ALL.iter().zip(&row.texts) {
            entry = entry.text(*field, text);
        }
        row.facets.iter().try_fold(entry, |entry, (facet, value)| entry.facet(*facet, value))
    }
}

impl From<Entry> for Row {
    fn from(entry: Entry) -> Self {
        Row {
            key: entry.key.into(),
            rank: entry.rank,
            texts: entry.texts.into(),
            facets: entry.facets.into_iter().map(|(facet, value)| (facet, value.into())).collect(),
        }
    }
}

pub(crate) fn check_key(key: &str) -> Result<(), EntryError> {
    if key.is_empty() {
        Err(EntryError::NoKey)
    } else if key.len() > limits::KEY_BYTES {
        Err(EntryError::LongKey)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_identifies_or_is_compared_whole_is_refused_when_it_is_too_much() {
        assert_eq!(Entry::new(""), Err(EntryError::NoKey));
        assert_eq!(Entry::new(&"k".repeat(513)), Err(EntryError::LongKey));
        let entry = Entry::new("k").unwrap();
        assert_eq!(entry.clone().rank(f32::NAN), Err(EntryError::NoRank));
        assert_eq!(entry.clone().facet(Facet::Tag, " "), Err(EntryError::Value(Facet::Tag)));
        let long = "v".repeat(257);
        assert_eq!(entry.clone().facet(Facet::Tag, &long), Err(EntryError::Value(Facet::Tag)));
        let many = (0..65).try_fold(entry, |entry, n| entry.facet(Facet::Tag, &n.to_string()));
        assert_eq!(many, Err(EntryError::Values(Facet::Tag)));
        for error in [EntryError::NoKey, EntryError::Values(Facet::Tag), EntryError::Fields] {
            assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn a_long_text_is_cut_and_an_endless_rank_brought_within() {
        let entry = Entry::new("k").unwrap().rank(f32::INFINITY).unwrap();
        assert!((entry.rank - limits::RANKS.1).abs() < f32::EPSILON);
        let entry = entry.text(Field::Name, &"é".repeat(limits::FIELD_BYTES));
        let entry = entry.text(Field::Name, "more");
        assert!(entry.texts[0].len() <= limits::FIELD_BYTES + 1);
    }

    #[test]
    fn a_row_says_the_same_and_is_checked_when_it_is_read() {
        let entry = Entry::new("k").unwrap().text(Field::Tags, "a b").rank(2.5).unwrap();
        let entry = entry.facet(Facet::Language, "Rust").unwrap();
        let row = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&row).unwrap(), entry);
        for (from, to) in [
            ("\"k\"", "\"\""),
            ("\"rust\"", "\"\""),
            ("\"texts\":[", "\"texts\":[\"\",\"\","),
            ("\"language\"", "\"colour\""),
        ] {
            let damaged = row.replace(from, to);
            assert_ne!(damaged, row);
            assert!(serde_json::from_str::<Entry>(&damaged).is_err(), "{damaged}");
        }
    }
}
