//! A client that is spoken with, and one of its requests while it is worked on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt};
use host::{Advance, CancellationToken, Peer, Progress, Refused, TraceContext};
use policy::{Surface, Who};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::error::{Code, Error};
use super::listen::Subscription;
use super::message::{self, Id};
use super::revision::{Meta, Revision, key};
use super::watching::Watches;
use crate::view::View;
use crate::watch;

/// How many messages wait for a client before what is only told it is left out.
const QUEUE: usize = 256;

/// How many of its requests are worked on at a time.
pub(crate) const AT_A_TIME: usize = 1024;

/// How long a person may take to answer.
const PATIENCE: Duration = Duration::from_mins(10);

/// How many letters are kept of what a client says that it is.
const LONGEST_NAME: usize = 100;

/// What a client can be asked by servers.
const ASKABLE: [&str; 3] = ["elicitation", "sampling", "roots"];

/// Where messages to a client go.
#[derive(Clone, Debug)]
pub(crate) struct Line(mpsc::Sender<String>);

impl Line {
    /// A line, and its other end.
    pub(crate) fn new() -> (Self, mpsc::Receiver<String>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), receiver)
    }

    /// Tells something that may be left out where the client does not keep up.
    pub(crate) fn tell(&self, text: String) {
        let _ = self.0.try_send(text);
    }

    /// Sends something; `false` where nobody is there any more.
    pub(crate) async fn send(&self, text: String) -> bool {
        self.0.send(text).await.is_ok()
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until nobody is there any more.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Who is at the other end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Caller {
    /// Which conversation it is.
    pub session: String,
    /// Who it is, as the owner knows it.
    pub name: String,
    /// Whether that is the name of the token that it showed.
    pub has_token: bool,
    /// What it is shown.
    pub view: View,
    /// Where its tools are called from.
    pub folder: PathBuf,
    /// Whether questions to the owner may be put in it.
    pub asks: bool,
}

/// A client that is spoken with.
pub(crate) struct Client {
    /// Which conversation it is.
    pub(crate) session: String,
    /// Who it is, as the owner knows it.
    pub(crate) name: String,
    /// Whether that is the name of the token that it showed.
    has_token: bool,
    pub(crate) view: View,
    /// Where its tools are called from.
    pub(crate) folder: PathBuf,
    /// Whether questions to the owner may be put in it.
    pub(crate) asks: bool,
    /// What was agreed on when it greeted, in the older era.
    greeting: Mutex<Option<Greeting>>,
    /// Whether it was told then that there are prompts and resources.
    has_servers: AtomicBool,
    /// What it was asked and has not answered.
    questions: Mutex<HashMap<Id, oneshot::Sender<Result<Value, Refused>>>>,
    asked: AtomicU64,
    /// Its requests that are worked on.
    running: Mutex<HashMap<Id, CancellationToken>>,
    /// Calls off whatever is asked later.
    gone: CancellationToken,
    /// The resources that it wants to be told about, in the older era.
    pub(crate) watches: Arc<Watches>,
    /// Where it is told what is no part of a request.
    outlet: Mutex<Option<Line>>,
    /// What it listens for, in the newer era.
    pub(crate) subscriptions: Mutex<Vec<Weak<Subscription>>>,
}

/// What was agreed on with a client of the older era.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    pub(crate) revision: Revision,
    pub(crate) capabilities: Map<String, Value>,
    /// From which level on it is told what servers log.
    pub(crate) log_level: Option<String>,
    /// What it says that it is.
    pub(crate) says: Option<String>,
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(caller: Caller) -> Self {
        let Caller { session, name, has_token, view, folder, asks } = caller;
        Self {
            session,
            name,
            has_token,
            view,
            folder,
            asks,
            greeting: Mutex::default(),
            has_servers: AtomicBool::new(false),
            questions: Mutex::default(),
            asked: AtomicU64::new(0),
            running: Mutex::default(),
            gone: CancellationToken::new(),
            watches: Arc::default(),
            outlet: Mutex::default(),
            subscriptions: Mutex::default(),
        }
    }

    /// Who it is, for another process that speaks with it for us.
    pub(crate) fn caller(&self) -> Caller {
        let Self { session, name, has_token, view, folder, asks, .. } = self;
        let (session, name) = (session.clone(), name.clone());
        let (view, folder) = (view.clone(), folder.clone());
        Caller { session, name, has_token: *has_token, view, folder, asks: *asks }
    }

    /// What was agreed on, where it greeted.
    pub(crate) fn greeting(&self) -> Option<Greeting> {
        lock(&self.greeting).clone()
    }

    /// Notes what was agreed on. What it has said since it greeted counts still: that is noted when it comes, and when it is answered.
    pub(crate) fn greet(&self, greeting: Greeting) {
        let mut now = lock(&self.greeting);
        let log_level = now.take().and_then(|noted| noted.log_level);
        *now = Some(Greeting { log_level, ..greeting });
    }

    /// Notes what it is told that there is.
    pub(crate) fn declare(&self, capabilities: &Value) {
        let has_servers = capabilities.get("prompts").is_some();
        self.has_servers.store(has_servers, Ordering::Relaxed);
    }

    /// Whether it was told that there is a list of these.
    pub(crate) fn was_told_of(&self, list: &str) -> bool {
        list == "tools" || self.has_servers.load(Ordering::Relaxed)
    }

    pub(crate) fn log_from(&self, level: &str) {
        if let Some(greeting) = &mut *lock(&self.greeting) {
            greeting.log_level = Some(level.to_owned());
        }
    }

    /// Says where it is told what is no part of a request, from now on.
    pub(crate) fn open_outlet(&self, line: Line) {
        *lock(&self.outlet) = Some(line);
    }

    /// Whether it hears what is no part of a request.
    pub(crate) fn is_heard(&self) -> bool {
        lock(&self.outlet).as_ref().is_some_and(|outlet| !outlet.is_closed())
    }

    /// Tells it something that is no part of a request.
    pub(crate) fn notify(&self, method: &str, params: &Value) {
        if let Some(outlet) = &*lock(&self.outlet) {
            outlet.tell(message::notification(method, params));
        }
    }

    /// Notes a request that is worked on, until what comes back is dropped. Its id must be its own, and there must be room for it.
    pub(crate) fn begin(self: &Arc<Self>, id: &Id) -> Result<Begun, Error> {
        let cancel = CancellationToken::new();
        let mut running = lock(&self.running);
        let is_full = running.len() >= AT_A_TIME;
        match running.entry(id.clone()) {
            Entry::Occupied(_) => {
                let words = "a request of this id is being worked on already";
                return Err(Error::new(Code::BadRequest, words));
            }
            Entry::Vacant(_) if is_full => {
                let words = format!(
                    "too many requests at once: {AT_A_TIME} are being worked on; make this one again when some are answered"
                );
                return Err(Error::new(Code::Internal, words));
            }
            Entry::Vacant(free) => free.insert(cancel.clone()),
        };
        drop(running);
        if self.gone.is_cancelled() {
            cancel.cancel();
        }
        Ok(Begun { client: Arc::clone(self), id: id.clone(), cancel })
    }

    /// Calls off a request.
    pub(crate) fn cancel(&self, id: &Id) {
        if let Some(cancel) = lock(&self.running).get(id) {
            cancel.cancel();
        }
    }

    /// Whether something is worked on for it, or it listens.
    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.running).is_empty() || self.is_heard()
    }

    /// Calls off everything that it has no answer to: it is gone. What became a task goes on.
    pub(crate) fn leave(&self) {
        self.gone.cancel();
        lock(&self.running).values().for_each(CancellationToken::cancel);
        lock(&self.questions).clear();
    }

    /// Passes an answer on to whoever asked; whether anybody did.
    pub(crate) fn answered(&self, id: &Id, answer: Result<&RawValue, &RawValue>) -> bool {
        let Some(waiting) = lock(&self.questions).remove(id) else { return false };
        let answer = match answer {
            Ok(result) => serde_json::from_str(result.get()).map_err(|_| garbled()),
            Err(error) => Err(refused(error)),
        };
        waiting.send(answer).is_ok()
    }

    /// Asks it something, and waits for the answer.
    async fn ask(&self, line: &Line, method: &str, params: &Value) -> Result<Value, Refused> {
        let id = Id::own(self.asked.fetch_add(1, Ordering::Relaxed));
        let (answer, waiting) = oneshot::channel();
        lock(&self.questions).insert(id.clone(), answer);
        let _forget = Forget { client: self, id: &id };
        if !line.send(message::request(&id, method, params)).await {
            return Err(unheard());
        }
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(gone()),
            Err(_) => Err(Refused {
                code: Code::Internal.number(),
                message: "nobody answered in time".to_owned(),
                data: None,
            }),
        }
    }
}

