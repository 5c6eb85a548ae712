//! A server that is spoken with: many calls at a time, each within its time.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox::Launcher;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::error::Elapsed;
use tokio::time::{timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use vault::Redactor;

use super::answer::{self, Declared};
use super::era::{Era, Eras};
use super::process::{Order, Process};
use super::remote::Line;
use super::session::stdio::Wire;
use super::session::{AskError, Claim, Client, Opening, Session, Told, ToolCall};
use super::watching::Watched;
use crate::blocked::Blocked;
use crate::call::{Output, Peer, Progress, Resumed, TraceContext};
use crate::error::{CallError, Kind};
use crate::limit::too_late;
use crate::run::said::Hearing;
use crate::surface::Surface;

/// How many calls one server works on at a time.
const AT_A_TIME: usize = 64;

/// How many more may wait for it.
const MOST_WAITING: usize = 1024;

/// How many tools of one server are read.
const MOST_TOOLS: usize = 4096;

/// How many pages its list of tools may have.
const MOST_PAGES: usize = 256;

/// How many bytes its list of tools may have, over all pages.
const LONGEST_LIST: usize = 16 << 20;

/// How long what a server on the network offered is taken for what it offers.
const CURRENT: Duration = Duration::from_mins(1);

/// How long a process may keep silent about its era.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked before a server serves anybody.
const LIST: &str = "tools/list";

/// How often it is looked whether somebody is still asked.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A server that is spoken with.
#[derive(Debug)]
pub(super) struct Server {
    session: Session,
    body: Body,
    slots: Semaphore,
    waiting: AtomicUsize,
    /// Where it is asked nothing more than what it was asked already.
    pub(super) retired: CancellationToken,
    /// Whether it has answered anything that it was asked.
    has_served: AtomicBool,
    used_at: Mutex<Instant>,
    /// The resources that somebody wants to be told of.
    pub(super) watched: Watched,
    /// What it offered when it was last asked.
    offered: tokio::sync::Mutex<Option<Offered>>,
}

/// What a server offered.
#[derive(Debug)]
struct Offered {
    surface: Surface,
    /// When it was asked.
    at: Instant,
    /// How many changes it had told of before.
    changes: u64,
}

/// What is behind a server.
#[derive(Debug)]
enum Body {
    /// A process of ours.
    Process(Arc<Process>),
    /// Somebody on the network.
    Remote {
        /// What is sent there.
        line: Line,
        /// The host and the port.
        place: String,
    },
}

/// One call.
pub(super) struct Request<'r> {
    pub(super) tool: &'r str,
    pub(super) arguments: &'r Map<String, Value>,
    pub(super) declared: Declared,
    pub(super) progress: Option<Arc<dyn Progress>>,
    pub(super) peer: Option<Arc<dyn Peer>>,
    pub(super) resumed: Option<Resumed>,
    pub(super) context: Option<TraceContext>,
}

impl Server {
    /// A server on the network that a conversation was begun with.
    pub(super) fn remote(session: Session, line: Line, place: String) -> Self {
        Self::new(session, Body::Remote { line, place })
    }

    fn new(session: Session, body: Body) -> Self {
        Self {
            session,
            body,
            slots: Semaphore::new(AT_A_TIME),
            waiting: AtomicUsize::new(0),
            retired: CancellationToken::new(),
            has_served: AtomicBool::new(false),
            used_at: Mutex::new(Instant::now()),
            watched: Watched::default(),
            offered: tokio::sync::Mutex::default(),
        }
    }

