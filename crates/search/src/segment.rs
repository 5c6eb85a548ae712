//! Some documents, made ready to be searched, and never changed again.

use crate::dictionary::Dictionary;
use crate::labels::Labels;
use crate::postings::Postings;
use crate::rows::Rows;
use crate::texts::Texts;

/// The most documents in a segment: the scores of all of them fit into a processor's cache,
/// a number of two bytes says which, and making one is never long.
pub(crate) const SEGMENT: usize = 1 << 16;

/// The most bytes of rows, and of words, in a segment that is closed before it is full.
pub(crate) const SEGMENT_BYTES: usize = 128 << 20;

/// Documents in the order of their keys, and everything to find them by.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    pub(crate) keys: Texts,
    pub(crate) ranks: Vec<f32>,
    pub(crate) rows: Rows,
    pub(crate) labels: Labels,
    pub(crate) dictionary: Dictionary,
    pub(crate) postings: Postings,
    pub(crate) best_rank: f32,
    worst_rank: f32,
}

impl Segment {
    /// Made from what documents say; as many keys, ranks and rows, no word that is in no row.
    pub(crate) fn new(
        words: Texts,
        mut keys: Texts,
        mut ranks: Vec<f32>,
        mut rows: Rows,
        labels: Labels,
    ) -> Self {
        let postings = Postings::new(&rows, words.len());
        let best_rank = ranks.iter().copied().fold(0.0, f32::max);
        let worst_rank = ranks.iter().copied().fold(best_rank, f32::min);
        keys.shrink();
        ranks.shrink_to_fit();
        rows.shrink();
        let dictionary = Dictionary::new(words);
        Self { keys, ranks, rows, labels, dictionary, postings, best_rank, worst_rank }
    }

    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Which document has a key.
    pub(crate) fn find(&self, key: &str) -> Option<u16> {
        self.keys.find(key).and_then(|at| u16::try_from(at).ok())
    }

    pub(crate) fn key(&self, document: u16) -> &str {
        self.keys.get(usize::from(document))
    }

    pub(crate) fn rank(&self, document: u16) -> f32 {
        self.ranks[usize::from(document)]
    }

    /// The score that a document of the best rank would have to have to be as good, or less.
    pub(crate) fn as_of_best_rank(&self, score: u32, document: u16) -> u32 {
        #[expect(clippy::float_cmp, reason = "all of them are the same number, or not")]
        if self.best_rank == self.worst_rank {
            return score;
        }
        let share = f64::from(self.rank(document)) / f64::from(self.best_rank);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is less")]
        let score = (f64::from(score) * share * (1.0 - 1e-9)) as u32;
        score
    }

    pub(crate) fn bytes(&self) -> usize {
        self.keys.bytes()
            + self.ranks.capacity() * 4
            + self.rows.bytes()
            + self.labels.bytes()
            + self.dictionary.bytes()
            + self.postings.bytes()
            + size_of::<Self>()
    }
}
