//! A stranger's text, bounded and safe to show.

use std::fmt::Write as _;

/// How many bytes of a stranger's text are kept.
pub const SHOWN_BYTES: usize = 256;

/// The text as printable ASCII, each other byte as `\xNN`, cut with `…` after [`SHOWN_BYTES`].
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(SHOWN_BYTES) {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => write!(text, "\\x{byte:02x}").expect("a string takes any text"),
        }
    }
    if bytes.len() > SHOWN_BYTES {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_bytes_and_quotes_of_a_terminal_never_pass() {
        assert_eq!(escaped(b"a\x1b[31m\0\\\xff"), "a\\x1b[31m\\x00\\\\\\xff");
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(escaped(&[b'a'; 1000]).chars().count(), SHOWN_BYTES + 1);
    }
}
