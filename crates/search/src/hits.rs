//! What is found in one part.
//!
//! One word alone needs no scores; where a filter leaves few documents, these are looked up. Everything else adds what
//! each word is worth to the scores of its documents (`contenders`), which stay in the processor's cache.

use crate::best::{Best, Found};
use crate::documents::Documents;
use crate::find::{each, lists, ranked, worth};
use crate::part::Part;
use crate::plan::Word;
use crate::postings::{Held, List};
use crate::scratch::Scores;

/// Documents that are looked at together.
const BLOCK: usize = 64;

pub(crate) struct Hits<'b, 's> {
    pub(crate) part: &'s Part,
    pub(crate) at: u32,
    pub(crate) best: &'b mut Best<'s>,
}

/// What a score has to be to be among the best. Documents come in the order in which equal ones win.
struct Bar {
    least: u32,
    /// From this document on, whoever is only as good as the last of the best loses.
    from: usize,
    more: u32,
    /// How often it was set before.
    cuts: u32,
}

impl Bar {
    fn of(&self, document: u16) -> u32 {
        if usize::from(document) < self.from { self.least } else { self.more }
    }
}

impl Hits<'_, '_> {
    /// Every document, for a query without words.
    pub(crate) fn all(&mut self, documents: impl Iterator<Item = u16>) -> usize {
        documents.map(|document| self.push(0, document)).count()
    }

    /// The documents of one word, unless they were removed.
    pub(crate) fn of_word(&mut self, weight: u16, word: usize) -> usize {
        let part = self.part;
        let (documents, impacts) = match part.segment.postings.list(word).held {
            Held::Some(documents, impacts) => (Some(documents), impacts),
            Held::Table(impacts) => (None, impacts),
        };
        let document = |at: u16| documents.map_or(at, |some| some[usize::from(at)]);
        let mut bar = self.bar();
        for (block, start) in impacts.chunks(BLOCK).zip((0..=u16::MAX).step_by(BLOCK)) {
            let least = bar.of(document(start)).div_ceil(u32::from(weight));
            // Nobody is so good where that is more than any impact.
            let Ok(least) = u8::try_from(least) else { continue };
            // The loop is short and has no branches, so several are looked at at once.
            if block.iter().map(|impact| u8::from(*impact >= least)).sum::<u8>() == 0 {
                continue;
            }
            for (at, impact) in (start..=u16::MAX).zip(block) {
                if *impact >= least && part.is_living(document(at)) {
                    self.push(worth(weight, *impact), document(at));
                }
            }
            self.raise(&mut bar);
        }
        part.count(word)
    }

    pub(crate) fn by_document(&mut self, words: &[Word], allowed: &Documents) -> usize {
        let at = self.at as usize;
        let part = self.part;
        let lists: Vec<Vec<(u16, List<'_>)>> =
            words.iter().map(|word| lists(word, part, at).collect()).collect();
        let mut total = 0;
        for document in allowed.iter() {
            let worth = |word: &Vec<(u16, List<'_>)>| {
                let each = word.iter().map(|(weight, list)| worth(*weight, list.impact(document)));
                each.max().unwrap_or(0)
            };
            let score = lists.iter().map(worth).sum();
            if score > 0 {
                total += 1;
                self.push(score, document);
            }
        }
        total
    }

    /// Picks the best of all scores, and counts those that are not zero.
    pub(crate) fn pick(&mut self, scores: &[u32]) -> usize {
        let mut total = 0;
        let mut bar = self.bar();
        for (block, start) in scores.chunks(BLOCK).zip((0..=u16::MAX).step_by(BLOCK)) {
            // Both loops are short and have no branches, so several scores are looked at at once.
            total += block.iter().map(|score| u32::from(*score != 0)).sum::<u32>() as usize;
            let least = bar.of(start);
            if block.iter().map(|score| u32::from(*score >= least)).sum::<u32>() == 0 {
                continue;
            }
            for (document, score) in (start..=u16::MAX).zip(block) {
                if *score >= least {
                    self.push(*score, document);
                }
            }
            self.raise(&mut bar);
        }
        total
    }

    /// What a score has to be at least.
    pub(crate) fn least(&self) -> u32 {
        self.best.bar().map_or(1, |last| self.as_good_as(&last))
    }

    /// The score that a document must have here, whatever its rank, to be as good.
    fn as_good_as(&self, other: &Found) -> u32 {
        let exact = other.score / ranked(1, self.part.segment.best_rank);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let least = (exact * (1.0 - 1e-9)).ceil() as u32;
        least.max(1)
    }

    /// Sets the bar anew where it has become higher.
    fn raise(&self, bar: &mut Bar) {
        if bar.cuts != self.best.cuts() {
            *bar = self.bar();
        }
    }

    fn bar(&self) -> Bar {
        let (segment, cuts) = (&self.part.segment, self.best.cuts());
        let Some(last) = self.best.bar() else { return Bar { least: 1, from: 0, more: 1, cuts } };
        let least = self.as_good_as(&last);
        #[expect(clippy::float_cmp, reason = "it is the same number, or nothing follows from it")]
        if last.rank != segment.best_rank {
            return Bar { least, from: 0, more: least, cuts };
        }
        // None has a better rank, so of equal ones those come first whose keys do.
        let from = if last.part == self.at {
            usize::from(last.document)
        } else {
            segment.keys.first_from(self.best.key(&last))
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let same = (last.score / ranked(1, segment.best_rank)).round() as u32;
        Bar { least, from, more: same.saturating_add(1), cuts }
    }

    pub(crate) fn push(&mut self, score: u32, document: u16) {
        let rank = self.part.segment.rank(document);
        self.best.push(Found { score: ranked(score, rank), rank, part: self.at, document });
    }
}

/// Adds what a word is worth to the scores of its documents.
pub(crate) fn add(weight: u16, list: List<'_>, scores: &mut Scores) {
    match list.held {
        Held::Some(documents, impacts) => {
            for (document, impact) in documents.iter().zip(impacts) {
                scores[usize::from(*document)] += worth(weight, *impact);
            }
        }
        Held::Table(impacts) => {
            for (score, impact) in scores.iter_mut().zip(impacts) {
                *score += worth(weight, *impact);
            }
        }
    }
}

/// Adds for each document what the one spelling is worth that counts most there.
pub(crate) fn add_best(group: &[(u16, List<'_>)], scores: &mut Scores, highest: &mut Scores) {
    for (weight, list) in group {
        each(*list, |document, impact| {
            let (worth, highest) = (worth(*weight, impact), &mut highest[usize::from(document)]);
            if worth > *highest {
                scores[usize::from(document)] += worth - *highest;
                *highest = worth;
            }
        });
    }
    for (_, list) in group {
        each(*list, |document, _| highest[usize::from(document)] = 0);
    }
}
