//! The client, against registries that break, lie, stall and point elsewhere.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bytes;
mod catalogs;
mod downloads;
mod hostile;
mod several;
mod stand_in;
