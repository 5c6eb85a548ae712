//! Requests about what another replica has: a call that waits there, a task that goes on there.
//!
//! Whoever is asked passes the request on by the state that all share, and the answer comes back the same way, sealed like
//! everything that leaves a process. Where the other is gone, so is what it had, and the request is answered like any other
//! about what is not there.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use host::Host;
use ledger::StateError;
use ledger::state::inquiries::Inquiry;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{interval, sleep, timeout};

use super::client::{Asked, Caller, Client, Line, lock};
use super::error::{Code, Error};
use super::message::{self, Message};
use super::places::{Places, unguessed};
use super::seal::Binding;
use super::serve::{self, Whole};
use crate::gateway::Gateway;

/// How often a replica looks whether it is asked something, and whether something is left that nobody waits for.
const LOOK: Duration = Duration::from_millis(100);
const TIDY: Duration = Duration::from_mins(1);

/// How soon it is looked for the answer, at first and at last.
const FIRST_LOOK: Duration = Duration::from_millis(25);
const LAST_LOOK: Duration = Duration::from_millis(250);

/// How often a replica says that it works on something, or waits for it.
const BEAT: Duration = Duration::from_secs(1);

/// How long one may say nothing before it is gone, and how long that is remembered of it.
const SILENCE: Duration = Duration::from_secs(10);
const REMEMBERED: Duration = Duration::from_mins(1);

/// How long is waited for a database that is away.
const PATIENCE: Duration = Duration::from_mins(1);

/// How much is asked of others at a time, and how much of it for one client; how much is answered at a time.
const MOST: usize = 64;
const MOST_OF_ONE: usize = 16;
const MOST_ANSWERED: u32 = 64;

/// What others are asked, and what they ask.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    asked: Places<()>,
    /// Replicas that were gone, and when that was found.
    gone: Mutex<HashMap<String, Instant>>,
    /// Room for what is answered.
    room: Arc<Semaphore>,
}

impl Default for Elsewhere {
    fn default() -> Self {
        let room = Arc::new(Semaphore::new(MOST_ANSWERED as usize));
        Self { asked: Places::new(MOST, MOST_OF_ONE), gone: Mutex::default(), room }
    }
}

impl Elsewhere {
    /// Waits until what others asked is answered, for so long; nothing more is taken.
    pub(crate) async fn close(&self, within: Duration) {
        let _ = timeout(within, self.room.acquire_many(MOST_ANSWERED)).await;
        self.room.close();
    }

    fn is_gone(&self, replica: &str) -> bool {
        let mut gone = lock(&self.gone);
        gone.retain(|_, since| since.elapsed() < REMEMBERED);
        gone.contains_key(replica)
    }

    fn note_gone(&self, replica: &str) {
        lock(&self.gone).insert(replica.to_owned(), Instant::now());
    }
}

/// A request, and whose it is.
#[derive(Debug, Serialize, Deserialize)]
struct Passed {
    by: Caller,
    /// As it came: what is in it is read where it is answered.
    message: String,
}

/// What an inquiry is bound to, on its way there or back.
fn binding(inquiry: &str, way: &str) -> Binding {
    Binding::of(&["inquiry", inquiry, way])
}

const THERE: &str = "there";
const BACK: &str = "back";

/// What a request brings that was handed out: a task that it is about, or the state of a call that goes on.
fn brought<'p>(method: &str, params: &'p Value) -> Option<&'p str> {
    let name = match method {
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        "tools/call" | "prompts/get" | "resources/read" => "requestState",
        _ => return None,
    };
    params[name].as_str()
}

/// Has a request answered by the replica that has what it is about; nothing where that is this one, or gone.
pub(crate) async fn pass_on(
    gateway: &Gateway,
    asked: &Asked,
    method: &str,
    params: &Value,
) -> Option<Result<String, Error>> {
    let replica = gateway.seal.elsewhere(brought(method, params)?)?;
    let mut params = params.clone();
    // Where it belongs may have been said beside it.
    for (name, value) in &asked.meta.passed {
        params["_meta"][name] = value.clone();
    }
    let id = asked.id.to_value();
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let passed = Passed { by: asked.client.caller(), message: message.to_string() };
    Box::pin(ask(gateway, &replica, passed)).await.transpose()
}

