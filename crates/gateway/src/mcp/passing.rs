//! Requests that are passed on to a hosted server, and what it asks meanwhile.

use std::sync::Arc;

use host::{CallError, Kind, Peer, Replied};
use serde_json::{Map, Value};

use super::client::Asked;
use super::error::{Code, Error};
use super::hosted::{Server, Voice, of_package};
use super::revision::Revision;
use super::rounds::{self, Answers, broken, not_ours, wanted};
use super::seal::{Binding, State};
use super::waiting::{Came, Questions, Running};
use crate::gateway::Gateway;

/// What is asked in the middle of these, a client of the newer era is told with the answer. Of all others it knows no such answer.
const ASKABLE: [&str; 2] = ["prompts/get", "resources/read"];

/// Everything that a request is passed on with.
pub(crate) struct Passing<'p> {
    pub(crate) gateway: &'p Arc<Gateway>,
    pub(crate) asked: &'p Asked,
    pub(crate) voice: Voice,
    pub(crate) server: Server,
}

impl Passing<'_> {
    /// Asks the server, and again with what its client answers. What it says in the end is written as it is told.
    pub(crate) async fn pass(
        &self,
        method: &str,
        mut params: Value,
        written: fn(Value, Revision) -> String,
    ) -> Result<String, Error> {
        let answers = Answers::of(&mut params);
        if let Some(all) = params.as_object_mut() {
            for own in ["_meta", "inputResponses", "requestState"] {
                all.remove(own);
            }
        }
        let (who, view) = (&self.asked.client.name, self.asked.client.view.name());
        let package = &self.server.package.id;
        let binding = Binding::of(&[who, &view, method, package, &params.to_string()]);
        let opened = match &answers.state {
            Some(state) => self.gateway.seal.open(state, &binding).ok_or_else(not_ours)?,
            None => State::Server(None),
        };
        let said = match opened {
            State::Waits(name) => {
                let responses = answers.responses.unwrap_or_default();
                self.follow(&binding, self.gateway.requests.again(&name, &responses)?).await?
            }
            State::Server(state) => {
                bring(&mut params, answers.responses, state);
                if self.asked.revision.is_stateless() {
                    self.begin(&binding, method, params).await?
                } else {
                    self.in_rounds(method, params).await?
                }
            }
            _ => return Err(not_ours()),
        };
        Ok(match said {
            Said::Whole(answer) => written(answer, self.asked.revision),
            Said::Asks(told) => told.to_string(),
        })
    }

    /// For a client that brings answers with its next request.
    async fn begin(&self, binding: &Binding, method: &str, params: Value) -> Result<Said, Error> {
        let questions = Questions::new();
        let mut voice = self.voice.clone();
        if ASKABLE.contains(&method) {
            voice = voice.asking_later(self.asked, questions.later());
        }
        let call = voice.begin(&self.server, method, params, &self.asked.cancel);
        self.follow(binding, Running { call, questions }).await
    }

    /// Waits for what comes of one that runs beside.
    async fn follow(
        &self,
        binding: &Binding,
        mut running: Running<Result<Replied, CallError>>,
    ) -> Result<Said, Error> {
        let (requests, state) = match running.next().await {
            Came::Done(answer) => {
                let answer = answer.map_err(|error| of_call(&error))?.answer;
                match wanted(&answer) {
                    Some(wanted) => wanted,
                    None => return whole(answer),
                }
            }
            Came::Asks => self.gateway.requests.hold(&self.asked.client.name, running)?,
            Came::Broke(words) => return Err(broken(words)),
        };
        rounds::input_required(self.gateway, binding, requests, state).map(Said::Asks)
    }

    /// For a client that is asked meanwhile.
    async fn in_rounds(&self, method: &str, mut params: Value) -> Result<Said, Error> {
        let asker = self.asked.asker(None);
        for _ in 0..rounds::MOST {
            let asked = self.voice.ask(&self.server, method, params.clone(), &self.asked.cancel);
            let answer = asked.await.map_err(|error| of_call(&error))?.answer;
            let Some((requests, state)) = wanted(&answer) else { return whole(answer) };
            let State::Server(state) = state else { return Err(not_ours()) };
            let mut responses = Map::new();
            for (name, mut question) in requests {
                let params = question["params"].take();
                let method = question["method"].as_str().unwrap_or_default();
                let answered = asker.ask(method, params).await;
                let refused = |one: host::Refused| Error::new(Code::Said(one.code), one.message);
                responses.insert(name, answered.map_err(refused)?);
            }
            bring(&mut params, Some(responses), state);
        }
        Err(rounds::too_many())
    }
}

/// What is told of a request.
enum Said {
    /// What the server says in the end.
    Whole(Value),
    /// That its client has to make it again.
    Asks(Value),
}

/// What a server says in the end.
fn whole(answer: Value) -> Result<Said, Error> {
    if answer["resultType"] == "input_required" {
        return Err(Error::new(Code::Internal, "the server wants to be asked again, with nothing"));
    }
    Ok(Said::Whole(answer))
}

/// Has a request bring what was asked for.
fn bring(params: &mut Value, responses: Option<Map<String, Value>>, state: Option<String>) {
    let Some(all) = params.as_object_mut() else { return };
    for (name, brought) in
        [("inputResponses", responses.map(Value::Object)), ("requestState", state.map(Value::from))]
    {
        match brought {
            Some(brought) => all.insert(name.to_owned(), brought),
            None => all.remove(name),
        };
    }
}

/// Asks the server of a package for something in its own words.
pub(crate) async fn pass_to(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    package: &str,
    method: &str,
    mut params: Value,
) -> Result<Value, Error> {
    let stock = gateway.stock().await;
    let server = of_package(&stock, &asked.client.view, package);
    let gone = || Error::new(Code::BadParameters, "the server is not there any more");
    let server = server.ok_or_else(gone)?;
    if let Some(all) = params.as_object_mut() {
        all.remove("_meta");
    }
    let answer = Voice::of(&stock, asked).ask(&server, method, params, &asked.cancel).await;
    answer.map(|replied| replied.answer).map_err(|error| of_call(&error))
}

/// An error of a server as its client is told it.
pub(crate) fn of_call(error: &CallError) -> Error {
    Error::of_server(error).unwrap_or_else(|| {
        let code = match &error.kind {
            Kind::BadInput | Kind::Unknown => Code::BadParameters,
            _ => Code::Internal,
        };
        Error::new(code, error.message.clone())
    })
}
