//! What a name looks like, and which names are taken for one another.
//!
//! Two names that look the same are one name to people, whatever letters they are written with.

use unicode_security::MixedScript as _;
use unicode_security::confusable_detection::skeleton;

use crate::path::folded;

/// What a name looks like: the same text for all names that people take for one another. Case makes no difference, nor
/// do letters of other alphabets that look like one of ASCII. Those of ASCII are themselves: who writes `m` means no
/// `rn`, and whoever reads it can tell.
pub fn look(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let mut seen = String::with_capacity(name.len());
    for letter in folded(name).chars() {
        if letter.is_ascii() {
            seen.push(letter);
        } else {
            seen.extend(skeleton(letter.encode_utf8(&mut [0; 4])));
        }
    }
    // Some look like a capital.
    folded(&seen)
}

/// Why one name may be taken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// They look the same.
    Same,
    /// One letter is added, left out or another one, or two are swapped.
    OneEdit,
}

/// The shortest name of which one letter more or less is a mistake, and not another word.
const SHORTEST: usize = 5;

/// Why one name may be taken for another one, where it may.
pub fn likeness(name: &str, other: &str) -> Option<Likeness> {
    let (name, other) = (look(name), look(other));
    if name == other {
        return Some(Likeness::Same);
    }
    let (name, other): (Vec<_>, Vec<_>) = (name.chars().collect(), other.chars().collect());
    let is_long = name.len().min(other.len()) >= SHORTEST;
    (is_long && is_one_edit(&name, &other)).then_some(Likeness::OneEdit)
}

/// Whether a name is written with letters of several alphabets, as no language is.
pub fn is_mixed(name: &str) -> bool {
    !name.is_single_script()
}

/// Whether two words differ by one letter, or by two neighbours that are swapped.
fn is_one_edit(one: &[char], other: &[char]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let at = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[at..], &long[at..]);
    match (short, long) {
        (_, [_, rest @ ..]) if short == rest => true,
        ([_, left @ ..], [_, right @ ..]) if left == right => true,
        ([a, b, left @ ..], [c, d, right @ ..]) => a == d && b == c && left == right,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_look_the_same_or_do_not() {
        for (one, other) in [
            ("ace.copy", "\u{430}\u{441}\u{435}.\u{441}\u{43e}\u{440}\u{443}"),
            ("ace", "\u{410}\u{421}\u{415}"),
            ("ov", "\u{3bf}\u{3bd}"),
            ("abc", "\u{a4ee}\u{a4d0}\u{a4da}"),
            ("acme", "AcMe"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("stra\u{df}e", "STRASSE"),
        ] {
            assert_eq!(look(one), look(other), "{one} {other}");
        }
        for (one, other) in [
            ("cafe", "caf\u{e9}"),
            ("modern", "rnodern"),
            ("tool1", "tooll"),
            ("\u{447}\u{438}\u{442}\u{430}\u{442}\u{44c}", "chitat"),
            ("\u{65e5}\u{672c}", "\u{65e5}\u{6728}"),
        ] {
            assert_ne!(look(one), look(other), "{one} {other}");
        }
    }

    #[test]
    fn names_that_differ_by_one_letter_are_alike() {
        let like = |one: &str, other: &str| {
            assert_eq!(likeness(one, other), likeness(other, one), "{one} {other}");
            likeness(one, other)
        };
        for (one, other) in [
            ("acme.pdf", "acme.pdff"),
            ("acme.pdf", "acm.pdf"),
            ("acme.pdf", "acne.pdf"),
            ("acme.pdf", "amce.pdf"),
            ("acme.pdf", "acme.pfd"),
            ("acme.pdf", "\u{430}cme.pdd"),
            ("acme.pdf", "xacme.pdf"),
        ] {
            assert_eq!(like(one, other), Some(Likeness::OneEdit), "{one} {other}");
        }
        for (one, other) in [("acme.pdf", "Acme.PDF"), ("acme.pdf", "\u{430}cme.pdf")] {
            assert_eq!(like(one, other), Some(Likeness::Same), "{one} {other}");
        }
        for (one, other) in
            [("acme.pdf", "acme.doc"), ("acme.pdf", "acme.pdf.read"), ("read", "head"), ("a", "")]
        {
            assert_eq!(like(one, other), None, "{one} {other}");
        }
    }

    #[test]
    fn letters_of_several_alphabets_are_a_mixture() {
        for name in ["acme.pdf", "\u{447}\u{438}\u{442}\u{430}\u{442}\u{44c}.1", "caf\u{e9}", "x-1"]
        {
            assert!(!is_mixed(name), "{name}");
        }
        assert!(is_mixed("\u{430}cme.pdf"));
    }
}
