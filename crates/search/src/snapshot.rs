//! An index as it is at one moment.

use std::sync::Arc;

use crate::bytes;
use crate::count::{self, FacetCount};
use crate::explain::{self, Explanation};
use crate::facet::Facet;
use crate::find;
use crate::memory::Memory;
use crate::part::Part;
use crate::query::{Page, Query};
use crate::scratch::Pool;

/// An index as it was when this was taken: pages of it fit together, whatever changes meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(crate) parts: Vec<Part>,
    pub(crate) pool: Arc<Pool>,
}

impl Snapshot {
    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is a document of this key.
    pub fn contains(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// The keys of all documents, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(|part| part.living().map(|document| part.segment.key(document)))
    }

    /// The index as bytes, for [`Index::from_bytes`](crate::Index::from_bytes); the same documents do not always give
    /// the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes::write(self)
    }

    /// Answers a query.
    pub fn search(&self, query: &Query) -> Page {
        find::find(self, query)
    }

    /// How many of the documents that a query finds have each value of these facets: of each the commonest
    /// first, at most `most`. A facet that is filtered by is counted as if it were not.
    pub fn count(&self, query: &Query, facets: &[Facet], most: usize) -> Vec<Vec<FacetCount>> {
        count::count(self, query, facets, most)
    }

    /// Why a document has its score; none when there is no such document or the query does not find it.
    pub fn explain(&self, query: &Query, key: &str) -> Option<Explanation> {
        explain::explain(self, query, key)
    }

    /// How much memory it takes.
    pub fn memory(&self) -> Memory {
        Memory::of(self)
    }

    /// Which part has a document, and as which.
    pub(crate) fn find(&self, key: &str) -> Option<(usize, u16)> {
        let mut parts = self.parts.iter().enumerate();
        parts.find_map(|(at, part)| part.find(key).map(|document| (at, document)))
    }
}
