//! A query, and which words of the index it stands for.
//!
//! Everything here is bounded: the bytes that are read, the words that count, those that are
//! corrected, and how many spellings one may have.

use std::collections::{BTreeMap, HashMap};

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
/// How many times more often the right spelling of a rare word must be.
const COMMONER: usize = 16;
/// A part counts half where the identifier it is of is known.
const OF_KNOWN: f64 = 0.5;
/// The fewest letters that are taken for the beginning of a word.
const BEGINNING: usize = 2;
/// How many letters of a begun word may be part of an ending.
const ENDING: usize = 4;

/// The words that count.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) words: Vec<Word>,
    /// Whether there was a word at all, known or not.
    pub(crate) is_empty: bool,
}

/// A word of the query.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) typed: String,
    /// What it stands for; of these, the one that counts most counts.
    pub(crate) spellings: Vec<Candidate>,
}

/// A word of the index.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) stem: String,
    pub(crate) how: Match,
    pub(crate) idf: f64,
    pub(crate) weight: u16,
    /// Which word it is in each part.
    pub(crate) places: Vec<Option<u32>>,
}

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
struct Typed {
    form: String,
    stem: String,
    piece: Piece,
    is_last: bool,
}

impl Plan {
    pub(crate) fn new(snapshot: &Snapshot, query: &Query) -> Self {
        let typed = typed(query);
        let is_empty = typed.is_empty();
        let look = Look { parts: &snapshot.parts, all: snapshot.len() };
        let mut corrections_left = limits::CORRECTED_WORDS;
        let mut words: Vec<(usize, Word)> = Vec::new();
        let mut is_known = HashMap::new();
        for typed in typed.iter().filter(|typed| typed.piece == Piece::Joined) {
            is_known.insert(typed.form.as_str(), look.count(&look.places(&typed.stem)) > 0);
        }
        for (at, word) in typed.iter().enumerate() {
            // The parts of an identifier stand right before it.
            let of_known = word.piece == Piece::Part
                && typed[at..]
                    .iter()
                    .find(|later| later.piece == Piece::Joined)
                    .is_some_and(|joined| is_known.get(joined.form.as_str()) == Some(&true));
            let factor = if of_known { OF_KNOWN } else { 1.0 };
            let spellings = look.spellings(word, query, factor, &mut corrections_left);
            if !spellings.is_empty() {
                words.push((at, Word { typed: word.form.clone(), spellings }));
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
        Self { words: words.into_iter().map(|(_, word)| word).collect(), is_empty }
    }
}

/// The different words of a query, in the order in which they were typed.
fn typed(query: &Query) -> Vec<Typed> {
    let text = beginning(&query.text, limits::QUERY_BYTES);
    let english = English::new();
    let mut typed: Vec<Typed> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    Splitter::default().split(text, |form, piece| {
        if !known.contains_key(form) {
            let stem = english.stem(form).into_owned();
            // Of two forms of a word, the first counts.
            if typed.iter().rev().take(limits::QUERY_WORDS).all(|other| other.stem != stem) {
                typed.push(Typed { form: form.to_owned(), stem, piece, is_last: false });
            }
            known.insert(form.to_owned(), known.len());
        }
        Enough::No
    });
    // It is the beginning of a word only when nothing, not even a space, comes after it.
    if text.chars().next_back().is_some_and(char::is_alphanumeric)
        && let Some(last) = typed.last_mut()
    {
        last.is_last = true;
    }
    typed
}

/// Looks words up in all parts.
struct Look<'s> {
    parts: &'s [Part],
    all: usize,
}

impl Look<'_> {
    fn spellings(
        &self,
        word: &Typed,
        query: &Query,
        factor: f64,
        corrections_left: &mut usize,
    ) -> Vec<Candidate> {
        let places = self.places(&word.stem);
        let count = self.count(&places);
        let mut found = Vec::new();
        if count > 0 {
            found.push(self.candidate(
                word.stem.clone(),
                Match::Stem,
                idf(count, self.all),
                factor,
            ));
        }
        if word.is_last && query.last_word == LastWord::Begun {
            found.extend(self.begun(word, factor));
        }
        let is_wanted = found.is_empty() || (count < RARE && found.len() == 1);
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
    fn begun(&self, word: &Typed, factor: f64) -> Vec<Candidate> {
        if word.form.chars().nth(BEGINNING - 1).is_none() {
            return Vec::new();
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for part in self.parts {
            let dictionary = &part.segment.dictionary;
            for known in dictionary.beginning_with(&word.form) {
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
    fn begun_ending(&self, word: &Typed, factor: f64) -> Vec<Candidate> {
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
    fn corrected(&self, word: &Typed, having: usize, factor: f64) -> Vec<Candidate> {
        let most = if having > 0 { 1 } else { slips(word.form.chars().count()) };
        let mut near: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for part in self.parts {
            let dictionary = &part.segment.dictionary;
            // A slip can change what the ending is taken for, so both forms are tried.
            for form in [&word.form, &word.stem] {
                dictionary.near(form, most, |known, slips| {
                    let (least, _) =
                        near.entry(dictionary.words().get(known)).or_insert((slips, 0));
                    *least = slips.min(*least);
                });
                if word.form == word.stem {
                    break;
                }
            }
        }
        near.remove(word.stem.as_str());
        for (stem, (_, count)) in &mut near {
            *count = self.count(&self.places(stem));
        }
        let least = if having > 0 { having * COMMONER } else { 1 };
        let mut near: Vec<_> = near.into_iter().filter(|(_, (_, count))| *count >= least).collect();
        near.sort_by(|(stem, (slips, count)), (other, (its_slips, its_count))| {
            slips.cmp(its_slips).then(its_count.cmp(count)).then(stem.cmp(other))
        });
        near.truncate(limits::SPELLINGS);
        // One slip is likelier than two: where there is a word with one, the others are not meant.
        if let Some((_, (fewest, _))) = near.first().copied() {
            near.retain(|(_, (slips, _))| *slips == fewest);
        }
        let idf = idf(near.iter().map(|(_, (_, count))| count).sum(), self.all);
        let candidate = |(stem, (slips, _)): (&str, (usize, usize))| {
            let how = Match::Slips(u8::try_from(slips).unwrap_or(u8::MAX));
            self.candidate(stem.to_owned(), how, idf, factor)
        };
        near.into_iter().map(candidate).collect()
    }

    fn candidate(&self, stem: String, how: Match, idf: f64, factor: f64) -> Candidate {
        let places = self.places(&stem);
        Candidate { stem, how, idf, weight: weight(idf, how.factor() * factor), places }
    }

    fn places(&self, stem: &str) -> Vec<Option<u32>> {
        let find = |part: &Part| part.segment.dictionary.find(stem);
        self.parts.iter().map(|part| find(part).and_then(|at| u32::try_from(at).ok())).collect()
    }

    fn count(&self, places: &[Option<u32>]) -> usize {
        let counts = self.parts.iter().zip(places);
        counts.filter_map(|(part, place)| place.map(|word| part.count(word as usize))).sum()
    }
}
