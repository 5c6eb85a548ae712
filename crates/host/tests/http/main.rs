//! Tools that are requests to servers: what is sent, what comes back, and what is refused.
//!
//! The servers are real: one of ours for failures of every kind, and httpbin and an OAuth provider
//! made of Authlib where `HAFT_HTTP_PEERS` says where they are installed.
#![cfg(unix)]
#![expect(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "a test may panic, and reads better without `&json!`"
)]

mod answers;
mod beside;
mod keys;
#[path = "../kit/mod.rs"]
mod kit;
mod requests;
mod site;
mod tapes;
