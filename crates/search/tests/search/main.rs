//! What the crate promises to those who use it.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;
mod counting;
mod docs;
mod finding;
mod package;
mod promises;
mod updates;
