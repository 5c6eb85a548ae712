//! Addresses of our own pages, and words as they are typed at a terminal.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::shelf::Stock;

/// What stays as it is in a part of a path or of a query.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The page of a package.
pub(super) fn tool(id: &str) -> String {
    format!("/tools/{}", part(id))
}

/// What there is to see of a package: its page where it is installed, and else what was done with it.
pub(super) fn seen(id: &str, stock: &Stock) -> String {
    if stock.package(id).is_some() { tool(id) } else { calls(id) }
}

/// What was done with a package.
pub(super) fn calls(id: &str) -> String {
    format!("/calls?package={}", part(id))
}

/// A text as a part of a path or of a query.
pub(super) fn part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

/// A word as it is typed, whatever is in it.
pub(super) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/@%+=,-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_part_of_an_address_and_one_word_of_a_command() {
        assert_eq!(tool("mcpkg:a/b c"), "/tools/mcpkg%3Aa%2Fb%20c");
        assert_eq!(word("mcpkg:acme.pdf"), "mcpkg:acme.pdf");
        assert_eq!(word("a b; rm -rf '~'"), r"'a b; rm -rf '\''~'\'''");
        assert_eq!(word(""), "''");
    }
}
