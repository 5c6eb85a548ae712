//! How many of the documents that are found have each value of a facet.

use std::collections::HashMap;

use crate::documents::Documents;
use crate::facet::Facet;
use crate::find::{allowed_but, documents_with};
use crate::plan::Plan;
use crate::query::Query;
use crate::snapshot::Snapshot;

/// A value of a facet, and how many documents have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetCount {
    /// The value, in lower case.
    pub value: String,
    /// How many.
    pub count: usize,
}

/// Counts the values of these facets, the commonest first, then by value, at most `most` of each.
///
/// A facet that is filtered by is counted as if it were not, so that the numbers say what choosing
/// another of its values would find.
pub(crate) fn count(
    snapshot: &Snapshot,
    query: &Query,
    facets: &[Facet],
    most: usize,
) -> Vec<Vec<FacetCount>> {
    let plan = Plan::new(snapshot, query);
    let mut counts: Vec<HashMap<&str, usize>> = vec![HashMap::new(); facets.len()];
    for (at, part) in snapshot.parts.iter().enumerate() {
        let found = (!plan.is_empty).then(|| documents_with(&plan, part, at));
        for (facet, counts) in facets.iter().zip(&mut counts) {
            let mut asked = allowed_but(part, query, *facet)
                .unwrap_or_else(|| Documents::all(part.segment.len()));
            if let Some(found) = &found {
                asked.keep(found);
            }
            for ((_, value), holders) in part.segment.labels.of_facet(*facet) {
                let count = holders.count_in(&asked);
                if count > 0 {
                    *counts.entry(value).or_default() += count;
                }
            }
        }
    }
    counts.into_iter().map(|counts| commonest(counts, most)).collect()
}

fn commonest(counts: HashMap<&str, usize>, most: usize) -> Vec<FacetCount> {
    let mut sorted: Vec<(&str, usize)> = counts.into_iter().collect();
    let order = |one: &(&str, usize), other: &(&str, usize)| {
        other.1.cmp(&one.1).then_with(|| one.0.cmp(other.0))
    };
    if sorted.len() > most && most > 0 {
        sorted.select_nth_unstable_by(most - 1, order);
    }
    sorted.truncate(most);
    sorted.sort_unstable_by(order);
    sorted.into_iter().map(|(value, count)| FacetCount { value: value.to_owned(), count }).collect()
}
