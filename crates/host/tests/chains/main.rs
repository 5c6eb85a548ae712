//! Chains of tools, run by the path of every call.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../kit/mod.rs"]
mod kit;

mod approving;
mod caching;
mod following;
mod support;
