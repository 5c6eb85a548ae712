//! Tools of MCP servers: real ones, inside the walls, and some that mean no good.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers are tests too")]

mod again;
mod everything;
mod filesystem;
mod hostile;
mod kept;
#[path = "../kit/mod.rs"]
mod kit;
mod lifecycle;
mod memory;
mod promises;
mod python;
mod remote;
mod support;
mod surface;
