//! Agents: made of the library of the protocol, in both of its versions, and some that mean no good.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers are tests too")]

mod hostile;
#[path = "../kit/mod.rs"]
mod kit;
mod peers;
mod support;
