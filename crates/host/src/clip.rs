//! Texts cut to what somebody may want to read.
//!
//! Secrets are taken out first: half of one would not be recognised.

/// The beginning of a text, of so many bytes at most.
pub(crate) fn start(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// The end of a text, of so many bytes at most.
pub(crate) fn end(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let start = text.len() - most;
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("…{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_characters() {
        assert_eq!((start("aéé", 5), end("aéé", 5)), ("aéé".into(), "aéé".into()));
        assert_eq!((start("aéé", 4), end("aéé", 4)), ("aé…".into(), "…éé".into()));
        assert_eq!((start("éé", 1), end("éé", 1)), ("…".into(), "…".into()));
    }
}
