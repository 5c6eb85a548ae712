//! Text from outside, made to be nothing but text in HTML.
//!
//! What means something in HTML is escaped; what is not seen or turns the order of letters around is shown by its number.
//! Every page of ours goes through [`write()`].

use std::fmt;

use crate::shape::is_unseen;

/// So many marks may stand on one letter; more of them would cover the lines around.
const MARKS: usize = 4;

/// A text, escaped for HTML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    // Writing into memory does not fail.
    let _written = write(&mut out, text);
    out
}

/// The beginning of a text, of so many letters.
pub fn short(text: &str, letters: usize) -> String {
    if text.chars().nth(letters).is_none() {
        return text.to_owned();
    }
    text.chars().take(letters - 1).chain(['…']).collect()
}

/// Writes a text escaped for HTML, for texts and for attributes.
pub fn write(out: &mut impl fmt::Write, text: &str) -> fmt::Result {
    let mut start = 0;
    let mut marks = 0;
    for (at, c) in text.char_indices() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        let named = match c {
            '&' => Some("&#38;"),
            '<' => Some("&#60;"),
            '>' => Some("&#62;"),
            '"' => Some("&#34;"),
            '\'' => Some("&#39;"),
            '\r' => Some(""),
            _ if marks > MARKS => Some(""),
            _ => None,
        };
        let is_hidden = is_hidden(c) && c != '\r';
        if named.is_none() && !is_hidden {
            continue;
        }
        out.write_str(&text[start..at])?;
        start = at + c.len_utf8();
        match named {
            Some(named) => out.write_str(named)?,
            None => write!(out, "[U+{:04X}]", u32::from(c))?,
        }
    }
    out.write_str(&text[start..])
}

/// Whether a character is not seen, or moves others. What whole scripts and pictures are written with stays: joiners, and
/// what chooses a form.
pub fn is_hidden(c: char) -> bool {
    let is_needed = matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    !is_needed && is_unseen(c)
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_anything_but_text() {
        for (text, shown) in [
            ("plain text, caf\u{e9}\n\tand more", "plain text, caf\u{e9}\n\tand more"),
            ("<script>&\"'", "&#60;script&#62;&#38;&#34;&#39;"),
            ("a\u{202e}b\u{2066}c", "a[U+202E]b[U+2066]c"),
            ("a\0\u{1b}[31m\r\n", "a[U+0000][U+001B][31m\n"),
            ("x\u{e0041}\u{feff}\u{200b}", "x[U+E0041][U+FEFF][U+200B]"),
            ("\u{1f468}\u{200d}\u{1f469}", "\u{1f468}\u{200d}\u{1f469}"),
            ("{{ 7 * 7 }}", "{{ 7 * 7 }}"),
        ] {
            assert_eq!(escaped(text), shown, "{text:?}");
        }
        assert_eq!((short("abc", 3), short("abcd", 3)), ("abc".to_owned(), "ab…".to_owned()));
        let stacked = format!("a{}b", "\u{301}".repeat(500));
        assert_eq!(escaped(&stacked), format!("a{}b", "\u{301}".repeat(MARKS)));
    }
}
