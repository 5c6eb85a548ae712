//! Tools of MCP servers.
//!
//! - [`session`]: a conversation with a server, over any wire; the only part that knows the library
//! - [`process`]: a server that is a process inside the walls
//! - [`remote`], [`registry`]: a server on the network, and where it is
//! - [`era`]: which of its two eras a server is of
//! - [`server`]: many calls at a time to one server, each within its time
//! - [`notice`], [`watching`]: what servers say to nobody in particular, and who wants to be told of which resource
//! - `changed`: servers that offered something else than was approved, for their owner
//! - [`answer`], [`tools`], [`quiet`]: what servers say, as results, actions and progress
//! - `seat`: the places of servers, which wait where theirs fall, and are given up where there are too many
//! - here: the servers that are kept between calls, and for whom each works

mod answer;
mod changed;
pub(crate) mod era;
pub(crate) mod notice;
mod process;
mod quiet;
mod registry;
mod remote;
mod seat;
mod server;
mod session;
mod tools;
pub(crate) mod watching;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use egress::http::{HeaderMap, HeaderName, Url};
use manifest::model::Action;
use sandbox::Launcher;
use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;
use vault::{Redactor, Secret};

pub(crate) use self::answer::Declared;
use self::changed::Changed;
use self::era::Eras;
use self::notice::Board;
use self::process::Order;
use self::quiet::Quiet;
use self::remote::{Line, Target, Way, reach};
use self::seat::{Hired, MOST, Slot, first_to_go, idle};
use self::server::{Request, Server};
use self::session::Client;
pub(crate) use self::session::Told;
use self::watching::{SUBSCRIBE, Watching};
use super::Answered;
use super::tidying::Tidying;
use super::turns::Turns;
use super::worker::{MOST_OF_ONE, Warmth};
use crate::blocked::Blocked;
use crate::call::{Output, Peer, Progress, Resumed, TraceContext};
use crate::error::CallError;
use crate::limit::too_late;
use crate::login::Bearer;
use crate::plan::mcp::{Mcp, Place};
use crate::surface::Surface;

/// How many servers of a kind there are beside one that waits for an answer of somebody else.
const MOST_BESIDE: usize = 8;

/// How long a call is held that nobody starts a server for, so that who calls again and again takes nothing from the others.
const BREATH: Duration = Duration::from_millis(20);

const AUTHORIZATION: HeaderName = HeaderName::from_static("authorization");

/// The servers that are spoken with.
#[derive(Debug)]
pub(crate) struct Servers {
    /// By the package, and by all that makes one of its servers different from another.
    kept: Mutex<HashMap<(String, String), Slot>>,
    eras: Arc<dyn Eras>,
    /// Whose turn it is to have a server for one call alone.
    turns: Turns,
    tidying: Tidying,
    /// The packages that were called for somebody who can be asked, and whether their servers do ask.
    asking: Mutex<HashMap<String, Arc<AtomicBool>>>,
    /// Who is told what servers say to nobody in particular.
    pub(crate) board: Board,
    /// Those that offered something else than was approved when they were last asked.
    pub(crate) changed: Changed,
}

/// How a call is made.
#[derive(Clone)]
pub(crate) struct Terms<'t> {
    /// What the tool is called with.
    pub(crate) arguments: &'t Map<String, Value>,
    pub(crate) warmth: Warmth,
    pub(crate) until: Instant,
    pub(crate) declared: Declared,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    pub(crate) peer: Option<Arc<dyn Peer>>,
    pub(crate) resumed: Option<Resumed>,
    pub(crate) context: Option<TraceContext>,
    /// Knows the secrets that the server is given.
    pub(crate) redactor: Redactor,
}

/// What a server is asked that is no call of a tool.
pub(crate) struct Asked<'a> {
    /// In the words of the protocol, or [`GREETING`].
    pub(crate) method: &'a str,
    pub(crate) params: Value,
    pub(crate) told: Told,
    pub(crate) redactor: &'a Redactor,
    pub(crate) until: Instant,
}

/// What is asked where nothing is but what a server said of itself.
pub const GREETING: &str = "server/discover";

/// What a server said to something that is no call of a tool.
#[derive(Debug)]
pub struct Replied {
    /// In the words of the protocol.
    pub answer: Value,
    /// What it said of itself when it was greeted.
    pub greeting: Value,
    /// Where it was asked to tell of a resource: for as long as this is kept, it does.
    pub watching: Option<Watching>,
}

impl Servers {
    /// A pool whose idle servers end after a while.
    pub(crate) fn new(eras: Arc<dyn Eras>) -> Arc<Self> {
        let (kept, turns, tidying, asking, board, changed) = Default::default();
        Arc::new(Self { kept, eras, turns, tidying, asking, board, changed })
    }