async fn ask(gateway: &Gateway, replica: &str, passed: Passed) -> Result<Option<String>, Error> {
    let host = gateway.shelf.host();
    let Some(shared) = host.records().state.shared() else { return Ok(None) };
    if gateway.elsewhere.is_gone(replica) {
        return Ok(None);
    }
    let full = || internal("too many requests wait for other replicas; make this one again later");
    let place = gateway.elsewhere.asked.keep(&passed.by.name, (), |()| false).ok_or_else(full)?;
    let _place = Place { all: &gateway.elsewhere.asked, name: place };
    let no_randomness = || internal("there is no randomness");
    let id = unguessed().ok_or_else(no_randomness)?;
    let request = gateway.seal.close_text(passed, &binding(&id, THERE));
    let inquiry = Inquiry { request: request.ok_or_else(no_randomness)?, id };
    let left = Left { host: host.clone(), id: inquiry.id.clone() };
    let failed = |error: &StateError| internal(&host::records::whole(error));
    shared.leave_inquiry(replica, &inquiry).await.map_err(|error| failed(&error))?;
    let began = Instant::now();
    let (mut beats, mut heard_at, mut awaited_at, mut there_at) = (0, began, began, began);
    let mut pause = FIRST_LOOK;
    loop {
        sleep(pause).await;
        pause = (pause * 2).min(LAST_LOOK);
        if awaited_at.elapsed() > BEAT && shared.await_inquiry(&left.id).await.is_ok() {
            awaited_at = Instant::now();
        }
        let heard = match shared.hear(&left.id).await {
            Ok(heard) => heard,
            // While nobody can be heard, nobody is silent.
            Err(error) if there_at.elapsed() > PATIENCE => return Err(failed(&error)),
            Err(_) => {
                heard_at = Instant::now();
                continue;
            }
        };
        there_at = Instant::now();
        if let Some(answer) = &heard.answer {
            let answer = gateway.seal.open_text(answer, &binding(&left.id, BACK));
            let garbled = || Err(internal("what another replica answered cannot be read"));
            return answer.unwrap_or_else(garbled).map(Some);
        }
        if heard.beats > beats {
            (beats, heard_at) = (heard.beats, Instant::now());
        } else if heard_at.elapsed() > SILENCE {
            gateway.elsewhere.note_gone(replica);
            return Ok(None);
        }
    }
}

/// The place of a request that waits for another replica.
struct Place<'g> {
    all: &'g Places<()>,
    name: String,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.all.take(&self.name);
    }
}

/// An inquiry that somebody waits for. It is taken away when nobody does any more.
struct Left {
    host: Host,
    id: String,
}

impl Drop for Left {
    fn drop(&mut self) {
        // Without a runtime it stays, until somebody takes away what nobody waits for.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (host, id) = (self.host.clone(), std::mem::take(&mut self.id));
        runtime.spawn(async move {
            let Some(shared) = host.records().state.shared() else { return };
            until_there(async || shared.forget_inquiry(&id).await).await;
        });
    }
}

/// Does something as soon as the database is there.
async fn until_there<F: Future<Output = Result<(), StateError>>>(act: impl Fn() -> F) {
    let since = Instant::now();
    while act().await.is_err() && since.elapsed() < PATIENCE {
        sleep(BEAT).await;
    }
}

/// Answers what other replicas are asked about what this one has, for as long as it is there.
pub(crate) async fn serve(gateway: Weak<Gateway>) {
    let mut tidied = Instant::now();
    loop {
        sleep(LOOK).await;
        let Some(gateway) = gateway.upgrade() else { return };
        let host = gateway.shelf.host();
        let (Some(own), Some(shared)) = (gateway.seal.own(), host.records().state.shared()) else {
            return;
        };
        if tidied.elapsed() > TIDY {
            tidied = Instant::now();
            let _ = shared.tidy_inquiries().await;
        }
        if !gateway.seal.has_handed_out() || gateway.elsewhere.room.is_closed() {
            continue;
        }
        // What cannot be had now is had the next time.
        for inquiry in shared.take_inquiries(own).await.unwrap_or_default() {
            let room = Arc::clone(&gateway.elsewhere.room);
            let Ok(room) = room.acquire_owned().await else { return };
            let gateway = Arc::clone(&gateway);
            tokio::spawn(async move {
                run(&gateway, inquiry).await;
                drop(room);
            });
        }
    }
}

/// Answers one of them. It ends where nobody waits for it any more.
async fn run(gateway: &Arc<Gateway>, inquiry: Inquiry) {
    let Inquiry { id, request } = inquiry;
    let host = gateway.shelf.host();
    let Some(shared) = host.records().state.shared() else { return };
    let passed = gateway.seal.open_text(&request, &binding(&id, THERE));
    let mut answering = Box::pin(answered(gateway, passed));
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
        until_there(async || shared.answer_inquiry(&id, &text).await).await;
    }
}

/// Answers a request about what is here, and no other: whoever could write into the state has nothing begun by that.
async fn answered(gateway: &Arc<Gateway>, passed: Option<Passed>) -> Result<String, Error> {
    let odd = || internal("what another replica asks cannot be answered here");
    let Passed { by, message } = passed.ok_or_else(odd)?;
    let Ok(Message::Request(request)) = message::parse(&message) else { return Err(odd()) };
    let whole = Whole::of(&request)?;
    let is_here = |text: &str| gateway.seal.is_here(text);
    if !brought(&whole.method, &whole.params).is_some_and(is_here) {
        return Err(odd());
    }
    let client = Arc::new(Client::new(by));
    let taken = whole.take_up(&client)?;
    // What would be told before the answer has no way back.
    let (line, _) = Line::new();
    let answer = Box::pin(serve::answered(gateway, &client, taken, &line)).await;
    answer.unwrap_or_else(|| Err(serve::called_off()))
}

fn internal(words: &str) -> Error {
    Error::new(Code::Internal, words)
}
