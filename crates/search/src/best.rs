//! The best of many hits, in a total order.

use std::cmp::Ordering;

use crate::part::Part;

/// Keeps the best so many.
pub(crate) struct Best<'s> {
    parts: &'s [Part],
    most: usize,
    found: Vec<Found>,
    /// The worst that is surely kept, once there are enough.
    bar: Option<Found>,
    cuts: u32,
}

/// A document, and how well it fits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) score: f64,
    pub(crate) rank: f32,
    pub(crate) part: u32,
    pub(crate) document: u16,
}

impl<'s> Best<'s> {
    pub(crate) fn new(parts: &'s [Part], most: usize) -> Self {
        Self { parts, most, found: Vec::new(), bar: None, cuts: 0 }
    }

    /// The worst that is surely kept: whoever comes after it is not among the best.
    pub(crate) fn bar(&self) -> Option<Found> {
        self.bar
    }

    /// How many are kept.
    pub(crate) fn wanted(&self) -> usize {
        self.most
    }

    /// How often the bar was set.
    pub(crate) fn cuts(&self) -> u32 {
        self.cuts
    }

    pub(crate) fn key(&self, found: &Found) -> &'s str {
        self.parts[found.part as usize].segment.key(found.document)
    }

    pub(crate) fn push(&mut self, found: Found) {
        if self.most == 0 || self.bar.is_some_and(|bar| self.compare(&found, &bar).is_gt()) {
            return;
        }
        self.found.push(found);
        if self.found.len() >= self.most.saturating_mul(2).max(64) {
            self.cut();
        }
    }

    /// The best, best first.
    pub(crate) fn finish(mut self) -> Vec<Found> {
        self.cut();
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable_by(|one, other| self.compare(one, other));
        found
    }

    /// Drops what is not among the best, and sets the bar.
    pub(crate) fn cut(&mut self) {
        if self.most == 0 || self.found.len() < self.most {
            return;
        }
        let mut found = std::mem::take(&mut self.found);
        found.select_nth_unstable_by(self.most - 1, |one, other| self.compare(one, other));
        found.truncate(self.most);
        self.bar = found.last().copied();
        self.cuts += 1;
        self.found = found;
    }

    /// By score, then by rank, highest first; then by key, of which each document has its own.
    fn compare(&self, one: &Found, other: &Found) -> Ordering {
        let by_number = other.score.total_cmp(&one.score).then(other.rank.total_cmp(&one.rank));
        by_number.then_with(|| {
            // Documents of a segment are in the order of their keys.
            let is_together = one.part == other.part;
            if is_together {
                one.document.cmp(&other.document)
            } else {
                self.key(one).cmp(self.key(other))
            }
        })
    }
}
