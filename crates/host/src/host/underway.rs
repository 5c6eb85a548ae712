//! The calls that are under way, and requests to servers that are none, by their packages: where one is switched off, they end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Host;
use crate::call::{Call, Tool};
use crate::error::{CallError, Kind};

/// How often it is looked whether they have ended.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What is told of a call that ended because its package was switched off, revoked or removed meanwhile.
pub const SWITCHED_OFF: &str =
    "its package was switched off, revoked or removed while it ran, so it was ended";

/// The calls that are under way.
#[derive(Debug, Default)]
pub(super) struct Underway(Mutex<Vec<Arc<One>>>);

#[derive(Debug)]
struct One {
    package: String,
    off: CancellationToken,
    is_ended: AtomicBool,
}

/// A call that is among them until this is dropped.
pub(super) struct Among<'u> {
    all: &'u Underway,
    one: Arc<One>,
}

impl Underway {
    pub(super) fn begin(&self, tool: &Tool, call: &Call) -> Among<'_> {
        let (package, off) = (tool.package.canonical_id(), call.called_off.clone());
        let one = Arc::new(One { package, off, is_ended: AtomicBool::new(false) });
        self.lock().push(Arc::clone(&one));
        Among { all: self, one }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<One>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Among<'_> {
    /// The same result, with why it ended where somebody had it ended.
    pub(super) fn told<T>(&self, mut ended: Result<T, CallError>) -> Result<T, CallError> {
        if let Err(error) = &mut ended
            && error.kind == Kind::Cancelled
            && self.one.is_ended.load(Ordering::Acquire)
        {
            SWITCHED_OFF.clone_into(&mut error.message);
        }
        ended
    }
}

impl Drop for Among<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(at) = all.iter().position(|one| Arc::ptr_eq(one, &self.one)) {
            all.swap_remove(at);
        }
    }
}

impl Host {
    /// Ends everything of a package at once: its calls, and what is kept running for others.
    pub fn end(&self, package: &str) {
        let all = self.underway.lock();
        let ended: Vec<_> = all.iter().filter(|one| one.package == package).cloned().collect();
        drop(all);
        for one in ended {
            one.is_ended.store(true, Ordering::Release);
            one.off.cancel();
        }
        self.retire(package);
    }

    /// Calls off whatever is under way, and waits until it has ended.
    pub async fn end_calls(&self) {
        loop {
            let all = self.underway.lock().clone();
            if all.is_empty() {
                return;
            }
            for one in all {
                one.off.cancel();
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Whether calls are under way, or anything is kept running for the next.
    pub fn is_busy(&self) -> bool {
        !self.underway.lock().is_empty() || !self.kept_packages().is_empty()
    }

    /// Ends what is kept running of packages that were granted something else by now, as their next call would.
    pub async fn end_ungranted(&self) {
        for package in self.kept_packages() {
            let granted = || self.granted.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(before) = granted().get(&package).map(|(grants, _)| grants.clone()) else {
                continue;
            };
            // Where that cannot be read, nothing of it can be called either.
            if self.records.granted(&package).await.is_ok_and(|(now, _)| now != before) {
                self.retire(&package);
            }
        }
    }

    /// The packages of which anything is kept running.
    fn kept_packages(&self) -> Vec<String> {
        let mut all = self.servers.packages();
        all.extend(self.workers.packages());
        all.sort();
        all.dedup();
        all
    }
}
