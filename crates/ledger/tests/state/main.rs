//! The database of a home.
//!
//! What must hold for any store is in `suite`, which knows nothing of files; the rest is about
//! the file.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod file;
mod processes;
mod suite;

use std::future::Future;
use std::path::PathBuf;

use ledger::{State, Time};
use tempfile::TempDir;

/// The moment of a test.
pub(crate) fn at(millis: i64) -> Time {
    Time::from_unix_millis(1_763_208_000_000 + millis)
}

/// Runs a test to its end.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

/// A folder with room for a database.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("state.db")
    }

    pub(crate) async fn open(&self) -> State {
        State::open(&self.path()).await.unwrap()
    }
}
