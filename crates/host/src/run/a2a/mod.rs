//! A message to an agent, and the task it makes of it.
//!
//! | module | what it is |
//! |---|---|
//! | `part` | a piece of a message or of an artifact |
//! | `version` | the versions of the protocol, and their words |
//! | `task` | what an agent answers with |
//! | `line` | requests to one agent |
//! | `card` | what an agent says about itself |
//! | `answer` | from what it made to a result |

mod answer;
mod card;
mod line;
mod part;
mod task;
mod version;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use egress::http::{HeaderName, Url};
use manifest::model::Action;
use tokio_util::sync::CancellationToken;

use super::http::Web;
use crate::call::{Output, TraceContext};
use crate::error::CallError;
use crate::limit::too_late;
use crate::plan::a2a::Agent;
use card::Peer;
use line::{AskError, Line, fresh_id, odd};
use part::Part;
use task::{Said, State, Task};
use version::{Version, of_task};

/// Where a token is told.
const AUTHORIZATION: HeaderName = HeaderName::from_static("authorization");

/// How long to wait before a task is looked at for the first time; then each time twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The longest wait between two looks.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// How often in a row a look may fail that may well succeed next time.
const MOST_STUMBLES: u32 = 3;

/// How long calling a task off may take, after the time of the call.
const GRACE: Duration = Duration::from_secs(3);

/// How long a message that is being sent may take once the call is called off: until its answer comes nobody
/// knows the task to call off.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// How many agents are remembered.
const MOST_KNOWN: usize = 1024;

/// What all calls of agents share: connections, and what the agents' cards said.
#[derive(Debug)]
pub(crate) struct Agents {
    web: Arc<Web>,
    known: Mutex<HashMap<Url, Peer>>,
}

impl Agents {
    /// Nobody was asked yet.
    pub(crate) fn new(web: Arc<Web>) -> Arc<Self> {
        Arc::new(Self { web, known: Mutex::default() })
    }

