//! What got worse is found in the state of a home, told once and written into its log once.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::time::Duration;

use ledger::audit::{Audit, Durability, Filter, Record, page};
use ledger::state::counting::Counted;
use ledger::state::metrics::Series;
use ledger::state::regressions::What;
use ledger::{State, Time};
use prove::watch::{CHANGE, Seen, watch};

struct Home {
    folder: tempfile::TempDir,
    state: State,
    audit: Audit,
    calls: i64,
}

impl Home {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(&folder.path().join("state.db")).await.unwrap();
        let audit = Audit::new(folder.path().join("audit"), Durability::Process);
        Self { folder, state, audit, calls: 0 }
    }

    fn now(&self) -> Time {
        Time::from_unix_millis(1_794_000_000_000 + self.calls * 1_000)
    }

    /// Calls of a version that take about so many milliseconds, of which one in so many fails.
    async fn call(&mut self, version: &str, count: i64, millis: u64, fails: i64) {
        for _ in 0..count {
            self.calls += 1;
            let call = Counted {
                series: Series {
                    package: "mcpkg:demo.echo".into(),
                    version: version.into(),
                    action: "echo".into(),
                    implementation: "endpoint".into(),
                }
                .into(),
                failure: if self.calls % fails == 0 { "timed_out" } else { "" }.into(),
                latency: Duration::from_millis(millis * (8 + self.calls.unsigned_abs() % 7) / 10),
                at: self.now(),
                place: None,
                flow: None,
            };
            self.state.count_calls(&[call]).await.unwrap();
        }
    }

    async fn watch(&self) -> Seen {
        watch(&self.state, &self.audit, "mcpkg:demo.echo", self.now()).await.unwrap()
    }

    fn written(&self) -> Vec<Record> {
        records(&self.folder.path().join("audit"))
    }
}

fn records(folder: &Path) -> Vec<Record> {
    page(folder, &Filter::default(), None, 100).unwrap().records
}

#[tokio::test]
async fn what_got_slower_is_noted_and_written_once_and_is_over_when_it_is_fast_again() {
    let mut home = Home::new().await;
    home.call("1.0.0", 300, 20, 1_000).await;
    assert!(home.watch().await.regressions.is_empty());
    assert!(home.written().is_empty());
    home.call("1.0.0", 150, 40, 1_000).await;
    let seen = home.watch().await;
    assert_eq!(seen.regressions.len(), 1, "{seen:?}");
    let found = &seen.regressions[0];
    assert_eq!((found.what, &found.against, found.over), (What::Latency, &None, None));
    assert!(found.after > 1.5 * found.before, "{found:?}");
    home.call("1.0.0", 50, 40, 1_000).await;
    assert_eq!(home.watch().await.regressions.len(), 1);
    let written = home.written();
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(
        (&*written[0].change, &*written[0].version, written[0].outcome.as_deref()),
        (CHANGE, "1.0.0", Some("slower"))
    );
    let note = written[0].note.as_deref().unwrap();
    assert!(note.starts_with("slower: a call typically takes 4"), "{note}");
    home.call("1.0.0", 100, 20, 1_000).await;
    let seen = home.watch().await;
    assert_eq!(seen.regressions.len(), 1);
    assert!(seen.regressions[0].over.is_some(), "{seen:?}");
    assert_eq!(home.written().len(), 1);
}

#[tokio::test]
async fn a_version_that_fails_more_than_the_one_before_is_held_against_it() {
    let mut home = Home::new().await;
    home.call("1.0.0", 300, 20, 100).await;
    home.call("1.1.0", 96, 20, 4).await;
    let seen = home.watch().await;
    assert_eq!(seen.regressions.len(), 1, "{seen:?}");
    let found = &seen.regressions[0];
    assert_eq!((found.what, found.against.as_deref()), (What::Success, Some("1.0.0")));
    assert_eq!(found.series.version, "1.1.0");
    assert_eq!(home.written()[0].outcome.as_deref(), Some("failing_more"));
}

#[tokio::test]
async fn a_finding_that_cannot_be_written_down_is_written_the_next_time() {
    let mut home = Home::new().await;
    // Where the log should be is a file.
    std::fs::write(home.folder.path().join("audit"), "").unwrap();
    home.call("1.0.0", 300, 20, 1_000).await;
    home.call("1.0.0", 150, 40, 1_000).await;
    let seen = home.watch().await;
    assert!(seen.unwritten.is_some() && !seen.regressions[0].is_written, "{seen:?}");
    std::fs::remove_file(home.folder.path().join("audit")).unwrap();
    let seen = home.watch().await;
    assert!(seen.unwritten.is_none() && seen.regressions[0].is_written, "{seen:?}");
    assert_eq!(home.written().len(), 1);
}
