//! Names and texts of a document as a manifest takes them.

/// A name of a query as it is written in an address.
pub(super) fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(
            |byte| {
                if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            },
        )
        .collect()
}

/// A name as every client takes it: lower-case words joined by underscores.
pub(super) fn portable(words: &str) -> String {
    let mut name = String::new();
    let mut before = '_';
    for letter in words.chars() {
        let is_break = !letter.is_ascii_alphanumeric()
            || (letter.is_ascii_uppercase() && before.is_ascii_lowercase());
        if is_break && !name.ends_with('_') && !name.is_empty() {
            name.push('_');
        }
        if letter.is_ascii_alphanumeric() {
            name.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    let name: String = name.trim_matches('_').chars().take(56).collect();
    let name = name.trim_end_matches('_');
    if name.starts_with(|first: char| first.is_ascii_lowercase()) {
        name.to_owned()
    } else {
        format!("do_{name}").trim_end_matches('_').to_owned()
    }
}

/// A text of at most so many characters, on one line where it has several.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most - 1).collect();
    cut.push('…');
    cut
}

pub(super) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
