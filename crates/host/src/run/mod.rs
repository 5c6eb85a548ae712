//! The ways to run.

pub(crate) mod a2a;
pub(crate) mod engine;
pub(crate) mod http;
pub(crate) mod leash;
pub(crate) mod mcp;
mod oauth;
pub(crate) mod process;
pub(crate) mod said;
pub(crate) mod signed;
pub(crate) mod turns;
pub(crate) mod worker;

use std::sync::{Arc, Mutex, PoisonError};

use egress::attempt::{Attempt, Outcome, Stage};
use egress::http::Url;
use egress::resolve::SystemResolver;
use egress::{Limits, Refusal, Rules, Running};
use sandbox::{Child, SpawnError};

use crate::error::{CallError, Kind};

/// What a tool tried to reach and was not let.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What it asked for, as `host:port`.
    pub asked: String,
    /// Why not.
    pub why: Refusal,
}

impl Blocked {
    /// What a refusal of ours was about.
    pub(crate) fn of(error: &CallError) -> Option<Self> {
        match &error.kind {
            Kind::Blocked(place) => Some((**place).clone()),
            _ => None,
        }
    }
}

/// The network of one process: what it asks for goes through us.
#[derive(Debug)]
pub(crate) struct Network {
    blocked: Arc<Mutex<Vec<Blocked>>>,
    proxy: Option<Running>,
}

/// How many different refusals are remembered of one call.
const MOST_BLOCKED: usize = 64;

impl Network {
    /// Opens the network of a process, where it has one.
    pub(crate) fn open(child: &mut Child, rules: &Rules) -> Result<Self, CallError> {
        let blocked: Arc<Mutex<Vec<Blocked>>> = Arc::default();
        let told = Arc::clone(&blocked);
        let proxy = child.take_network().map(|listener| {
            let report = move |attempt: Attempt| note(&told, &attempt);
            let resolver = SystemResolver::default();
            Running::in_background(listener, rules.clone(), resolver, Limits::DEFAULT, report)
        });
        let proxy = proxy.transpose().map_err(|error| {
            CallError::new(Kind::Unavailable, format!("failed to start the proxy: {error}"))
        })?;
        Ok(Self { blocked, proxy })
    }

    /// What was refused since the last time.
    pub(crate) fn take_blocked(&self) -> Vec<Blocked> {
        std::mem::take(&mut *self.blocked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Closes it, and says what was refused.
    pub(crate) fn close(mut self) -> Vec<Blocked> {
        drop(self.proxy.take());
        self.take_blocked()
    }
}

/// Remembers an attempt that was refused.
pub(crate) fn note(blocked: &Mutex<Vec<Blocked>>, attempt: &Attempt) {
    let Stage::Ended { outcome: Outcome::Refused(refusal), .. } = &attempt.stage else { return };
    let one = Blocked { asked: attempt.asked.clone(), why: *refusal };
    let mut blocked = blocked.lock().unwrap_or_else(PoisonError::into_inner);
    if blocked.len() < MOST_BLOCKED && !blocked.contains(&one) {
        blocked.push(one);
    }
}

/// The host and the port of a URL. No more of it is told in an error: the rest may hold a secret.
pub(crate) fn place_of(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

/// Why a process was not started.
pub(crate) fn not_started(error: &SpawnError) -> CallError {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let message = format!("{error}{}", cause.unwrap_or_default());
    CallError::new(Kind::Unavailable, message)
}
