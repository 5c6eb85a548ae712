//! What is shown to one registry and to no other.

use std::fmt;

use egress::http::HeaderValue;
use zeroize::Zeroizing;

/// The longest token, in bytes.
const LONGEST: usize = 4_096;

/// A token for one registry. It is cleared and never shown.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

/// A text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoToken;

impl fmt::Display for NoToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a token has 1 to {LONGEST} visible characters of ASCII")
    }
}

impl std::error::Error for NoToken {}

impl Token {
    /// Reads a token; white space around it is none of its own.
    pub fn parse(text: &str) -> Result<Self, NoToken> {
        let text = text.trim();
        let is_token =
            (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_token { Ok(Self(Zeroizing::new(text.to_owned()))) } else { Err(NoToken) }
    }

    /// The header that shows it, marked as a secret.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let text = Zeroizing::new(format!("Bearer {}", *self.0));
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_is_not_shown() {
        let token = Token::parse(" haft_abc\n").unwrap();
        assert_eq!(format!("{token:?}"), "Token");
        let header = token.header().unwrap();
        assert_eq!(header.to_str().ok(), Some("Bearer haft_abc"));
        assert!(header.is_sensitive());
        for text in ["", " ", "a b", "a\r\nX-Evil: 1", "caf\u{e9}", &"x".repeat(LONGEST + 1)] {
            assert_eq!(Token::parse(text).err(), Some(NoToken), "{text}");
        }
    }
}
