//! The short way to the tools of a server behind two pipes: a call goes out as text, and its answer comes back as the server wrote it,
//! past the library, which would read it into types of its own and write it out again.
//!
//! What a server says without being asked is heard here too, before the answers that come after it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rmcp::model::{NumberOrString, ProgressToken};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::AskError;
use super::face::Ears;
use super::health::Health;
use super::line::Fault;
use super::stdio::Outgoing;
use super::told::Told;

/// Where our own numbers begin; the library counts from zero.
const FIRST: i64 = 1 << 30;

/// The short way to a server.
#[derive(Debug)]
pub(in crate::run::mcp) struct Lane {
    outgoing: Outgoing,
    answers: Arc<Answers>,
    next: AtomicI64,
}

/// Who waits for which answer. Whoever reads what the server says brings them.
#[derive(Debug)]
pub(super) struct Answers {
    /// Nothing where no answer will come any more.
    waiting: Mutex<Option<HashMap<i64, oneshot::Sender<Answer>>>>,
    ears: OnceLock<Ears>,
}

type Answer = Result<Value, AskError>;

/// A request, as it is written.
#[derive(Serialize)]
struct Written<'w, P> {
    jsonrpc: &'static str,
    id: i64,
    method: &'w str,
    params: Params<'w, P>,
}

#[derive(Serialize)]
struct Params<'w, P> {
    #[serde(flatten)]
    own: &'w P,
    #[serde(rename = "_meta", skip_serializing_if = "Meta::is_empty")]
    meta: Meta<'w>,
}

/// What is said beside the parameters: what the era wants said goes before what others would have passed on.
struct Meta<'w> {
    passed: Map<String, Value>,
    context: &'w Map<String, Value>,
    progress: Option<i64>,
}

impl Meta<'_> {
    fn is_empty(&self) -> bool {
        self.passed.is_empty() && self.context.is_empty() && self.progress.is_none()
    }
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let progress = self.progress.map(|id| (PROGRESS, id));
        let is_passed = |name: &String| {
            !self.context.contains_key(name) && (name != PROGRESS || progress.is_none())
        };
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in
            self.passed.iter().filter(|(name, _)| is_passed(name)).chain(self.context)
        {
            map.serialize_entry(name, value)?;
        }
        if let Some((name, id)) = progress {
            map.serialize_entry(name, &id)?;
        }
        map.end()
    }
}

const PROGRESS: &str = "progressToken";

/// A message of a server, as far as it can be for us.
#[derive(Deserialize)]
struct Heard<'h> {
    jsonrpc: &'h str,
    id: Option<i64>,
    method: Option<&'h str>,
    #[serde(default)]
    params: Value,
    result: Option<Value>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl Lane {
    pub(super) fn new(outgoing: Outgoing, answers: Arc<Answers>) -> Arc<Self> {
        Arc::new(Self { outgoing, answers, next: AtomicI64::new(FIRST) })
    }

    /// From now on somebody is told what the server says without being asked.
    pub(super) fn listen(&self, ears: &Ears) {
        let _ = self.answers.ears.set(ears.clone());
    }

    /// Whether no answer will come any more.
    pub(super) fn is_closed(&self) -> bool {
        self.answers.lock().is_none()
    }

    /// Asks the server. When nobody waits for the answer any more, it is told so.
    pub(super) async fn ask(
        self: &Arc<Self>,
        (method, own): (&str, &impl Serialize),
        context: &Map<String, Value>,
        (ears, told): (&Ears, Told),
    ) -> Answer {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let progress = told.progress.is_some().then_some(id);
        let params = Params { own, meta: Meta { passed: told.meta(), context, progress } };
        let written = Written { jsonrpc: "2.0", id, method, params };
        let text = line(&written).map_err(|error| AskError::Odd(error.to_string()))?;
        let listening = ears.listeners.add(&ProgressToken(NumberOrString::Number(id)), told);
        let (sender, mut answer) = oneshot::channel();
        self.answers.lock().as_mut().ok_or(AskError::Closed)?.insert(id, sender);
        let mut unanswered = Unanswered { lane: self, id: Some(id) };
        let written = match self.outgoing.try_send(&text) {
            Ok(false) => tokio::select! {
                written = Box::pin(self.outgoing.send(text)) => written,
                // A server that broke reads no more of it.
                early = &mut answer => {
                    unanswered.id = None;
                    let early = early.unwrap_or(Err(AskError::Closed));
                    listening.note(&early);
                    return early;
                }
            },
            written => written.map(drop),
        };
        let answered = match written {
            Ok(()) => answer.await.unwrap_or(Err(AskError::Closed)),
            Err(error) => Err(super::of_wire(&error)),
        };
        unanswered.id = None;
        listening.note(&answered);
        answered
    }
}

impl Answers {
    pub(super) fn new() -> Arc<Self> {
        let waiting = Mutex::new(Some(HashMap::new()));
        Arc::new(Self { waiting, ears: OnceLock::new() })
    }

    /// Takes a message where it is for us: an answer that somebody waits for, or something that somebody is told.
    pub(super) fn take(&self, message: &[u8], health: &Health) -> Result<bool, Fault> {
        let heard = match message.first() {
            Some(b'{') => serde_json::from_slice::<Heard<'_>>(message).ok(),
            _ => None,
        };
        let Some(heard) = heard.filter(|heard| heard.jsonrpc == "2.0") else { return Ok(false) };
        match heard {
            Heard { id: None, method: Some(method), params, .. } => {
                let is_told = self.ears.get().is_some_and(|ears| ears.hear(method, params));
                if is_told {
                    health.overhear(message.len() + 1)?;
                }
                Ok(is_told)
            }
            Heard { id: Some(id), method: None, result, error, .. } => {
                let answer = match (result, error) {
                    (Some(result), None) => Ok(result),
                    (None, Some(Refusal { code, message, data })) => {
                        Err(AskError::Refused { code, message, data })
                    }
                    _ => return Ok(false),
                };
                let waiting = self.lock().as_mut().and_then(|waiting| waiting.remove(&id));
                let Some(waiting) = waiting else { return Ok(false) };
                health.answered();
                // Who does not wait any more has told the server so.
                let _ = waiting.send(answer);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// No answer will come any more.
    pub(super) fn close(&self) {
        self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<i64, oneshot::Sender<Answer>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is waited for. When nobody does any more, the server is told.
struct Unanswered<'u> {
    lane: &'u Arc<Lane>,
    id: Option<i64>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        if let Some(waiting) = self.lane.answers.lock().as_mut() {
            waiting.remove(&id);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let lane = Arc::clone(self.lane);
        runtime.spawn(async move {
            let params = json!({ "requestId": id, "reason": super::UNAWAITED });
            let method = "notifications/cancelled";
            let told = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            if let Ok(text) = line(&told) {
                let _ = lane.outgoing.send(text).await;
            }
        });
    }
}

/// A message as a line.
pub(super) fn line(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(message)?;
    text.push(b'\n');
    Ok(text)
}
