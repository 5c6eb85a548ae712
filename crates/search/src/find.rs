//! Finding: a plan, carried out.
//!
//! One segment after the other is searched, in the way that takes least there; nothing is guessed, so that the
//! number of hits is exact.

use std::collections::BTreeSet;

use crate::best::{Best, Found};
use crate::documents::Documents;
use crate::facet::Facet;
use crate::hits::Hits;
use crate::part::Part;
use crate::plan::{Plan, Word};
use crate::postings::{Held, List};
use crate::query::{Hit, Page, Query};
use crate::snapshot::Snapshot;

/// Answers a query.
pub(crate) fn find(snapshot: &Snapshot, query: &Query) -> Page {
    let plan = Plan::new(snapshot, query);
    let wanted = query.offset.saturating_add(query.limit).min(snapshot.len());
    let mut best = Best::new(&snapshot.parts, wanted);
    let mut total = 0;
    let mut scratch = snapshot.pool.take();
    for (at, part) in snapshot.parts.iter().enumerate() {
        let mut hits = Hits { part, at: u32::try_from(at).unwrap_or(u32::MAX), best: &mut best };
        total += if query.filters.is_empty()
            && let [word] = &plan.words[..]
            && let [only] = &word.spellings[..]
        {
            only.places[at].map_or(0, |word| hits.of_word(only.weight, word as usize))
        } else {
            match (plan.is_empty, allowed(part, query)) {
                (true, None) => hits.all((0..=u16::MAX).take(part.segment.len())),
                (true, Some(allowed)) => hits.all(allowed.iter()),
                (false, Some(allowed)) if is_cheaper_by_document(&plan, part, at, &allowed) => {
                    hits.by_document(&plan.words, &allowed)
                }
                (false, allowed) => hits.by_word(&plan.words, allowed.as_ref(), &mut scratch),
            }
        };
        // So that the next part knows what it has to be better than.
        best.cut();
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
    for (_, list) in plan.words.iter().flat_map(|word| lists(word, part, at)) {
        list.add_to(&mut documents);
    }
    documents
}

/// The lists of one word of the query in a part, and what each is worth.
pub(crate) fn lists<'s>(
    word: &'s Word,
    part: &'s Part,
    at: usize,
) -> impl Iterator<Item = (u16, List<'s>)> {
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

/// What a word is worth in a document.
pub(crate) fn worth(weight: u16, impact: u8) -> u32 {
    u32::from(weight) * u32::from(impact)
}

/// What a document's score is in the end.
pub(crate) fn ranked(score: u32, rank: f32) -> f64 {
    crate::ranking::shown(score) * f64::from(rank)
}

/// Goes through a list.
pub(crate) fn each(list: List<'_>, mut visit: impl FnMut(u16, u8)) {
    match list.held {
        Held::Some(documents, impacts) => {
            documents.iter().zip(impacts).for_each(|(document, impact)| visit(*document, *impact));
        }
        Held::Table(impacts) => {
            (0..=u16::MAX).zip(impacts).for_each(|(document, impact)| visit(document, *impact));
        }
    }
}
