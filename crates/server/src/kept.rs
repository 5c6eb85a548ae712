//! What was answered before, in memory, so that it is answered again without the database, the index or the disk.
//!
//! Only what everybody is answered is kept. It is good as long as nothing has changed in the catalog: each entry has the
//! number of the turn it was looked up in, and another turn makes all of them old at once. Package files never change,
//! so they stay until there is no room. All of it is bounded.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use package::digest::Digest;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use search::FacetCount;

use crate::store::versions::Known;

/// The most bytes of answers to searches.
const ANSWERS: u64 = 16 << 20;
/// The most bytes of counts, which are made of all that a search finds.
const COUNTS: u64 = 8 << 20;
/// The most bytes of descriptions.
const VERSIONS: u64 = 16 << 20;
/// The most bytes of package files.
const FILES: u64 = 64 << 20;
/// The largest file that is kept; larger ones are sent as they are read.
pub(crate) const LARGEST: u64 = 4 << 20;
/// The longest question that is kept.
const LONGEST: usize = 1 << 10;
/// How many questions are known to have been asked.
const PLACES: u64 = 8_192;
/// What an entry takes beside its bytes, about.
const ENTRY: u64 = 256;

/// What was answered before.
#[derive(Debug)]
pub(crate) struct Kept {
    answers: Cache<Box<str>, Of<Answer>, Weight>,
    asked: Asked,
    counts: Cache<Box<str>, Of<Arc<Counts>>, Weight>,
    versions: Cache<Box<str>, Of<Arc<Known>>, Weight>,
    files: Cache<Digest, Bytes, Weight>,
}

/// Which questions were asked of late: each by its hash, in one of these places, until another comes there.
#[derive(Debug)]
struct Asked {
    places: Vec<AtomicU64>,
    hasher: RandomState,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl Asked {
    /// Whether a question was asked before; it has been from now on.
    fn before(&self, question: &str) -> bool {
        let hash = self.hasher.hash_one(question);
        let place = usize::try_from(hash % PLACES).unwrap_or_default();
        self.places[place].swap(hash, Ordering::Relaxed) == hash
    }
}

/// How many of what is found have which value, facet by facet.
pub(crate) type Counts = Vec<Vec<FacetCount>>;

/// An answer, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// What is sent.
    pub(crate) text: Bytes,
    /// Its tag.
    pub(crate) tag: Arc<str>,
}

/// Something, and the turn of the catalog it was looked up in.
#[derive(Clone, Debug)]
struct Of<T> {
    turn: u64,
    value: T,
}

#[derive(Clone, Debug)]
struct Weight;

impl Weighter<Box<str>, Of<Answer>> for Weight {
    fn weight(&self, key: &Box<str>, one: &Of<Answer>) -> u64 {
        ENTRY + key.len() as u64 + one.value.text.len() as u64
    }
}

impl Weighter<Box<str>, Of<Arc<Counts>>> for Weight {
    fn weight(&self, key: &Box<str>, one: &Of<Arc<Counts>>) -> u64 {
        let values = one.value.iter().flatten();
        let each = values.map(|one| (size_of::<FacetCount>() + one.value.len()) as u64);
        ENTRY + key.len() as u64 + each.sum::<u64>()
    }
}

impl Weighter<Box<str>, Of<Arc<Known>>> for Weight {
    fn weight(&self, key: &Box<str>, one: &Of<Arc<Known>>) -> u64 {
        ENTRY * 2 + key.len() as u64 + one.value.describe.len() as u64
    }
}

impl Weighter<Digest, Bytes> for Weight {
    fn weight(&self, _: &Digest, bytes: &Bytes) -> u64 {
        ENTRY + bytes.len() as u64
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            answers: Cache::with_weighter(4_000, ANSWERS, Weight),
            asked: Asked::default(),
            counts: Cache::with_weighter(1_000, COUNTS, Weight),
            versions: Cache::with_weighter(8_000, VERSIONS, Weight),
            files: Cache::with_weighter(1_000, FILES, Weight),
        }
    }
}

impl Kept {
    /// What a search was answered in this turn.
    pub(crate) fn answer(&self, turn: u64, asked: &str) -> Option<Answer> {
        self.answers.get(asked).filter(|one| one.turn == turn).map(|one| one.value)
    }

    /// Keeps an answer, if it is not the first to its question: most questions are asked once, and would only drive out
    /// what others ask again.
    pub(crate) fn keep_answer(&self, turn: u64, asked: &str, value: Answer) {
        if asked.len() <= LONGEST && self.asked.before(asked) {
            self.answers.insert(asked.into(), Of { turn, value });
        }
    }

    /// What was counted in this turn.
    pub(crate) fn counts(&self, turn: u64, asked: &str) -> Option<Arc<Counts>> {
        self.counts.get(asked).filter(|one| one.turn == turn).map(|one| one.value)
    }

    pub(crate) fn keep_counts(&self, turn: u64, asked: &str, value: Arc<Counts>) {
        if asked.len() <= LONGEST {
            self.counts.insert(asked.into(), Of { turn, value });
        }
    }

    /// The version that was found in this turn.
    pub(crate) fn version(&self, turn: u64, asked: &str) -> Option<Arc<Known>> {
        self.versions.get(asked).filter(|one| one.turn == turn).map(|one| one.value)
    }

    pub(crate) fn keep_version(&self, turn: u64, asked: &str, value: Arc<Known>) {
        if asked.len() <= LONGEST {
            self.versions.insert(asked.into(), Of { turn, value });
        }
    }

    /// A package file.
    pub(crate) fn file(&self, digest: Digest) -> Option<Bytes> {
        self.files.get(&digest)
    }

    pub(crate) fn keep_file(&self, digest: Digest, bytes: Bytes) {
        if bytes.len() as u64 <= LARGEST {
            self.files.insert(digest, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &'static str) -> Answer {
        Answer { text: Bytes::from_static(text.as_bytes()), tag: "t".into() }
    }

    #[test]
    fn what_was_answered_is_good_for_one_turn() {
        let kept = Kept::default();
        kept.keep_answer(1, "q=a", answer("first"));
        assert!(kept.answer(1, "q=a").is_none(), "it may never be asked again");
        kept.keep_answer(1, "q=a", answer("first"));
        assert_eq!(kept.answer(1, "q=a").map(|one| one.text), Some(Bytes::from("first")));
        assert!(kept.answer(2, "q=a").is_none());
        // Whoever was slow does not bring back what is old.
        kept.keep_answer(2, "q=a", answer("second"));
        kept.keep_answer(1, "q=a", answer("first"));
        assert!(kept.answer(2, "q=a").is_none_or(|one| one.text == "second"));
        let count = FacetCount { value: "tool".to_owned(), count: 3 };
        kept.keep_counts(1, "q=a", Arc::new(vec![vec![count]]));
        assert_eq!(kept.counts(1, "q=a").map(|counts| counts[0][0].count), Some(3));
        assert!(kept.counts(2, "q=a").is_none() && kept.counts(1, "q=b").is_none());
    }

    #[test]
    fn what_is_kept_has_bounds() {
        let kept = Kept::default();
        for number in 0..200_u8 {
            let digest = Digest::of(&[number]);
            kept.keep_file(digest, Bytes::from(vec![number; 1 << 20]));
        }
        let held = (0..200_u8).filter(|number| kept.file(Digest::of(&[*number])).is_some()).count();
        assert!((1..=64).contains(&held), "{held}");
        let large = Digest::of(b"large");
        kept.keep_file(large, Bytes::from(vec![0; (4 << 20) + 1]));
        assert!(kept.file(large).is_none());
    }
}
