//! A query, and which words of the index it stands for.
//!
//! Everything here is bounded: the bytes that are read, the words that count, those that are
//! corrected, and how many spellings one may have.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

use crate::limits;
use crate::part::Part;
use crate::query::{LastWord, Query, Spelling};
use crate::ranking::{idf, weight};
use crate::snapshot::Snapshot;
use crate::spelling::slips;
use crate::stem::English;
use crate::words::{Enough, Piece, Splitter, beginning};

/// A word that is in fewer documents is rare: it may be a slip that somebody else made too.
const RARE: usize = 3;
/// Rare words are doubted in queries of so many words; in longer ones the others make up for it.
const SHORT: usize = 3;
/// How many times more often the right spelling of a rare word must be.
const COMMONER: usize = 16;
/// A part counts half where the identifier it is of is known.
const OF_KNOWN: f64 = 0.5;
/// The fewest letters that are taken for the beginning of a word.
const BEGINNING: usize = 2;
/// Words that most queries do not have more of.
const WORDS: usize = 16;
/// How many letters of a begun word may be part of an ending.
const ENDING: usize = 4;

/// The words that count.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) words: Vec<Word>,
    /// Whether there was a word at all, known or not.
    pub(crate) is_empty: bool,
    /// All words as they were typed, and their stems, in one piece: a search takes little from the heap.
    letters: String,
}

/// A word of the query.
#[derive(Debug)]
pub(crate) struct Word {
    typed: Place,
    /// What it stands for; of these, the one that counts most counts. Almost always there is one.
    pub(crate) spellings: SmallVec<[Candidate; 1]>,
}

/// A word of the index.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Its stem, where that is not the one of the word that was typed.
    stem: Option<String>,
    pub(crate) how: Match,
    pub(crate) idf: f64,
    pub(crate) weight: u16,
    /// Which word it is in each part.
    pub(crate) places: Places,
}

/// Which word of each part something is, where it is there.
pub(crate) type Places = SmallVec<[Option<u32>; 4]>;

/// How a word of the index was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// It has the same stem.
    Stem,
    /// It begins like the word that was typed.
    Beginning,
    /// It is so many slips of the finger away.
    Slips(u8),
}

impl Match {
    /// How far it counts, compared with the word itself.
    fn factor(self) -> f64 {
        match self {
            Match::Stem => 1.0,
            Match::Beginning => 0.7,
            Match::Slips(1) => 0.6,
            Match::Slips(_) => 0.35,
        }
    }
}

/// A word as it was typed.
#[derive(Clone, Copy)]
struct Typed<'t> {
    form: &'t str,
    stem: &'t str,
    piece: Piece,
    is_last: bool,
}

/// Where the letters of a word are, and what it is.
#[derive(Clone, Debug)]
struct Place {
    form: Range<usize>,
    stem: Range<usize>,
    piece: Piece,
    is_last: bool,
    /// Whether one of the same stem is before it.
    is_again: bool,
}

impl Place {
    fn word<'t>(&self, letters: &'t str) -> Typed<'t> {
        let Self { form, stem, piece, is_last, .. } = self.clone();
        Typed { form: &letters[form], stem: &letters[stem], piece, is_last }
    }
}

impl Plan {
    pub(crate) fn new(snapshot: &Snapshot, query: &Query) -> Self {
        let (letters, places) = typed(query);
        let typed: Vec<Typed<'_>> = places.iter().map(|place| place.word(&letters)).collect();
        // What says something and holds no word asks for nothing that is here, not for everything.
        let is_empty = typed.is_empty() && query.text.trim().is_empty();
        let look = Look {
            parts: &snapshot.parts,
            all: snapshot.len(),
            rare: if typed.len() <= SHORT { RARE } else { 0 },
        };
        let factors = factors(&typed, &look);
        let mut corrections_left = limits::CORRECTED_WORDS;
        let mut words: Vec<(usize, Word)> = Vec::with_capacity(typed.len().min(WORDS));
        for (at, (word, factor)) in typed.iter().zip(factors).enumerate() {
            let spellings = look.spellings(word, query, factor, &mut corrections_left);
            if !spellings.is_empty() {
                words.push((at, Word { typed: places[at].clone(), spellings }));
            }
        }
        if words.len() > limits::QUERY_WORDS {
            let most = |word: &Word| word.spellings.iter().map(|one| one.weight).max();
            words.sort_by(|(at, one), (other_at, other)| {
                most(other).cmp(&most(one)).then(at.cmp(other_at))
            });
            words.truncate(limits::QUERY_WORDS);
            words.sort_by_key(|(at, _)| *at);
        }
        Self { words: words.into_iter().map(|(_, word)| word).collect(), is_empty, letters }
    }

