//! The database of a home.
//!
//! What must hold for any store is in `suite`, which knows nothing of files; the rest is about
//! the file.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod counted;
mod file;
mod processes;
mod suite;

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use ledger::state::counting::Counted;
use ledger::state::metrics::Series;
use ledger::{State, StateError, Time};
use tempfile::TempDir;

/// The moment of a test.
pub(crate) fn at(millis: i64) -> Time {
    Time::from_unix_millis(1_763_208_000_000 + millis)
}

/// A call of version 1 of a package, which failed in this way, or in none.
pub(crate) fn called(package: &str, failure: &str, latency: Duration, at: Time) -> Counted {
    let series = Series {
        package: package.into(),
        version: "1".into(),
        action: "a".into(),
        implementation: "endpoint".into(),
    };
    Counted { series, failure: failure.into(), latency, at, place: None, flow: None }
}

/// Counts one call that went well.
pub(crate) async fn count(state: &State, package: &str) -> Result<(), StateError> {
    state.count_calls(&[called(package, "", Duration::ZERO, at(0))]).await.map(drop)
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
