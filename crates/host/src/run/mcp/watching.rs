//! Which resources of a server somebody wants to be told of.
//!
//! The first has the server say so; when the last is gone, it need not any more. A server that is watched does
//! not end for having nothing else to do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::server::Server;
use super::session::Told;
use crate::error::CallError;
use crate::limit::too_late;

/// Asks a server to tell of a resource, and to tell of it no more.
pub(super) const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// How long a server may take to be told that nobody wants to know any more.
const PATIENCE: Duration = Duration::from_secs(10);

/// Of how many resources it is asked something at a time, which leaves room for calls.
const AT_A_TIME: usize = 32;

/// What of one server is watched.
#[derive(Debug)]
pub(super) struct Watched {
    /// By address.
    all: Mutex<HashMap<String, Place>>,
    /// Whose turn it is to ask the server.
    turns: Semaphore,
}

impl Default for Watched {
    fn default() -> Self {
        Self { all: Mutex::default(), turns: Semaphore::new(AT_A_TIME) }
    }
}

#[derive(Debug, Default)]
struct Place {
    watchers: usize,
    telling: Held,
}

/// It is held while it changes, so that the server hears of it in order.
type Held = Arc<tokio::sync::Mutex<Telling>>;

/// Whether the server tells of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Telling {
    #[default]
    No,
    /// It was asked to, and nobody has heard what it made of that.
    Perhaps,
    Yes,
}

impl Watched {
    /// Whether anybody watches anything.
    pub(super) fn is_any(&self) -> bool {
        self.lock().values().any(|place| place.watchers > 0)
    }

    fn has(&self, uri: &str) -> bool {
        self.lock().get(uri).is_some_and(|place| place.watchers > 0)
    }

    /// One more watches.
    fn add(&self, uri: &str) -> Held {
        let mut all = self.lock();
        let place = all.entry(uri.to_owned()).or_default();
        place.watchers += 1;
        Arc::clone(&place.telling)
    }

    /// One less does; what is left where it was the last.
    fn take(&self, uri: &str) -> Option<Held> {
        let mut all = self.lock();
        let place = all.get_mut(uri)?;
        place.watchers -= 1;
        (place.watchers == 0).then(|| Arc::clone(&place.telling))
    }

    /// Forgets what nobody watches.
    fn forget(&self, uri: &str) {
        let mut all = self.lock();
        if all.get(uri).is_some_and(|place| place.watchers == 0) {
            all.remove(uri);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A resource that a server tells of for as long as this is kept, and the server is there.
#[derive(Debug)]
pub struct Watching {
    server: Weak<Server>,
    uri: String,
}

impl Watching {
    /// Has a server tell of a resource, where it does not yet.
    pub(super) async fn begin(
        server: &Arc<Server>,
        uri: &str,
        told: Told,
        until: Instant,
    ) -> Result<Self, CallError> {
        let telling = server.watched.add(uri);
        let watching = Self { server: Arc::downgrade(server), uri: uri.to_owned() };
        let Ok(mut telling) = timeout_at(until.into(), telling.lock()).await else {
            return Err(too_late("the server had not said that it tells of the resource"));
        };
        if *telling == Telling::Yes {
            return Ok(watching);
        }
        let Ok(_turn) = timeout_at(until.into(), server.watched.turns.acquire()).await else {
            return Err(too_late("it waited for its turn to be watched"));
        };
        // Where this is called off from here on, the server is told that it need not tell.
        *telling = Telling::Perhaps;
        let asked = server.request(SUBSCRIBE, json!({ "uri": uri }), told, until).await;
        *telling = match &asked {
            Ok(_) => Telling::Yes,
            // It has refused.
            Err(error) if error.details.get("code").is_some() => Telling::No,
            Err(_) => Telling::Perhaps,
        };
        asked.map(|_| watching)
    }

    /// Whether the server is still there to tell of it.
    pub fn is_well(&self) -> bool {
        self.server.upgrade().is_some_and(|server| server.is_well())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let Some(server) = self.server.upgrade() else { return };
        let Some(telling) = server.watched.take(&self.uri) else { return };
        // Without a runtime it goes on telling, of what nobody hears.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let uri = std::mem::take(&mut self.uri);
        let retired = server.retired.clone();
        // One that is retired needs to be told nothing, and must not live on for it.
        let leaving = retired.run_until_cancelled_owned(leave(server, uri, telling));
        runtime.spawn(leaving);
    }
}

/// Has a server tell of a resource no more, unless somebody has come meanwhile.
async fn leave(server: Arc<Server>, uri: String, telling: Held) {
    let mut telling = telling.lock().await;
    let _turn = server.watched.turns.acquire().await;
    if *telling != Telling::No && server.is_well() && !server.watched.has(&uri) {
        *telling = Telling::No;
        let until = Instant::now() + PATIENCE;
        let _ = server.request(UNSUBSCRIBE, json!({ "uri": uri }), Told::default(), until).await;
    }
    server.watched.forget(&uri);
}
