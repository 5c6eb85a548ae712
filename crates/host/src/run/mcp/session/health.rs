//! How a server is doing, for those who do not hold its wire: what it was asked, what it asks of us, and how
//! much it says that nobody asked for.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use tokio_util::sync::CancellationToken;

use super::line::{Fault, Line, Message, Tally};

/// How many questions of a server may wait for our answer at a time: twice as many as it is asked.
const MOST_QUESTIONS: usize = 128;

/// How a server is doing.
#[derive(Debug)]
pub(in crate::run::mcp) struct Health {
    condition: Mutex<Condition>,
    /// Something is wrong with it.
    is_broken: CancellationToken,
}

#[derive(Debug)]
struct Condition {
    /// What it was asked and did not answer yet.
    asked: HashSet<RequestId>,
    /// What it asks and was not answered yet. Each takes memory, and over HTTP a connection.
    questions: HashSet<RequestId>,
    tally: Tally,
    answered_at: Instant,
    fault: Option<Fault>,
    kept_silent: bool,
}

impl Health {
    /// A server that may say so many bytes that nobody asked for.
    pub(super) fn new(most: u64) -> Arc<Self> {
        let condition = Condition {
            asked: HashSet::new(),
            questions: HashSet::new(),
            tally: Tally::new(most),
            answered_at: Instant::now(),
            fault: None,
            kept_silent: false,
        };
        Arc::new(Self { condition: Mutex::new(condition), is_broken: CancellationToken::new() })
    }

    /// What is wrong with it.
    pub(in crate::run::mcp) fn fault(&self) -> Option<Fault> {
        self.lock().fault.clone()
    }

    /// Waits until something is wrong with it.
    pub(super) async fn broken(&self) {
        self.is_broken.cancelled().await;
    }

    /// When it last answered anything, or began.
    pub(in crate::run::mcp) fn answered_at(&self) -> Instant {
        self.lock().answered_at
    }

    /// Whether it did not say of which era it is.
    pub(in crate::run::mcp) fn kept_silent(&self) -> bool {
        self.lock().kept_silent
    }

    /// It does not say of which era it is.
    pub(super) fn keeps_silent(&self) {
        self.lock().kept_silent = true;
    }

    /// It is about to be told something. What is returned is dropped when it was.
    pub(super) fn tell(self: &Arc<Self>, message: &TxJsonRpcMessage<RoleClient>) -> Telling {
        let mut condition = self.lock();
        let mut answers = None;
        match message {
            JsonRpcMessage::Request(request) => {
                condition.asked.insert(request.id.clone());
            }
            JsonRpcMessage::Notification(one) => {
                if let ClientNotification::CancelledNotification(cancelled) = &one.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    condition.asked.remove(id);
                }
            }
            JsonRpcMessage::Response(response) => answers = Some(response.id.clone()),
            JsonRpcMessage::Error(error) => answers.clone_from(&error.id),
        }
        Telling { health: Arc::clone(self), answers }
    }

    /// It said something, of so many bytes.
    pub(super) fn hear(&self, length: usize, line: &Line) -> Result<(), Fault> {
        let mut condition = self.lock();
        let Condition { tally, asked, .. } = &mut *condition;
        let counted = tally.count(length, line, asked);
        if counted == Ok(true) {
            condition.answered_at = Instant::now();
        }
        drop(condition);
        self.noting(counted.map(drop))
    }

    /// It answered something that it was asked past the library.
    pub(super) fn answered(&self) {
        let mut condition = self.lock();
        condition.tally.begin_anew();
        condition.answered_at = Instant::now();
    }

    /// It said so many bytes on standard error.
    pub(in crate::run::mcp) fn overhear(&self, length: usize) -> Result<(), Fault> {
        let counted = self.lock().tally.overhear(length);
        self.noting(counted)
    }

    /// A message of it is about to be worked on.
    pub(super) fn take(&self, message: &Message) -> Result<(), Fault> {
        let mut condition = self.lock();
        let questions = &mut condition.questions;
        let taken = match message {
            JsonRpcMessage::Request(request) => {
                if !questions.insert(request.id.clone()) {
                    Err(Fault::Garbled("it asks two things under one id"))
                } else if questions.len() > MOST_QUESTIONS {
                    Err(Fault::Garbled("it asks faster than it is answered"))
                } else {
                    Ok(())
                }
            }
            JsonRpcMessage::Notification(one) => {
                if let ServerNotification::CancelledNotification(cancelled) = &one.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    questions.remove(id);
                }
                Ok(())
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Ok(()),
        };
        drop(condition);
        self.noting(taken)
    }

    /// Its wire failed, which is a fault of its own only where it said too much.
    pub(super) fn lost(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::FileTooLarge {
            let _ = self.noting(Err::<(), _>(Fault::TooMuch));
        }
    }

    /// Notes what is wrong with it.
    pub(super) fn noting<T>(&self, outcome: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(fault) = &outcome {
            self.lock().fault.get_or_insert_with(|| fault.clone());
            self.is_broken.cancel();
        }
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, Condition> {
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that a server is being told.
#[derive(Debug)]
pub(super) struct Telling {
    health: Arc<Health>,
    /// The question that it answers.
    answers: Option<RequestId>,
}

impl Drop for Telling {
    fn drop(&mut self) {
        if let Some(id) = &self.answers {
            self.health.lock().questions.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::understand;
    use super::*;

    fn question(number: usize) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}"#);
        match understand(text.as_bytes()) {
            Ok(Line::Messages(mut messages)) => messages.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn answer(number: i64) -> TxJsonRpcMessage<RoleClient> {
        let nothing = rmcp::model::ClientResult::empty(());
        TxJsonRpcMessage::<RoleClient>::response(nothing, RequestId::Number(number))
    }

    #[test]
    fn a_server_may_ask_as_much_as_it_is_answered() {
        let health = Health::new(u64::MAX);
        for number in 0..10_000 {
            assert_eq!(health.take(&question(number)), Ok(()));
            drop(health.tell(&answer(number.try_into().unwrap())));
        }
        let mut taken = (0..).map(|number| health.take(&question(number)));
        assert_eq!(taken.position(|taken| taken.is_err()), Some(MOST_QUESTIONS));
        assert!(matches!(health.fault(), Some(Fault::Garbled(_))));
        assert!(health.is_broken.is_cancelled());
    }

    #[test]
    fn two_questions_have_two_ids() {
        let health = Health::new(u64::MAX);
        assert_eq!(health.take(&question(1)), Ok(()));
        assert!(matches!(health.take(&question(1)), Err(Fault::Garbled(_))));
    }
}