    /// An empty pool with the same eras, whose idle servers end after so long: see [`crate::Host::keeping_idle_for`].
    pub(crate) fn tidied_after(&self, idle: Duration) -> Arc<Self> {
        let (kept, turns, asking, board, changed) = Default::default();
        let (eras, tidying) = (Arc::clone(&self.eras), Tidying::after(idle));
        Arc::new(Self { kept, eras, turns, tidying, asking, board, changed })
    }

    /// Calls a tool of a server, of one that runs or of a new one.
    pub(crate) async fn call(
        self: &Arc<Self>,
        launcher: &Launcher,
        plan: &Mcp,
        terms: Terms<'_>,
    ) -> Answered<Output> {
        let Terms {
            arguments,
            warmth,
            until,
            declared,
            progress,
            peer,
            resumed,
            context,
            redactor,
        } = terms;
        let found = async {
            let turn = self.turn(plan, warmth, until).await?;
            let wanted = (plan, peer.as_deref(), &redactor);
            let server = self.server(launcher, wanted, warmth, until).await?;
            Ok((turn, server))
        };
        let (_turn, server) = match found.await {
            Ok(found) => found,
            Err(error) => return Err(error).into(),
        };
        let redactors = [tokens(plan), redactor];
        let checked = self.check_surface(&server, plan, &redactors, until).await;
        let progress =
            progress.map(|told| -> Arc<dyn Progress> { Arc::new(Quiet { told, redactors }) });
        let tool = &*plan.tool;
        let request = Request { tool, arguments, declared, progress, peer, resumed, context };
        let (answer, said) = match checked {
            Ok(()) => server.call(request, until).await,
            Err(error) => (Err(error), None),
        };
        let mut blocked = answer.as_ref().err().map(Blocked::of).unwrap_or_default();
        blocked.extend(server.take_blocked());
        Answered { answer, blocked, said }
    }

    /// Asks a server for something that is no call of a tool. One that offers other tools than were approved is not asked.
    pub(crate) async fn request(
        self: &Arc<Self>,
        launcher: &Launcher,
        plan: &Mcp,
        asked: &Asked<'_>,
    ) -> Answered<Replied> {
        let Asked { method, params, told, redactor, until } = asked;
        let answer = async {
            let wanted = (plan, told.peer.as_deref(), *redactor);
            let server = self.server(launcher, wanted, Warmth::Warm, *until).await?;
            let redactors = [tokens(plan), (*redactor).clone()];
            self.check_surface(&server, plan, &redactors, *until).await?;
            let mut watching = None;
            let mut answer = match (*method, params["uri"].as_str()) {
                (GREETING, _) => Value::Null,
                (SUBSCRIBE, Some(uri)) => {
                    let begun = Watching::begin(&server, uri, told.clone(), *until).await?;
                    watching = Some(begun);
                    json!({})
                }
                (method, _) => server.request(method, params.clone(), told.clone(), *until).await?,
            };
            let mut greeting = server.greeting();
            for redactor in &redactors {
                redactor.json(&mut answer);
                redactor.json(&mut greeting);
            }
            Ok(Replied { answer, greeting, watching })
        };
        answer.await.into()
    }

    /// Refuses a server that offers something else than is approved of it, and remembers that for its owner.
    async fn check_surface(
        &self,
        server: &Server,
        plan: &Mcp,
        redactors: &[Redactor; 2],
        until: Instant,
    ) -> Result<(), CallError> {
        let Some(approved) = &plan.surface else { return Ok(()) };
        let checked = server.check_surface(approved, redactors, until).await;
        self.changed.note(&plan.owner.package, approved, &checked);
        checked
    }

    /// Who a server is spoken with for.
    fn client(&self, plan: &Mcp, peer: Option<&dyn Peer>) -> Client {
        let capabilities = peer.map(|peer| peer.capabilities().clone()).unwrap_or_default();
        let package = &plan.owner.package;
        Client { capabilities, notices: self.board.of(package), asks: self.asks(package) }
    }

    /// What a server offers.
    pub(crate) async fn list(
        self: &Arc<Self>,
        launcher: &Launcher,
        plan: &Mcp,
        redactor: &Redactor,
        until: Instant,
    ) -> Result<Surface, CallError> {
        let wanted = (plan, None, redactor);
        let server = self.server(launcher, wanted, Warmth::Warm, until).await?;
        server.surface(&[tokens(plan), redactor.clone()], until).await
    }

    /// The address of a server on the network.
    pub(crate) async fn address(plan: &Mcp, until: Instant) -> Result<Option<Url>, CallError> {
        match &*plan.place {
            Place::Process { .. } => Ok(None),
            Place::Url { url, .. } => Ok(Some(url.clone())),
            Place::Registry { url, server, rules } => {
                let line = Line::new(rules)?;
                let named = server.as_deref();
                let found = registry::find(&line, url, named, &plan.tool, until).await?;
                Ok(Some(found.0))
            }
        }
    }

