//! How much memory an index takes.

use crate::snapshot::Snapshot;

/// Memory of an index, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Documents that can be found.
    pub documents: usize,
    /// Segments they are in.
    pub segments: usize,
    /// Words, each counted in every segment that has it.
    pub words: usize,
    /// Lists of the documents that have a word.
    pub lists: usize,
    /// What each document says: keys, ranks and rows.
    pub rows: usize,
    /// Words and what is needed to look them up.
    pub dictionaries: usize,
    /// Facets.
    pub labels: usize,
    /// What searches work in, kept for the next one.
    pub scratch: usize,
    /// All of it.
    pub total: usize,
}

impl Memory {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut memory = Memory { scratch: snapshot.pool.bytes(), ..Memory::default() };
        memory.total = memory.scratch;
        for part in &snapshot.parts {
            let segment = &part.segment;
            memory.documents += part.len();
            memory.segments += 1;
            memory.words += segment.dictionary.words().len();
            memory.lists += segment.postings.bytes();
            memory.rows +=
                segment.keys.bytes() + segment.ranks.capacity() * 4 + segment.rows.bytes();
            memory.dictionaries += segment.dictionary.bytes();
            memory.labels += segment.labels.bytes();
            memory.total += part.bytes();
        }
        memory
    }
}
