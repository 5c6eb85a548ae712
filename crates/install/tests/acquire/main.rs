//! What a package needs reaches this machine whole or not at all, runs nothing on the way, and is had again without a network.
//!
//! Real pip, npm and git, against indexes and a repository that the tests make themselves.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod git;
mod image;
mod npm;
mod pip;
mod url;
mod world;
