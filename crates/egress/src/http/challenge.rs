//! What a server wants to hear of who is asking, as `WWW-Authenticate` says it.
//!
//! [`challenges`] is a pure function that reads as much as can be understood and stops at the
//! first letter that cannot: a stranger wrote it, and half a challenge is better than a guess.

use std::fmt;

/// The longest header that is looked at, in bytes.
pub const LONGEST: usize = 8 << 10;

/// How many challenges, and how many parameters of one, are read.
pub const MOST: usize = 32;

/// One way to say who is asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The scheme, in lower case: `bearer`.
    pub scheme: String,
    /// What is said about it, names in lower case, each once: the first counts.
    pub parameters: Vec<(String, String)>,
}

impl Challenge {
    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// As it would be sent, every value in quotes.
impl fmt::Display for Challenge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.scheme)?;
        for (at, (name, value)) in self.parameters.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            write!(out, "{}{name}=\"{value}\"", if at == 0 { " " } else { ", " })?;
        }
        Ok(())
    }
}

/// Reads the value of a header, which may hold several challenges.
pub fn challenges(text: &str) -> Vec<Challenge> {
    let mut found: Vec<Challenge> = Vec::new();
    if text.len() > LONGEST {
        return found;
    }
    let mut rest = Rest(text.as_bytes());
    loop {
        rest.skip(|byte| matches!(byte, b' ' | b'\t' | b','));
        let word = rest.take(is_token).to_ascii_lowercase();
        if word.is_empty() {
            return found;
        }
        let before = rest;
        rest.skip(is_blank);
        if rest.eat(b'=') {
            let Some(challenge) = found.last_mut() else { return found };
            rest.skip(is_blank);
            let Some(value) = rest.value() else { return found };
            if challenge.parameter(&word).is_none() && challenge.parameters.len() < MOST {
                challenge.parameters.push((word, value));
            }
            // After a parameter comes a comma or the end.
            rest.skip(is_blank);
            if !matches!(rest.0.first(), None | Some(b',')) {
                return found;
            }
        } else {
            if found.len() == MOST {
                return found;
            }
            rest = before;
            found.push(Challenge { scheme: word, parameters: Vec::new() });
            rest.skip_token68();
        }
    }
}

/// What was not read yet.
#[derive(Clone, Copy)]
struct Rest<'t>(&'t [u8]);

impl<'t> Rest<'t> {
    fn take(&mut self, is_meant: impl Fn(u8) -> bool) -> &'t str {
        let end = self.0.iter().position(|byte| !is_meant(*byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        std::str::from_utf8(taken).unwrap_or_default()
    }

    fn skip(&mut self, is_meant: impl Fn(u8) -> bool) {
        self.take(is_meant);
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.0.first() == Some(&byte);
        if is_next {
            self.0 = &self.0[1..];
        }
        is_next
    }

    /// A token, or a text in quotes without them.
    fn value(&mut self) -> Option<String> {
        if !self.eat(b'"') {
            let token = self.take(is_token);
            return (!token.is_empty()).then(|| token.to_owned());
        }
        let mut value = Vec::new();
        loop {
            match self.0 {
                [b'"', rest @ ..] => {
                    self.0 = rest;
                    return String::from_utf8(value).ok();
                }
                [b'\\', next, rest @ ..] | [next, rest @ ..] => {
                    value.push(*next);
                    self.0 = rest;
                }
                [] => return None,
            }
        }
    }

    /// Steps over the one word that old schemes have in the place of parameters.
    fn skip_token68(&mut self) {
        let mut ahead = *self;
        ahead.skip(is_blank);
        let word = ahead.take(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
        ahead.skip(|byte| byte == b'=');
        ahead.skip(is_blank);
        if !word.is_empty() && matches!(ahead.0.first(), None | Some(b',')) {
            *self = ahead;
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Vec<(String, String)>)> {
        challenges(text).into_iter().map(|one| (one.scheme, one.parameters)).collect()
    }

    fn one(scheme: &str, parameters: &[(&str, &str)]) -> (String, Vec<(String, String)>) {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        (scheme.to_owned(), parameters.iter().map(own).collect())
    }

    #[test]
    fn challenges_are_read_as_servers_write_them() {
        for (text, found) in [
            ("Bearer", vec![one("bearer", &[])]),
            (
                r#"Bearer error="invalid_token", error_description="a \"b\", c=d", scope="x y""#,
                vec![one(
                    "bearer",
                    &[
                        ("error", "invalid_token"),
                        ("error_description", "a \"b\", c=d"),
                        ("scope", "x y"),
                    ],
                )],
            ),
            (
                "Negotiate dGVzdA==, Basic realm=simple , BEARER Resource_Metadata = \"https://a.test/x\"",
                vec![
                    one("negotiate", &[]),
                    one("basic", &[("realm", "simple")]),
                    one("bearer", &[("resource_metadata", "https://a.test/x")]),
                ],
            ),
            ("Basic, Bearer a=b", vec![one("basic", &[]), one("bearer", &[("a", "b")])]),
            ("Bearer a=1, A=2", vec![one("bearer", &[("a", "1")])]),
            (" ,, Bearer  a=1,,b=2", vec![one("bearer", &[("a", "1"), ("b", "2")])]),
        ] {
            assert_eq!(read(text), found, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_ends_the_reading() {
        for (text, found) in [
            ("", vec![]),
            ("=x", vec![]),
            ("a=b", vec![]),
            ("Bearer a=\"open", vec![one("bearer", &[])]),
            ("Bearer a=1 b=2", vec![one("bearer", &[("a", "1")])]),
            ("Bearer a=1, (x), b=2", vec![one("bearer", &[("a", "1")])]),
            ("Bearer a=", vec![one("bearer", &[])]),
        ] {
            assert_eq!(read(text), found, "{text}");
        }
        assert!(challenges(&format!("Bearer a=\"{}\"", "x".repeat(LONGEST))).is_empty());
        assert_eq!(challenges(&"Basic,".repeat(100)).len(), MOST);
    }

    #[test]
    fn what_is_shown_reads_as_the_same() {
        for text in [r#"Bearer a="x \\ \" y", b=c"#, "Basic", "Digest realm=r"] {
            for challenge in challenges(text) {
                assert_eq!(challenges(&challenge.to_string()), vec![challenge], "{text}");
            }
        }
    }
}
