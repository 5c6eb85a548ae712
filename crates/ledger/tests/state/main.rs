//! The database of a home.
//!
//! What must hold for any store is in `suite` and `counted`, which know nothing of files, and is tried on a file and on
//! `PostgreSQL`; the rest is about one of the two.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod counted;
mod file;
mod processes;
mod replicas;
mod shared;
mod suite;

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ledger::state::Database;
use ledger::state::counting::Counted;
use ledger::state::metrics::Series;
use ledger::{State, StateError, Time};
use tempfile::TempDir;
use testkit::postgres::Postgres;

/// Set where `PostgreSQL` must be there.
const DEMANDED: &str = "HAFT_TEST_SERVERS";

/// The server of all tests that run now.
static SERVER: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());

/// A server, or nothing where it is not installed and need not be.
pub(crate) fn demanded() -> Option<Postgres> {
    let found = Postgres::start();
    assert!(found.is_some() || std::env::var_os(DEMANDED).is_none(), "PostgreSQL is not installed");
    found
}

/// The server that tests share, which ends with the last of them.
pub(crate) fn server() -> Option<Arc<Postgres>> {
    let mut known = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = known.upgrade() {
        return Some(server);
    }
    let server = Arc::new(demanded()?);
    *known = Arc::downgrade(&server);
    Some(server)
}

/// A database of a server that nobody else has.
pub(crate) fn fresh(server: &Postgres) -> Database {
    Database::parse(&server.database()).unwrap()
}

/// Runs a test on a fresh store of either kind.
#[expect(clippy::needless_pass_by_value, reason = "a test is written where it is run")]
pub(crate) fn with(test: impl AsyncFn(&State)) {
    let home = Home::new();
    block_on(async { test(&home.open().await).await });
    let Some(server) = server() else { return };
    block_on(async {
        let state = State::join(&fresh(&server)).await.unwrap();
        test(&state).await;
        state.close().await.unwrap();
    });
}

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
    Counted { series: series.into(), failure: failure.into(), latency, at, place: None, flow: None }
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
