//! What is not as it should be, at one place of an answer.

use std::fmt;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place.
    pub path: String,
    /// What should be there.
    pub expected: String,
    /// What is there; none where nothing is.
    pub found: Option<String>,
}

/// How many letters of a path are told.
const LONGEST: usize = 200;

impl Fault {
    /// What is told of a fault, no more of it than can be read.
    pub fn new(path: &str, expected: impl Into<String>, found: Option<String>) -> Self {
        Self { path: clipped(path, LONGEST), expected: expected.into(), found }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, expected, found } = self;
        match found {
            Some(found) => write!(out, "{path} is {found}, expected {expected}"),
            None => write!(out, "{path} leads to nothing, expected {expected}"),
        }
    }
}

/// A text of no more than so many letters.
pub(crate) fn clipped(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
