//! Replicas that share a state: the log that each writes in its home, sent to where all of them are.
//!
//! Calls do not wait for it: what is written in the home counts. A replica asks what is there of its log and sends the
//! rest, so nothing is lost when it is killed, or while the database is away.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::audit::copy::{Checking, Lines, Signed, signed_end};
use ledger::audit::line::parse;
use ledger::audit::{Filter, Record, Report};
use ledger::state::shared::{Replica, Shared};
use ledger::{AuditError, StateError};
use tokio_util::sync::CancellationToken;

use crate::records::{Records, whole};

/// How often it is looked whether there is more to send.
const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// How long is waited after a failure.
const PAUSE: Duration = Duration::from_secs(2);
/// How often it is asked what is there, also when nothing is new: somebody may have taken lines away.
const DOUBT: Duration = Duration::from_mins(1);
/// How long the last lines may take when a replica ends.
const FAREWELL: Duration = Duration::from_secs(5);
/// How many lines are sent and read at a time.
const FEW: usize = 200;

/// Why a log was not sent.
#[derive(Debug)]
pub enum NotSent {
    /// It cannot be read.
    Log(AuditError),
    /// The shared state cannot be used.
    State(StateError),
}

impl fmt::Display for NotSent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the log of this replica was not sent to the shared state")
    }
}

impl std::error::Error for NotSent {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            NotSent::Log(error) => error,
            NotSent::State(error) => error,
        })
    }
}

impl From<StateError> for NotSent {
    fn from(error: StateError) -> Self {
        NotSent::State(error)
    }
}

/// A record of a replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The public key that signs its log.
    pub replica: String,
    /// The record.
    pub record: Record,
}

/// Sends the log of this replica as it grows, until it is stopped; then once more. Somebody is told when it begins to fail,
/// and when it works again.
pub async fn keep_sending(
    records: Arc<Records>,
    stop: CancellationToken,
    told: impl Fn(Result<(), String>),
) {
    let (mut sent, mut is_failing, mut asked) = (None, false, Instant::now());
    while !stop.is_cancelled() {
        if asked.elapsed() > DOUBT {
            (sent, asked) = (None, Instant::now());
        }
        let done = send(&records, sent).await;
        let pause = if done.is_ok() { LOOK_AGAIN } else { PAUSE };
        match done {
            Ok(reached) => {
                sent = Some(reached);
                if std::mem::take(&mut is_failing) {
                    told(Ok(()));
                }
            }
            Err(error) => {
                sent = None;
                if !std::mem::replace(&mut is_failing, true) {
                    told(Err(whole(&error)));
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => {}
        }
    }
    // What is left is sent when it is started again.
    let _ = tokio::time::timeout(FAREWELL, send(&records, None)).await;
}

/// Sends what is not there yet; the last record that is. Nothing is asked where that was sent before.
async fn send(records: &Records, sent: Option<u64>) -> Result<u64, NotSent> {
    let Some(shared) = records.state.shared() else { return Ok(0) };
    let folder = records.log().to_owned();
    let end = tokio::task::spawn_blocking({
        let folder = folder.clone();
        move || signed_end(&folder)
    });
    let end = end.await.unwrap_or(Ok(None)).map_err(NotSent::Log)?;
    let Some(Signed { key, head, seq }) = end else { return Ok(0) };
    if sent == Some(seq) {
        return Ok(seq);
    }
    let last = shared.last_line(&key).await?;
    if last < seq {
        let mut lines = Lines::between(&folder, last, seq).map_err(NotSent::Log)?;
        let replica = Replica { key, head };
        let kept = shared.keep_lines(&replica, || lines.next_few(FEW)).await?;
        kept.map_err(NotSent::Log)?;
    }
    Ok(seq)
}

/// Looks through the logs of all replicas, each by its own key.
pub async fn verify(shared: Shared<'_>) -> Result<Vec<(Replica, Report)>, StateError> {
    let begin = |replica: &Replica| Checking::begin(&replica.key, &replica.head);
    let all = shared.fold_lines(begin, Checking::line).await?;
    Ok(all.into_iter().map(|(replica, checking)| (replica, checking.end())).collect())
}

/// The last records of all replicas that are wanted, the last one first: at most so many of each. How many lines were
/// stepped over because they are no sound records.
pub async fn last(
    shared: Shared<'_>,
    filter: &Filter,
    most: usize,
) -> Result<(Vec<Told>, u64), StateError> {
    let (mut all, mut unreadable) = (Vec::new(), 0);
    for Replica { key, .. } in shared.replicas().await? {
        let (mut found, mut before) = (0, u64::MAX);
        while found < most {
            let lines = shared.lines_before(&key, before, few()).await?;
            let Some((seq, _)) = lines.last() else { break };
            before = *seq;
            for (_, line) in lines {
                match parse(line.as_bytes()) {
                    Ok(record) if found < most && filter.wants(&record) => {
                        found += 1;
                        all.push(Told { replica: key.clone(), record });
                    }
                    Ok(_) => {}
                    Err(_) => unreadable += 1,
                }
            }
        }
    }
    all.sort_by(|one, other| {
        let order = |told: &Told| (told.record.ts, told.record.seq);
        order(other).cmp(&order(one))
    });
    Ok((all, unreadable))
}

/// Gives each record of all replicas once, as it comes.
#[derive(Debug)]
pub struct Following(Vec<(String, u64)>);

impl Following {
    /// Follows from what is there now.
    pub async fn from_end(shared: Shared<'_>) -> Result<Self, StateError> {
        let mut known = Vec::new();
        for Replica { key, .. } in shared.replicas().await? {
            let last = shared.last_line(&key).await?;
            known.push((key, last));
        }
        Ok(Self(known))
    }

    /// What came since, also of replicas that are new.
    pub async fn next(&mut self, shared: Shared<'_>) -> Result<Vec<Told>, StateError> {
        for Replica { key, .. } in shared.replicas().await? {
            if !self.0.iter().any(|(known, _)| *known == key) {
                self.0.push((key, 0));
            }
        }
        let mut all = Vec::new();
        for (replica, last) in &mut self.0 {
            for (seq, line) in shared.lines_after(replica, *last, few()).await? {
                *last = seq;
                let record = parse(line.as_bytes()).ok();
                all.extend(record.map(|record| Told { replica: replica.clone(), record }));
            }
        }
        all.sort_by_key(|told| told.record.ts);
        Ok(all)
    }
}

fn few() -> u32 {
    u32::try_from(FEW).unwrap_or(u32::MAX)
}
