//! Calls that go on after their request was answered, for clients that know the extension for tasks.
//!
//! A call that takes long becomes a task of ours; one that its server makes a task of stays the server's, and what is asked
//! about it is passed on. Either is known by a sealed name, which says whose it is and which no other client can use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use host::{CancellationToken, Made};
use ledger::Time;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::client::{Asked, lock};
use super::error::{Code, Error};
use super::result;
use super::revision::{Revision, key};
use super::seal::{Binding, State};
use super::serve::missing;
use super::servers;
use super::tools::Making;
use super::waiting::{Came, Running};
use crate::gateway::Gateway;
use crate::refusal;

/// How long a call may take before it becomes a task.
pub(crate) const LONG: Duration = Duration::from_secs(5);

/// How long what came of a task is kept.
const KEPT: Duration = Duration::from_hours(1);

/// How often a client should ask.
const POLL_MS: u64 = 1_000;

/// How many tasks there are at a time.
const MOST: usize = 1000;

/// How many answers of a client wait to be passed on.
const ANSWERS: usize = 16;

/// The tasks of ours, by names that nobody guesses.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Arc<Task>>>);

/// A task of ours.
#[derive(Debug)]
struct Task {
    began: Instant,
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
    Completed(Value),
    Failed(Value),
    Cancelled,
}

impl Tasks {
    /// Forgets what nobody asked for in time.
    pub(crate) fn tidy(&self) {
        lock(&self.0).retain(|_, task| {
            let is_kept = task.began.elapsed() < KEPT;
            if !is_kept {
                task.cancel.cancel();
            }
            is_kept
        });
    }

    pub(crate) fn clear(&self) {
        for (_, task) in lock(&self.0).drain() {
            task.cancel.cancel();
        }
    }
}

impl Task {
    fn set(&self, status: Status) {
        let mut now = lock(&self.status);
        // What was called off stays so.
        if !matches!(now.1, Status::Cancelled) {
            *now = (host::records::now(), status);
        }
    }

    fn to_value(&self, name: &str) -> Value {
        let (updated, status) = lock(&self.status).clone();
        let word = match &status {
            Status::Working => "working",
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
            Status::Failed(error) => told["error"] = error,
            Status::Working | Status::Cancelled => {}
        }
        told
    }
}

/// Makes a task of a call that runs.
pub(crate) fn begin(making: &Making<'_>, mut running: Running) -> Result<String, Error> {
    let full = || Error::new(Code::Internal, "there are too many tasks");
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| full())?;
    let key = format!("{:032x}", u128::from_be_bytes(bytes));
    let (answers, mut answered) = mpsc::channel(ANSWERS);
    let now = host::records::now();
    let task = Arc::new(Task {
        began: Instant::now(),
        created: now,
        status: Mutex::new((now, Status::Working)),
        answers,
        cancel: running.cancel.clone(),
    });
    {
        let mut all = lock(&making.gateway.tasks.0);
        if all.len() >= MOST {
            return Err(full());
        }
        all.insert(key.clone(), Arc::clone(&task));
    }
    let name = seal(making.gateway, making.asked, State::Task(key))?;
    let mut told = task.to_value(&name);
    told["resultType"] = "task".into();
    let (tool, console) = (Arc::clone(&making.offer.tool), making.gateway.console.clone());
    running.call.go_on_beside();
    tokio::spawn(async move {
        loop {
            match running.next().await {
                Came::Done(made) => {
                    task.set(Status::Completed(of_made(*made, &tool, console.as_deref())));
                    return;
                }
                Came::Broke(words) => {
                    task.set(Status::Failed(Error::new(Code::Internal, words).to_value()));
                    return;
                }
                Came::Asks => {}
            }
            while running.is_asked() {
                task.set(Status::Asks(running.asks()));
                tokio::select! {
                    Some(responses) = answered.recv() => running.answer(&responses),
                    () = running.cancel.cancelled() => return,
                }
            }
            task.set(Status::Working);
        }
    });
    Ok(told.to_string())
}

/// What came of a call, as its client would have been told at once.
fn of_made(made: Made, tool: &host::Tool, console: Option<&str>) -> Value {
    let value = match (made.reply, made.said) {
        (Ok(_), Some(said)) => said,
        (Ok(output), None) => result::of_output(output),
        (Err(_), Some(said)) if said["isError"] == true => said,
        (Err(error), _) => refusal::told(&error, tool, console),
    };
    serde_json::from_str(&result::whole(value, Revision::V2026_07_28)).unwrap_or_default()
}

/// A task that a server made of a call, under our name.
pub(crate) fn of_server(making: &Making<'_>, said: &Value) -> Result<String, Error> {
    let theirs = said["taskId"].as_str().unwrap_or_default().to_owned();
    let state = State::TaskOf(making.offer.package.id.clone(), theirs);
    let mut told = said.clone();
    told["taskId"] = seal(making.gateway, making.asked, state)?.into();
    Ok(told.to_string())
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
    let unknown = || Error::new(Code::BadParameters, "there is no such task");
    match gateway.seal.open(&name, &binding(asked)).ok_or_else(unknown)? {
        State::TaskOf(package, theirs) => {
            params["taskId"] = theirs.into();
            let mut told = servers::pass_to(gateway, asked, &package, method, params).await?;
            if told.get("taskId").is_some() {
                told["taskId"] = name.into();
            }
            Ok(result::whole(told, asked.revision))
        }
        State::Task(key) => {
            let task = lock(&gateway.tasks.0).get(&key).cloned().ok_or_else(unknown)?;
            match method {
                "tasks/update" => {
                    if let Some(Value::Object(responses)) =
                        params.get_mut("inputResponses").map(Value::take)
                    {
                        let _ = task.answers.send(responses).await;
                    }
                    Ok(result::whole(json!({}), asked.revision))
                }
                "tasks/cancel" => {
                    let is_over =
                        matches!(lock(&task.status).1, Status::Completed(_) | Status::Failed(_));
                    if !is_over {
                        task.set(Status::Cancelled);
                        task.cancel.cancel();
                    }
                    Ok(result::whole(json!({}), asked.revision))
                }
                _ => Ok(result::whole(task.to_value(&name), asked.revision)),
            }
        }
        State::Waits(_) | State::Server(_) | State::Ticket(_) => Err(unknown()),
    }
}
