//! The index: what can be searched while it changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::builder;
use crate::bytes::{self, ReadError};
use crate::entry::Entry;
use crate::explain::Explanation;
use crate::limits;
use crate::memory::Memory;
use crate::merge::merge;
use crate::part::Part;
use crate::query::{Page, Query};
use crate::segment::{SEGMENT, SEGMENT_BYTES};
use crate::snapshot::Snapshot;

/// So many segments of about one size become one.
const ALIKE: usize = 8;

/// Documents that are searched by many while one at a time changes them.
///
/// Documents are in segments that never change. A change makes a small segment, notes what was removed
/// from the others, and puts the new list of segments in the place of the old one: readers wait for no
/// more than that. Small segments are made into larger ones by whoever changes the index.
#[derive(Debug)]
pub struct Index {
    current: RwLock<Arc<Snapshot>>,
    /// Held by whoever changes it.
    changing: Mutex<()>,
    most: usize,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all changes are of the large kind")]
pub enum Change {
    /// Adds a document, or puts it in the place of the one with the same key.
    Put(Entry),
    /// Removes the document of this key, if there is one.
    Remove(String),
}

/// There would be more documents than the index may have; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// How many it may have.
    pub most: usize,
}

impl std::fmt::Display for Full {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "the index has room for {} documents", self.most)
    }
}

impl std::error::Error for Full {}

impl Default for Index {
    fn default() -> Self {
        Self::with_room_for(limits::DOCUMENTS)
    }
}

impl Index {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty index for at most so many documents.
    pub fn with_room_for(documents: usize) -> Self {
        Self {
            current: RwLock::default(),
            changing: Mutex::default(),
            most: documents.min(limits::DOCUMENTS),
        }
    }

    /// The index as it is now, for several questions that must fit together.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers a query.
    pub fn search(&self, query: &Query) -> Page {
        self.snapshot().search(query)
    }

    /// Why a document has its score; none when there is no such document or the query does not find it.
    pub fn explain(&self, query: &Query, key: &str) -> Option<Explanation> {
        self.snapshot().explain(query, key)
    }

    /// How much memory it takes.
    pub fn memory(&self) -> Memory {
        self.snapshot().memory()
    }

    /// Adds a document or replaces it. It is found from now on.
    pub fn put(&self, entry: Entry) -> Result<(), Full> {
        self.apply([Change::Put(entry)])
    }

    /// Removes a document, if it is there.
    pub fn remove(&self, key: &str) {
        let removed = self.apply([Change::Remove(key.to_owned())]);
        debug_assert!(removed.is_ok(), "removing needs no room");
    }

    /// Makes all of these changes at once: nobody sees a part of them. Of several to one key the last counts.
    pub fn apply(&self, changes: impl IntoIterator<Item = Change>) -> Result<(), Full> {
        let mut by_key: BTreeMap<Box<str>, Option<Entry>> = BTreeMap::new();
        for change in changes {
            match change {
                Change::Put(entry) => by_key.insert(entry.key.clone(), Some(entry)),
                Change::Remove(key) => by_key.insert(key.into(), None),
            };
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.snapshot());
        for key in by_key.keys() {
            if let Some((at, document)) = next.find(key) {
                next.parts[at].remove(document);
            }
        }
        let entries: Vec<Entry> = by_key.into_values().flatten().collect();
        if next.len() + entries.len() > self.most {
            return Err(Full { most: self.most });
        }
        next.parts.retain(|part| part.len() > 0);
        next.parts.extend(builder::segments(entries).into_iter().map(Part::new));
        tidy(&mut next.parts);
        self.replace(next);
        Ok(())
    }

    /// Makes as few segments as possible, without what was removed: searching is quickest then.
    /// It takes as long as reading the index from bytes.
    pub fn compact(&self) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.snapshot());
        compact(&mut next.parts);
        self.replace(next);
    }

    /// The index as bytes, for [`Index::from_bytes`]; the same documents do not always give the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.snapshot().to_bytes()
    }

    /// An index from bytes that [`Index::to_bytes`] wrote. Others are refused, damaged ones too.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReadError> {
        let segments = bytes::read(bytes)?;
        let index = Self::new();
        let parts = segments.into_iter().map(Part::new).collect();
        index.replace(Snapshot { parts, ..Snapshot::default() });
        Ok(index)
    }

    fn replace(&self, next: Snapshot) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
    }
}

