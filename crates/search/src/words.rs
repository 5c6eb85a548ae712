//! A text, taken apart into words.
//!
//! Words end where letters and digits do. Inside them, `camelCase`, `HTTPServer` and `base64` are
//! taken apart too, and kept whole as well, so that both `git hub` and `github` find `GitHub`.
//! Scripts without spaces give every character and every pair of neighbours.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::limits;

/// Takes texts apart; keeps its memory from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    run: Vec<char>,
    word: String,
}

/// What a character is to a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    Digit,
    /// Of a script without spaces between words.
    Unspaced,
    Between,
}

impl Splitter {
    /// Hands over each word of the text, in lower case, until that says that it is enough.
    pub(crate) fn split(&mut self, text: &str, mut each: impl FnMut(&str, Piece) -> Enough) {
        let text = normal(text);
        self.run.clear();
        let mut run_class = Class::Between;
        for letter in text.chars().chain([' ']) {
            let class = class(letter);
            let goes_on = match class {
                Class::Between => false,
                Class::Unspaced => run_class == Class::Unspaced,
                _ => run_class != Class::Unspaced,
            };
            if !goes_on && !self.run.is_empty() {
                let enough = match run_class {
                    Class::Unspaced => self.pairs(&mut each),
                    _ => self.parts(&mut each),
                };
                self.run.clear();
                if enough == Enough::Yes {
                    return;
                }
            }
            run_class = class;
            if class != Class::Between {
                self.run.push(letter);
            }
        }
    }

    /// The parts of an identifier, then the whole of it.
    fn parts(&mut self, each: &mut impl FnMut(&str, Piece) -> Enough) -> Enough {
        let mut from = 0;
        for at in 1..self.run.len() {
            if is_border(&self.run, at) {
                if self.say(from..at, Piece::Part, each) == Enough::Yes {
                    return Enough::Yes;
                }
                from = at;
            }
        }
        let all = self.run.len();
        if from == 0 {
            return self.say(0..all, Piece::Whole, each);
        }
        if self.say(from..all, Piece::Part, each) == Enough::Yes {
            return Enough::Yes;
        }
        self.say(0..all, Piece::Joined, each)
    }

    /// Every character and every pair.
    fn pairs(&mut self, each: &mut impl FnMut(&str, Piece) -> Enough) -> Enough {
        for at in 0..self.run.len() {
            for end in [at + 1, at + 2] {
                if end <= self.run.len() && self.say(at..end, Piece::Whole, each) == Enough::Yes {
                    return Enough::Yes;
                }
            }
        }
        Enough::No
    }

    fn say(
        &mut self,
        range: Range<usize>,
        piece: Piece,
        each: &mut impl FnMut(&str, Piece) -> Enough,
    ) -> Enough {
        if range.len() > limits::WORD_BYTES {
            return Enough::No;
        }
        self.word.clear();
        self.word.extend(self.run[range].iter().flat_map(|letter| letter.to_lowercase()));
        if self.word.len() > limits::WORD_BYTES { Enough::No } else { each(&self.word, piece) }
    }
}

/// What a word is of what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Whole,
    /// A part of an identifier.
    Part,
    /// An identifier whose parts were handed over before.
    Joined,
}

/// Whether whoever takes the words has enough of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enough {
    Yes,
    No,
}

/// The text up to a number of bytes, never within a character.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Whether an identifier has a new part at this place.
fn is_border(run: &[char], at: usize) -> bool {
    let (before, here) = (class(run[at - 1]), class(run[at]));
    match (before, here) {
        (Class::Lower, Class::Upper) => true,
        (Class::Digit, Class::Upper | Class::Lower)
        | (Class::Upper | Class::Lower, Class::Digit) => true,
        // `HTTPServer` ends its first part before the `S`; the plural `PDFs` has one part.
        (Class::Upper, Class::Upper) => {
            let next = run.get(at + 1).copied();
            let is_plural = next == Some('s')
                && run.get(at + 2).is_none_or(|letter| class(*letter) != Class::Lower);
            next.is_some_and(|next| class(next) == Class::Lower) && !is_plural
        }
        _ => false,
    }
}

