//! Tools that are container images, which `umoci` made.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../kit/mod.rs"]
mod kit;

mod engine;
mod images;
mod inside;
