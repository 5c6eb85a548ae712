//! Which documents have a word, and what it is worth in each.

use crate::ranking::{factors, impact, shares};
use crate::rows::{Rows, Word, lengths};

/// For each word its documents.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    /// How many documents have the word, and where its part of the lists or of the tables begins.
    words: Vec<(u32, u32)>,
    documents: Vec<u16>,
    impacts: Vec<u8>,
    tables: Vec<u8>,
    /// How many documents there are.
    all: usize,
}

/// The documents of one word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List<'p> {
    /// Those that have it, in order, and its impact in each.
    Some(&'p [u16], &'p [u8]),
    /// All documents; the impact is zero where the word is not.
    Table(&'p [u8]),
}

impl Postings {
    /// Made from what each document says, in order.
    pub(crate) fn new(rows: &Rows, words: usize) -> Self {
        let mut counts = vec![0_u32; words];
        let mut row: Vec<Word> = Vec::new();
        for at in 0..rows.len() {
            rows.words(at, &mut row);
            for (word, _) in &row {
                counts[*word as usize] += 1;
            }
        }
        let all = rows.len();
        let each = u32::try_from(all).expect("a segment has at most 65,536 documents");
        let (mut listed, mut tabled) = (0_u32, 0_u32);
        let mut starts = Vec::with_capacity(words);
        for count in counts {
            let is_table = is_table(count, all);
            let (end, size) = if is_table { (&mut tabled, each) } else { (&mut listed, count) };
            starts.push((count, *end));
            *end += size;
        }
        let mut postings = Self {
            documents: vec![0; listed as usize],
            impacts: vec![0; listed as usize],
            tables: vec![0; tabled as usize],
            words: starts,
            all,
        };
        postings.fill(rows, row);
        postings
    }

    fn fill(&mut self, rows: &Rows, mut row: Vec<Word>) {
        let mut next: Vec<u32> = self.words.iter().map(|(_, start)| *start).collect();
        for (document, at) in (0..=u16::MAX).zip(0..rows.len()) {
            rows.words(at, &mut row);
            let factors = factors(&lengths(&row));
            for (word, frequencies) in &row {
                let impact = impact(&shares(frequencies, &factors));
                let word = *word as usize;
                let place = &mut next[word];
                if is_table(self.words[word].0, self.all) {
                    self.tables[*place as usize + at] = impact;
                } else {
                    self.documents[*place as usize] = document;
                    self.impacts[*place as usize] = impact;
                    *place += 1;
                }
            }
        }
    }

    /// How many documents have a word, those that were removed among them.
    pub(crate) fn count(&self, word: usize) -> usize {
        self.words[word].0 as usize
    }

    pub(crate) fn list(&self, word: usize) -> List<'_> {
        let (count, start) = self.words[word];
        let start = start as usize;
        if is_table(count, self.all) {
            List::Table(&self.tables[start..start + self.all])
        } else {
            let range = start..start + count as usize;
            List::Some(&self.documents[range.clone()], &self.impacts[range])
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * 8
            + self.documents.capacity() * 2
            + self.impacts.capacity()
            + self.tables.capacity()
    }
}

impl List<'_> {
    /// What the word is worth in one document; zero where it is not.
    pub(crate) fn impact(self, document: u16) -> u8 {
        match self {
            List::Some(documents, impacts) => {
                documents.binary_search(&document).map_or(0, |at| impacts[at])
            }
            List::Table(impacts) => impacts[usize::from(document)],
        }
    }

    /// How many steps it takes to go through it, or to look up one document in it.
    pub(crate) fn steps(self) -> (usize, usize) {
        match self {
            List::Some(documents, _) => {
                (documents.len(), 2 + documents.len().checked_ilog2().unwrap_or(0) as usize)
            }
            // Going through a table is done several at a time.
            List::Table(impacts) => (impacts.len() / 4, 1),
        }
    }
}

/// From a third on, a byte for every document takes less than three for those that have the word,
/// and is added up several at a time.
fn is_table(count: u32, all: usize) -> bool {
    count as usize * 3 > all
}
