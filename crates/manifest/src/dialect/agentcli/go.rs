//! Two things the fixed messages owe to the language they come from: quoting and path cleaning.

use std::fmt::Write;

/// A text in double quotes, unprintable characters escaped.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            c if is_printable(c) => quoted.push(c),
            c if c < ' ' || c == '\u{7f}' => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(c));
            }
            c if u32::from(c) < 0x10000 => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Letters, marks, numbers, punctuation, symbols and the plain space.
fn is_printable(character: char) -> bool {
    let is_format = matches!(u32::from(character),
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e
        | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb | 0xe000..=0xf8ff | 0xe0001..=0xe007f
        | 0xf0000..=0x0010_ffff);
    let is_other_space = character.is_whitespace() && character != ' ';
    !character.is_control() && !is_format && !is_other_space
}

/// A path without `.`, `..` and doubled slashes, as far as that can be told from the text.
pub(super) fn clean(path: &str) -> String {
    let is_rooted = path.starts_with('/');
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." if segments.last().is_some_and(|last| *last != "..") => {
                segments.pop();
            }
            ".." if is_rooted => {}
            other => segments.push(other),
        }
    }
    let joined = segments.join("/");
    match (is_rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quote("a\"b\\c\n\t\u{1}é\u{200b}😀\u{7f}"), r#""a\"b\\c\n\t\x01é\u200b😀\x7f""#);
    }

    #[test]
    fn paths_are_cleaned() {
        for (path, cleaned) in [
            ("./tools/bin/../hack", "tools/hack"),
            ("./foo/../tools/bin/x", "tools/bin/x"),
            ("a//b/./c/", "a/b/c"),
            ("../x", "../x"),
            ("a/../../x", "../x"),
            ("", "."),
            ("/a/../..", "/"),
        ] {
            assert_eq!(clean(path), cleaned, "{path}");
        }
    }
}
