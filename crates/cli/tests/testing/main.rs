//! `haft test`, as a person types it: what is run, what is told of it, and what it ends with.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers are tests too")]

#[path = "../common/mod.rs"]
mod common;
mod implementations;
mod installing;
mod many;
mod packages;
mod promises;
mod results;
mod servers;
mod watching;
