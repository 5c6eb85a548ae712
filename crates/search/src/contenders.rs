//! Only those that can be among the best are scored.
//!
//! The words that can add most come first. Once all that are left cannot lift a document above the last of the best
//! so far, only documents that were met are contenders; for them the other words are looked up, and whoever cannot
//! reach the best any more is left out. What was found is counted with sets, so the number of hits is exact.

use std::cmp::Reverse;

use smallvec::SmallVec;

use crate::documents::Documents;
use crate::find::{each, lists, worth};
use crate::hits::{Hits, add, add_best};
use crate::part::Part;
use crate::plan::Word;
use crate::postings::List;
use crate::scratch::{Scores, Scratch};

/// Where more than so many are wanted, most are contenders.
const MOST_WANTED: usize = 200;
/// A word that more than this part of the documents has is added to all of them at once.
const MANY: usize = 6;

/// A word of the query in one part.
struct Adding<'s> {
    lists: SmallVec<[(u16, List<'s>); 1]>,
    /// What it can add to a score.
    most: u32,
    /// How many documents have it, about.
    steps: usize,
}

impl Adding<'_> {
    /// Adds it to the scores of these documents.
    fn add_to(&self, documents: &[u16], scores: &mut Scores) {
        if let [(weight, list)] = self.lists.as_slice() {
            return list.look_up(documents, |document, impact| {
                scores[usize::from(document)] += worth(*weight, impact);
            });
        }
        for document in documents {
            let lists = self.lists.iter();
            let each = lists.map(|(weight, list)| worth(*weight, list.impact(*document)));
            scores[usize::from(*document)] += each.max().unwrap_or(0);
        }
    }

    /// Adds it to the scores of its documents, and notes those that had none. One that has no other score yet, and in
    /// which the word is worth less than is needed, cannot be among the best: it is passed over.
    fn meet(&self, needed: u32, scratch: &mut Scratch) {
        let Scratch { scores, highest, met, .. } = scratch;
        if let [(weight, list)] = self.lists.as_slice() {
            // Each is written down, and counts only if it is new: nobody can tell before, not even the processor.
            let mut count = met.len();
            met.resize(count + list.len() + 1, 0);
            each(*list, |document, impact| {
                let (score, worth) = (&mut scores[usize::from(document)], worth(*weight, impact));
                let (is_new, is_enough) = (*score == 0, worth >= needed.max(1));
                met[count] = document;
                count += usize::from(is_new & is_enough);
                *score += worth * u32::from(!is_new | is_enough);
            });
            return met.truncate(count);
        }
        for (_, list) in &self.lists {
            each(*list, |document, impact| {
                if impact > 0
                    && scores[usize::from(document)] == 0
                    && highest[usize::from(document)] == 0
                {
                    highest[usize::from(document)] = 1;
                    met.push(document);
                }
            });
        }
        for (_, list) in &self.lists {
            each(*list, |document, _| highest[usize::from(document)] = 0);
        }
        add_best(&self.lists, scores, highest);
    }

    /// The same, where nobody notes which they are.
    fn add(&self, scratch: &mut Scratch) {
        let Scratch { scores, highest, .. } = scratch;
        match self.lists.as_slice() {
            [(weight, list)] => add(*weight, *list, scores),
            lists => add_best(lists, scores, highest),
        }
    }
}

impl Hits<'_, '_> {
    /// The documents that have any of the words; how many there are.
    pub(crate) fn by_word(
        &mut self,
        words: &[Word],
        allowed: Option<&Documents>,
        scratch: &mut Scratch,
    ) -> usize {
        let mut words = adding(words, self.part, self.at as usize);
        if self.best.wanted() > MOST_WANTED {
            return self.all_of(&words, allowed, scratch);
        }
        // Counted first: that goes through what is looked up later, so that it is at hand.
        let total = count(&words, self.part.segment.len(), allowed, &mut scratch.found);
        words.sort_by_key(|word| Reverse(word.most));
        let mut rest: u32 = words.iter().map(|word| word.most).sum();
        let mut least = self.least();
        let mut left = words.as_slice();
        while let Some((word, others)) = left.split_first() {
            if rest < least {
                break;
            }
            if word.steps > scratch.met.len() && scratch.met.len() >= self.best.wanted() {
                take_allowed(allowed, scratch);
                let Scratch { scores, near, sorted, .. } = scratch;
                least = self.last_of_best(near, scores, least, sorted);
                if rest < least {
                    break;
                }
            }
            if word.steps > self.part.segment.len() / MANY {
                scratch.met.clear();
                self.all_of(left, allowed, scratch);
                return total;
            }
            rest -= word.most;
            word.meet(least.saturating_sub(rest), scratch);
            left = others;
        }
        self.contend(left, rest, least, allowed, scratch);
        for document in scratch.met.drain(..) {
            scratch.scores[usize::from(document)] = 0;
        }
        total
    }

