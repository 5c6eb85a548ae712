//! The log of a home: written, read, followed, attacked.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod by_hand;
mod copying;
mod home;
mod processes;
mod promises;
mod tampering;
mod writing;
