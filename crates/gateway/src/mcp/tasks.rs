//! Calls that go on after their request was answered, for clients that know the extension for tasks.
//!
//! A call that takes long becomes a task of ours; one that its server makes a task of stays the server's, and what is asked
//! about it is passed on, also where it was one of ours before. Either is known by a sealed name, which says whose it is and which no
//! other client can use. What a call asks of its client, its server, or the owner, the task asks until it is answered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::CancellationToken;
use ledger::Time;
use manifest::model::Entry;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::client::{Asked, lock};
use super::error::{Code, Error};
use super::places::Places;
use super::revision::key;
use super::seal::{Binding, State};
use super::serve::missing;
use super::tools::{Ended, Making};
use super::waiting::Running;
use super::{passing, result};
use crate::gateway::Gateway;

/// How long a call may take before it becomes a task.
pub(crate) const LONG: Duration = Duration::from_secs(5);

/// How long what came of a task is kept.
const KEPT: Duration = Duration::from_hours(1);

/// How often a client should ask.
const POLL_MS: u64 = 1_000;

/// How many tasks there are at a time, and how many of one client.
const MOST: usize = 1000;
const MOST_OF_ONE: usize = 100;

/// How many answers of a client wait to be passed on.
const ANSWERS: usize = 16;

/// The tasks of ours. Those that are over make room for others.
#[derive(Debug)]
pub(crate) struct Tasks(Places<Arc<Task>>);

impl Default for Tasks {
    fn default() -> Self {
        Self(Places::new(MOST, MOST_OF_ONE))
    }
}

/// A task of ours.
#[derive(Debug)]
struct Task {
    /// The package that is called.
    package: String,
    created: Time,
    status: Mutex<(Time, Status)>,
    answers: mpsc::Sender<Map<String, Value>>,
    cancel: CancellationToken,
}

/// How a task is doing.
#[derive(Clone, Debug)]
enum Status {
    Working,
    Asks(Map<String, Value>),
    /// It goes on as a task of its server, which calls it so.
    Passed(String),
    /// So it did, and has ended there, or was called off.
    Past(String),
    Completed(Value),
    Failed(Error),
    Cancelled,
}

impl Tasks {
    /// Forgets what nobody asked for in time.
    pub(crate) fn tidy(&self) {
        self.0.take_older(KEPT).iter().for_each(|task| task.cancel.cancel());
    }

    pub(crate) fn clear(&self) {
        self.0.clear().iter().for_each(|task| task.cancel.cancel());
    }
}

impl Status {
    fn is_over(&self) -> bool {
        match self {
            Self::Past(_) | Self::Completed(_) | Self::Failed(_) | Self::Cancelled => true,
            Self::Working | Self::Asks(_) | Self::Passed(_) => false,
        }
    }
}

impl Task {
    /// Says how it is doing; `false` where it is over, which it stays.
    fn set(&self, status: Status) -> bool {
        let mut now = lock(&self.status);
        let is_open = !now.1.is_over();
        if is_open {
            *now = (host::records::now(), status);
        }
        is_open
    }

    /// What its server calls it, where it goes on as a task of that one.
    fn theirs(&self) -> Option<String> {
        match &lock(&self.status).1 {
            Status::Passed(theirs) | Status::Past(theirs) => Some(theirs.clone()),
            _ => None,
        }
    }

    /// Notes what its server says to what it was asked about it.
    fn heard(&self, theirs: String, method: &str, told: &Value) {
        let status = told["status"].as_str();
        let has_ended = matches!(status, Some("completed" | "failed" | "cancelled"));
        if has_ended || method == "tasks/cancel" {
            self.set(Status::Past(theirs));
        }
    }

    /// Whether nothing comes of it any more.
    fn is_over(&self) -> bool {
        lock(&self.status).1.is_over()
    }

