//! Words of the commands that a person is shown and may give to a shell.

use crate::printer::line;

/// A text as one word of a command. Strangers choose the names of packages, hosts and secrets, so a shell must
/// find nothing in it.
pub(crate) fn word(text: &str) -> String {
    let text = line(text);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:,@+=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The command that lets a file be executed.
pub(crate) fn making_executable(path: &str) -> String {
    format!("`chmod +x {}` lets it be executed", word(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_text_is_one_word() {
        for (text, expected) in [
            ("mcpkg:acme.weather", "mcpkg:acme.weather"),
            ("", "''"),
            ("~/x", "'~/x'"),
            ("$(touch${IFS}/x):443", "'$(touch${IFS}/x):443'"),
            ("a;b'c`d`", r"'a;b'\''c`d`'"),
            ("a\nb", r"'a\nb'"),
        ] {
            assert_eq!(word(text), expected);
        }
    }
}
