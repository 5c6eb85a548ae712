//! Bits that are counted by the processor.
//!
//! A program is made for every processor of its kind, and the oldest of x86-64 cannot count bits. What counts many is
//! therefore made twice, and the processor is asked which of the two it can run; the answer is kept by `std`.

#![expect(unsafe_code, reason = "only who asked the processor knows that it has the instruction")]
#![expect(clippy::inline_always, reason = "what is not inlined is made for any processor")]

/// How many bits are set.
pub(crate) fn count(bits: impl Iterator<Item = u64>) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "popcnt")]
        fn counted(bits: impl Iterator<Item = u64>) -> usize {
            count_each(bits)
        }
        if is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has what it was made for.
            return unsafe { counted(bits) };
        }
    }
    count_each(bits)
}

#[inline(always)]
fn count_each(bits: impl Iterator<Item = u64>) -> usize {
    bits.map(|bits| bits.count_ones() as usize).sum()
}

/// A bit for each of many, and how many are set before each 64.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked<'p> {
    pub(crate) bits: &'p [u64],
    pub(crate) before: &'p [u16],
}

impl Ranked<'_> {
    /// Whether the bit is set, and how many are before it.
    #[inline(always)]
    pub(crate) fn rank(self, bit: u16) -> (bool, usize) {
        let (at, bit) = (usize::from(bit) / 64, bit % 64);
        let bits = self.bits[at];
        let before = (bits & ((1 << bit) - 1)).count_ones() as usize;
        (bits & (1 << bit) != 0, usize::from(self.before[at]) + before)
    }

    /// The same for each of some bits.
    pub(crate) fn ranks(self, bits: &[u16], each: impl FnMut(u16, bool, usize)) {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "popcnt")]
            fn counted(all: Ranked<'_>, bits: &[u16], each: impl FnMut(u16, bool, usize)) {
                all.rank_each(bits, each);
            }
            if is_x86_feature_detected!("popcnt") {
                // SAFETY: the processor has what it was made for.
                return unsafe { counted(self, bits, each) };
            }
        }
        self.rank_each(bits, each);
    }

    #[inline(always)]
    fn rank_each(self, bits: &[u16], mut each: impl FnMut(u16, bool, usize)) {
        for bit in bits {
            let (is_set, before) = self.rank(*bit);
            each(*bit, is_set, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_alike_with_and_without_the_instruction() {
        let bits: Vec<u64> =
            (0..200_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        assert_eq!(count(bits.iter().copied()), count_each(bits.iter().copied()));
        let ones = |bits: &u64| u16::try_from(bits.count_ones()).unwrap();
        let before: Vec<u16> =
            (0..bits.len()).map(|at| bits[..at].iter().map(ones).sum()).collect();
        let all = Ranked { bits: &bits, before: &before };
        let asked: Vec<u16> = (0..12_800).step_by(7).collect();
        let (mut with, mut without) = (Vec::new(), Vec::new());
        all.ranks(&asked, |bit, is_set, before| with.push((bit, is_set, before)));
        all.rank_each(&asked, |bit, is_set, before| without.push((bit, is_set, before)));
        assert_eq!(with, without);
        for (bit, is_set, before) in with {
            let set = |bit: u16| bits[usize::from(bit) / 64] & (1 << (bit % 64)) != 0;
            assert_eq!((is_set, before), (set(bit), (0..bit).filter(|one| set(*one)).count()));
        }
    }
}
