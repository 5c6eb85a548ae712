//! Who is told what of which request, and whom a server means that asks something: in the older era it does not say for which
//! of its requests it asks.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ProgressToken;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::call::{Peer, Progress, TraceContext};

/// How long a question waits until the requests end that it may be for as well.
const PATIENCE: Duration = Duration::from_secs(10);

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
}

impl Listeners {
    /// Tells somebody about a request for as long as what is returned lives.
    pub(super) fn add(&self, token: &ProgressToken, told: Told) -> Listening {
        if told.progress.is_some() || told.peer.is_some() {
            self.lock().told.insert(token.clone(), told);
        }
        Listening { listeners: self.clone(), token: token.clone() }
    }

    /// Who is told what of a request.
    pub(super) fn told(&self, token: &ProgressToken) -> Option<Told> {
        self.lock().told.get(token).cloned()
    }

    /// Whom a server means that asks something now: one of those whose requests are under way. While they are of several, it is
    /// waited for some of them to end: what it asks for does not, until it is answered.
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

    /// Notes that somebody is asked something, for as long as what is returned lives.
    pub(super) fn asking(&self, peer: &dyn Peer) -> Asking {
        let client = peer.client().to_owned();
        self.lock().asked.push(client.clone());
        Asking { listeners: self.clone(), client }
    }

    /// Whether somebody is asked something who is not this one.
    pub(super) fn are_others_asked(&self, client: &str) -> bool {
        self.lock().asked.iter().any(|asked| asked != client)
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
        if peers.all(|other| other.client() == first.client()) {
            Meant::One(Arc::clone(first))
        } else {
            Meant::Several
        }
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
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.listeners.lock().told.remove(&self.token);
        self.listeners.0.ended.notify_waiters();
    }
}

/// A question that is open.
pub(super) struct Asking {
    listeners: Listeners,
    client: String,
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut known = self.listeners.lock();
        if let Some(at) = known.asked.iter().position(|asked| *asked == self.client) {
            known.asked.swap_remove(at);
        }
    }
}