    /// The turn of a call that has a server for itself; the others share one, which has its own bounds.
    async fn turn(
        &self,
        plan: &Mcp,
        warmth: Warmth,
        until: Instant,
    ) -> Result<Option<OwnedSemaphorePermit>, CallError> {
        match warmth {
            Warmth::Warm => Ok(None),
            Warmth::Cold => {
                self.turns.wait(&plan.owner.package, MOST_OF_ONE, until).await.map(Some)
            }
        }
    }

    /// A server for somebody. One that asks somebody else something is left alone, since it would not say whom it asks next; and so is
    /// one that is known to ask while it works for somebody else.
    async fn server(
        self: &Arc<Self>,
        launcher: &Launcher,
        wanted: (&Mcp, Option<&dyn Peer>, &Redactor),
        warmth: Warmth,
        until: Instant,
    ) -> Result<Hired, CallError> {
        let mut beside = 0;
        loop {
            if let Some(hired) = self.server_at(launcher, wanted, beside, warmth, until).await? {
                return Ok(hired);
            }
            beside += 1;
        }
    }

    /// The same, the so manieth of its kind.
    async fn server_at(
        self: &Arc<Self>,
        launcher: &Launcher,
        (plan, peer, redactor): (&Mcp, Option<&dyn Peer>, &Redactor),
        beside: usize,
        warmth: Warmth,
        until: Instant,
    ) -> Result<Option<Hired>, CallError> {
        // What it may ask is told to a server when it is greeted, so who can be asked something else has another.
        let may_ask = match peer.map(Peer::capabilities) {
            Some(capabilities) => serde_json::to_string(capabilities).unwrap_or_default(),
            None => "{}".to_owned(),
        };
        match &*plan.place {
            Place::Process { argv, walls } => {
                let order = || Order::new(argv, walls, plan.longest, redactor.clone());
                let own = plan.key.get_or_init(|| order().key());
                let key = [own, " ", &may_ask];
                let start = async || {
                    let named = (&*plan.name, &self.client(plan, peer));
                    Server::start(launcher, &order(), named, &*self.eras, until).await
                };
                self.kept_or((plan, peer, beside), &key, warmth, until, start).await
            }
            Place::Url { url, headers, rules } => {
                // Who signed in comes before what the package says.
                let mut headers = headers.clone();
                headers.extend(signed(plan, url));
                let headers = &headers;
                let of = secret_too(headers);
                let key = format!("{url} {of:?} {rules:?} {} {may_ask}", plan.longest);
                let key = [&*key];
                let start = async || {
                    let line = Line::new(rules)?;
                    let (url, way, longest) = (url.clone(), Way::Either, plan.longest);
                    let (name, client) = (&plan.name, &self.client(plan, peer));
                    let target = Target { url, way, headers, longest, name, client };
                    reach(line, &target, &*self.eras, until).await
                };
                self.kept_or((plan, peer, beside), &key, warmth, until, start).await
            }
            Place::Registry { url, server, rules } => {
                let (tool, bearer) = (&plan.tool, plan.bearer.as_ref().map(Bearer::secret));
                let asks = bearer.map(Secret::expose);
                let key = format!(
                    "{url} {server:?} {tool} {rules:?} {} {asks:?} {may_ask}",
                    plan.longest
                );
                let key = [&*key];
                let start = async || {
                    let line = Line::new(rules)?;
                    let named = server.as_deref();
                    let (url, way) = registry::find(&line, url, named, tool, until).await?;
                    let headers = &signed(plan, &url);
                    let (longest, name) = (plan.longest, &*plan.name);
                    let client = &self.client(plan, peer);
                    let target = Target { url, way, headers, longest, name, client };
                    reach(line, &target, &*self.eras, until).await
                };
                self.kept_or((plan, peer, beside), &key, warmth, until, start).await
            }
        }
    }

    /// The server that is kept under a key, or a new one, the so manieth of its kind; nothing where that is not to be had for this one
    /// because of others.
    async fn kept_or(
        self: &Arc<Self>,
        (plan, peer, beside): (&Mcp, Option<&dyn Peer>, usize),
        key: &[&str],
        warmth: Warmth,
        until: Instant,
        start: impl AsyncFnOnce() -> Result<Server, CallError>,
    ) -> Result<Option<Hired>, CallError> {
        if warmth == Warmth::Cold {
            let server = Arc::new(Box::pin(start()).await?);
            return Ok(Some(Hired { server, _claim: None }));
        }
        let mut key = [&[&*plan.owner.state, " "], key].concat().concat();
        if beside > 0 {
            key.push_str(&format!(" {beside}"));
        }
        let key = (plan.owner.package.clone(), key);
        let known = self.lock().get(&key).map(Arc::clone);
        let slot = known.unwrap_or_else(|| Arc::clone(self.lock().entry(key.clone()).or_default()));
        let running = slot.try_lock().ok().and_then(|place| {
            place.server.as_ref().filter(|server| server.is_well()).map(Arc::clone)
        });
        let server = match running {
            Some(server) => server,
            None => Box::pin(self.started(key, &slot, until, start)).await?,
        };
        let claim = match peer.filter(|peer| !peer.capabilities().is_empty()) {
            Some(peer) => {
                let asks = self.asks(&plan.owner.package).load(Ordering::Acquire);
                let claim = server.claim(peer, asks);
                if claim.is_none() && beside < MOST_BESIDE {
                    return Ok(None);
                }
                claim
            }
            None => None,
        };
        Ok(Some(Hired { server, _claim: claim }))
    }

