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
        bytes::write(&self.snapshot())
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
        let size = |part: &Part| part.len().ilog2() / 2;
        let Some(last) = parts.last() else { return };
        let mut wanted = size(last);
        // The smallest that there are too many of.
        let many = loop {
            let alike = parts.iter().filter(|part| size(part) == wanted).count();
            if alike >= ALIKE || wanted > SEGMENT.ilog2() / 2 {
                break alike;
            }
            wanted += 1;
        };
        if many < ALIKE {
            return;
        }
        let alike = |part: &Part| size(part) <= wanted;
        let from = parts.iter().position(alike).unwrap_or(parts.len());
        if !join(parts, from) {
            return;
        }
    }
}

fn compact(parts: &mut Vec<Part>) {
    for part in parts.iter_mut().filter(|part| part.removed.is_some()) {
        *part = Part::new(merge(&[part]));
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    while join(parts, 0) {}
}

/// Makes one of the smallest parts from this place on, as many as fit; says whether that were several.
fn join(parts: &mut Vec<Part>, from: usize) -> bool {
    let (mut documents, mut bytes) = (0, 0);
    let mut start = parts.len();
    for (at, part) in parts.iter().enumerate().skip(from).rev() {
        documents += part.len();
        bytes += part.segment.rows.written_bytes() + part.segment.dictionary.words().letters();
        if documents > SEGMENT || bytes > SEGMENT_BYTES {
            break;
        }
        start = at;
    }
    if parts.len() - start < 2 {
        return false;
    }
    let small: Vec<Part> = parts.drain(start..).collect();
    let joined = merge(&small.iter().collect::<Vec<_>>());
    parts.push(Part::new(joined));
    true
}
