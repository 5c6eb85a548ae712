//! `haft call --from`, as a person types it: what comes back, what is told, and what nobody is given.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers are tests too")]

mod attacks;
mod blocked;
#[path = "../common/mod.rs"]
mod common;
mod contract;
mod desk;
mod explained;
mod failures;
mod input;
mod peers;
mod plan;
mod spending;
