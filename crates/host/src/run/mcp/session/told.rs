//! Who is told what of which request, and whom a server means that asks something: in the older era it does not say for which
//! of its requests it asks.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ProgressToken;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::AskError;
use crate::call::{Peer, Progress, TraceContext};

/// How long a question waits until the requests are answered that it may be for as well.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a server may still ask for a request that nobody waits for any more, and how many of those are remembered.
const LATE: Duration = Duration::from_mins(1);
const MOST_LEFT: usize = 256;

/// Who is told what of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// How far it is.
    pub(crate) progress: Option<Arc<dyn Progress>>,
    /// What the server asks and says meanwhile.
    pub(crate) peer: Option<Arc<dyn Peer>>,
    /// Where it belongs among those of others.
    pub(crate) context: Option<TraceContext>,
}

impl Told {
    /// What is passed on beside the parameters.
    pub(super) fn meta(&self) -> Map<String, Value> {
        let mut meta = self.peer.as_ref().map(|peer| peer.meta()).unwrap_or_default();
        if let Some(context) = &self.context {
            context.put_into_meta(&mut meta);
        }
        meta
    }
}

/// Whom a server means that asks something.
pub(super) enum Meant {
    Nobody,
    One(Arc<dyn Peer>),
    Several,
}

/// Who is told what of which request.
#[derive(Clone, Default)]
pub(super) struct Listeners(Arc<Shared>);

#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    /// Tells that a request has ended.
    ended: Notify,
}

#[derive(Default)]
struct Known {
    told: HashMap<ProgressToken, Told>,
    /// Those who are asked something now.
    asked: Vec<String>,
    /// Those whom the server works for, or is about to.
    served: Vec<String>,
    /// Requests that ended without an answer, and the conversations that they were of.
    left: VecDeque<Left>,
}

struct Left {
    token: ProgressToken,
    conversation: String,
    at: Instant,
}

impl Left {
    /// Whether the server may still ask for it somebody who is not of this conversation.
    fn is_of_another(&self, conversation: &str) -> bool {
        self.conversation != conversation && self.at.elapsed() < LATE
    }
}

impl Listeners {
    /// Tells somebody about a request for as long as what is returned lives.
    pub(super) fn add(&self, token: &ProgressToken, told: Told) -> Listening {
        if told.progress.is_some() || told.peer.is_some() {
            self.lock().told.insert(token.clone(), told);
        }
        Listening { listeners: self.clone(), token: token.clone(), is_answered: false }
    }

    /// Takes the server up for somebody, until what is returned is dropped; not while it asks somebody else something. One that is known to
    /// ask works for nobody else either, and may still ask for what somebody else has left.
    pub(super) fn claim(&self, peer: &dyn Peer, asks: bool) -> Option<Claim> {
        let client = peer.client();
        let mut known = self.lock();
        let is_other = |one: &String| one != client;
        let may_ask_another = || {
            let conversation = peer.conversation();
            known.served.iter().any(is_other)
                || known.left.iter().any(|one| one.is_of_another(conversation))
        };
        if known.asked.iter().any(is_other) || (asks && may_ask_another()) {
            return None;
        }
        known.served.push(client.to_owned());
        drop(known);
        Some(Claim { listeners: self.clone(), client: client.to_owned() })
    }

    /// Who is told what of a request.
    pub(super) fn told(&self, token: &ProgressToken) -> Option<Told> {
        self.lock().told.get(token).cloned()
    }

    /// Whom a server means that asks something now: one of those whose requests are under way. While they are of several, it is
    /// waited for some of them to be answered: what it asks for is not, before it has what it asks for. Where one of them ends without an
    /// answer, it may be for that one, and for nobody.
    pub(super) async fn meant(&self) -> Meant {
        let among: Vec<_> = self.lock().told.keys().cloned().collect();
        let until = Instant::now() + PATIENCE;
        loop {
            let mut ended = pin!(self.0.ended.notified());
            ended.as_mut().enable();
            let meant = self.lock().meant(|token| among.contains(token));
            if !matches!(meant, Meant::Several) || timeout_at(until, ended).await.is_err() {
                return meant;
            }
        }
    }

    /// The same where nobody waits.
    pub(super) fn meant_at_once(&self) -> Meant {
        self.lock().meant(|_| true)
    }

    /// Waits until no request of somebody is under way any more.
    pub(super) async fn over(&self, client: &str) {
        loop {
            let mut ended = pin!(self.0.ended.notified());
            ended.as_mut().enable();
            let is_there =
                |told: &Told| told.peer.as_ref().is_some_and(|one| one.client() == client);
            if !self.lock().told.values().any(is_there) {
                return;
            }
            ended.await;
        }
    }

    /// Notes that somebody is asked something, for as long as what is returned lives.
    pub(super) fn asking(&self, peer: &dyn Peer) -> Asking {
        let client = peer.client().to_owned();
        self.lock().asked.push(client.clone());
        Asking { listeners: self.clone(), client }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Whom a server means that asks for one of these requests.
    fn meant(&self, is_one: impl Fn(&ProgressToken) -> bool) -> Meant {
        let these = self.told.iter().filter(|(token, _)| is_one(token));
        let mut peers = these.filter_map(|(_, told)| told.peer.as_ref());
        let Some(first) = peers.next() else { return Meant::Nobody };
        let is_late = |left: &Left| is_one(&left.token) || left.is_of_another(first.conversation());
        if self.left.iter().any(is_late) || peers.any(|other| other.client() != first.client()) {
            return Meant::Several;
        }
        Meant::One(Arc::clone(first))
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Listeners").field("count", &self.lock().told.len()).finish()
    }
}

/// Somebody who listens.
pub(super) struct Listening {
    listeners: Listeners,
    token: ProgressToken,
    is_answered: bool,
}

impl Listening {
    /// Notes what the server answered, if it did.
    pub(super) fn note<T>(mut self, answered: &Result<T, AskError>) {
        self.is_answered = matches!(answered, Ok(_) | Err(AskError::Refused { .. }));
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut known = self.listeners.lock();
        let told = known.told.remove(&self.token);
        let peer = told.and_then(|told| told.peer).filter(|_| !self.is_answered);
        if let Some(peer) = peer.filter(|peer| !peer.capabilities().is_empty()) {
            while known.left.len() >= MOST_LEFT
                || known.left.front().is_some_and(|left| left.at.elapsed() >= LATE)
            {
                known.left.pop_front();
            }
            let (token, conversation) = (self.token.clone(), peer.conversation().to_owned());
            known.left.push_back(Left { token, conversation, at: Instant::now() });
        }
        drop(known);
        self.listeners.0.ended.notify_waiters();
    }
}

/// A server that is taken up for somebody.
#[derive(Debug)]
pub(in crate::run::mcp) struct Claim {
    listeners: Listeners,
    client: String,
}

impl Drop for Claim {
    fn drop(&mut self) {
        take_out(&mut self.listeners.lock().served, &self.client);
    }
}

fn take_out(all: &mut Vec<String>, one: &str) {
    if let Some(at) = all.iter().position(|known| known == one) {
        all.swap_remove(at);
    }
}

/// A question that is open.
pub(super) struct Asking {
    listeners: Listeners,
    client: String,
}

impl Drop for Asking {
    fn drop(&mut self) {
        take_out(&mut self.listeners.lock().asked, &self.client);
    }
}
