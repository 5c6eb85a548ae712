//! How many slips of the finger two words are apart.

use crate::limits;

/// A word, a letter more that its stem may have, and the place before its first letter.
const WIDTH: usize = limits::WORD_BYTES + 2;

/// The fewest letters to be changed, left out, added or swapped with their neighbour that make
/// one word the other; none when that is more than `most`.
pub(crate) fn distance<L: Copy + Eq>(one: &[L], other: &[L], most: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > most {
        return None;
    }
    let (one, other) = without_common_ends(one, other);
    // Most words that are looked at differ in more than a slip can change.
    match (one, other) {
        ([], rest) | (rest, []) => return Some(rest.len()).filter(|slips| *slips <= most),
        ([_], [_]) => return Some(1).filter(|slips| *slips <= most),
        ([a, b], [c, d]) if a == d && b == c => return Some(1).filter(|slips| *slips <= most),
        _ if most < 2 => return None,
        _ => {}
    }
    by_rows(one, other, most)
}

fn without_common_ends<'w, L: Eq>(one: &'w [L], other: &'w [L]) -> (&'w [L], &'w [L]) {
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    let same = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    (&one[..one.len() - same], &other[..other.len() - same])
}

fn by_rows<L: Copy + Eq>(one: &[L], other: &[L], most: usize) -> Option<usize> {
    let width = other.len() + 1;
    let mut before_last = [0; WIDTH];
    let mut last: [usize; WIDTH] = std::array::from_fn(|at| at);
    let mut row = [0; WIDTH];
    if width > WIDTH {
        return None;
    }
    for (at, letter) in one.iter().enumerate() {
        row[0] = at + 1;
        let mut least = row[0];
        for (place, wanted) in other.iter().enumerate() {
            let mut cost = last[place] + usize::from(letter != wanted);
            cost = cost.min(last[place + 1] + 1).min(row[place] + 1);
            let is_swapped =
                at > 0 && place > 0 && *letter == other[place - 1] && one[at - 1] == *wanted;
            if is_swapped {
                cost = cost.min(before_last[place - 1] + 1);
            }
            row[place + 1] = cost;
            least = least.min(cost);
        }
        if least > most {
            return None;
        }
        std::mem::swap(&mut before_last, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    Some(last[width - 1]).filter(|distance| *distance <= most)
}

/// How many slips a word of so many letters may have.
pub(crate) fn slips(letters: usize) -> usize {
    match letters {
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    }
}

/// Which letters a word has, roughly: a slip changes at most two bits.
pub(crate) fn signature(word: &str) -> u32 {
    word.chars().fold(0, |bits, letter| bits | 1 << (u32::from(letter) % 32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn apart(one: &str, other: &str, most: usize) -> Option<usize> {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        distance(&letters(one), &letters(other), most)
    }

    #[test]
    fn slips_are_counted() {
        assert_eq!(apart("github", "github", 2), Some(0));
        assert_eq!(apart("gihtub", "github", 2), Some(1));
        assert_eq!(apart("gitub", "github", 1), Some(1));
        assert_eq!(apart("gitthub", "github", 1), Some(1));
        assert_eq!(apart("gxthxb", "github", 2), Some(2));
        assert_eq!(apart("gxthxb", "github", 1), None);
        assert_eq!(apart("", "ab", 2), Some(2));
        assert_eq!(apart("ab", "", 1), None);
        assert_eq!(apart("тест", "тсет", 1), Some(1));
    }

    proptest! {
        #[test]
        fn common_ends_change_nothing(one in "[ab]{0,7}", other in "[ab]{0,7}", most in 0..3_usize) {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            let (one, other) = (letters(&one), letters(&other));
            prop_assert_eq!(distance(&one, &other, most), by_rows(&one, &other, most));
        }

        #[test]
        fn it_is_the_same_both_ways_and_the_signature_never_hides_a_word(
            one in "[a-e]{0,8}", other in "[a-e]{0,8}"
        ) {
            let both = apart(&one, &other, 2);
            prop_assert_eq!(both, apart(&other, &one, 2));
            if let Some(slips) = both {
                let bits = (signature(&one) ^ signature(&other)).count_ones() as usize;
                prop_assert!(bits <= 2 * slips);
            }
        }
    }
}
