//! What a server of the newer era says to nobody in particular. It says so only to who listens: by one request that stays open,
//! and names what it is about.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient, ServiceError, Subscription};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::face::{Ears, PROMPTS, RESOURCE, RESOURCES, TOOLS};
use super::{AskError, BAD_PARAMETERS, of_asking};

/// How long is waited until a server is listened to again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How many resources of a server are watched.
const MOST_WATCHED: usize = 1000;

/// A server that is listened to, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    ear: Ear,
    /// What it is listened to for.
    wanted: tokio::sync::Mutex<SubscriptionFilter>,
    /// The resources that somebody waits to hear of.
    awaited: InLine,
    /// Those that nobody needs to hear of any more.
    unneeded: InLine,
    hearing: Mutex<Option<AbortHandle>>,
}

/// Resources that wait in line for the same. Whoever has the turn asks for all of them at once: each request names all that is
/// listened for, and so does each answer.
#[derive(Debug, Default)]
struct InLine(Mutex<BTreeSet<String>>);

impl InLine {
    /// Waits until what is given is dropped.
    fn join<'l>(&'l self, uri: &'l str) -> Place<'l> {
        self.lock().insert(uri.to_owned());
        Place { line: self, uri }
    }

    /// All that wait; nobody else asks for them.
    fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one of them.
struct Place<'l> {
    line: &'l InLine,
    uri: &'l str,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.line.lock().remove(self.uri);
    }
}

/// Who hears what it says.
#[derive(Clone, Debug)]
pub(super) struct Ear {
    pub(super) peer: Peer<RoleClient>,
    pub(super) ears: Ears,
}

impl Listening {
    /// Listens for changes of the lists that a server tells of; nothing where it tells of none, or nobody wants to know.
    pub(super) fn begin(ear: Ear) -> Option<Self> {
        let info = ear.peer.peer_info()?;
        let all = &info.capabilities;
        let (tools, prompts) = (all.tools.as_ref(), all.prompts.as_ref());
        let resources = all.resources.as_ref();
        let mut wanted = SubscriptionFilter::new();
        wanted.tools_list_changed = tools.and_then(|one| one.list_changed).filter(|is| *is);
        wanted.prompts_list_changed = prompts.and_then(|one| one.list_changed).filter(|is| *is);
        wanted.resources_list_changed = resources.and_then(|one| one.list_changed).filter(|is| *is);
        let may_be_watched = resources.is_some_and(|one| one.subscribe == Some(true));
        if !ear.ears.notices.is_heard() || (is_nothing(&wanted) && !may_be_watched) {
            return None;
        }
        let hearing = (!is_nothing(&wanted)).then(|| {
            let (ear, wanted) = (ear.clone(), wanted.clone());
            let hearing = tokio::spawn(async move {
                // One that does not let itself be listened to is left alone.
                if let Ok(begun) = ear.peer.listen(wanted.clone()).await {
                    ear.heed(begun, wanted).await;
                }
            });
            hearing.abort_handle()
        });
        let (awaited, unneeded) = Default::default();
        Some(Self { ear, wanted: wanted.into(), awaited, unneeded, hearing: hearing.into() })
    }

    /// Listens for changes of a resource, too. Whoever comes first asks for all that wait.
    pub(super) async fn watch(&self, uri: &str) -> Result<(), AskError> {
        let _place = self.awaited.join(uri);
        let mut wanted = self.wanted.lock().await;
        if is_watched(&wanted, uri) {
            return Ok(());
        }
        let mut all = self.awaited.take();
        all.insert(uri.to_owned());
        let room = MOST_WATCHED.saturating_sub(watched(&wanted).count());
        if room == 0 {
            return Err(refused("too many resources of this server are watched"));
        }
        let own = BTreeSet::from([uri.to_owned()]);
        let is_alone = all.len() == 1 || all.len() > room;
        // What the others want may be why it refuses.
        if is_alone || self.listen_too(&mut wanted, all).await.is_err() {
            self.listen_too(&mut wanted, own).await?;
        }
        if is_watched(&wanted, uri) {
            return Ok(());
        }
        Err(refused("the server does not tell of this resource"))
    }