    /// Sends a message, and waits until the task that it becomes has ended. A task that is not waited for
    /// any longer is called off.
    pub(crate) async fn call(
        &self,
        (plan, context): (&Agent, Option<&TraceContext>),
        action: &Action,
        until: Instant,
        called_off: &CancellationToken,
    ) -> Result<Output, CallError> {
        let client = self.web.client(&plan.rules)?;
        let known = self.known().get(&plan.endpoint).cloned();
        let mut peer = match known {
            Some(peer) => peer,
            None => tokio::select! {
                peer = card::fetch(&client, &plan.endpoint, until) => peer?,
                () = called_off.cancelled() => return Err(CallError::called_off()),
            },
        };
        let mut headers = peer.sign_in(plan.secret.as_ref())?;
        // A key that would go there has to give way.
        if let Some(token) = plan.signed() {
            headers.insert(AUTHORIZATION, token);
        }
        if let Some(context) = context {
            context.put_into_head(&mut headers);
        }
        let (endpoint, most) = (plan.endpoint.clone(), plan.most);
        let line = Line { client, endpoint, headers, has_key: plan.has_key(), most };
        let sent = tokio::select! {
            sent = send(&line, &mut peer, plan, until) => sent,
            () = late(called_off) => return Err(CallError::called_off()),
        };
        let said = match sent {
            Ok(said) => said,
            Err(error) => {
                // It may have become another one meanwhile.
                self.known().remove(&plan.endpoint);
                return Err(error);
            }
        };
        self.remember(&plan.endpoint, &peer);
        let is_open = matches!(&said, Said::Task(task) if task.state == State::Open);
        if called_off.is_cancelled() && !is_open {
            return Err(CallError::called_off());
        }
        match said {
            Said::Message(parts) => answer::of_parts(parts, action),
            Said::Task(task) => {
                let task = finish(line, &peer, task, until, called_off).await?;
                answer::of_task(task, action)
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Url, Peer>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, endpoint: &Url, peer: &Peer) {
        let mut known = self.known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(endpoint.clone(), peer.clone());
    }
}

/// Waits until a call is called off, and a moment longer.
async fn late(called_off: &CancellationToken) {
    called_off.cancelled().await;
    tokio::time::sleep(LAST_WAIT).await;
}

/// Sends the message in the agent's version, or else in the other one. What was not understood was not
/// acted on, so nothing is done twice.
async fn send(
    line: &Line,
    peer: &mut Peer,
    plan: &Agent,
    until: Instant,
) -> Result<Said, CallError> {
    let part = Part::of_input(&plan.input, peer.takes);
    let ask = async |peer: &Peer| {
        let message = peer.version.message(&fresh_id()?, &part, peer.tenant.as_deref());
        line.ask(peer.version, peer.version.send(), message, left(until)).await
    };
    let result = match ask(peer).await {
        Err(error) if error.is_about_version() => {
            peer.version = peer.version.other();
            match ask(peer).await {
                Err(error) if error.is_about_version() => return Err(not_understood(error)),
                asked => asked?,
            }
        }
        asked => asked?,
    };
    Said::read(&result).map_err(odd)
}

fn not_understood(error: AskError) -> CallError {
    let mut error = CallError::from(error);
    let (new, old) = (Version::One.send(), Version::ZeroThree.send());
    error.message = format!(
        "the agent takes no message by `{new}` or `{old}`; one that only streams cannot be called"
    );
    error
}

/// Waits until a task has ended, or waits for somebody.
async fn finish(
    line: Line,
    peer: &Peer,
    task: Task,
    until: Instant,
    called_off: &CancellationToken,
) -> Result<Task, CallError> {
    if task.state != State::Open {
        return Ok(task);
    }
    let mut open = Open { line, peer: peer.clone(), task: Some(task.id) };
    let watched = tokio::select! {
        watched = open.watch(until) => watched,
        () = called_off.cancelled() => Err(CallError::called_off()),
    };
    match watched {
        Ok(task) => {
            // It has ended by itself, or its agent waits for somebody.
            open.task = None;
            Ok(task)
        }
        Err(error) => Err(open.call_off(error).await),
    }
}

/// A task that somebody works on. When it is dropped, nobody waits for it, and it is called off.
struct Open {
    line: Line,
    peer: Peer,
    /// Its id, as long as somebody may have to call it off.
    task: Option<String>,
}

impl Open {
    async fn watch(&self, until: Instant) -> Result<Task, CallError> {
        let Some(id) = &self.task else { return Err(odd("a task has no id")) };
        let (version, tenant) = (self.peer.version, self.peer.tenant.as_deref());
        let mut wait = FIRST_WAIT;
        let mut stumbles = 0;
        loop {
            if wait >= left(until) {
                tokio::time::sleep(left(until)).await;
                return Err(too_late("the agent had not finished its task"));
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
            let params = of_task(id, tenant);
            match self.line.ask(version, version.get(), params, left(until)).await {
                Ok(result) => {
                    stumbles = 0;
                    let task = Task::read(&result).map_err(odd)?;
                    if task.id != *id {
                        return Err(odd("it tells of another task than it was asked about"));
                    }
                    if task.state != State::Open {
                        return Ok(task);
                    }
                }
                Err(error) if error.is_transient() && stumbles < MOST_STUMBLES => stumbles += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Calls the task off, and tells in the details whether the agent was heard to agree.
    async fn call_off(mut self, error: CallError) -> CallError {
        let Some(task) = self.task.clone() else { return error };
        let cancelled = cancel(&self.line, &self.peer, &task).await;
        // Only now, because who drops this meanwhile still wants the task to be called off.
        self.task = None;
        error.with("task", task).with("cancelled", cancelled.is_ok())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let (Some(task), Ok(runtime)) = (self.task.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let (line, peer) = (self.line.clone(), self.peer.clone());
        runtime.spawn(async move { cancel(&line, &peer, &task).await });
    }
}

async fn cancel(line: &Line, peer: &Peer, task: &str) -> Result<(), AskError> {
    let params = of_task(task, peer.tenant.as_deref());
    line.ask(peer.version, peer.version.cancel(), params, GRACE).await.map(drop)
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}
