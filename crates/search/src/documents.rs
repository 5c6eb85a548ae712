//! A set of documents of one segment.

use crate::bits;

/// A set of documents: a bit for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Documents {
    bits: Vec<u64>,
    all: usize,
}

impl Documents {
    /// None of so many.
    pub(crate) fn none(all: usize) -> Self {
        Self { bits: vec![0; all.div_ceil(64)], all }
    }

    /// Makes it none of so many.
    pub(crate) fn clear(&mut self, all: usize) {
        self.bits.clear();
        self.bits.resize(all.div_ceil(64), 0);
        self.all = all;
    }

    /// All of so many.
    pub(crate) fn all(all: usize) -> Self {
        let mut documents = Self { bits: vec![u64::MAX; all.div_ceil(64)], all };
        if let Some(last) = documents.bits.last_mut()
            && !all.is_multiple_of(64)
        {
            *last = (1 << (all % 64)) - 1;
        }
        documents
    }

    pub(crate) fn insert(&mut self, document: u16) {
        self.bits[usize::from(document) / 64] |= 1 << (document % 64);
    }

    pub(crate) fn contains(&self, document: u16) -> bool {
        self.bits[usize::from(document) / 64] & (1 << (document % 64)) != 0
    }

    pub(crate) fn join(&mut self, other: &Documents) {
        self.join_bits(&other.bits);
    }

    pub(crate) fn join_bits(&mut self, other: &[u64]) {
        self.bits.iter_mut().zip(other).for_each(|(bits, more)| *bits |= more);
    }

    pub(crate) fn keep(&mut self, other: &Documents) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(bits, kept)| *bits &= kept);
    }

    pub(crate) fn take_out(&mut self, other: &Documents) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(bits, gone)| *bits &= !gone);
    }

    pub(crate) fn count(&self) -> usize {
        bits::count(self.bits.iter().copied())
    }

    /// How many are in both.
    pub(crate) fn count_both(&self, other: &Documents) -> usize {
        bits::count(self.bits.iter().zip(&other.bits).map(|(bits, more)| bits & more))
    }

    /// Those that are in it, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> {
        let starts = (0..=u16::MAX).step_by(64);
        self.bits.iter().zip(starts).flat_map(|(bits, start)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                u16::try_from(bit).ok().filter(|bit| *bit < 64).map(|bit| start + bit)
            })
        })
    }

    /// Sets to zero what belongs to documents that are not in it.
    pub(crate) fn clear_others(&self, scores: &mut [u32]) {
        for (bits, scores) in self.bits.iter().zip(scores.chunks_mut(64)) {
            if *bits == 0 {
                scores.fill(0);
            } else if *bits != u64::MAX {
                for (at, score) in scores.iter_mut().enumerate() {
                    *score *= u32::from(bits & (1 << at) != 0);
                }
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bits.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let mut set = Documents::none(200);
        for document in [0, 63, 64, 199] {
            set.insert(document);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 199]);
        assert!(set.contains(63) && !set.contains(65));
        assert_eq!((set.count(), set.count_both(&Documents::all(200))), (4, 4));
        assert_eq!(Documents::all(200).count(), 200);
        assert_eq!(Documents::all(65_536).iter().last(), Some(65_535));
        let mut others = Documents::all(200);
        others.take_out(&set);
        assert_eq!(others.count(), 196);
        let mut scores = vec![7; 200];
        set.clear_others(&mut scores);
        assert_eq!(scores.iter().filter(|score| **score == 7).count(), 4);
        set.keep(&others);
        assert_eq!(set, Documents::none(200));
    }
}