    /// Starts a process and begins to speak with it. One that cannot be spoken with as was tried first is
    /// started anew for another way.
    pub(super) async fn start(
        launcher: &Launcher,
        order: &Order,
        (key, client): (&str, &Client),
        eras: &dyn Eras,
        until: Instant,
    ) -> Result<Self, CallError> {
        let mut opening = eras.known(key).await.map_or(Opening::Ask, Opening::Known);
        let mut is_first = true;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let patience = (opening == Opening::Ask).then(|| PATIENCE.min(left / 3));
            let (process, mut wire) = spawn(launcher, order, patience).await?;
            let lane = wire.take_lane();
            let opening_it = Session::open(wire, process.health(), opening, client);
            let opened = timeout_at(until.into(), opening_it).await;
            let error = match opened {
                Ok(Ok(session)) => {
                    eras.remember(key, Some(session.era())).await;
                    let mut session = session.by(lane, client);
                    session.listen();
                    return Ok(Self::new(session, Body::Process(process)));
                }
                Ok(Err(error)) => error,
                Err(_) => {
                    process.kill();
                    let error = too_late("the server had not greeted");
                    return Err(process.with_words(error, &process.said().beginning()));
                }
            };
            eras.remember(key, None).await;
            opening = match opening {
                // What was remembered may be of an older release.
                Opening::Known(_) if is_first => Opening::Ask,
                // It was only slow, and knows nothing but what it was asked first.
                Opening::Ask if process.health().kept_silent() => Opening::Known(Era::Stateless),
                // It could not bear the question.
                Opening::Ask if !matches!(error, AskError::Refused { .. }) => {
                    Opening::Known(Era::Handshake)
                }
                Opening::Known(_) | Opening::Ask => {
                    let heard = process.said().beginning();
                    return Err(why(error, &process, &heard, "initialize").await);
                }
            };
            is_first = false;
        }
    }

    /// Whether it may be asked once more.
    pub(super) fn is_well(&self) -> bool {
        !self.retired.is_cancelled() && !self.session.is_closed()
    }

    /// Whether it has answered anything that it was asked.
    pub(super) fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Acquire)
    }

    /// Takes it up for somebody: see [`Session::claim`].
    pub(super) fn claim(&self, peer: &dyn Peer, asks: bool) -> Option<Claim> {
        self.session.claim(peer, asks)
    }

    /// How long nobody has asked it anything; `None` while somebody waits.
    pub(super) fn idle(&self) -> Option<Duration> {
        let is_free = self.slots.available_permits() == AT_A_TIME
            && self.waiting.load(Ordering::Acquire) == 0;
        let used_at = self.used_at.lock().unwrap_or_else(PoisonError::into_inner);
        is_free.then(|| used_at.elapsed())
    }

    /// What it tried to reach since the last time.
    pub(super) fn take_blocked(&self) -> Vec<Blocked> {
        match &self.body {
            Body::Process(process) => process.take_blocked(),
            Body::Remote { line, .. } => line.take_blocked(),
        }
    }

    /// Where it is on the network.
    fn place(&self) -> Option<&str> {
        match &self.body {
            Body::Process(_) => None,
            Body::Remote { place, .. } => Some(place),
        }
    }

    fn process(&self) -> Option<&Arc<Process>> {
        match &self.body {
            Body::Process(process) => Some(process),
            Body::Remote { .. } => None,
        }
    }

    /// Calls a tool. Where somebody is spoken with, what it said comes along in its own words.
    pub(super) async fn call(
        &self,
        request: Request<'_>,
        until: Instant,
    ) -> (Result<Output, CallError>, Option<Value>) {
        let Request { tool, arguments, declared, progress, peer, resumed, context } = request;
        let told = Told { progress, peer: peer.clone(), context };
        let resumed = resumed.as_ref();
        let call = ToolCall {
            name: tool,
            arguments,
            input_responses: resumed.map(|one| &one.responses),
            request_state: resumed.and_then(|one| one.state.as_deref()),
        };
        let asking = pin!(self.session.call(&call, told));
        let mut said = None;
        let read = |answer: Value| {
            said = peer.as_ref().map(|_| answer.clone());
            answer::read(answer, declared)
        };
        let answer = self.within(asking, read, tool, peer.as_deref(), until).await;
        (answer, said)
    }

    /// Asks it for something that is no call of a tool.
    pub(super) async fn request(
        &self,
        method: &str,
        params: Value,
        told: Told,
        until: Instant,
    ) -> Result<Value, CallError> {
        let peer = told.peer.clone();
        let asking = pin!(self.session.request(method, params, told));
        self.within(asking, Ok, method, peer.as_deref(), until).await
    }

    /// What it said of itself when it greeted.
    pub(super) fn greeting(&self) -> Value {
        self.session.greeting()
    }

    /// Refuses it where it offers something else than was approved. It is asked once, and again when it says that its
    /// tools are others. One on the network may become another without a word, so it is asked again after a while.
    pub(super) async fn check_surface(
        &self,
        approved: &Surface,
        redactors: &[Redactor; 2],
        until: Instant,
    ) -> Result<(), CallError> {
        let Ok(mut offered) = timeout_at(until.into(), self.offered.lock()).await else {
            return Err(too_late("the server had not listed its tools"));
        };
        let changes = self.session.changes();
        let is_current = |last: &&Offered| {
            last.changes == changes && (self.process().is_some() || last.at.elapsed() < CURRENT)
        };
        if let Some(last) = offered.as_ref().filter(is_current) {
            return approved.check(&last.surface);
        }
        let at = Instant::now();
        let surface = Box::pin(self.surface(redactors, until)).await?;
        let checked = approved.check(&surface);
        *offered = Some(Offered { surface, at, changes });
        checked
    }

    /// What it offers now, without secrets.
    pub(super) async fn surface(
        &self,
        redactors: &[Redactor; 2],
        until: Instant,
    ) -> Result<Surface, CallError> {
        let mut tools = self.tools(until).await?;
        let redactors = redactors.clone();
        let reading = tokio::task::spawn_blocking(move || {
            for tool in &mut tools {
                for redactor in &redactors {
                    redactor.json(tool);
                }
            }
            Surface::of(&tools)
        });
        reading.await.unwrap_or_else(|error| Err(not_read(&error)))
    }

    /// Its tools, page by page.
    async fn tools(&self, until: Instant) -> Result<Vec<Value>, CallError> {
        let all = async {
            let (mut tools, mut length, mut cursor) = (Vec::new(), 0, None);
            for _ in 0..MOST_PAGES {
                let (page, next) = self.session.tools(cursor).await?;
                length += page.iter().map(|tool| tool.to_string().len()).sum::<usize>();
                if length > LONGEST_LIST {
                    return Err(AskError::Odd(format!(
                        "it lists more than {} MiB of tools",
                        LONGEST_LIST >> 20
                    )));
                }
                tools.extend(page);
                if tools.len() > MOST_TOOLS {
                    break;
                }
                if next.is_none() {
                    return Ok(tools);
                }
                cursor = next;
            }
            Err(AskError::Odd("it lists too many tools".to_owned()))
        };
        self.within(pin!(all), Ok, LIST, None, until).await
    }

    /// Waits for a turn, then for an answer, and reads it.
    async fn within<T, U>(
        &self,
        asking: Pin<&mut impl Future<Output = Result<T, AskError>>>,
        read: impl FnOnce(T) -> Result<U, CallError>,
        tool: &str,
        peer: Option<&dyn Peer>,
        until: Instant,
    ) -> Result<U, CallError> {
        let _turn = self.turn(until).await?;
        let heard = self.process().map(|process| (process, process.said().begin()));
        let asked_at = Instant::now();
        let answered = within_time(asking, peer, until).await;
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if let (Ok(Ok(_) | Err(AskError::Refused { .. })), Some((_, heard))) = (&answered, &heard) {
            heard.end();
        }
        let with_words = |error| match &heard {
            Some((process, heard)) => process.with_words(error, heard),
            None => error,
        };
        match answered {
            Ok(Ok(answer)) => {
                if tool != LIST {
                    self.has_served.store(true, Ordering::Release);
                }
                read(answer).map_err(with_words)
            }
            Ok(Err(error)) => {
                if !matches!(error, AskError::Refused { .. }) {
                    self.retired.cancel();
                }
                Err(match &heard {
                    Some((process, heard)) => Box::pin(why(error, process, heard, tool)).await,
                    None => answer::not_answered(error, tool, self.place()),
                })
            }
            Err(_) => {
                self.retire_if_silent(asked_at);
                Err(with_words(too_late("the tool had not answered")))
            }
        }
    }

    /// One that said nothing to anybody meanwhile is not asked again; who still waits for it may.
    fn retire_if_silent(&self, asked_at: Instant) {
        let was_silent = self.process().is_some_and(|one| one.health().answered_at() < asked_at);
        if was_silent {
            self.retired.cancel();
        }
    }

    async fn turn(&self, until: Instant) -> Result<SemaphorePermit<'_>, CallError> {
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let _waits = Waits(&self.waiting);
        if before >= MOST_WAITING {
            return Err(CallError::new(Kind::Unavailable, "too many calls wait for this server"));
        }
        match timeout_at(until.into(), self.slots.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(too_late("it waited for its turn")),
        }
    }
}

