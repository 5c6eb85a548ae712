//! What the tests of the walls share: who runs them, what they run, and how they look at what is left.
#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of it")]
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and this is no library"
)]

pub mod folders;
pub mod machine;
pub mod programs;
pub mod rooms;
pub mod users;
