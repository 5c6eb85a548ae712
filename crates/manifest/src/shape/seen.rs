//! What people see of a text, and can tell from another.

use std::sync::LazyLock;

use regex::RegexSet;

/// Alphabets with letters that look like those of another one here.
const ALIKE: [&str; 7] = [
    r"\p{Latin}",
    r"\p{Greek}",
    r"\p{Cyrillic}",
    r"\p{Armenian}",
    r"\p{Cherokee}",
    r"\p{Coptic}",
    r"\p{Lisu}",
];

/// Control characters, and those that show nothing or turn the direction of the text.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff
            | 0xfff9..=0xfffb | 0xe0000..=0xe007f)
}

/// A text in which whatever is hidden is written out.
pub fn escaped(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            seen.extend(character.escape_unicode());
        } else {
            seen.push(character);
        }
    }
    seen
}

/// What is hidden, and what shows nothing by itself though a text may need it: fillers, joiners and choosers of a form.
/// A name has none of them.
pub fn is_unseen(character: char) -> bool {
    is_hidden(character)
        || matches!(u32::from(character),
            0x034f | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x2800 | 0x3164
            | 0xfe00..=0xfe0f | 0xffa0 | 0xe0100..=0xe01ef)
}

/// Whether a name has letters of two alphabets that look alike, so that it can pass for another name.
pub fn mixes_alphabets(name: &str) -> bool {
    static ALPHABETS: LazyLock<RegexSet> =
        LazyLock::new(|| RegexSet::new(ALIKE).expect("these are alphabets"));
    !name.is_ascii() && ALPHABETS.matches(name).iter().count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_look_alike_are_told_apart() {
        for name in ["acme.pdf", "caf\u{e9}", "читать.текст", "日本語.tool", "acme.日本", "καλό"]
        {
            assert!(!mixes_alphabets(name), "{name}");
        }
        for name in
            ["\u{430}cme.pdf", "acme.p\u{501}f", "acm\u{3b5}", "\u{a4d0}cme", "\u{43e}\u{3bf}"]
        {
            assert!(mixes_alphabets(name), "{name}");
        }
    }

    #[test]
    fn whatever_is_hidden_is_unseen() {
        for character in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            assert!(is_unseen(character) || !is_hidden(character), "{character:?}");
        }
        for character in ['\u{fe0f}', '\u{3164}', '\u{2800}'] {
            assert!(is_unseen(character) && !is_hidden(character), "{character:?}");
        }
    }
}
