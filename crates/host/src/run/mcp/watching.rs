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
use crate::call::Peer;
use crate::error::CallError;
use crate::limit::too_late;

/// Asks a server to tell of a resource, and to tell of it no more.
pub(super) const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// How long a server may take to be told that nobody wants to know any more.
const PATIENCE: Duration = Duration::from_secs(10);

/// Of how many resources it is told so at a time, which leaves room for calls.
const AT_A_TIME: usize = 32;

/// What of one server is watched.
#[derive(Debug)]
pub(super) struct Watched {
    /// By address.
    all: Mutex<HashMap<String, Place>>,
    /// Whose turn it is to be told of no more.
    leaving: Semaphore,
}

impl Default for Watched {
    fn default() -> Self {
        Self { all: Mutex::default(), leaving: Semaphore::new(AT_A_TIME) }
    }
}

#[derive(Debug, Default)]
struct Place {
    watchers: usize,
    is_told: IsTold,
}

/// Whether the server tells of it. It is held while that changes, so that the server hears of it in order.
type IsTold = Arc<tokio::sync::Mutex<bool>>;

impl Watched {
    /// Whether anybody watches anything.
    pub(super) fn is_any(&self) -> bool {
        self.lock().values().any(|place| place.watchers > 0)
    }

    fn has(&self, uri: &str) -> bool {
        self.lock().get(uri).is_some_and(|place| place.watchers > 0)
    }

    /// One more watches.
    fn add(&self, uri: &str) -> IsTold {
        let mut all = self.lock();
        let place = all.entry(uri.to_owned()).or_default();
        place.watchers += 1;
        Arc::clone(&place.is_told)
    }

    /// One less does; what is left where it was the last.
    fn take(&self, uri: &str) -> Option<IsTold> {
        let mut all = self.lock();
        let place = all.get_mut(uri)?;
        place.watchers -= 1;
        (place.watchers == 0).then(|| Arc::clone(&place.is_told))
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
        peer: Option<Arc<dyn Peer>>,
        until: Instant,
    ) -> Result<Self, CallError> {
        let is_told = server.watched.add(uri);
        let watching = Self { server: Arc::downgrade(server), uri: uri.to_owned() };
        let Ok(mut is_told) = timeout_at(until.into(), is_told.lock()).await else {
            return Err(too_late("the server had not said that it tells of the resource"));
        };
        if !*is_told {
            server.request(SUBSCRIBE, json!({ "uri": uri }), peer, until).await?;
            *is_told = true;
        }
        Ok(watching)
    }

    /// Whether the server is still there to tell of it.
    pub fn is_well(&self) -> bool {
        self.server.upgrade().is_some_and(|server| server.is_well())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let Some(server) = self.server.upgrade() else { return };
        let Some(is_told) = server.watched.take(&self.uri) else { return };
        // Without a runtime it goes on telling, of what nobody hears.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let uri = std::mem::take(&mut self.uri);
        let retired = server.retired.clone();
        // One that is retired needs to be told nothing, and must not live on for it.
        let leaving = retired.run_until_cancelled_owned(leave(server, uri, is_told));
        runtime.spawn(leaving);
    }
}

/// Has a server tell of a resource no more, unless somebody has come meanwhile.
async fn leave(server: Arc<Server>, uri: String, is_told: IsTold) {
    let _turn = server.watched.leaving.acquire().await;
    let mut is_told = is_told.lock().await;
    if *is_told && server.is_well() && !server.watched.has(&uri) {
        *is_told = false;
        let until = Instant::now() + PATIENCE;
        let _ = server.request(UNSUBSCRIBE, json!({ "uri": uri }), None, until).await;
    }
    server.watched.forget(&uri);
}
