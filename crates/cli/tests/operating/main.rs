//! Registries as an operator has them: real processes, killed, cut off, stopped, and behind a proxy.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod api;
mod database;
mod embedded;
mod process;
mod progress;
mod proxy;
mod replicas;
mod stopping;
mod trouble;
