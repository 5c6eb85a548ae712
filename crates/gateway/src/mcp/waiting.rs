//! Calls that wait here for answers which their clients bring with their next request.

use std::collections::HashMap;
use std::time::Duration;

use host::{Made, Refused};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::client::Question;
use super::places::Places;
use crate::undertaking::Undertaking;

/// How long a call waits for answers.
const PATIENCE: Duration = Duration::from_mins(10);

/// How many calls wait at a time, and how many of one client.
const MOST: usize = 1000;
const MOST_OF_ONE: usize = 100;

/// How many questions of one call wait to be handed over.
const MOST_QUESTIONS: usize = 16;

/// A call that runs beside the requests of its client.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) call: Undertaking,
    pub(crate) questions: Questions,
}

/// What a call asks its client.
#[derive(Debug)]
pub(crate) struct Questions {
    later: mpsc::Sender<Question>,
    coming: mpsc::Receiver<Question>,
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
    /// Waits until it ends or asks something.
    pub(crate) async fn next(&mut self) -> Came {
        tokio::select! {
            biased;
            made = &mut self.call => match made {
                Ok(made) => Came::Done(Box::new(made)),
                Err(words) => Came::Broke(words),
            },
            () = self.questions.next() => Came::Asks,
        }
    }
}

impl Questions {
    pub(crate) fn new() -> Self {
        let (later, coming) = mpsc::channel(MOST_QUESTIONS);
        Self { later, coming, open: HashMap::new(), asked: 0 }
    }

    /// Where they are handed over.
    pub(crate) fn later(&self) -> mpsc::Sender<Question> {
        self.later.clone()
    }

    /// Waits until something is asked.
    pub(crate) async fn next(&mut self) {
        let mut next = self.coming.recv().await;
        while let Some(question) = next {
            self.take(question);
            next = self.coming.try_recv().ok();
        }
    }

    fn take(&mut self, question: Question) {
        self.asked += 1;
        let Question { method, params, answer } = question;
        let request = json!({ "method": method, "params": params });
        self.open.insert(format!("question-{}", self.asked), Open { request, answer });
    }

    /// What is asked, by name.
    pub(crate) fn open(&self) -> Map<String, Value> {
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
    pub(crate) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }
}

/// Calls that wait. Those that are given up are called off.
#[derive(Debug)]
pub(crate) struct Waiting(Places<Running>);

impl Default for Waiting {
    fn default() -> Self {
        Self(Places::new(MOST, MOST_OF_ONE))
    }
}

impl Waiting {
    /// Keeps a call of a client, under a name of its own; `None` where too many wait.
    pub(crate) fn keep(&self, of: &str, running: Running) -> Option<String> {
        self.0.keep(of, running, |_| false)
    }

    /// The call of a name, which waits no more.
    pub(crate) fn take(&self, name: &str) -> Option<Running> {
        self.0.take(name)
    }

    /// Gives up those that wait too long.
    pub(crate) fn tidy(&self) {
        self.0.take_older(PATIENCE);
    }

    pub(crate) fn clear(&self) {
        self.0.clear();
    }
}