/// A question that is waited for.
struct Forget<'f> {
    client: &'f Client,
    id: &'f Id,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(&self.client.questions).remove(self.id);
    }
}

/// A request that is worked on.
pub(crate) struct Begun {
    client: Arc<Client>,
    id: Id,
    pub(crate) cancel: CancellationToken,
}

impl Drop for Begun {
    fn drop(&mut self) {
        lock(&self.client.running).remove(&self.id);
    }
}

fn gone() -> Refused {
    let message = "the client is gone".to_owned();
    Refused { code: Code::Internal.number(), message, data: None }
}

fn unheard() -> Refused {
    let message = "the client cannot be asked within this request".to_owned();
    Refused { code: Code::Internal.number(), message, data: None }
}

fn garbled() -> Refused {
    let message = "the client's answer cannot be read".to_owned();
    Refused { code: Code::Internal.number(), message, data: None }
}

fn refused(error: &RawValue) -> Refused {
    let said: Value = serde_json::from_str(error.get()).unwrap_or_default();
    Refused {
        code: said["code"].as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(-32603),
        message: said["message"].as_str().unwrap_or("the client refused").to_owned(),
        data: said.get("data").cloned(),
    }
}

/// What is known of a request beside what it asks.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) client: Arc<Client>,
    pub(crate) revision: Revision,
    /// What its client can do.
    pub(crate) capabilities: Map<String, Value>,
    pub(crate) meta: Meta,
    pub(crate) id: Id,
    /// Where messages go that belong to it.
    pub(crate) line: Line,
    pub(crate) cancel: CancellationToken,
}

