//! Which documents have a word, and what it is worth in each.

use crate::bits::Ranked;
use crate::documents::Documents;
use crate::ranking::{factors, impact, shares};
use crate::rows::{Rows, Word, lengths};

/// For each word its documents.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    words: Vec<Place>,
    documents: Vec<u16>,
    impacts: Vec<u8>,
    tables: Vec<u8>,
    /// Of the words that many documents have: a bit for each document, and how many bits are set before each 64.
    bits: Vec<u64>,
    before: Vec<u16>,
    /// How many documents there are.
    all: usize,
}

/// Where the documents of a word are.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// How many there are.
    count: u32,
    /// Where its part of the lists or of the tables begins.
    start: u32,
    /// Where its bits begin, if it has any.
    bits: u32,
    /// Its best impact.
    most: u8,
}

/// The documents of one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<'p> {
    pub(crate) held: Held<'p>,
    /// Which they are, where there are many.
    marks: Option<Ranked<'p>>,
    /// Its best impact in any.
    pub(crate) most: u8,
}

/// How the documents of a word are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held<'p> {
    /// Those that have it, in order, and its impact in each.
    Some(&'p [u16], &'p [u8]),
    /// All documents; the impact is zero where the word is not.
    Table(&'p [u8]),
}

/// What a word is worth in a document, of what it is worth in those that have it; zero where it is not. There is no
/// branch, because not even the processor can tell before.
#[inline]
fn marked((has_it, before): (bool, usize), impacts: &[u8]) -> u8 {
    impacts[before.min(impacts.len() - 1)] * u8::from(has_it)
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
        let (mut listed, mut tabled, mut marked) = (0_u32, 0_u32, 0_u32);
        let mut places = Vec::with_capacity(words);
        for count in counts {
            let is_table = is_table(count, all);
            let (end, size) = if is_table { (&mut tabled, each) } else { (&mut listed, count) };
            places.push(Place { count, start: *end, bits: marked, most: 0 });
            *end += size;
            if is_marked(count, all) {
                marked += each.div_ceil(64);
            }
        }
        let mut postings = Self {
            documents: vec![0; listed as usize],
            impacts: vec![0; listed as usize],
            tables: vec![0; tabled as usize],
            bits: vec![0; marked as usize],
            before: vec![0; marked as usize],
            words: places,
            all,
        };
        postings.fill(rows, row);
        postings.count_bits();
        postings
    }

    fn fill(&mut self, rows: &Rows, mut row: Vec<Word>) {
        let mut next: Vec<u32> = self.words.iter().map(|place| place.start).collect();
        for (document, at) in (0..=u16::MAX).zip(0..rows.len()) {
            rows.words(at, &mut row);
            let factors = factors(&lengths(&row));
            for (word, frequencies) in &row {
                let impact = impact(&shares(frequencies, &factors));
                let next = &mut next[*word as usize];
                let word = &mut self.words[*word as usize];
                word.most = word.most.max(impact);
                if is_marked(word.count, self.all) {
                    self.bits[word.bits as usize + at / 64] |= 1 << (at % 64);
                }
                if is_table(word.count, self.all) {
                    self.tables[*next as usize + at] = impact;
                } else {
                    self.documents[*next as usize] = document;
                    self.impacts[*next as usize] = impact;
                    *next += 1;
                }
            }
        }
    }

    /// Counts the bits before each 64.
    fn count_bits(&mut self) {
        let each = self.all.div_ceil(64).max(1);
        for (bits, before) in self.bits.chunks(each).zip(self.before.chunks_mut(each)) {
            let mut sum = 0_u16;
            for (bits, before) in bits.iter().zip(before) {
                *before = sum;
                // Past the last nobody looks, and only there it may be too much.
                sum = sum.wrapping_add(u16::try_from(bits.count_ones()).unwrap_or(0));
            }
        }
    }

    /// How many documents have a word, those that were removed among them.
    pub(crate) fn count(&self, word: usize) -> usize {
        self.words[word].count as usize
    }

    pub(crate) fn list(&self, word: usize) -> List<'_> {
        let Place { count, start, bits, most } = self.words[word];
        let start = start as usize;
        let marks = is_marked(count, self.all).then(|| {
            let range = bits as usize..bits as usize + self.all.div_ceil(64);
            Ranked { bits: &self.bits[range.clone()], before: &self.before[range] }
        });
        let held = if is_table(count, self.all) {
            Held::Table(&self.tables[start..start + self.all])
        } else {
            let range = start..start + count as usize;
            Held::Some(&self.documents[range.clone()], &self.impacts[range])
        };
        List { held, marks, most }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<Place>()
            + self.bits.capacity() * 8
            + self.before.capacity() * 2
            + self.documents.capacity() * 2
            + self.impacts.capacity()
            + self.tables.capacity()
    }
}

impl List<'_> {
    /// What the word is worth in one document; zero where it is not.
    pub(crate) fn impact(self, document: u16) -> u8 {
        match (self.held, self.marks) {
            (Held::Some(_, impacts), Some(marks)) => marked(marks.rank(document), impacts),
            (Held::Some(documents, impacts), None) => {
                documents.binary_search(&document).map_or(0, |at| impacts[at])
            }
            (Held::Table(impacts), _) => impacts[usize::from(document)],
        }
    }

    /// Hands over what the word is worth in each of some documents.
    #[inline]
    pub(crate) fn look_up(self, documents: &[u16], mut each: impl FnMut(u16, u8)) {
        match (self.held, self.marks) {
            (Held::Some(_, impacts), Some(marks)) => {
                marks.ranks(documents, |document, has_it, before| {
                    each(document, marked((has_it, before), impacts));
                });
            }
            (Held::Table(impacts), _) => {
                for document in documents {
                    each(*document, impacts[usize::from(*document)]);
                }
            }
            (Held::Some(..), None) => {
                for document in documents {
                    each(*document, self.impact(*document));
                }
            }
        }
    }

    /// Puts those that have the word into a set.
    pub(crate) fn add_to(self, documents: &mut Documents) {
        match (self.held, self.marks) {
            (_, Some(marks)) => documents.join_bits(marks.bits),
            (Held::Some(some, _), None) => some.iter().for_each(|one| documents.insert(*one)),
            (Held::Table(impacts), None) => {
                let having = (0..=u16::MAX).zip(impacts).filter(|(_, impact)| **impact > 0);
                having.for_each(|(one, _)| documents.insert(one));
            }
        }
    }

    /// How many documents it goes through.
    pub(crate) fn len(self) -> usize {
        let (Held::Some(_, impacts) | Held::Table(impacts)) = self.held;
        impacts.len()
    }

    /// How many steps it takes to go through it, or to look up one document in it.
    pub(crate) fn steps(self) -> (usize, usize) {
        match (self.held, self.marks) {
            (Held::Some(documents, _), Some(_)) => (documents.len(), 2),
            (Held::Some(documents, _), None) => {
                (documents.len(), 2 + documents.len().checked_ilog2().unwrap_or(0) as usize)
            }
            // Going through a table is done several at a time.
            (Held::Table(impacts), _) => (impacts.len() / 4, 1),
        }
    }
}

/// From this part on, a bit for every document is little beside three bytes for those that have the word.
fn is_marked(count: u32, all: usize) -> bool {
    count as usize * 64 > all
}

/// From a third on, a byte for every document takes less than three for those that have the word,
/// and is added up several at a time.
fn is_table(count: u32, all: usize) -> bool {
    count as usize * 3 > all
}