    /// A word as it was typed.
    pub(crate) fn form(&self, word: &Word) -> &str {
        word.typed.word(&self.letters).form
    }

    /// The stem of what a word stands for.
    pub(crate) fn stem<'p>(&'p self, word: &Word, candidate: &'p Candidate) -> &'p str {
        candidate.stem.as_deref().unwrap_or_else(|| word.typed.word(&self.letters).stem)
    }
}

/// How far each word counts: less where it is a part of an identifier that is known as a whole.
fn factors(typed: &[Typed<'_>], look: &Look<'_>) -> Vec<f64> {
    let mut factor = 1.0;
    let mut factors: Vec<f64> = Vec::with_capacity(typed.len());
    // The whole of an identifier stands right after its parts.
    for word in typed.iter().rev() {
        let is_known = word.piece == Piece::Joined && look.count(&look.places(word.stem)) > 0;
        match word.piece {
            Piece::Joined => factor = if is_known { OF_KNOWN } else { 1.0 },
            Piece::Whole => factor = 1.0,
            Piece::Part => {}
        }
        factors.push(if word.piece == Piece::Part { factor } else { 1.0 });
    }
    factors.reverse();
    factors
}

/// The different words of a query, in the order in which they were typed, and their letters.
fn typed(query: &Query) -> (String, Vec<Place>) {
    let text = beginning(&query.text, limits::QUERY_BYTES);
    let english = English::new();
    let mut letters = String::with_capacity(2 * text.len());
    let mut places: Vec<Place> = Vec::with_capacity(WORDS);
    let mut last = 0..0;
    Splitter::default().split(text, |form, piece| {
        let start = letters.len();
        letters.push_str(form);
        let end = letters.len();
        letters.push_str(&english.stem(form));
        // What is written last is an identifier and its last part, or one word.
        if piece != Piece::Joined {
            last.start = places.len();
        }
        let (form, stem) = (start..end, end..letters.len());
        places.push(Place { form, stem, piece, is_last: false, is_again: false });
        last.end = places.len();
        Enough::No
    });
    // It is the beginning of a word only when nothing, not even a space, comes after it.
    if text.chars().next_back().is_some_and(char::is_alphanumeric) {
        places[last].iter_mut().for_each(|place| place.is_last = true);
    }
    drop_repeated(&letters, &mut places);
    (letters, places)
}

/// Of several forms of a word the first counts, and it is the last if any of them is.
fn drop_repeated(letters: &str, places: &mut Vec<Place>) {
    let stems = places.iter().map(|place| &letters[place.stem.clone()]);
    let mut order: Vec<(&str, usize)> = stems.zip(0..).collect();
    order.sort_unstable();
    for same in order.chunk_by(|one, other| one.0 == other.0) {
        let is_last = same.iter().any(|(_, at)| places[*at].is_last);
        places[same[0].1].is_last = is_last;
        same[1..].iter().for_each(|(_, at)| places[*at].is_again = true);
    }
    places.retain(|place| !place.is_again);
}

/// Looks words up in all parts.
struct Look<'s> {
    parts: &'s [Part],
    all: usize,
    /// Words that are in fewer documents may be slips.
    rare: usize,
}

