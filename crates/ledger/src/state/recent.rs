//! The last calls of a series, one letter each.
//!
//! Whoever looks for a change needs calls in their order, which no histogram keeps. A letter holds what a histogram
//! would: the bucket of a call that went well, or that it failed.

use super::latency::BUCKETS;

/// How many calls are kept one by one.
pub const KEPT: usize = 256;

/// The letter of the first bucket; those of the others follow it.
const FIRST: u8 = b'0';
/// The letter of a call that failed.
const FAILED: u8 = b'~';

/// How one call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// Well, with a latency in this bucket.
    Well(usize),
    /// The tool failed.
    Failed,
}

/// The letter of a call.
pub(super) fn letter(ran: Ran) -> char {
    char::from(match ran {
        Ran::Well(bucket) => FIRST + u8::try_from(bucket.min(BUCKETS)).unwrap_or(0),
        Ran::Failed => FAILED,
    })
}

/// The calls of letters, the oldest first. What is no letter of ours is passed over.
pub(super) fn read(letters: &str) -> Vec<Ran> {
    let ran = |byte: u8| match byte {
        FAILED => Some(Ran::Failed),
        byte => {
            let bucket = usize::from(byte.checked_sub(FIRST)?);
            (bucket <= BUCKETS).then_some(Ran::Well(bucket))
        }
    };
    letters.bytes().filter_map(ran).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_read_as_it_was_written() {
        let all: Vec<_> = (0..=BUCKETS).map(Ran::Well).chain([Ran::Failed]).collect();
        let letters: String = all.iter().copied().map(letter).collect();
        assert_eq!(letters.len(), all.len());
        assert_eq!(read(&letters), all);
        assert_eq!(read("\n é 0"), [Ran::Well(0)]);
    }
}
