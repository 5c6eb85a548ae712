//! Finding: a plan, carried out.
//!
//! Every word of the query adds what it is worth to the scores of its documents, one segment after
//! the other: lists are short, scores stay in the processor's cache, and nothing is guessed, so that
//! the number of hits is exact. Where a filter leaves few documents, these are looked up instead.

use std::collections::BTreeSet;

use crate::best::{Best, Found};
use crate::documents::Documents;
use crate::facet::Facet;
use crate::part::Part;
use crate::plan::{Plan, Word};
use crate::postings::List;
use crate::query::{Hit, Page, Query};
use crate::scratch::{Scores, Scratch};
use crate::snapshot::Snapshot;

/// Documents whose scores are looked at together.
const BLOCK: usize = 64;

/// Answers a query.
pub(crate) fn find(snapshot: &Snapshot, query: &Query) -> Page {
    let plan = Plan::new(snapshot, query);
    let wanted = query.offset.saturating_add(query.limit).min(snapshot.len());
    let mut best = Best::new(&snapshot.parts, wanted);
    let mut total = 0;
    let mut scratch = snapshot.pool.take();
    for (at, part) in snapshot.parts.iter().enumerate() {
        let allowed = allowed(part, query);
        let mut hits = Hits { part, at: u32::try_from(at).unwrap_or(u32::MAX), best: &mut best };
        total += match (plan.is_empty, allowed) {
            (true, None) => hits.all((0..=u16::MAX).take(part.segment.len())),
            (true, Some(allowed)) => hits.all(allowed.iter()),
            (false, Some(allowed)) if is_cheaper_by_document(&plan, part, at, &allowed) => {
                hits.by_document(&plan.words, &allowed)
            }
            (false, allowed) => hits.by_word(&plan.words, allowed.as_ref(), &mut scratch),
        };
    }
    snapshot.pool.give(scratch);
    let hit = |found: Found| Hit {
        key: snapshot.parts[found.part as usize].segment.key(found.document).to_owned(),
        score: found.score,
        rank: found.rank,
    };
    let hits = best.finish().into_iter().skip(query.offset).map(hit).collect();
    Page { hits, total }
}

/// The documents that are left and pass the filters; none when these are all.
fn allowed(part: &Part, query: &Query) -> Option<Documents> {
    allowed_by(part, query.filters.iter())
}

/// The same, whatever the filter by this facet says.
pub(crate) fn allowed_but(part: &Part, query: &Query, facet: Facet) -> Option<Documents> {
    allowed_by(part, query.filters.iter().filter(|(known, _)| **known != facet))
}

fn allowed_by<'q>(
    part: &Part,
    filters: impl Iterator<Item = (&'q Facet, &'q BTreeSet<Box<str>>)>,
) -> Option<Documents> {
    let mut filters = filters.peekable();
    if filters.peek().is_none() && part.removed.is_none() {
        return None;
    }
    let all = part.segment.len();
    let mut allowed = Documents::all(all);
    for (facet, values) in filters {
        let mut holders = Documents::none(all);
        for value in values {
            if let Some(known) = part.segment.labels.find(*facet, value) {
                known.add_to(&mut holders);
            }
        }
        allowed.keep(&holders);
    }
    if let Some(removed) = &part.removed {
        allowed.take_out(&removed.documents);
    }
    Some(allowed)
}

/// The documents that have any word of a plan.
pub(crate) fn documents_with(plan: &Plan, part: &Part, at: usize) -> Documents {
    let mut documents = Documents::none(part.segment.len());
    for (weight, list) in plan.words.iter().flat_map(|word| lists(word, part, at)) {
        each(list, |document, impact| {
            if worth(weight, impact) > 0 {
                documents.insert(document);
            }
        });
    }
    documents
}

/// The lists of one word of the query in a part, and what each is worth.
fn lists<'s>(word: &'s Word, part: &'s Part, at: usize) -> impl Iterator<Item = (u16, List<'s>)> {
    word.spellings.iter().filter_map(move |candidate| {
        let place = candidate.places[at]? as usize;
        Some((candidate.weight, part.segment.postings.list(place)))
    })
}