    /// Those that were met, with what the other words add.
    fn contend(
        &mut self,
        left: &[Adding<'_>],
        mut rest: u32,
        mut least: u32,
        allowed: Option<&Documents>,
        scratch: &mut Scratch,
    ) {
        take_allowed(allowed, scratch);
        let Scratch { scores, near, sorted, .. } = scratch;
        for word in left {
            keep(near, |document| scores[usize::from(document)] + rest >= least);
            rest -= word.most;
            word.add_to(near, scores);
            if near.len() > self.best.wanted() * 4 {
                least = self.last_of_best(near, scores, least, sorted);
            }
        }
        for document in near.drain(..) {
            let score = scores[usize::from(document)];
            if score >= least {
                self.push(score, document);
            }
        }
    }

    /// Adds words to the scores of all their documents, and picks the best of all.
    fn all_of(
        &mut self,
        words: &[Adding<'_>],
        allowed: Option<&Documents>,
        scratch: &mut Scratch,
    ) -> usize {
        for word in words {
            word.add(scratch);
        }
        let scores = &mut scratch.scores[..self.part.segment.len()];
        if let Some(allowed) = allowed {
            allowed.clear_others(scores);
        }
        let total = self.pick(scores);
        scores.fill(0);
        total
    }

    /// What a score has to be if those that were met are as good as they are so far, or better, and in any case so much.
    fn last_of_best(&self, met: &[u16], scores: &Scores, least: u32, sorted: &mut Vec<u32>) -> u32 {
        let segment = &self.part.segment;
        let mut count = 0;
        sorted.resize(met.len() + 1, 0);
        for document in met {
            let score = scores[usize::from(*document)];
            sorted[count] = segment.as_of_best_rank(score, *document);
            // Whoever has no more than that makes no difference.
            count += usize::from(score > least);
        }
        let (sorted, wanted) = (&mut sorted[..count], self.best.wanted());
        if wanted == 0 || count < wanted {
            return least;
        }
        least.max(*sorted.select_nth_unstable_by(wanted - 1, |one, other| other.cmp(one)).1)
    }
}

/// How many of all documents have any of the words and are allowed.
fn count(
    words: &[Adding<'_>],
    all: usize,
    allowed: Option<&Documents>,
    found: &mut Documents,
) -> usize {
    found.clear(all);
    for (_, list) in words.iter().flat_map(|word| &word.lists) {
        list.add_to(found);
    }
    match allowed {
        Some(allowed) => found.count_both(allowed),
        None => found.count(),
    }
}

/// Takes those that were met and are allowed for near.
fn take_allowed(allowed: Option<&Documents>, scratch: &mut Scratch) {
    let Scratch { met, near, .. } = scratch;
    near.clear();
    near.extend_from_slice(met);
    if let Some(allowed) = allowed {
        keep(near, |document| allowed.contains(document));
    }
}

/// Keeps those for which it holds. Each is written, so that it does not matter that nobody can tell before.
fn keep(documents: &mut Vec<u16>, mut holds: impl FnMut(u16) -> bool) {
    let mut kept = 0;
    for at in 0..documents.len() {
        let document = documents[at];
        documents[kept] = document;
        kept += usize::from(holds(document));
    }
    documents.truncate(kept);
}

/// The words that a part has.
fn adding<'s>(words: &'s [Word], part: &'s Part, at: usize) -> Vec<Adding<'s>> {
    let adding = |word| {
        let lists: SmallVec<[_; 1]> = lists(word, part, at).collect();
        let most = lists.iter().map(|(weight, list)| worth(*weight, list.most)).max()?;
        let steps = lists.iter().map(|(_, list)| list.steps().0).sum();
        Some(Adding { lists, most, steps })
    };
    words.iter().filter_map(adding).collect()
}