/// Makes larger segments of small ones, so that there are never many; and makes those anew of which
/// more than half was removed.
fn tidy(parts: &mut Vec<Part>) {
    for part in parts.iter_mut() {
        if part.len() * 2 < part.segment.len() {
            *part = Part::new(merge(&[part]));
        }
    }
    loop {
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        let Some(from) = joined_from(&sizes(parts)) else { return };
        join(parts, from);
    }
}

fn compact(parts: &mut Vec<Part>) {
    for part in parts.iter_mut().filter(|part| part.removed.is_some()) {
        *part = Part::new(merge(&[part]));
    }
    loop {
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        let from = fitting(&sizes(parts), 0);
        if parts.len() - from < 2 {
            return;
        }
        join(parts, from);
    }
}

/// Makes one part of those from this place on.
fn join(parts: &mut Vec<Part>, from: usize) {
    let joined = merge(&parts[from..].iter().collect::<Vec<_>>());
    parts.truncate(from);
    parts.push(Part::new(joined));
}

/// How large a segment is.
struct Size {
    documents: usize,
    bytes: usize,
}

fn sizes(parts: &[Part]) -> Vec<Size> {
    let bytes =
        |part: &Part| part.segment.rows.written_bytes() + part.segment.dictionary.words().letters();
    parts.iter().map(|part| Size { documents: part.len(), bytes: bytes(part) }).collect()
}

/// From which place on segments of these sizes, largest first, should become one, if any should: where
/// there are too many of about one size, and at least two of them fit together.
fn joined_from(sizes: &[Size]) -> Option<usize> {
    let about = |size: &Size| size.documents.max(1).ilog2() / 2;
    let mut end = sizes.len();
    while let Some(smallest) = sizes[..end].last() {
        let start = sizes[..end].partition_point(|size| about(size) > about(smallest));
        let from = fitting(sizes, start);
        if end - start >= ALIKE && from + 2 <= end {
            return Some(from);
        }
        end = start;
    }
    None
}

/// The first place, from `start` on, from which on all fit into one segment.
fn fitting(sizes: &[Size], start: usize) -> usize {
    let (mut documents, mut bytes) = (0, 0);
    let fit = sizes[start..].iter().rev().take_while(|size| {
        documents += size.documents;
        bytes += size.bytes;
        documents <= SEGMENT && bytes <= SEGMENT_BYTES
    });
    sizes.len() - fit.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(documents: &[usize]) -> Option<usize> {
        let size = |documents: &usize| Size { documents: *documents, bytes: 0 };
        joined_from(&documents.iter().map(size).collect::<Vec<_>>())
    }

    #[test]
    fn many_segments_of_one_size_become_one() {
        assert_eq!(from(&[]), None);
        assert_eq!(from(&[1; 7]), None);
        assert_eq!(from(&[1; 8]), Some(0));
        assert_eq!(from(&[100, 1, 1, 1, 1, 1, 1, 1, 1]), Some(1));
        // Those that are smaller come along.
        assert_eq!(from(&[9_000, 5, 5, 5, 5, 4, 4, 4, 4, 1]), Some(1));
    }

    #[test]
    fn segments_that_do_not_fit_together_are_left_alone() {
        assert_eq!(from(&[SEGMENT; 20]), None);
        assert_eq!(
            from(&[40_000, 40_000, 40_000, 40_000, 40_000, 40_000, 40_000, 40_000, 1]),
            None
        );
        // Not even a small one is written again and again beside them.
        let mut many = vec![SEGMENT; 15];
        many.extend([17_000, 1]);
        assert_eq!(from(&many), None);
        assert_eq!(from(&[20_000; 9]), Some(6));
        let large = |bytes| Size { documents: 1, bytes };
        let sizes: Vec<Size> = (0..8).map(|_| large(SEGMENT_BYTES / 2 + 1)).collect();
        assert_eq!(joined_from(&sizes), None);
    }
}
