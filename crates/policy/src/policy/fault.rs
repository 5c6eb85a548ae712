//! Why a text is no policy.

use std::fmt;

/// Everything that is wrong with a policy, in the order of the text; never nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// Each thing, with its place.
    pub faults: Vec<Fault>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from one.
    pub line: usize,
    /// The character in the line, from one.
    pub column: usize,
    /// The key it is about, with those of the tables around it; empty where it is about the text itself.
    pub key: String,
    /// What is wrong, and what is expected there.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(out, "`{}`: ", self.key)?;
        }
        out.write_str(&self.message)
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let between = if index == 0 { "" } else { "; " };
            write!(out, "{between}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyError {}
