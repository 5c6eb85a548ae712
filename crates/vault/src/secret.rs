//! A secret value: cleared when it is dropped, and shown by nobody.

use std::fmt;

use zeroize::{Zeroize, Zeroizing};

/// The longest value, in bytes.
pub const MAX_SECRET: usize = 64 * 1024;

/// A secret value. There is no way to print it but to [`expose`](Secret::expose) it.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// Why something is no secret value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretError {
    /// There is nothing in it.
    Empty,
    /// It is longer than [`MAX_SECRET`].
    TooLong,
    /// It is not UTF-8.
    NotText,
}

impl fmt::Display for SecretError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretError::Empty => out.write_str("the value is empty"),
            SecretError::TooLong => write!(out, "the value is longer than {MAX_SECRET} bytes"),
            SecretError::NotText => out.write_str("the value is not UTF-8 text"),
        }
    }
}

impl std::error::Error for SecretError {}

impl Secret {
    /// Takes a value over; it is cleared also when it is refused.
    pub fn new(value: String) -> Result<Self, SecretError> {
        let value = Zeroizing::new(value);
        match value.len() {
            0 => Err(SecretError::Empty),
            1..=MAX_SECRET => Ok(Self(value)),
            _ => Err(SecretError::TooLong),
        }
    }

    /// Takes over bytes that should be text.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, SecretError> {
        String::from_utf8(bytes).map_or_else(
            |error| {
                error.into_bytes().zeroize();
                Err(SecretError::NotText)
            },
            Self::new,
        )
    }

    /// The value itself. What is copied from it is the caller's to clear.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Shows nothing of the value, not even its length.
impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_text_of_a_bounded_length_and_is_not_shown() {
        let secret = Secret::new("hunter2".to_owned()).unwrap();
        assert_eq!(secret.expose(), "hunter2");
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)).matches("hunter2").count(), 0);
        let refused = |length| Secret::new("x".repeat(length)).err();
        assert_eq!(refused(0), Some(SecretError::Empty));
        assert_eq!(refused(MAX_SECRET), None);
        assert_eq!(refused(MAX_SECRET + 1), Some(SecretError::TooLong));
        assert_eq!(Secret::from_bytes(vec![0xff]).err(), Some(SecretError::NotText));
    }
}