fn is_cheaper_by_document(plan: &Plan, part: &Part, at: usize, allowed: &Documents) -> bool {
    let count = allowed.count();
    let all_lists = || plan.words.iter().flat_map(|word| lists(word, part, at));
    let through: usize = all_lists().map(|(_, list)| list.steps().0).sum();
    let one: usize = all_lists().map(|(_, list)| list.steps().1).sum();
    // Looking up jumps about in memory, and going through also has to pick the best of all.
    count * one * 2 < through + part.segment.len() / 2
}

/// What is found in one part.
struct Hits<'b, 's> {
    part: &'s Part,
    at: u32,
    best: &'b mut Best<'s>,
}

impl Hits<'_, '_> {
    /// Every document, for a query without words.
    fn all(&mut self, documents: impl Iterator<Item = u16>) -> usize {
        documents.map(|document| self.push(0, document)).count()
    }

    fn by_document(&mut self, words: &[Word], allowed: &Documents) -> usize {
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

    fn by_word(
        &mut self,
        words: &[Word],
        allowed: Option<&Documents>,
        scratch: &mut Scratch,
    ) -> usize {
        let at = self.at as usize;
        let part = self.part;
        for word in words {
            let mut lists = lists(word, part, at);
            let Some(first) = lists.next() else { continue };
            match lists.next() {
                None => add(first.0, first.1, &mut scratch.scores),
                Some(second) => {
                    let group: Vec<_> = [first, second].into_iter().chain(lists).collect();
                    add_best(&group, scratch);
                }
            }
        }
        let scores = &mut scratch.scores[..part.segment.len()];
        if let Some(allowed) = allowed {
            allowed.clear_others(scores);
        }
        let total = self.pick(scores);
        scores.fill(0);
        total
    }

    /// Picks the best of all scores, and counts those that are not zero.
    fn pick(&mut self, scores: &[u32]) -> usize {
        let mut total = 0;
        let mut bar = self.bar();
        for (block, start) in scores.chunks(BLOCK).zip((0..=u16::MAX).step_by(BLOCK)) {
            // Both loops are short and have no branches, so several scores are looked at at once.
            total += block.iter().map(|score| u32::from(*score != 0)).sum::<u32>() as usize;
            if block.iter().map(|score| u32::from(*score >= bar)).sum::<u32>() == 0 {
                continue;
            }
            for (document, score) in (start..=u16::MAX).zip(block) {
                if *score >= bar {
                    self.push(*score, document);
                }
            }
            bar = self.bar();
        }
        total
    }

    /// The lowest score in this part that may be among the best, whatever the document's rank.
    fn bar(&self) -> u32 {
        let bar = self.best.bar() / shown_best(self.part.segment.best_rank);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let bar = (bar * (1.0 - 1e-9)).floor() as u32;
        bar.max(1)
    }

    fn push(&mut self, score: u32, document: u16) {
        let rank = self.part.segment.rank(document);
        self.best.push(Found { score: ranked(score, rank), rank, part: self.at, document });
    }
}

/// What a word is worth in a document.
pub(crate) fn worth(weight: u16, impact: u8) -> u32 {
    u32::from(weight) * u32::from(impact)
}

/// What a document's score is in the end.
pub(crate) fn ranked(score: u32, rank: f32) -> f64 {
    crate::ranking::shown(score) * f64::from(rank)
}

fn shown_best(best_rank: f32) -> f64 {
    ranked(1, best_rank)
}

/// Adds what a word is worth to the scores of its documents.
fn add(weight: u16, list: List<'_>, scores: &mut Scores) {
    match list {
        List::Some(documents, impacts) => {
            for (document, impact) in documents.iter().zip(impacts) {
                scores[usize::from(*document)] += worth(weight, *impact);
            }
        }
        List::Table(impacts) => {
            for (score, impact) in scores.iter_mut().zip(impacts) {
                *score += worth(weight, *impact);
            }
        }
    }
}

/// Adds for each document what the one spelling is worth that counts most there.
fn add_best(group: &[(u16, List<'_>)], scratch: &mut Scratch) {
    let Scratch { scores, highest } = scratch;
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

fn each(list: List<'_>, mut visit: impl FnMut(u16, u8)) {
    match list {
        List::Some(documents, impacts) => {
            documents.iter().zip(impacts).for_each(|(document, impact)| visit(*document, *impact));
        }
        List::Table(impacts) => {
            (0..=u16::MAX).zip(impacts).for_each(|(document, impact)| visit(document, *impact));
        }
    }
}