    fn to_value(&self, name: &str) -> Value {
        let (updated, status) = lock(&self.status).clone();
        let word = match &status {
            Status::Working | Status::Passed(_) | Status::Past(_) => "working",
            Status::Asks(_) => "input_required",
            Status::Completed(_) => "completed",
            Status::Failed(_) => "failed",
            Status::Cancelled => "cancelled",
        };
        let ttl = u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX);
        let mut told = json!({
            "taskId": name,
            "status": word,
            "createdAt": self.created.to_string(),
            "lastUpdatedAt": updated.to_string(),
            "ttlMs": ttl,
            "pollIntervalMs": POLL_MS,
        });
        match status {
            Status::Asks(requests) => told["inputRequests"] = Value::Object(requests),
            Status::Completed(result) => told["result"] = result,
            Status::Failed(error) => {
                told["error"] = error.to_value();
                told["statusMessage"] = error.message.into();
            }
            Status::Working | Status::Passed(_) | Status::Past(_) | Status::Cancelled => {}
        }
        told
    }
}

/// A task that there is a place for.
pub(crate) struct Opened {
    /// As its client knows it.
    name: String,
    task: Arc<Task>,
    answered: mpsc::Receiver<Map<String, Value>>,
}

/// Makes a place for a task, where there is one.
pub(crate) fn open(making: &Making<'_>) -> Result<Option<Opened>, Error> {
    let (gateway, asked) = (making.gateway, making.asked);
    let (answers, answered) = mpsc::channel(ANSWERS);
    let now = host::records::now();
    let status = Mutex::new((now, Status::Working));
    let (package, cancel) = (making.offer.package.id.clone(), asked.cancel.clone());
    let task = Arc::new(Task { package, created: now, status, answers, cancel });
    let kept = gateway.tasks.0.keep(&asked.client.name, Arc::clone(&task), |task| task.is_over());
    let Some(key) = kept else { return Ok(None) };
    let name = seal(gateway, asked, State::Task(key))?;
    Ok(Some(Opened { name, task, answered }))
}

/// Makes a task of a call that runs.
pub(crate) fn begin(making: &Making<'_>, running: Running, opened: Opened) -> String {
    let Opened { name, task, mut answered } = opened;
    let mut told = task.to_value(&name);
    told["resultType"] = "task".into();
    let (gateway, asked) = (Arc::clone(making.gateway), making.asked.clone());
    let (stock, offer) = (Arc::clone(&making.stock), Arc::clone(&making.offer));
    let (input, looked_away) = (making.input.clone(), making.looked_away);
    let resumed = making.resumed.clone();
    tokio::spawn(async move {
        let (gateway, asked) = (&gateway, &asked);
        let mut making = Making { gateway, asked, stock, offer, input, looked_away, resumed };
        let Running { call, mut questions } = running;
        let later = questions.later();
        let mut ending = Box::pin(making.in_rounds(call, Some(&later)));
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut ending => break ended,
                () = task.cancel.cancelled() => return,
                () = questions.next() => {}
                Some(responses) = answered.recv() => questions.answer(&responses),
            }
            let is_asked = questions.are_open();
            task.set(if is_asked { Status::Asks(questions.open()) } else { Status::Working });
        };
        task.set(match ended {
            Ok(Ended::Whole(value)) => Status::Completed(result::in_era(value, asked.revision)),
            Ok(Ended::Task(said)) => Status::Passed(named(&said).to_owned()),
            Err(error) => Status::Failed(error.of_newer_era()),
        });
    });
    told.to_string()
}

/// A task that a server made of a call, under our name.
pub(crate) fn of_server(making: &Making<'_>, mut said: Value) -> Result<String, Error> {
    let (package, theirs) = (making.offer.package.id.clone(), named(&said).to_owned());
    let implementations = &making.offer.tool.package.implementations;
    let is_beyond = implementations.iter().all(|one| matches!(one.entry, Entry::McpHttp { .. }));
    let state =
        if is_beyond { State::TaskBeyond(package, theirs) } else { State::TaskOf(package, theirs) };
    said["taskId"] = seal(making.gateway, making.asked, state)?.into();
    Ok(said.to_string())
}

/// What a server calls its task.
fn named(said: &Value) -> &str {
    said["taskId"].as_str().unwrap_or_default()
}

fn binding(asked: &Asked) -> Binding {
    Binding::of(&["task", &asked.client.name, &asked.client.view.name()])
}

