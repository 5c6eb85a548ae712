//! What a server of the newer era says to nobody in particular. It says so only to who listens: by one request that stays open,
//! and names what it is about.

use std::sync::{Mutex, PoisonError};
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
    hearing: Mutex<Option<AbortHandle>>,
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
        Some(Self { ear, wanted: wanted.into(), hearing: hearing.into() })
    }

    /// Listens for changes of a resource, too.
    pub(super) async fn watch(&self, uri: &str) -> Result<(), AskError> {
        let refused = |message: &str| AskError::Refused {
            code: BAD_PARAMETERS,
            message: message.to_owned(),
            data: None,
        };
        let mut wanted = self.wanted.lock().await;
        let mut more = wanted.clone();
        let watched = more.resource_subscriptions.get_or_insert_default();
        if watched.iter().any(|one| one == uri) {
            return Ok(());
        }
        if watched.len() >= MOST_WATCHED {
            return Err(refused("too many resources of this server are watched"));
        }
        watched.push(uri.to_owned());
        let begun = self.ear.peer.listen(more.clone()).await.map_err(of_asking)?;
        let told_of = begun.acknowledged().resource_subscriptions.iter().flatten();
        if !told_of.into_iter().any(|one| one == uri) {
            return Err(refused("the server does not tell of this resource"));
        }
        *wanted = more.clone();
        self.hear(Some((begun, more)));
        Ok(())
    }

    /// Listens for them no more.
    pub(super) async fn unwatch(&self, uri: &str) -> Result<(), AskError> {
        let mut wanted = self.wanted.lock().await;
        let mut less = wanted.clone();
        let watched = less.resource_subscriptions.take().unwrap_or_default();
        let left: Vec<_> = watched.into_iter().filter(|one| one != uri).collect();
        less.resource_subscriptions = Some(left).filter(|left| !left.is_empty());
        let begun = if is_nothing(&less) {
            None
        } else {
            Some(self.ear.peer.listen(less.clone()).await.map_err(of_asking)?)
        };
        *wanted = less.clone();
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
                    Err(ServiceError::McpError(_) | ServiceError::TransportClosed) => return,
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

fn is_nothing(filter: &SubscriptionFilter) -> bool {
    *filter == SubscriptionFilter::new()
}