impl Asked {
    /// As what its calls are known to the policy, and to the owner.
    pub(crate) fn surface(&self) -> Surface {
        let Client { session, name, has_token, .. } = &*self.client;
        let says = match &self.meta.client {
            Some(client) => says(client),
            None => lock(&self.client.greeting).as_ref().and_then(|one| one.says.clone()),
        };
        let who = Who { name: Some(name.clone()), has_token: *has_token, says };
        Surface::Agent { name: "mcp".to_owned(), session: session.clone(), who }
    }

    /// Whether its client knows the extension for tasks.
    pub(crate) fn knows_tasks(&self) -> bool {
        self.capabilities.get("extensions").is_some_and(|all| all.get(key::TASKS).is_some())
    }

    /// Who is told how far it is, where its client wants to know.
    pub(crate) fn progress(&self) -> Option<Arc<dyn Progress>> {
        let token = self.meta.progress.clone()?;
        Some(Arc::new(Told { token, line: self.line.clone(), last: Mutex::default() }))
    }

    /// Where its client says that it belongs among those of others.
    fn context(&self) -> Option<TraceContext> {
        let said = |name: &str| self.meta.passed.get(name).and_then(Value::as_str);
        watch::context(said(TraceContext::PARENT), said(TraceContext::STATE))
    }

    /// What is told of a call that is made for it.
    pub(crate) fn told_of<'t>(&'t self, package: &'t str) -> watch::Told<'t> {
        let session = (!self.revision.is_stateless()).then_some(&*self.client.session);
        let (revision, id) = (self.revision.name(), self.id.text());
        let request = Some(watch::Spoken { revision, session, id });
        watch::Told { package, surface: "mcp", request, context: self.context() }
    }

    /// Whom a server can speak with while it works on this; questions go where they are asked, or are handed over.
    pub(crate) fn asker(&self, later: Option<mpsc::Sender<Question>>) -> Arc<Asker> {
        let askable = self.capabilities.iter().filter(|(name, _)| ASKABLE.contains(&&***name));
        let mut capabilities: Map<String, Value> =
            askable.map(|(name, value)| (name.clone(), value.clone())).collect();
        if self.knows_tasks() {
            capabilities.insert("extensions".to_owned(), json!({ key::TASKS: {} }));
        }
        let level = self.client.greeting().and_then(|greeting| greeting.log_level);
        let passed = self.meta.passed.get(key::LOG_LEVEL).and_then(Value::as_str);
        let mut meta = self.meta.passed.clone();
        // What a client wrote amiss is passed on to nobody.
        for name in [TraceContext::PARENT, TraceContext::STATE] {
            meta.shift_remove(name);
        }
        if let Some(context) = self.context() {
            context.put_into_meta(&mut meta);
        }
        if !self.revision.is_stateless() {
            // A server of the newer era says nothing unless it is told from which level on.
            let from = level.clone().unwrap_or_else(|| "info".to_owned());
            meta.insert(key::LOG_LEVEL.to_owned(), from.into());
        }
        let client = Arc::clone(&self.client);
        let number = || NEXT.fetch_add(1, Ordering::Relaxed);
        let named = later.as_ref().map(|_| format!("{} {}", client.session, number()));
        Arc::new(Asker {
            client,
            named,
            capabilities,
            line: self.line.clone(),
            meta,
            log_level: level.or(passed.map(str::to_owned)),
            is_stateless: self.revision.is_stateless(),
            later,
            clock: Mutex::default(),
        })
    }
}

