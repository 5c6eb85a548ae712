//! What is reported of each attempt to reach somebody.
//!
//! An attempt that reaches somebody is reported twice under one id: as
//! [`Stage::Opened`] when the connection stands, and as [`Stage::Ended`] with its totals. Any
//! other is reported once, as ended: a refusal at once, before the client has its answer.
//! There is exactly one end for each attempt, also when the proxy is stopped in the middle.
//! A client that leaves before it has asked for anything (no byte at all, or half a greeting of
//! SOCKS) has attempted nothing.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::dial::DialError;
use crate::head::HeadError;
use crate::host::Target;
use crate::resolve::ResolveError;
use crate::rules::{Refusal, Rule};

/// One attempt, as it opens or as it ends.
#[derive(Debug)]
pub struct Attempt {
    /// Counts the attempts of one proxy or one client, from 1.
    pub id: u64,
    /// What was asked for: the target, or, if that cannot be read, its text, escaped and bounded.
    pub asked: String,
    /// The target, if it can be read.
    pub target: Option<Target>,
    /// How far it is.
    pub stage: Stage,
}

/// How far an attempt is.
#[derive(Debug)]
pub enum Stage {
    /// Somebody was reached.
    Opened(Reached),
    /// It is over.
    Ended {
        /// How it ended.
        outcome: Outcome,
        /// Who was reached, if anybody.
        reached: Option<Reached>,
        /// Bytes from the tool to the server.
        up: u64,
        /// Bytes from the server to the tool.
        down: u64,
        /// How long it took from the request on.
        took: Duration,
    },
}

/// Who was reached, and why that was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The rule.
    pub rule: Rule,
    /// The address.
    pub address: SocketAddr,
}

/// How an attempt ended.
#[derive(Debug)]
pub enum Outcome {
    /// Both sides said all they had to say.
    Completed,
    /// It was not allowed.
    Refused(Refusal),
    /// The request was not one.
    Malformed(HeadError),
    /// The name has no address.
    Unresolved(ResolveError),
    /// No address could be reached.
    Unreachable(SocketAddr, io::Error),
    /// No address answered in time.
    ConnectTimedOut,
    /// The response was not one.
    BadResponse(HeadError),
    /// The body of the request was not as announced.
    BadBody,
    /// The client left in the middle.
    ClientLeft,
    /// The server left in the middle.
    ServerLeft,
    /// Nothing passed for too long.
    Idle,
    /// A request of our own failed in another way, which this says.
    Failed(String),
    /// The proxy was stopped, or the request was called off.
    Stopped,
}

/// Where attempts are told.
pub(crate) type Report = Arc<dyn Fn(Attempt) + Send + Sync>;

/// An attempt under way. It is reported as ended when dropped, whyever that is.
pub(crate) struct Record {
    id: u64,
    asked: String,
    target: Option<Target>,
    report: Report,
    since: Instant,
    reached: Option<Reached>,
    outcome: Outcome,
    /// Bytes from the tool to the server.
    pub(crate) up: AtomicU64,
    /// Bytes from the server to the tool.
    pub(crate) down: AtomicU64,
}

impl Record {
    pub(crate) fn new(id: u64, asked: String, target: Option<Target>, report: Report) -> Self {
        Self {
            id,
            asked,
            target,
            report,
            since: Instant::now(),
            reached: None,
            outcome: Outcome::Stopped,
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
        }
    }

    pub(crate) fn asked(&self) -> &str {
        &self.asked
    }

    /// Notes bytes to the server.
    pub(crate) fn count_up(&self, bytes: usize) {
        self.up.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Notes bytes from the server.
    pub(crate) fn count_down(&self, bytes: usize) {
        self.down.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes both ways.
    pub(crate) fn passed(&self) -> u64 {
        self.up.load(Ordering::Relaxed) + self.down.load(Ordering::Relaxed)
    }

    /// Reports that somebody was reached.
    pub(crate) fn open(&mut self, reached: Reached) {
        self.reached = Some(reached.clone());
        self.tell(Stage::Opened(reached));
    }

    /// Reports how it ended.
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    fn tell(&self, stage: Stage) {
        let (asked, target) = (self.asked.clone(), self.target.clone());
        (self.report)(Attempt { id: self.id, asked, target, stage });
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let ended = Stage::Ended {
            outcome: std::mem::replace(&mut self.outcome, Outcome::Stopped),
            reached: self.reached.take(),
            up: self.up.load(Ordering::Relaxed),
            down: self.down.load(Ordering::Relaxed),
            took: self.since.elapsed(),
        };
        self.tell(ended);
    }
}

impl From<DialError> for Outcome {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Refused(refusal) => Outcome::Refused(refusal),
            DialError::Unresolved(error) => Outcome::Unresolved(error),
            DialError::Unreachable(address, error) => Outcome::Unreachable(address, error),
            DialError::TimedOut => Outcome::ConnectTimedOut,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Completed => out.write_str("completed"),
            Outcome::Refused(refusal) => refusal.fmt(out),
            Outcome::Malformed(error) => error.fmt(out),
            Outcome::Unresolved(error) => error.fmt(out),
            Outcome::Unreachable(address, error) => {
                write!(out, "`{address}` cannot be reached: {error}")
            }
            Outcome::ConnectTimedOut => out.write_str("no address answered in time"),
            Outcome::BadResponse(error) => {
                write!(out, "the response of the server cannot be read: {error}")
            }
            Outcome::BadBody => out.write_str("the body of the request is damaged"),
            Outcome::ClientLeft => out.write_str("the client left in the middle"),
            Outcome::ServerLeft => out.write_str("the server left in the middle"),
            Outcome::Idle => out.write_str("nothing passed for too long"),
            Outcome::Failed(how) => out.write_str(how),
            Outcome::Stopped => out.write_str("the proxy was stopped"),
        }
    }
}
