//! `haft sandbox`: any program, inside the walls. Everything is done twice: by the user who runs
//! the tests, and, where that is root, by an ordinary user. Walls below L2 fail every test here.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
#[macro_use]
#[path = "../walls/mod.rs"]
mod walls;

mod ends;
mod grants;
mod programs;
mod terminal;
