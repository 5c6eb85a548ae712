//! A segment, and which of its documents were removed since it was made.

use std::sync::Arc;

use crate::documents::Documents;
use crate::segment::Segment;

/// A segment as it is now.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) segment: Arc<Segment>,
    pub(crate) removed: Option<Arc<Removed>>,
}

/// What was removed from a segment.
#[derive(Clone, Debug)]
pub(crate) struct Removed {
    pub(crate) documents: Documents,
    count: usize,
    /// How many of them have each word: so that words count as often as if they had never been there.
    words: Vec<u32>,
}

impl Part {
    pub(crate) fn new(segment: Segment) -> Self {
        Self { segment: Arc::new(segment), removed: None }
    }

    /// Removes a document, which must be there still.
    pub(crate) fn remove(&mut self, document: u16) {
        let segment = &self.segment;
        let removed = self.removed.get_or_insert_with(|| {
            Arc::new(Removed {
                documents: Documents::none(segment.len()),
                count: 0,
                words: vec![0; segment.dictionary.words().len()],
            })
        });
        // Readers have the old one; it is copied once for a batch.
        let removed = Arc::make_mut(removed);
        removed.documents.insert(document);
        removed.count += 1;
        let mut row = Vec::new();
        segment.rows.words(usize::from(document), &mut row);
        for (word, _) in row {
            removed.words[word as usize] += 1;
        }
    }

    /// How many documents are left.
    pub(crate) fn len(&self) -> usize {
        self.segment.len() - self.removed.as_ref().map_or(0, |removed| removed.count)
    }

    /// How many documents that are left have a word.
    pub(crate) fn count(&self, word: usize) -> usize {
        let gone = self.removed.as_ref().map_or(0, |removed| removed.words[word] as usize);
        self.segment.postings.count(word) - gone
    }

    pub(crate) fn is_living(&self, document: u16) -> bool {
        self.removed.as_ref().is_none_or(|removed| !removed.documents.contains(document))
    }

    /// The documents that are left.
    pub(crate) fn living(&self) -> impl Iterator<Item = u16> {
        let all = (0..=u16::MAX).take(self.segment.len());
        all.filter(|document| self.is_living(*document))
    }

    /// Which document has a key, if it is left.
    pub(crate) fn find(&self, key: &str) -> Option<u16> {
        self.segment.find(key).filter(|document| self.is_living(*document))
    }

    pub(crate) fn bytes(&self) -> usize {
        let removed = self.removed.as_ref();
        let removed = removed.map_or(0, |gone| gone.documents.bytes() + gone.words.capacity() * 4);
        self.segment.bytes() + removed
    }
}
