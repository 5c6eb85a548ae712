//! What the owner allows and keeps: grants, secrets, approvals, the policy and the log.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod desk;

mod approvals;
mod audit;
mod beginnings;
mod described;
mod grants;
mod homes;
mod policy;
mod presence;
mod programs;
mod secrets;
mod strangers;
mod values;
