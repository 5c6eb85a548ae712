//! Commands as they would be typed.

/// A command as it would be typed: every word stands for itself, whatever is in it.
pub(crate) fn command<W: AsRef<str>>(words: &[W]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+%{}".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_stands_for_itself() {
        let typed = command(&["sh", "-c", "rm a b; it's", "", "{place}", "--to=x"]);
        assert_eq!(typed, r"sh -c 'rm a b; it'\''s' '' {place} --to=x");
    }
}