    /// Listens for more resources than before, those of them that the server tells of.
    async fn listen_too(
        &self,
        wanted: &mut SubscriptionFilter,
        all: BTreeSet<String>,
    ) -> Result<(), AskError> {
        let mut more = wanted.clone();
        let new = all.into_iter().filter(|uri| !is_watched(wanted, uri));
        more.resource_subscriptions.get_or_insert_default().extend(new);
        let begun = self.ear.peer.listen(more.clone()).await.map_err(of_asking)?;
        let is_told =
            |uri: &String| is_watched(wanted, uri) || is_watched(begun.acknowledged(), uri);
        more.resource_subscriptions.get_or_insert_default().retain(is_told);
        if watched(&more).count() > watched(wanted).count() {
            *wanted = more.clone();
            self.hear(Some((begun, more)));
        }
        Ok(())
    }

    /// Listens for changes of a resource no more. Whoever comes first forgets all that wait for it.
    pub(super) async fn unwatch(&self, uri: &str) -> Result<(), AskError> {
        let _place = self.unneeded.join(uri);
        let mut wanted = self.wanted.lock().await;
        if !is_watched(&wanted, uri) {
            return Ok(());
        }
        let mut all = self.unneeded.take();
        all.insert(uri.to_owned());
        let mut less = wanted.clone();
        let watched = less.resource_subscriptions.take().unwrap_or_default();
        let left: Vec<_> = watched.into_iter().filter(|one| !all.contains(one)).collect();
        less.resource_subscriptions = Some(left).filter(|left| !left.is_empty());
        // Where that comes to nothing, more is told than is wanted, until the next time that something else is.
        *wanted = less.clone();
        let begun = if is_nothing(&less) {
            None
        } else {
            Some(self.ear.peer.listen(less.clone()).await.map_err(of_asking)?)
        };
        self.hear(begun.map(|begun| (begun, less)));
        Ok(())
    }

    /// Goes on with another request in place of the one before, which ends.
    fn hear(&self, begun: Option<(Subscription, SubscriptionFilter)>) {
        let ear = self.ear.clone();
        let next = begun.map(|(begun, wanted)| tokio::spawn(ear.heed(begun, wanted)));
        let mut hearing = self.hearing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *hearing, next.map(|next| next.abort_handle()));
        before.inspect(AbortHandle::abort);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.hear(None);
    }
}

impl Ear {
    /// Hears what is said, and listens again when that ends before the conversation does.
    async fn heed(self, mut begun: Subscription, wanted: SubscriptionFilter) {
        let mut pause = FIRST_PAUSE;
        loop {
            let since = Instant::now();
            while let Ok(Some(said)) = begun.next().await {
                self.hear(said);
            }
            if since.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            begun = loop {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                match self.peer.listen(wanted.clone()).await {
                    Ok(again) => break again,
                    Err(ServiceError::TransportClosed) => return,
                    // Somebody may still wait to be told, so it is not left alone for good.
                    Err(ServiceError::McpError(_)) => pause = LONGEST_PAUSE,
                    Err(_) => {}
                }
            };
            self.assume_changes(begun.acknowledged());
        }
    }

    fn hear(&self, said: ServerNotification) {
        match said {
            ServerNotification::ToolListChangedNotification(_) => self.note(TOOLS, Value::Null),
            ServerNotification::PromptListChangedNotification(_) => self.note(PROMPTS, Value::Null),
            ServerNotification::ResourceListChangedNotification(_) => {
                self.note(RESOURCES, Value::Null);
            }
            ServerNotification::ResourceUpdatedNotification(said) => {
                self.note(RESOURCE, json!({ "uri": said.params.uri }));
            }
            _ => {}
        }
    }

    /// What was said while nobody listened may have been anything.
    fn assume_changes(&self, of: &SubscriptionFilter) {
        for (is_told, method) in [
            (of.tools_list_changed, TOOLS),
            (of.prompts_list_changed, PROMPTS),
            (of.resources_list_changed, RESOURCES),
        ] {
            if is_told == Some(true) {
                self.note(method, Value::Null);
            }
        }
        for uri in of.resource_subscriptions.iter().flatten() {
            self.note(RESOURCE, json!({ "uri": uri }));
        }
    }

    fn note(&self, method: &str, params: Value) {
        self.ears.hear(method, params);
    }
}

/// The resources that somebody listens for.
fn watched(filter: &SubscriptionFilter) -> impl Iterator<Item = &String> {
    filter.resource_subscriptions.iter().flatten()
}

fn is_watched(filter: &SubscriptionFilter, uri: &str) -> bool {
    watched(filter).any(|one| one == uri)
}

fn refused(message: &str) -> AskError {
    AskError::Refused { code: BAD_PARAMETERS, message: message.to_owned(), data: None }
}

fn is_nothing(filter: &SubscriptionFilter) -> bool {
    *filter == SubscriptionFilter::new()
}