impl Look<'_> {
    fn spellings(
        &self,
        word: &Typed<'_>,
        query: &Query,
        factor: f64,
        corrections_left: &mut usize,
    ) -> SmallVec<[Candidate; 1]> {
        let places = self.places(word.stem);
        let count = self.count(&places);
        let mut found = SmallVec::new();
        if count > 0 {
            let idf = idf(count, self.all);
            let weight = weight(idf, factor);
            found.push(Candidate { stem: None, how: Match::Stem, idf, weight, places });
        }
        if word.is_last && query.last_word == LastWord::Begun {
            found.extend(self.begun(word, factor));
        }
        let is_wanted = found.is_empty() || (count < self.rare && found.len() == 1);
        if is_wanted
            && word.piece != Piece::Joined
            && query.spelling == Spelling::Forgiving
            && slips(word.form.chars().count()) > 0
            && *corrections_left > 0
        {
            *corrections_left -= 1;
            found.extend(self.corrected(word, count, factor));
        }
        found
    }

    /// The words that begin like this one, those first that are in most documents.
    fn begun(&self, word: &Typed<'_>, factor: f64) -> Vec<Candidate> {
        if word.form.chars().nth(BEGINNING - 1).is_none() {
            return Vec::new();
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for part in self.parts {
            let dictionary = &part.segment.dictionary;
            for known in dictionary.beginning_with(word.form) {
                *counts.entry(dictionary.words().get(known)).or_default() += part.count(known);
            }
        }
        counts.retain(|stem, count| *count > 0 && *stem != word.stem);
        if counts.is_empty() {
            return self.begun_ending(word, factor);
        }
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        counts.truncate(limits::SPELLINGS);
        let idf = idf(counts.iter().map(|(_, count)| count).sum(), self.all);
        let candidate = |(stem, _): (&str, usize)| {
            self.candidate(stem.to_owned(), Match::Beginning, idf, factor)
        };
        counts.into_iter().map(candidate).collect()
    }

    /// A word whose ending is not finished: `runnin` is `run` and a part of `ning`.
    fn begun_ending(&self, word: &Typed<'_>, factor: f64) -> Vec<Candidate> {
        let letters: Vec<char> = word.form.chars().collect();
        for cut in 1..=ENDING.min(letters.len().saturating_sub(BEGINNING + 1)) {
            let stem: String = letters[..letters.len() - cut].iter().collect();
            let count = self.count(&self.places(&stem));
            if count > 0 && stem != word.stem {
                let idf = idf(count, self.all);
                return vec![self.candidate(stem, Match::Beginning, idf, factor)];
            }
        }
        Vec::new()
    }

    /// The words that look like this one, which so many documents have: nearest first.
    fn corrected(&self, word: &Typed<'_>, having: usize, factor: f64) -> Vec<Candidate> {
        let most = if having > 0 { 1 } else { slips(word.form.chars().count()) };
        let least = if having > 0 { having * COMMONER } else { 1 };
        // One slip is likelier than two, so two are tried only where one finds nothing. A slip can change
        // what the ending is taken for, so the word is also tried as it was typed.
        let forms =
            if word.form == word.stem { vec![word.stem] } else { vec![word.stem, word.form] };
        let tries = (1..=most).flat_map(|slips| forms.iter().map(move |form| (slips, *form)));
        let mut near = Vec::new();
        for (slips, form) in tries {
            near = self.near(form, slips, least);
            near.retain(|(stem, _)| *stem != word.stem);
            if !near.is_empty() {
                break;
            }
        }
        let idf = idf(near.iter().map(|(_, (_, count))| count).sum(), self.all);
        let candidate = |(stem, (slips, _)): (&str, (usize, usize))| {
            let how = Match::Slips(u8::try_from(slips).unwrap_or(u8::MAX));
            self.candidate(stem.to_owned(), how, idf, factor)
        };
        near.into_iter().map(candidate).collect()
    }

    /// The words at most so many slips away that so many documents have, with the slips and the documents:
    /// fewest slips first, then most documents.
    fn near(&self, form: &str, most: usize, least: usize) -> Vec<(&str, (usize, usize))> {
        let mut near: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for part in self.parts {
            let dictionary = &part.segment.dictionary;
            dictionary.near(form, most, |known, slips| {
                let (_, count) = near.entry(dictionary.words().get(known)).or_insert((slips, 0));
                *count += part.count(known);
            });
        }
        let mut near: Vec<_> = near.into_iter().filter(|(_, (_, count))| *count >= least).collect();
        near.sort_by(|(stem, (slips, count)), (other, (its_slips, its_count))| {
            slips.cmp(its_slips).then(its_count.cmp(count)).then(stem.cmp(other))
        });
        near.truncate(limits::SPELLINGS);
        near
    }

    fn candidate(&self, stem: String, how: Match, idf: f64, factor: f64) -> Candidate {
        let places = self.places(&stem);
        Candidate { stem: Some(stem), how, idf, weight: weight(idf, how.factor() * factor), places }
    }

    fn places(&self, stem: &str) -> Places {
        let find = |part: &Part| part.segment.dictionary.find(stem);
        self.parts.iter().map(|part| find(part).and_then(|at| u32::try_from(at).ok())).collect()
    }

    fn count(&self, places: &[Option<u32>]) -> usize {
        let counts = self.parts.iter().zip(places);
        counts.filter_map(|(part, place)| place.map(|word| part.count(word as usize))).sum()
    }
}