/// Waits for an answer; as long as its user is asked something, its time stands still.
async fn within_time<T>(
    mut asking: Pin<&mut impl Future<Output = T>>,
    peer: Option<&dyn Peer>,
    until: Instant,
) -> Result<T, Elapsed> {
    let waited = || peer.map(Peer::waited).unwrap_or_default();
    loop {
        let before = waited();
        match timeout_at((until + before).into(), &mut asking).await {
            Err(late) if waited() <= before => return Err(late),
            Err(_) => {}
            Ok(answer) => return Ok(answer),
        }
        if let Ok(answer) = timeout(LOOK_AGAIN, &mut asking).await {
            return Ok(answer);
        }
    }
}

/// A thread that read what a server offers is gone.
pub(super) fn not_read(error: &tokio::task::JoinError) -> CallError {
    let message = format!("the reading of its tools broke off: {error}");
    CallError::new(Kind::Unavailable, message)
}

/// A place in the queue.
struct Waits<'w>(&'w AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Starts a process on a thread that may block.
async fn spawn(
    launcher: &Launcher,
    order: &Order,
    patience: Option<Duration>,
) -> Result<(Arc<Process>, Wire), CallError> {
    let (launcher, order) = (launcher.clone(), order.clone());
    let started = tokio::task::spawn_blocking(move || Process::start(&launcher, &order, patience));
    let (process, wire) = started.await.unwrap_or_else(|error| {
        Err(CallError::new(Kind::Unavailable, format!("the start broke off: {error}")))
    })?;
    Ok((Arc::new(process), wire))
}

/// Why a process gave no answer.
async fn why(error: AskError, process: &Arc<Process>, heard: &Hearing, tool: &str) -> CallError {
    match error {
        AskError::Closed | AskError::Wire(_) => {
            let (gone, words) = (Arc::clone(process), heard.clone());
            let told = tokio::task::spawn_blocking(move || gone.why_gone(&words)).await;
            told.unwrap_or_else(|_| answer::not_answered(error, tool, None))
        }
        error => {
            if process.health().fault().is_some() {
                process.kill();
            }
            process.with_words(answer::not_answered(error, tool, None), heard)
        }
    }
}
