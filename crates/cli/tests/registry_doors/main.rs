//! The doors of a registry, used by its own verbs, by somebody else's client, and as the pages of the docs say.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod opened;
mod sources;

mod importing;
mod reading;
mod taken_back;
