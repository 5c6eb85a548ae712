//! The one way out: the rules are asked, the address is dialled, the attempt is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::attempt::{Outcome, Reached, Record, Report};
use crate::dial::dial;
use crate::host::Target;
use crate::limits::Limits;
use crate::resolve::Resolve;
use crate::rules::{Decision, Rules};

/// What all connections of one proxy share.
pub(crate) struct Gate {
    rules: Rules,
    resolver: Box<dyn Resolve>,
    pub(crate) limits: Limits,
    report: Report,
    attempts: AtomicU64,
}

impl Gate {
    pub(crate) fn new(
        rules: Rules,
        resolver: Box<dyn Resolve>,
        limits: Limits,
        report: Report,
    ) -> Self {
        Self { rules, resolver, limits, report, attempts: AtomicU64::new(0) }
    }

    /// An attempt at a target.
    pub(crate) fn record(&self, target: &Target) -> Record {
        self.new_record(target.to_string(), Some(target.clone()))
    }

    /// An attempt at something that is no target.
    pub(crate) fn record_of_text(&self, asked: String) -> Record {
        self.new_record(asked, None)
    }

    /// Whether a target may be asked for.
    pub(crate) fn decide(&self, target: &Target) -> Decision<'_> {
        self.rules.decide(target)
    }

    /// Connects to the target, or says why not.
    pub(crate) async fn pass(
        &self,
        target: &Target,
        record: &mut Record,
    ) -> Result<TcpStream, Outcome> {
        let dialled = dial(target, &self.rules, self.resolver.as_ref(), &self.limits).await?;
        // Small pieces are passed on as they come; should that fail, they are only slower.
        let _ = dialled.stream.set_nodelay(true);
        record.open(Reached { rule: dialled.rule.clone(), address: dialled.address });
        Ok(dialled.stream)
    }

    fn new_record(&self, asked: String, target: Option<Target>) -> Record {
        let id = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        Record::new(id, asked, target, Arc::clone(&self.report))
    }
}

/// Returns once nothing has passed for so long.
pub(crate) async fn idle(record: &Record, time: Duration) {
    let mut before = None;
    while before != Some(record.passed()) {
        before = Some(record.passed());
        sleep(time).await;
    }
}
