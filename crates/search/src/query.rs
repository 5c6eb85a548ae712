//! What is asked, and what is answered.

use std::collections::{BTreeMap, BTreeSet};

use crate::facet::{self, Facet};
use crate::limits;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub(crate) text: String,
    pub(crate) filters: BTreeMap<Facet, BTreeSet<Box<str>>>,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
    pub(crate) last_word: LastWord,
    pub(crate) spelling: Spelling,
}

/// Whether the last word of a query is all there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastWord {
    /// It is.
    #[default]
    Whole,
    /// Somebody is still typing: it may be the beginning of a word.
    Begun,
}

/// Whether words that the index does not know may stand for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spelling {
    /// They may: for words that look alike.
    #[default]
    Forgiving,
    /// They find nothing.
    Exact,
}

/// Why a query is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// A value to filter by is empty or too long.
    Value(Facet),
    /// There are too many values of one facet.
    Values(Facet),
}

impl std::fmt::Display for QueryError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QueryError::Value(facet) => write!(
                out,
                "a value of the filter `{}` is empty or has more than {} bytes",
                facet.name(),
                limits::FACET_BYTES
            ),
            QueryError::Values(facet) => write!(
                out,
                "the filter `{}` has more than {} values",
                facet.name(),
                limits::FACET_VALUES
            ),
        }
    }
}

impl std::error::Error for QueryError {}

impl Query {
    /// Asks for documents with any of these words, those that fit best first. Without words it asks for all.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            filters: BTreeMap::new(),
            offset: 0,
            limit: 10,
            last_word: LastWord::default(),
            spelling: Spelling::default(),
        }
    }

    /// Asks only for documents with this value, or another one that is named for the same facet.
    pub fn filter(mut self, facet: Facet, value: &str) -> Result<Self, QueryError> {
        let value = facet::value(value).ok_or(QueryError::Value(facet))?;
        let values = self.filters.entry(facet).or_default();
        values.insert(value);
        if values.len() > limits::FACET_VALUES { Err(QueryError::Values(facet)) } else { Ok(self) }
    }

    /// Asks for the hits after the first `offset`, at most `limit` and at most [`limits::PAGE`].
    pub fn page(mut self, offset: usize, limit: usize) -> Self {
        (self.offset, self.limit) = (offset, limit.min(limits::PAGE));
        self
    }

    /// Says whether the last word is all there.
    pub fn last_word(mut self, last_word: LastWord) -> Self {
        self.last_word = last_word;
        self
    }

    /// Says whether words may be misspelt.
    pub fn spelling(mut self, spelling: Spelling) -> Self {
        self.spelling = spelling;
        self
    }
}

/// A document that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its key.
    pub key: String,
    /// How well it fits, multiplied by its rank; zero when no word was asked for.
    pub score: f64,
    /// Its rank.
    pub rank: f32,
}

/// Some of the documents that were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// By score, then by rank, highest first; then by key.
    pub hits: Vec<Hit>,
    /// How many were found in all: exactly, whatever page this is.
    pub total: usize,
}
