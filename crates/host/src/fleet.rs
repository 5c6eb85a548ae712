//! Replicas that share a state: the log that each writes in its home, sent to where all of them are.
//!
//! Calls do not wait for it: what is written in the home counts. A replica asks what is there of its log and sends the
//! rest, so nothing is lost when it is killed, or while the database is away.

use std::collections::VecDeque;
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
/// How many lines are looked at for a page, at most.
const MOST_LOOKED_AT: usize = 20_000;
/// How much of a key tells one replica from another.
const SHORT: usize = 8;

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

/// Where a page of the logs of all replicas begins: before which record of each. From their ends on where it names none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(Vec<(String, u64)>);

impl Places {
    /// Reads what it is written as.
    pub fn parse(text: &str) -> Option<Self> {
        let place = |part: &str| {
            let (replica, seq) = part.rsplit_once('.')?;
            Some((replica.to_owned(), seq.parse().ok()?))
        };
        text.split(',').map(place).collect::<Option<_>>().map(Self)
    }

    /// Before which record of a replica; nothing where it was not there yet when the first page was read.
    fn of(&self, key: &str) -> Option<u64> {
        if self.0.is_empty() {
            return Some(u64::MAX);
        }
        let found = self.0.iter().find(|(replica, _)| *replica == short(key));
        found.map(|(_, seq)| *seq)
    }
}

impl fmt::Display for Places {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (replica, seq)) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(out, "{comma}{replica}.{seq}")?;
        }
        Ok(())
    }
}

/// The beginning of what is different about the key of a replica.
pub fn short(key: &str) -> String {
    key.strip_prefix("ed25519:").unwrap_or(key).chars().take(SHORT).collect()
}

/// Records of all replicas, the last one first.
#[derive(Debug, Default)]
pub struct Page {
    /// The records.
    pub told: Vec<Told>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Places>,
    /// How many lines were stepped over because they are no sound records.
    pub unreadable: u64,
}

/// The log of one replica, read from its end.
struct Backwards {
    key: String,
    /// What was read and not taken yet.
    records: VecDeque<Record>,
    /// Before which record more is read.
    unread: u64,
    /// Before which record it goes on once this page is full.
    place: u64,
    is_over: bool,
}

impl Backwards {
    /// Reads more, where everything that was read is taken; how many lines are no records.
    async fn fill(&mut self, shared: Shared<'_>, filter: &Filter) -> Result<u64, StateError> {
        let mut unreadable = 0;
        while self.records.is_empty() && !self.is_over {
            let lines = shared.lines_before(&self.key, self.unread, few()).await?;
            self.is_over = lines.is_empty();
            for (seq, line) in lines {
                self.unread = seq;
                match parse(line.as_bytes()) {
                    // What is before that is older still.
                    Ok(record) if filter.since.is_some_and(|since| record.ts < since) => {
                        self.is_over = true;
                        break;
                    }
                    Ok(record) => self.records.push_back(record),
                    Err(_) => unreadable += 1,
                }
            }
        }
        Ok(unreadable)
    }
}

/// Reads so many records of all replicas that are wanted, and perhaps fewer where only few are.
pub async fn page(
    shared: Shared<'_>,
    filter: &Filter,
    before: &Places,
    most: usize,
) -> Result<Page, StateError> {
    let begin = |Replica { key, .. }: Replica| {
        let place = before.of(&key)?;
        let (records, is_over) = (VecDeque::new(), false);
        Some(Backwards { key, records, unread: place, place, is_over })
    };
    let mut logs: Vec<_> = shared.replicas().await?.into_iter().filter_map(begin).collect();
    let (mut page, mut looked_at) = (Page::default(), 0);
    while page.told.len() < most && looked_at < MOST_LOOKED_AT {
        for log in &mut logs {
            page.unreadable += log.fill(shared, filter).await?;
        }
        let newest = |log: &&mut Backwards| log.records.front().map(|one| (one.ts, one.seq));
        let Some(log) = logs.iter_mut().max_by_key(newest) else { break };
        let Some(record) = log.records.pop_front() else { break };
        log.place = record.seq;
        looked_at += 1;
        if filter.wants(&record) {
            page.told.push(Told { replica: log.key.clone(), record });
        }
    }
    if logs.iter().any(|log| !log.is_over || !log.records.is_empty()) {
        let places = logs.iter().map(|log| (short(&log.key), log.place));
        page.next = Some(Places(places.collect()));
    }
    Ok(page)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        let places = Places(vec![("a+/1".into(), 7), ("b.c".into(), u64::MAX)]);
        assert_eq!(Places::parse(&places.to_string()), Some(places.clone()));
        assert_eq!(places.of("ed25519:a+/1"), Some(7));
        // A replica that came later has nothing on this page.
        assert_eq!(places.of("ed25519:other"), None);
        assert_eq!(Places::default().of("ed25519:other"), Some(u64::MAX));
        for wrong in ["", "a", "a.", "a.1,", "a.-1"] {
            assert_eq!(Places::parse(wrong), None, "{wrong}");
        }
    }
}
