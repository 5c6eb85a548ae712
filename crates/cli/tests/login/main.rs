//! Signing in to servers and agents and for tools that run here: with servers of others, and with some that mean no good.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers are tests too")]

mod agents;
#[path = "../common/mod.rs"]
mod common;
mod desk;
mod device;
mod peers;
mod program;
mod provider;
mod refusals;
mod scopes;
mod tools;
