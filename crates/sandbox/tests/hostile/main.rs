//! What the walls hold: each test runs a real program that tries the thing.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers are tests too")]

#[path = "../kit/mod.rs"]
mod kit;

mod files;
mod kernel;
mod network;
mod ordinary;
mod planting;
mod probing;
mod processes;
mod table;
