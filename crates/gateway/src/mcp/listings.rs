//! What servers list: asked for once for all who want to know, and taken for what there is for a while.
//!
//! A server that does not answer holds up nobody who can do without it. Whoever has gone on without it is told once it has
//! answered after all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use host::{CallError, CancellationToken, GREETING, Kind};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{timeout, timeout_at};

use super::client::lock;
use super::hosted::{Server, Voice};
use crate::gateway::Gateway;

/// How many pages of a list are read, and how many entries.
const MOST_PAGES: usize = 64;
const MOST_LISTED: usize = 10_000;

/// How long a server may take to list what it has.
const LONGEST: Duration = Duration::from_secs(30);

/// How long what a server listed is taken for what it has. It may say sooner that it has something else.
const CURRENT: Duration = Duration::from_mins(1);

/// How long one that could not list what it has is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// One of the lists that a server keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) method: &'static str,
    /// What the entries are called in the answer.
    pub(crate) key: &'static str,
    /// What a server must have said that it can; whoever listens for changes calls it so, too.
    capability: &'static str,
}

pub(crate) const PROMPTS: Kept =
    Kept { method: "prompts/list", key: "prompts", capability: "prompts" };
pub(crate) const RESOURCES: Kept =
    Kept { method: "resources/list", key: "resources", capability: "resources" };
pub(crate) const TEMPLATES: Kept =
    Kept { method: "resources/templates/list", key: "resourceTemplates", capability: "resources" };

/// What servers listed, by package and method.
#[derive(Debug, Default)]
pub(crate) struct Listings(Mutex<HashMap<(String, &'static str), Listing>>);

/// What a server has; nothing where it could not be asked.
pub(crate) type Entries = Option<Arc<Vec<Value>>>;

/// A list that a server was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// When whoever can do without it began to wait.
    pub(crate) since: Instant,
    answer: watch::Receiver<Option<(Entries, Instant)>>,
    /// Whether anybody has gone on without it.
    is_missed: Arc<AtomicBool>,
}

impl Listings {
    pub(crate) fn forget(&self, package: &str) {
        lock(&self.0).retain(|(known, _), _| known != package);
    }

    pub(crate) fn forget_all(&self) {
        lock(&self.0).clear();
    }

    /// What a server listed lately, or is being asked for.
    pub(crate) fn of(
        &self,
        gateway: &Arc<Gateway>,
        voice: &Voice,
        server: &Server,
        kind: Kept,
    ) -> Listing {
        let mut all = lock(&self.0);
        let key = (server.package.id.clone(), kind.method);
        let known = all.get(&key);
        if let Some(known) = known.filter(|known| known.is_current()) {
            return known.clone();
        }
        let failed = known.filter(|known| matches!(&*known.answer.borrow(), Some((None, _))));
        let (told, listing) = Listing::after(failed);
        all.insert(key, listing.clone());
        drop(all);
        let (gateway, voice) = (Arc::clone(gateway), voice.clone());
        let (server, is_missed) = (server.clone(), Arc::clone(&listing.is_missed));
        tokio::spawn(async move {
            let entries = entries(&voice, &server, kind).await;
            let is_there = entries.is_some();
            told.send_replace(Some((entries, Instant::now())));
            if is_there && is_missed.load(Ordering::Acquire) {
                gateway.changed(&server.package.id, kind.capability);
            }
        });
        listing
    }
}

impl Listing {
    /// One that is asked for, perhaps after one that could not be: nobody waits once more for that, and whoever asked then has gone
    /// on without it.
    fn after(failed: Option<&Self>) -> (watch::Sender<Option<(Entries, Instant)>>, Self) {
        let since = failed.map_or_else(Instant::now, |failed| failed.since);
        let is_missed = Arc::new(AtomicBool::new(failed.is_some()));
        let (told, answer) = watch::channel(None);
        (told, Self { since, answer, is_missed })
    }

    fn is_current(&self) -> bool {
        match &*self.answer.borrow() {
            Some((Some(_), at)) => at.elapsed() < CURRENT,
            Some((None, at)) => at.elapsed() < LEFT_ALONE,
            // Whoever asks may be gone with its runtime.
            None => self.answer.has_changed().is_ok(),
        }
    }

    /// Waits for it, within the time that a server may take.
    pub(crate) async fn wait(mut self) -> Entries {
        let answer = self.answer.wait_for(Option::is_some).await.ok()?;
        answer.as_ref().and_then(|(entries, _)| entries.clone())
    }

    /// Waits for it until somebody can do without it.
    pub(crate) async fn wait_for(self, patience: Duration) -> Entries {
        let until = self.since + patience;
        if let Ok(entries) = timeout_at(until.into(), self.clone().wait()).await {
            return entries;
        }
        self.is_missed.store(true, Ordering::Release);
        // It may have come at the last moment, when nobody was said to miss it.
        self.answer.borrow().as_ref().and_then(|(entries, _)| entries.clone())
    }
}

/// What a server lists within the time that it may take.
async fn entries(voice: &Voice, server: &Server, kind: Kept) -> Entries {
    let off = CancellationToken::new();
    match timeout(LONGEST, pages(voice, server, kind, &off)).await {
        Ok(Ok(entries)) => Some(Arc::new(entries)),
        // One that knows no such list has nothing of it.
        Ok(Err(error)) if error.kind == Kind::Unknown => Some(Arc::default()),
        Ok(Err(_)) | Err(_) => None,
    }
}

/// All pages of what a server has.
async fn pages(
    voice: &Voice,
    server: &Server,
    kind: Kept,
    off: &CancellationToken,
) -> Result<Vec<Value>, CallError> {
    let greeting = voice.ask(server, GREETING, json!({}), off).await?.greeting;
    if greeting["capabilities"].get(kind.capability).is_none() {
        return Ok(Vec::new());
    }
    let (mut all, mut params) = (Vec::new(), json!({}));
    for _ in 0..MOST_PAGES {
        let mut page = voice.ask(server, kind.method, params, off).await?.answer;
        if let Some(Value::Array(entries)) = page.get_mut(kind.key).map(Value::take) {
            all.extend(entries);
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            Some(next) if all.len() < MOST_LISTED => params = json!({ "cursor": next }),
            _ => break,
        }
    }
    all.truncate(MOST_LISTED);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_told_nothing_of_a_server_that_failed_misses_what_it_lists_later() {
        let (_told, first) = Listing::after(None);
        assert!(!first.is_missed.load(Ordering::Acquire));
        let (_told, next) = Listing::after(Some(&first));
        assert!(next.is_missed.load(Ordering::Acquire) && next.since == first.since);
    }
}
