//! Requests about what another replica has: a call that waits there, a task that goes on there.
//!
//! Whoever is asked passes the request on by the state that all share, and the answer comes back the same way, sealed like
//! everything that leaves a process. Where the other is gone, so is what it had, and the request is answered like any other
//! about what is not there.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use host::Host;
use ledger::StateError;
use ledger::state::inquiries::Inquiry;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{interval, sleep};

use super::client::{Asked, Caller, Client, Line};
use super::error::{Code, Error};
use super::message::{self, Message};
use super::seal::Binding;
use super::serve::{self, Whole};
use crate::gateway::Gateway;

/// How often a replica looks whether it is asked something.
const LOOK: Duration = Duration::from_millis(100);

/// How soon it is looked for the answer, at first and at last.
const FIRST_LOOK: Duration = Duration::from_millis(25);
const LAST_LOOK: Duration = Duration::from_millis(250);

/// How often a replica says that it works on something.
const BEAT: Duration = Duration::from_secs(1);

/// How long it may say nothing before it is gone.
const SILENCE: Duration = Duration::from_secs(10);

/// A request, and whose it is.
#[derive(Debug, Serialize, Deserialize)]
struct Passed {
    by: Caller,
    message: Value,
}

/// What an inquiry is bound to, on its way there or back.
fn binding(inquiry: &str, way: &str) -> Binding {
    Binding::of(&["inquiry", inquiry, way])
}

const THERE: &str = "there";
const BACK: &str = "back";

/// Has a request answered by the replica that has what it is about; nothing where that is this one, or gone.
pub(crate) async fn pass_on(
    gateway: &Gateway,
    asked: &Asked,
    method: &str,
    params: &Value,
) -> Option<Result<String, Error>> {
    let brought = params["taskId"].as_str().or(params["requestState"].as_str())?;
    let replica = gateway.seal.elsewhere(brought)?;
    let by = asked.client.caller();
    let message =
        json!({ "jsonrpc": "2.0", "id": asked.id.to_value(), "method": method, "params": params });
    Box::pin(ask(gateway, &replica, Passed { by, message })).await.transpose()
}

async fn ask(gateway: &Gateway, replica: &str, passed: Passed) -> Result<Option<String>, Error> {
    let host = gateway.shelf.host();
    let Some(shared) = host.records().state.shared() else { return Ok(None) };
    let mut bytes = [0; 16];
    let no_randomness = || internal("there is no randomness");
    getrandom::fill(&mut bytes).map_err(|_| no_randomness())?;
    let id = format!("{:032x}", u128::from_be_bytes(bytes));
    let request = gateway.seal.close_text(passed, &binding(&id, THERE));
    let inquiry = Inquiry { request: request.ok_or_else(no_randomness)?, id };
    let left = Left { host: host.clone(), id: inquiry.id.clone() };
    let failed = |error: StateError| internal(&host::records::whole(&error));
    shared.leave_inquiry(replica, &inquiry, host::records::now()).await.map_err(failed)?;
    let (mut beats, mut since, mut pause) = (0, Instant::now(), FIRST_LOOK);
    loop {
        sleep(pause).await;
        pause = (pause * 2).min(LAST_LOOK);
        // What cannot be looked at now is looked at again.
        let heard = shared.hear(&left.id).await.unwrap_or_default();
        if let Some(answer) = &heard.answer {
            let answer = gateway.seal.open_text(answer, &binding(&left.id, BACK));
            let garbled = || Err(internal("what another replica answered cannot be read"));
            return answer.unwrap_or_else(garbled).map(Some);
        }
        if heard.beats > beats {
            (beats, since) = (heard.beats, Instant::now());
        } else if since.elapsed() > SILENCE {
            return Ok(None);
        }
    }
}

/// An inquiry that somebody waits for. It is taken away when nobody does any more.
struct Left {
    host: Host,
    id: String,
}

impl Drop for Left {
    fn drop(&mut self) {
        // Without a runtime it stays, until somebody takes away what is old.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (host, id) = (self.host.clone(), std::mem::take(&mut self.id));
        runtime.spawn(async move {
            if let Some(shared) = host.records().state.shared() {
                let _ = shared.forget_inquiry(&id).await;
            }
        });
    }
}

/// Answers what other replicas are asked about what this one has, for as long as it is there.
pub(crate) async fn serve(gateway: Weak<Gateway>) {
    loop {
        sleep(LOOK).await;
        let Some(gateway) = gateway.upgrade() else { return };
        let host = gateway.shelf.host();
        let (Some(own), Some(shared)) = (gateway.seal.own(), host.records().state.shared()) else {
            return;
        };
        if !gateway.seal.has_handed_out() {
            continue;
        }
        // What cannot be had now is had the next time.
        for inquiry in shared.take_inquiries(own).await.unwrap_or_default() {
            tokio::spawn(run(Arc::clone(&gateway), inquiry));
        }
    }
}

/// Answers one of them. It ends where nobody waits for it any more.
async fn run(gateway: Arc<Gateway>, inquiry: Inquiry) {
    let Inquiry { id, request } = inquiry;
    // What none of the replicas has left is not answered.
    let Some(passed) = gateway.seal.open_text(&request, &binding(&id, THERE)) else { return };
    let host = gateway.shelf.host();
    let Some(shared) = host.records().state.shared() else { return };
    let mut answering = Box::pin(answered(&gateway, passed));
    let mut beats = interval(BEAT);
    let answer = loop {
        tokio::select! {
            answer = &mut answering => break answer,
            _ = beats.tick() => if let Ok(false) = shared.beat(&id).await {
                return;
            },
        }
    };
    if let Some(text) = gateway.seal.close_text(answer, &binding(&id, BACK)) {
        let _ = shared.answer_inquiry(&id, &text).await;
    }
}

async fn answered(gateway: &Arc<Gateway>, passed: Passed) -> Result<String, Error> {
    let Passed { by, message } = passed;
    let text = message.to_string();
    let Ok(Message::Request(request)) = message::parse(&text) else {
        return Err(internal("what another replica asks is no request"));
    };
    let client = Arc::new(Client::new(by));
    let taken = Whole::of(&request)?.take_up(&client)?;
    // What would be told before the answer has no way back.
    let (line, _) = Line::new();
    let answer = Box::pin(serve::answer(gateway, &client, taken, &line)).await;
    answer.unwrap_or_else(|| Err(serve::called_off()))
}

fn internal(words: &str) -> Error {
    Error::new(Code::Internal, words)
}
