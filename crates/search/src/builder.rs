//! Documents, made into a segment.

use std::collections::HashMap;

use crate::entry::Entry;
use crate::facet::Facet;
use crate::field::Field;
use crate::labels::Labels;
use crate::limits;
use crate::ranking::Frequencies;
use crate::rows::{Rows, Word};
use crate::segment::{SEGMENT, SEGMENT_BYTES, Segment};
use crate::stem::English;
use crate::texts::Texts;
use crate::words::{Enough, Splitter};

/// Makes segments of any number of documents, each with a key of its own.
pub(crate) fn segments(mut entries: Vec<Entry>) -> Vec<Segment> {
    entries.sort_by(|one, other| one.key.cmp(&other.key));
    let mut segments = Vec::new();
    let mut builder = Builder::new();
    for entry in entries {
        builder.push(entry);
        if builder.is_full() {
            segments.push(std::mem::replace(&mut builder, Builder::new()).finish());
        }
    }
    if !builder.documents.is_empty() {
        segments.push(builder.finish());
    }
    segments
}

struct Builder {
    splitter: Splitter,
    english: English,
    /// Words as they were written, so that each is stemmed once.
    forms: HashMap<Box<str>, u32>,
    stems: HashMap<Box<str>, u32>,
    documents: Vec<Draft>,
    /// How much it is so far, in words of documents and in letters of words.
    size: usize,
    /// The words of one document, and where they stand.
    places: Vec<(u32, u8)>,
}

struct Draft {
    key: Box<str>,
    rank: f32,
    facets: Vec<(Facet, Box<str>)>,
    words: Vec<Word>,
}

impl Builder {
    fn new() -> Self {
        Self {
            splitter: Splitter::default(),
            english: English::new(),
            forms: HashMap::new(),
            stems: HashMap::new(),
            documents: Vec::new(),
            size: 0,
            places: Vec::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.documents.len() == SEGMENT || self.size > SEGMENT_BYTES
    }

    fn push(&mut self, entry: Entry) {
        self.places.clear();
        for (field, _) in Field::ALL {
            self.read(field, &entry.texts[field as usize]);
        }
        self.places.sort_unstable();
        let mut words: Vec<Word> = Vec::new();
        for (word, field) in &self.places {
            if words.last().is_none_or(|(last, _)| last != word) {
                words.push((*word, Frequencies::default()));
            }
            if let Some((_, frequencies)) = words.last_mut() {
                frequencies[usize::from(*field)] += 1;
            }
        }
        words.shrink_to_fit();
        self.size += words.len() * 5;
        let facets = entry.facets.into_iter().collect();
        self.documents.push(Draft { key: entry.key, rank: entry.rank, facets, words });
    }

    fn read(&mut self, field: Field, text: &str) {
        let Self { splitter, english, forms, stems, places, size, .. } = self;
        let mut left = limits::FIELD_WORDS;
        splitter.split(text, |form, _| {
            let word = forms.get(form).copied().unwrap_or_else(|| {
                let stem = english.stem(form);
                let next = u32::try_from(stems.len()).expect("a segment is kept far below 4 GiB");
                let word = *stems.entry(stem.as_ref().into()).or_insert(next);
                *size += form.len();
                forms.insert(form.into(), word);
                word
            });
            places.push((word, field as u8));
            left -= 1;
            if left == 0 { Enough::Yes } else { Enough::No }
        });
    }

    fn finish(self) -> Segment {
        let mut stems: Vec<(Box<str>, u32)> = self.stems.into_iter().collect();
        stems.sort_unstable();
        let mut words = Texts::default();
        let mut numbers = vec![0; stems.len()];
        for (number, (stem, word)) in (0..).zip(&stems) {
            words.push(stem);
            numbers[*word as usize] = number;
        }
        let (mut keys, mut ranks, mut rows) = (Texts::default(), Vec::new(), Rows::default());
        let mut labels = Vec::new();
        for (document, draft) in (0..=u16::MAX).zip(&self.documents) {
            keys.push(&draft.key);
            ranks.push(draft.rank);
            labels.extend(draft.facets.iter().map(|label| (label, document)));
            let number = |(word, frequencies): &Word| (numbers[*word as usize], *frequencies);
            let mut row: Vec<Word> = draft.words.iter().map(number).collect();
            row.sort_unstable_by_key(|(word, _)| *word);
            rows.push(&row);
        }
        labels.sort_unstable();
        let labels = Labels::new(&labels, ranks.len());
        words.shrink();
        Segment::new(words, keys, ranks, rows, labels)
    }
}
