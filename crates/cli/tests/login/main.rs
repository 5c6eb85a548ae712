//! Signing in to MCP servers: with servers of others, and with some that mean no good.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers are tests too")]

#[path = "../common/mod.rs"]
mod common;
mod desk;
mod device;
mod peers;
mod provider;
mod refusals;
mod scopes;