fn seal(gateway: &Gateway, asked: &Asked, state: State) -> Result<String, Error> {
    let sealed = gateway.seal.close(state, &binding(asked));
    sealed.ok_or_else(|| Error::new(Code::Internal, "there is no randomness"))
}

/// `tasks/get`, `tasks/update` and `tasks/cancel`.
pub(crate) async fn answer(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    method: &str,
    mut params: Value,
) -> Result<String, Error> {
    if !asked.knows_tasks() {
        let needed = json!({ "requiredCapabilities": { "extensions": { key::TASKS: {} } } });
        return Err(Error::new(Code::Capability, "the client does not know tasks").with(needed));
    }
    let name = params["taskId"].as_str().ok_or_else(|| missing("taskId"))?.to_owned();
    let unknown = || {
        Error::new(Code::BadParameters, "there is no such task, or the process that had it is gone")
    };
    // What another process has was asked of that one before, and it is gone.
    if gateway.seal.elsewhere(&name).is_some() {
        return Err(unknown());
    }
    match gateway.seal.open(&name, &binding(asked)).ok_or_else(unknown)? {
        State::TaskOf(package, theirs) | State::TaskBeyond(package, theirs) => {
            let told = pass(gateway, asked, &package, theirs, method, params).await?;
            Ok(result::whole(told, asked.revision))
        }
        State::Task(key) => {
            let task = gateway.tasks.0.get(&key).ok_or_else(unknown)?;
            let told = match (task.theirs(), method) {
                (Some(theirs), _) => {
                    let passing =
                        pass(gateway, asked, &task.package, theirs.clone(), method, params);
                    let told = passing.await?;
                    task.heard(theirs, method, &told);
                    told
                }
                (None, "tasks/update") => {
                    if let Some(Value::Object(responses)) =
                        params.get_mut("inputResponses").map(Value::take)
                    {
                        let _ = task.answers.send(responses).await;
                    }
                    json!({})
                }
                (None, "tasks/cancel") => {
                    if task.set(Status::Cancelled) {
                        task.cancel.cancel();
                    }
                    json!({})
                }
                (None, _) => task.to_value(&name),
            };
            Ok(result::whole(told, asked.revision))
        }
        State::Waits(_) | State::Server(_) | State::Ticket(..) => Err(unknown()),
    }
}

/// Asks a server about its task; what it says of that is told under our name.
async fn pass(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    package: &str,
    theirs: String,
    method: &str,
    mut params: Value,
) -> Result<Value, Error> {
    let name = std::mem::replace(&mut params["taskId"], theirs.into());
    let mut told = passing::pass_to(gateway, asked, package, method, params).await?;
    if told.get("taskId").is_some() {
        told["taskId"] = name;
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        let now = host::records::now();
        let status = Mutex::new((now, Status::Working));
        let (answers, cancel) = (mpsc::channel(1).0, CancellationToken::new());
        Task { package: "p".to_owned(), created: now, status, answers, cancel }
    }

    #[test]
    fn what_is_over_stays_as_it_is() {
        for (last, word) in
            [(Status::Completed(json!({})), "completed"), (Status::Cancelled, "cancelled")]
        {
            let task = task();
            assert!(task.set(last));
            assert!(!task.set(Status::Cancelled) && !task.set(Status::Working));
            assert_eq!(task.to_value("t")["status"], word);
        }
    }

    #[test]
    fn a_task_that_has_ended_where_its_server_has_it_makes_room_and_is_asked_for_there() {
        let working = ("tasks/get", json!({ "status": "working" }));
        for (method, told) in [
            ("tasks/get", json!({ "status": "completed" })),
            ("tasks/get", json!({ "status": "failed" })),
            ("tasks/cancel", json!({})),
        ] {
            let task = task();
            task.set(Status::Passed("theirs".to_owned()));
            task.heard("theirs".to_owned(), working.0, &working.1);
            assert!(!task.is_over());
            task.heard("theirs".to_owned(), method, &told);
            assert!(task.is_over(), "{method} {told}");
            assert_eq!(task.theirs().as_deref(), Some("theirs"));
        }
    }
}
