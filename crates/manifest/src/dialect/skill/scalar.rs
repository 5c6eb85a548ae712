//! One text of a head: plain, or in quotes.

use std::borrow::Cow;

/// What a text must not begin with: in YAML it would be something else than a text.
const INDICATORS: [(char, &str); 11] = [
    ('{', "a mapping in braces"),
    ('[', "a list"),
    ('&', "an anchor"),
    ('*', "an alias"),
    ('!', "a tag"),
    ('%', "a directive"),
    ('@', "a reserved character"),
    ('`', "a reserved character"),
    ('|', "a block of text"),
    ('>', "a block of text"),
    (',', "a comma"),
];

/// Where something is wrong in a text, from its beginning, and what.
pub(super) type Wrong = (usize, String);

/// A plain text, without the comment after it.
pub(super) fn plain(text: &str) -> Result<&str, Wrong> {
    let text = without_comment(text);
    if let Some((_, what)) = INDICATORS.iter().find(|(first, _)| text.starts_with(*first)) {
        return Err((0, format!("{what} is not read here; put a text into quotes")));
    }
    let is_key = |first: char| text == first.to_string() || text.starts_with(&format!("{first} "));
    if ['?', '-', ':'].into_iter().any(is_key) {
        return Err((0, "a text does not begin so; put it into quotes".to_owned()));
    }
    match text.find(": ").or_else(|| text.ends_with(':').then(|| text.len() - 1)) {
        Some(at) => Err((at, "a colon ends a name here; put the text into quotes".to_owned())),
        None => Ok(text),
    }
}

/// A line without the comment at its end.
pub(super) fn without_comment(text: &str) -> &str {
    let at = if text.starts_with('#') { Some(0) } else { text.find(" #") };
    text[..at.unwrap_or(text.len())].trim_end()
}

/// A text in quotes, and what follows it.
pub(super) fn quoted(text: &str) -> Result<(Cow<'_, str>, &str), Wrong> {
    match text.as_bytes().first() {
        Some(b'\'') => single(text),
        _ => double(text),
    }
}

fn single(text: &str) -> Result<(Cow<'_, str>, &str), Wrong> {
    let inside = &text[1..];
    let mut from = 0;
    while let Some(at) = inside[from..].find('\'').map(|at| at + from) {
        // Two of them stand for one.
        if inside[at + 1..].starts_with('\'') {
            from = at + 2;
            continue;
        }
        let held = &inside[..at];
        let held = if held.contains("''") { held.replace("''", "'").into() } else { held.into() };
        return Ok((held, &inside[at + 1..]));
    }
    Err((0, "a quote is not closed on its line".to_owned()))
}

fn double(text: &str) -> Result<(Cow<'_, str>, &str), Wrong> {
    let mut held = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let rest = &text[at + 1..];
                return Ok((held.into(), rest));
            }
            '\\' => {
                let escaped = characters.next().map(|(_, escaped)| escaped);
                let digits = match escaped {
                    Some('x') => 2,
                    Some('u') => 4,
                    Some('U') => 8,
                    _ => 0,
                };
                held.push(match escaped {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some(plain @ ('"' | '\\' | '/' | ' ')) => plain,
                    _ if digits > 0 => {
                        let hex: String =
                            characters.by_ref().take(digits).map(|(_, digit)| digit).collect();
                        let is_whole = hex.len() == digits
                            && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
                        let number = u32::from_str_radix(&hex, 16).ok().filter(|_| is_whole);
                        let found = number.and_then(char::from_u32);
                        found.ok_or_else(|| (at, "this stands for no character".to_owned()))?
                    }
                    _ => return Err((at, "this escape is not read here".to_owned())),
                });
            }
            other => held.push(other),
        }
    }
    Err((0, "a quote is not closed on its line".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_text_is_one_and_ends_before_a_comment() {
        for (text, read) in [
            ("word", "word"),
            ("two words # not this", "two words"),
            ("a#b", "a#b"),
            ("https://x.example/a", "https://x.example/a"),
            ("-1", "-1"),
            ("", ""),
            ("# all of it", ""),
        ] {
            assert_eq!(plain(text), Ok(read), "{text}");
        }
        for text in
            ["a: b", "a:", "{a: b}", "*x", "&x", "!!str x", "- a", "? a", "@x", "`x`", "%YAML"]
        {
            assert!(plain(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quotes_hold_what_yaml_says() {
        for (text, read, rest) in [
            ("'it''s' # x", "it's", " # x"),
            ("''", "", ""),
            (r#""a \"b\" \\ \u00e9\x41\U0001F600\n""#, "a \"b\" \\ éA😀\n", ""),
            (r#""a: b", c"#, "a: b", ", c"),
        ] {
            assert_eq!(quoted(text), Ok((read.into(), rest)), "{text}");
        }
        for text in ["'open", "'it''s", "\"open", r#""\q""#, r#""\ud800""#, r#""\u12""#, r#""\"#] {
            assert!(quoted(text).is_err(), "{text}");
        }
    }
}
