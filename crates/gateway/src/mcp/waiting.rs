//! Calls that wait here for answers which their clients bring with their next request.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use host::{CancellationToken, Made, Refused};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::client::{Question, lock};
use crate::undertaking::Undertaking;

/// How long a call waits for answers.
const PATIENCE: Duration = Duration::from_mins(10);

/// How many calls wait at a time.
const MOST: usize = 1000;

/// A call that runs beside the requests of its client.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) call: Undertaking,
    pub(crate) questions: mpsc::Receiver<Question>,
    pub(crate) cancel: CancellationToken,
    /// What was asked and is not answered, by the names that the client knows.
    open: HashMap<String, Open>,
    asked: usize,
}

#[derive(Debug)]
struct Open {
    request: Value,
    answer: oneshot::Sender<Result<Value, Refused>>,
}

/// What came of a call.
pub(crate) enum Came {
    /// It ended.
    Done(Box<Made>),
    /// It asks.
    Asks,
    /// It broke.
    Broke(&'static str),
}

impl Running {
    pub(crate) fn new(
        call: Undertaking,
        questions: mpsc::Receiver<Question>,
        cancel: CancellationToken,
    ) -> Self {
        Self { call, questions, cancel, open: HashMap::new(), asked: 0 }
    }

    /// Waits until it ends or asks something.
    pub(crate) async fn next(&mut self) -> Came {
        tokio::select! {
            biased;
            made = &mut self.call => match made {
                Ok(made) => Came::Done(Box::new(made)),
                Err(words) => Came::Broke(words),
            },
            Some(question) = self.questions.recv() => {
                self.take(question);
                while let Ok(question) = self.questions.try_recv() {
                    self.take(question);
                }
                Came::Asks
            }
        }
    }

    fn take(&mut self, question: Question) {
        self.asked += 1;
        let Question { method, params, answer } = question;
        let request = json!({ "method": method, "params": params });
        self.open.insert(format!("question-{}", self.asked), Open { request, answer });
    }

    /// What it asks, by name.
    pub(crate) fn asks(&self) -> Map<String, Value> {
        self.open.iter().map(|(name, open)| (name.clone(), open.request.clone())).collect()
    }

    /// Passes answers on. What was not asked is nobody's.
    pub(crate) fn answer(&mut self, responses: &Map<String, Value>) {
        for (name, response) in responses {
            if let Some(open) = self.open.remove(name) {
                let _ = open.answer.send(Ok(response.clone()));
            }
        }
    }

    /// Whether something is asked.
    pub(crate) fn is_asked(&self) -> bool {
        !self.open.is_empty()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Calls that wait, by names that nobody guesses.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashMap<String, (Instant, Running)>>);

impl Waiting {
    /// Keeps a call, under a name of its own; `None` where too many wait.
    pub(crate) fn keep(&self, running: Running) -> Option<String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let name = format!("{:032x}", u128::from_be_bytes(bytes));
        let mut waiting = lock(&self.0);
        if waiting.len() >= MOST {
            return None;
        }
        waiting.insert(name.clone(), (Instant::now(), running));
        Some(name)
    }

    /// The call of a name, which waits no more.
    pub(crate) fn take(&self, name: &str) -> Option<Running> {
        lock(&self.0).remove(name).map(|(_, running)| running)
    }

    /// Gives up those that wait too long.
    pub(crate) fn tidy(&self) {
        lock(&self.0).retain(|_, (since, _)| since.elapsed() < PATIENCE);
    }

    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}