/// Tells a client how far its request is.
struct Told {
    token: Value,
    line: Line,
    last: Mutex<Option<f64>>,
}

impl fmt::Debug for Told {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Told").field("token", &self.token).finish_non_exhaustive()
    }
}

impl Progress for Told {
    fn advanced(&self, advance: &Advance) {
        // The protocol wants it to grow, whatever a server says.
        let mut last = lock(&self.last);
        if last.is_some_and(|last| advance.done <= last) {
            return;
        }
        *last = Some(advance.done);
        let mut params = json!({ "progressToken": self.token, "progress": advance.done });
        if let Some(total) = advance.total {
            params["total"] = total.into();
        }
        if let Some(message) = &advance.message {
            params["message"] = message.clone().into();
        }
        self.line.tell(message::notification("notifications/progress", &params));
    }

    fn recorded(&self, _record: &Value) {}
}

/// A question of a server that its client gets with the answer to its request.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) answer: oneshot::Sender<Result<Value, Refused>>,
}

/// Tells apart those whose questions are handed over.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Whom a server speaks with while it works on a request.
pub(crate) struct Asker {
    client: Arc<Client>,
    /// As whom a server knows it whose answer has to come back for this very request.
    named: Option<String>,
    capabilities: Map<String, Value>,
    line: Line,
    meta: Map<String, Value>,
    log_level: Option<String>,
    is_stateless: bool,
    /// Where questions are handed over; without it the client is asked at once.
    later: Option<mpsc::Sender<Question>>,
    clock: Mutex<Clock>,
}

/// How long somebody was asked.
#[derive(Debug, Default)]
struct Clock {
    before: Duration,
    open: usize,
    since: Option<Instant>,
}

impl fmt::Debug for Asker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Asker").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Asker {
    async fn answer(&self, method: &str, params: Value) -> Result<Value, Refused> {
        let Some(later) = &self.later else {
            return self.client.ask(&self.line, method, &params).await;
        };
        let (answer, waiting) = oneshot::channel();
        let question = Question { method: method.to_owned(), params, answer };
        // Where nobody takes it, there is nobody who could bring an answer.
        later.send(question).await.map_err(|_| unheard())?;
        waiting.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Peer for Asker {
    fn conversation(&self) -> &str {
        &self.client.session
    }

    fn client(&self) -> &str {
        self.named.as_deref().unwrap_or(&self.client.session)
    }

    fn capabilities(&self) -> &Map<String, Value> {
        &self.capabilities
    }

    fn meta(&self) -> Map<String, Value> {
        self.meta.clone()
    }

    fn ask<'p>(&'p self, method: &'p str, params: Value) -> BoxFuture<'p, Result<Value, Refused>> {
        async move {
            let _asking = Asking::begin(&self.clock);
            self.answer(method, params).await
        }
        .boxed()
    }

    fn tell(&self, method: &str, params: Value) {
        // What is logged is told from the level on that was asked for; of the newer era only where one was.
        let is_wanted = match (&self.log_level, self.is_stateless) {
            (None, is_stateless) => !is_stateless,
            (Some(from), _) => {
                severity(params["level"].as_str().unwrap_or("info")) >= severity(from)
            }
        };
        if method != "notifications/message" || is_wanted {
            self.line.tell(message::notification(method, &params));
        }
    }

    fn waited(&self) -> Duration {
        let clock = lock(&self.clock);
        clock.before + clock.since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

/// A question that is open.
struct Asking<'a>(&'a Mutex<Clock>);

impl<'a> Asking<'a> {
    fn begin(clock: &'a Mutex<Clock>) -> Self {
        let mut now = lock(clock);
        now.open += 1;
        now.since.get_or_insert_with(Instant::now);
        drop(now);
        Self(clock)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut now = lock(self.0);
        now.open -= 1;
        if now.open == 0
            && let Some(since) = now.since.take()
        {
            now.before += since.elapsed();
        }
    }
}

/// What a client says that it is: the beginning of its name and version.
pub(crate) fn says(client: &Value) -> Option<String> {
    let name = client["name"].as_str().filter(|name| !name.is_empty())?;
    let words = match client["version"].as_str() {
        Some(version) => format!("{name} {version}"),
        None => name.to_owned(),
    };
    Some(words.chars().take(LONGEST_NAME).collect())
}

/// How grave a level of the log is.
pub(crate) fn severity(level: &str) -> usize {
    LEVELS.iter().position(|known| *known == level).unwrap_or(1)
}

/// The levels of the log, the least grave first.
pub(crate) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
