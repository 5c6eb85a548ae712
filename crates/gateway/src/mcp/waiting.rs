//! Calls, and other requests to servers, that wait here for answers which their clients bring with their next request.

use std::collections::HashMap;
use std::time::Duration;

use host::{Made, Refused};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::client::Question;
use super::error::{Code, Error};
use super::places::Places;
use super::seal::State;
use crate::undertaking::Undertaking;

/// How long a call waits for answers.
const PATIENCE: Duration = Duration::from_mins(10);

/// How many calls wait at a time, and how many of one client.
const MOST: usize = 1000;
const MOST_OF_ONE: usize = 100;

/// How many questions of one call wait to be handed over.
const MOST_QUESTIONS: usize = 16;

/// What runs beside the requests of its client: a call, unless it is said.
#[derive(Debug)]
pub(crate) struct Running<T: Send + 'static = Made> {
    pub(crate) call: Undertaking<T>,
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

/// What came of it.
pub(crate) enum Came<T> {
    /// It ended.
    Done(Box<T>),
    /// It asks.
    Asks,
    /// It broke.
    Broke(&'static str),
}

impl<T: Send + 'static> Running<T> {
    /// Waits until it ends or asks something; not where it asks something already.
    pub(crate) async fn next(&mut self) -> Came<T> {
        if self.questions.are_open() {
            return Came::Asks;
        }
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

/// What waits. Whatever is given up is called off.
#[derive(Debug)]
pub(crate) struct Waiting<T: Send + 'static>(Places<Running<T>>);

impl<T: Send + 'static> Default for Waiting<T> {
    fn default() -> Self {
        Self(Places::new(MOST, MOST_OF_ONE))
    }
}

impl<T: Send + 'static> Waiting<T> {
    /// Keeps what asks something until its client answers: what is asked, and what the answers come back with.
    pub(crate) fn hold(
        &self,
        of: &str,
        mut running: Running<T>,
    ) -> Result<(Map<String, Value>, State), Error> {
        running.call.go_on_beside();
        let requests = running.questions.open();
        let full = || Error::new(Code::Internal, "too many calls wait for answers");
        let name = self.0.keep(of, running, |_| false).ok_or_else(full)?;
        Ok((requests, State::Waits(name)))
    }

    /// What waited under a name, and has its answers now.
    pub(crate) fn again(
        &self,
        name: &str,
        responses: &Map<String, Value>,
    ) -> Result<Running<T>, Error> {
        let words = "the call that asked this was given up; make it again";
        let running = self.0.take(name);
        let mut running = running.ok_or_else(|| Error::new(Code::BadParameters, words))?;
        running.questions.answer(responses);
        Ok(running)
    }

    /// Gives up those that wait too long.
    pub(crate) fn tidy(&self) {
        self.0.take_older(PATIENCE);
    }

    pub(crate) fn clear(&self) {
        self.0.clear();
    }
}
