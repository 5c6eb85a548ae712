//! What a name looks like.
//!
//! Two names that look the same are one name to people, whatever letters they are written with.

use manifest::path::folded;
use unicode_security::confusable_detection::skeleton;

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
}