    /// Whether servers of a package are known to ask those whom they work for.
    fn asks(&self, package: &str) -> Arc<AtomicBool> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = asking.get(package) {
            return Arc::clone(known);
        }
        Arc::clone(asking.entry(package.to_owned()).or_default())
    }

    /// The server in the place of a key, or a new one.
    async fn started(
        self: &Arc<Self>,
        key: (String, String),
        slot: &Slot,
        until: Instant,
        start: impl AsyncFnOnce() -> Result<Server, CallError>,
    ) -> Result<Arc<Server>, CallError> {
        let Ok(mut place) = timeout_at(until.into(), slot.lock()).await else {
            return Err(too_late("the server had not started"));
        };
        if let Some(server) = &place.server
            && server.is_well()
        {
            return Ok(Arc::clone(server));
        }
        if let Some(gone) = place.server.take() {
            place.falls = if gone.has_served() { 0 } else { place.falls + 1 };
        }
        if let Err(error) = place.check_pause() {
            drop(place);
            tokio::time::sleep_until(until.min(Instant::now() + BREATH).into()).await;
            return Err(error);
        }
        place.at = Some(Instant::now());
        let started = Box::pin(start()).await.inspect_err(|_| place.falls += 1)?;
        let server = Arc::new(started);
        place.server = Some(Arc::clone(&server));
        drop(place);
        self.tidying.begin("mcp-idle", self, Self::tidy);
        self.make_room(&key);
        Ok(server)
    }

    /// Ends those of a package, each after the calls it serves: what they may is not what it may now.
    pub(crate) fn retire(&self, package: &str) {
        let retired: Vec<_> = self.lock().extract_if(|key, _| key.0 == package).collect();
        drop(retired);
    }

    /// The packages of which any is kept.
    pub(crate) fn packages(&self) -> Vec<String> {
        self.lock().keys().map(|(package, _)| package.clone()).collect()
    }

    /// Ends others than a new one while there are too many.
    fn make_room(&self, new: &(String, String)) {
        let mut kept = self.lock();
        while kept.len() > MOST {
            let others = kept.iter().filter(|(key, _)| *key != new);
            let idle = others.filter_map(|(key, slot)| Some((idle(slot)?, key.clone())));
            let Some(key) = first_to_go(idle.collect()) else { return };
            kept.remove(&key);
        }
    }

    fn tidy(&self) {
        let mut old = Vec::new();
        self.lock().retain(|_, slot| {
            let is_old =
                idle(slot).is_some_and(|idle| !idle.is_watched && idle.since > self.tidying.idle());
            if is_old {
                old.push(Arc::clone(slot));
            }
            !is_old
        });
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Slot>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes out who a call is made as.
fn tokens(plan: &Mcp) -> Redactor {
    let secrets = plan.bearer.iter().flat_map(Bearer::secrets);
    Redactor::new(secrets.map(|secret| ("token", secret)))
}

/// The token of whoever signed in, where it is meant for that URL.
fn signed(plan: &Mcp, url: &Url) -> HeaderMap {
    let told = plan.bearer.as_ref().and_then(|bearer| bearer.header(url));
    told.map(|told| (AUTHORIZATION, told)).into_iter().collect()
}

/// Headers with what is secret in them, because who asks with another is somebody else.
fn secret_too(headers: &HeaderMap) -> Vec<(&str, &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}

/// The tools of a server as actions.
pub async fn actions_of(surface: &Surface, until: Instant) -> Result<Vec<Action>, CallError> {
    let surface = surface.clone();
    let unneeded = CancellationToken::new();
    let _guard = unneeded.clone().drop_guard();
    let reading = tokio::task::spawn_blocking(move || tools::read(&surface, until, &unneeded));
    reading.await.unwrap_or_else(|error| Err(server::not_read(&error)))
}

/// An action for a tool that a server was not asked about: it takes anything, and promises nothing.
pub fn assumed(tool: &str) -> Action {
    tools::unknown(tool)
}
