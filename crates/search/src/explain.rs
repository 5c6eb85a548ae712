//! Why a document has its score.

use crate::field::Field;
use crate::find::{ranked, worth};
use crate::plan::{Candidate, Match, Plan, Word};
use crate::query::Query;
use crate::ranking::{MOST_IMPACT, factors, shares, shown};
use crate::rows::{Word as RowWord, lengths};
use crate::snapshot::Snapshot;

/// Why a document has its score: that of its words added up, multiplied by its rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Its key.
    pub key: String,
    /// The score of the hit.
    pub score: f64,
    /// What the sum is multiplied by.
    pub rank: f32,
    /// The words that it has, in the order of the query.
    pub words: Vec<ExplainedWord>,
}

/// What one word of the query adds.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedWord {
    /// The word of the query, in lower case.
    pub word: String,
    /// The stem that the document has.
    pub stem: String,
    /// How the one stands for the other.
    pub how: Match,
    /// How rare it is among the documents.
    pub idf: f64,
    /// What it is worth in the query: more the rarer it is, less when it was not typed like that.
    pub weight: f64,
    /// How much it is what this document is about, from 0 to 1.
    pub impact: f64,
    /// What it adds, before the rank: weight times impact.
    pub score: f64,
    /// Where it is in the document.
    pub fields: Vec<ExplainedField>,
}

/// What a word adds by being in one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExplainedField {
    /// The field.
    pub field: Field,
    /// How often it is there.
    pub times: u16,
    /// What the field counts.
    pub weight: f32,
    /// Its share of what the word adds.
    pub score: f64,
}

pub(crate) fn explain(snapshot: &Snapshot, query: &Query, key: &str) -> Option<Explanation> {
    let (at, document) = snapshot.find(key)?;
    let plan = Plan::new(snapshot, query);
    let segment = &snapshot.parts[at].segment;
    let is_allowed = query.filters.iter().all(|(facet, values)| {
        let mut holders = values.iter().filter_map(|value| segment.labels.find(*facet, value));
        holders.any(|holders| holders.iter().any(|holder| holder == document))
    });
    if !is_allowed {
        return None;
    }
    let mut row = Vec::new();
    segment.rows.words(usize::from(document), &mut row);
    let mut sum = 0;
    let mut words = Vec::new();
    for word in &plan.words {
        let impact = |candidate: &Candidate| {
            let place = candidate.places[at]? as usize;
            Some(segment.postings.list(place).impact(document)).filter(|impact| *impact > 0)
        };
        let found = word.spellings.iter().filter_map(|one| Some((one, impact(one)?)));
        // Of those that add the same the first is told.
        let best = found.rev().max_by_key(|(one, impact)| worth(one.weight, *impact));
        if let Some((candidate, impact)) = best {
            sum += worth(candidate.weight, impact);
            words.push(told((&plan, word), candidate, impact, at, &row));
        }
    }
    if words.is_empty() && !plan.is_empty {
        return None;
    }
    let rank = segment.rank(document);
    Some(Explanation { key: key.to_owned(), score: ranked(sum, rank), rank, words })
}

fn told(
    (plan, word): (&Plan, &Word),
    candidate: &Candidate,
    impact: u8,
    at: usize,
    row: &[RowWord],
) -> ExplainedWord {
    let score = shown(worth(candidate.weight, impact));
    let place = row.iter().find(|(known, _)| Some(*known) == candidate.places[at]);
    let fields = place.map_or_else(Vec::new, |(_, frequencies)| {
        let shares = shares(frequencies, &factors(&lengths(row)));
        let all: f32 = shares.iter().sum();
        let fields = Field::ALL.iter().zip(shares).zip(frequencies);
        let fields = fields.filter(|(_, times)| **times > 0);
        let explained = fields.map(|(((field, _), share), times)| ExplainedField {
            field: *field,
            times: *times,
            weight: field.weight(),
            score: score * f64::from(share / all),
        });
        explained.collect()
    });
    ExplainedWord {
        word: plan.form(word).to_owned(),
        stem: plan.stem(word, candidate).to_owned(),
        how: candidate.how,
        idf: candidate.idf,
        weight: shown(worth(candidate.weight, MOST_IMPACT)),
        impact: f64::from(impact) / f64::from(MOST_IMPACT),
        score,
        fields,
    }
}
