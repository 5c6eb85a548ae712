//! Whether a registry can do its work, asked seldom however often somebody wants to know.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// How long an answer is good.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// What does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unready {
    /// The database.
    Database,
    /// The place of the package files.
    Blobs,
}

/// What was found last. Whoever asks while it is being found out waits for the same answer.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Result<(), Unready>)>>);

impl Readiness {
    /// What is found now, or was a moment ago.
    pub(crate) async fn fresh(
        &self,
        look: impl AsyncFnOnce() -> Result<(), Unready>,
    ) -> Result<(), Unready> {
        self.found_within(GOOD_FOR, look).await
    }

    async fn found_within(
        &self,
        good_for: Duration,
        look: impl AsyncFnOnce() -> Result<(), Unready>,
    ) -> Result<(), Unready> {
        let mut last = self.0.lock().await;
        if let Some((_, found)) = last.filter(|(at, _)| at.elapsed() < good_for) {
            return found;
        }
        let found = look().await;
        *last = Some((Instant::now(), found));
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn many_who_ask_are_one_who_looks() {
        let (readiness, looked) = (Readiness::default(), AtomicUsize::new(0));
        let look = |good_for| {
            readiness.found_within(good_for, async || {
                looked.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Err(Unready::Blobs)
            })
        };
        let long = Duration::from_hours(1);
        let all = futures_util::future::join_all((0..100).map(|_| look(long))).await;
        assert!(all.iter().all(|found| *found == Err(Unready::Blobs)));
        assert_eq!(looked.load(Ordering::Relaxed), 1);
        // What is old is looked at again.
        let _unready = look(Duration::ZERO).await;
        assert_eq!(looked.load(Ordering::Relaxed), 2);
        // Whoever hangs up half-way leaves nothing that is taken for an answer.
        let given_up = tokio::time::timeout(
            Duration::from_millis(10),
            readiness.found_within(Duration::ZERO, async || std::future::pending().await),
        );
        assert!(given_up.await.is_err());
        let _unready = look(Duration::ZERO).await;
        assert_eq!(looked.load(Ordering::Relaxed), 3);
    }
}