/// The same text however it was typed: compatible forms made one, accents and vowel marks gone.
fn normal(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfkd().filter(|letter| !is_passed_over(*letter)).nfc().collect())
}

fn is_passed_over(letter: char) -> bool {
    match letter {
        // Soft hyphens and joiners are seen by nobody.
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => true,
        // Marks of these scripts are what people leave out; those of others are letters of their own.
        '\u{300}'..='\u{36f}'
        | '\u{5b0}'..='\u{5c7}'
        | '\u{610}'..='\u{61a}'
        | '\u{640}'
        | '\u{64b}'..='\u{65f}'
        | '\u{670}' => true,
        _ => false,
    }
}

fn class(letter: char) -> Class {
    if letter.is_ascii() {
        return match letter {
            'a'..='z' => Class::Lower,
            'A'..='Z' => Class::Upper,
            '0'..='9' => Class::Digit,
            _ => Class::Between,
        };
    }
    match letter {
        '\u{e00}'..='\u{eff}' // Thai and Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3041}'..='\u{30ff}' // kana
        | '\u{3400}'..='\u{9fff}' // Han
        | '\u{ac00}'..='\u{d7a3}' // Hangul
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Class::Unspaced,
        _ if letter.is_uppercase() => Class::Upper,
        _ if letter.is_numeric() => Class::Digit,
        // Marks that were not passed over belong to the letter before them.
        _ if letter.is_alphabetic() || is_combining_mark(letter) => Class::Lower,
        _ => Class::Between,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        Splitter::default().split(text, |word, _| {
            words.push(word.to_owned());
            Enough::No
        });
        words
    }

    #[test]
    fn identifiers_are_taken_apart_and_kept_whole() {
        assert_eq!(words("readPdfFile"), ["read", "pdf", "file", "readpdffile"]);
        assert_eq!(words("HTTPServer"), ["http", "server", "httpserver"]);
        assert_eq!(words("base64"), ["base", "64", "base64"]);
        assert_eq!(words("get_user-info.v2/list"), ["get", "user", "info", "v", "2", "v2", "list"]);
        assert_eq!(words("PDFs and APIs"), ["pdfs", "and", "apis"]);
        assert_eq!(words("GitHub"), ["git", "hub", "github"]);
    }

    #[test]
    fn the_same_word_is_the_same_however_it_is_typed() {
        assert_eq!(words("Café"), words("cafe\u{301}"));
        assert_eq!(words("ＰＤＦ"), ["pdf"]);
        assert_eq!(words("co\u{ad}operate"), ["cooperate"]);
        assert_eq!(words("СТРОКА"), words("строка"));
        assert_eq!(words("مُحَمَّد"), words("محمد"));
    }

    #[test]
    fn scripts_without_spaces_give_characters_and_pairs() {
        assert_eq!(words("天気予報"), ["天", "天気", "気", "気予", "予", "予報", "報"]);
        assert_eq!(words("PDF変換"), ["pdf", "変", "変換", "換"]);
        assert_eq!(words("が"), ["が"]);
    }

    #[test]
    fn what_is_no_word_gives_none() {
        assert!(words("").is_empty());
        assert!(words(" \0\u{1}\u{7f}\u{202e} -- ++ \n").is_empty());
        assert!(words(&"x".repeat(65)).is_empty());
        assert_eq!(words(&"x".repeat(64)).len(), 1);
    }

    #[test]
    fn splitting_ends_when_it_is_enough() {
        let mut count = 0;
        Splitter::default().split("a b c d e", |_, _| {
            count += 1;
            if count == 2 { Enough::Yes } else { Enough::No }
        });
        assert_eq!(count, 2);
    }

    #[test]
    fn a_beginning_never_cuts_a_character() {
        assert_eq!(beginning("aé", 2), "a");
        assert_eq!(beginning("aé", 3), "aé");
        assert_eq!(beginning("a", 9), "a");
    }
}
