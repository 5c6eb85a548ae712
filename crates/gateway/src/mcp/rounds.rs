//! Requests that are made again, with what was asked for in between: by the client, of what it is told then, and by us, of servers.

use serde_json::{Map, Value, json};

use super::error::{Code, Error};
use super::seal::{Binding, State};
use crate::gateway::Gateway;

/// How often one may be made again with what its client was asked for it.
pub(crate) const MOST: usize = 10;

/// What a client brings that was asked for before.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) responses: Option<Map<String, Value>>,
    pub(crate) state: Option<String>,
}

impl Answers {
    pub(crate) fn of(params: &mut Value) -> Self {
        let responses = match params.get_mut("inputResponses").map(Value::take) {
            Some(Value::Object(responses)) => Some(responses),
            _ => None,
        };
        let state = params.get("requestState").and_then(Value::as_str).map(str::to_owned);
        Self { responses, state }
    }
}

/// Has a client make its request again with what is asked; or only once more, where a server wants nothing else.
pub(crate) fn input_required(
    gateway: &Gateway,
    binding: &Binding,
    requests: Map<String, Value>,
    state: State,
) -> Result<Value, Error> {
    let sealed = gateway.seal.close(state, binding);
    let sealed = sealed.ok_or_else(|| Error::new(Code::Internal, "there is no randomness"))?;
    let mut told = json!({ "resultType": "input_required", "requestState": sealed });
    if !requests.is_empty() {
        told["inputRequests"] = requests.into();
    }
    Ok(told)
}

/// A client brings what it was not handed for this.
pub(crate) fn not_ours() -> Error {
    let words = "`requestState` is none of ours, is for another request, or ran out";
    Error::new(Code::BadParameters, words)
}

/// What is asked has no end.
pub(crate) fn too_many() -> Error {
    Error::new(
        Code::Internal,
        format!("what is asked for this has no end: it was asked {MOST} times"),
    )
}

/// A request that did not come to its end.
pub(crate) fn broken(words: &str) -> Error {
    Error::new(Code::Internal, words)
}

/// What a server wants before it goes on: answers, or only that it is asked again with what it wants back.
pub(crate) fn wanted(said: &Value) -> Option<(Map<String, Value>, State)> {
    if said["resultType"] != "input_required" {
        return None;
    }
    let requests = said["inputRequests"].as_object().cloned().unwrap_or_default();
    let state = said["requestState"].as_str().map(str::to_owned);
    let is_anything = !requests.is_empty() || state.is_some();
    is_anything.then_some((requests, State::Server(state)))
}
