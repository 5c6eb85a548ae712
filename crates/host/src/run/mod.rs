//! The ways to run.

pub(crate) mod a2a;
pub(crate) mod engine;
pub(crate) mod http;
pub(crate) mod leash;
pub(crate) mod mcp;
mod oauth;
mod pipe;
pub(crate) mod process;
pub(crate) mod said;
pub(crate) mod signed;
pub(crate) mod tidying;
pub(crate) mod turns;
pub(crate) mod worker;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use egress::attempt::{Attempt, Outcome, Stage};
use egress::http::Url;
use egress::resolve::SystemResolver;
use egress::{Limits, Rules, Running};
use sandbox::{Asked, Child, Obstacle, SpawnError};
use serde_json::Value;

use crate::blocked::{Blocked, Why};
use crate::error::{CallError, Kind};

/// What somebody answered, and what was tried to be reached meanwhile.
pub(crate) struct Answered<T> {
    pub(crate) answer: Result<T, CallError>,
    pub(crate) blocked: Vec<Blocked>,
    /// What a server said, in its own words, where somebody wants them.
    pub(crate) said: Option<Value>,
}

impl<T> From<Result<T, CallError>> for Answered<T> {
    /// What was tried in vain is known by the failure.
    fn from(answer: Result<T, CallError>) -> Self {
        let blocked = answer.as_ref().err().map(Blocked::of).unwrap_or_default();
        Self { answer, blocked, said: None }
    }
}

/// The network of one process: what it asks for goes through us.
#[derive(Debug)]
pub(crate) struct Network {
    blocked: Arc<Mutex<Vec<Blocked>>>,
    proxy: Option<Running>,
    /// Where it has none.
    asked: Option<Asked>,
}

/// How many different refusals are remembered of one call.
const MOST_BLOCKED: usize = 64;

impl Network {
    /// Opens the network of a process, where it has one.
    pub(crate) fn open(child: &mut Child, rules: &Rules) -> Result<Self, CallError> {
        let blocked: Arc<Mutex<Vec<Blocked>>> = Arc::default();
        let told = Arc::clone(&blocked);
        let proxy = child.take_network().map(|ends| {
            let sandbox::Ends { proxy, names, doors } = ends;
            let ends = egress::Ends { proxy, names, doors };
            let report = move |attempt: Attempt| note(&told, &attempt);
            let resolver = SystemResolver::default();
            Running::in_background(ends, rules.clone(), resolver, Limits::DEFAULT, report)
        });
        let proxy = proxy.transpose().map_err(|error| {
            CallError::new(Kind::Unavailable, format!("failed to start the proxy: {error}"))
        })?;
        Ok(Self { blocked, proxy, asked: child.take_asked() })
    }

    /// What was refused since the last time.
    pub(crate) fn take_blocked(&self) -> Vec<Blocked> {
        let asked = self.asked.as_ref().map(Asked::take).unwrap_or_default();
        for attempt in egress::names::refused(&asked) {
            note(&self.blocked, &attempt);
        }
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
    let one = Blocked::host(&*attempt.asked, *refusal);
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
    if let SpawnError::Program(_, cause) = error
        && cause.kind() == io::ErrorKind::ArgumentListTooLong
    {
        let message = "its arguments and variables together are longer than a process can have";
        return CallError::new(Kind::BadInput, message);
    }
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let message = format!("{error}{}", cause.unwrap_or_default());
    let kind = match error {
        SpawnError::BadArgument(_) | SpawnError::BadVariable(_) => Kind::BadInput,
        _ => Kind::Unavailable,
    };
    let told = CallError::new(kind, message);
    if matches!(error, SpawnError::TooWeak { .. }) {
        return told.by("sandbox.level");
    }
    match error.obstacle() {
        Some(obstacle @ Obstacle::Interpreter(name)) if name.starts_with('/') => {
            let hidden = Blocked { asked: name.clone(), why: Why::Hidden };
            told.with("obstacle", obstacle.code()).after(vec![hidden])
        }
        Some(obstacle) => told.with("obstacle", obstacle.code()),
        None => told,
    }
}
