//! What can be found, in memory: the index, and the answer for each tool.
//!
//! It is loaded from rows that are kept ready in the store and kept current by what has changed there.
//! A row that cannot be read is left out and counted; it breaks no other.

mod names;
mod saved;
mod shelf;

use std::collections::VecDeque;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use registry::{Channel, Counted, Found};
use search::{Change, Entry, Facet, FacetCount, Index, Query, Snapshot};
use tokio::sync::Mutex;

use crate::store::feed::{Changed, Offered};
use crate::store::{Store, StoreError};
use crate::token::Scope;
use names::Names;
use saved::Saved;
use shelf::{Row, Shelf};
use trace::{Place, part};

/// How many changes are read at once.
const BATCH: u32 = 5_000;

/// How many changes make it worth to save the index again.
const WORTH_SAVING: i64 = 1_000;

/// How many of the last changed tools are known by name.
const RECENT: usize = 24;

/// What can be found.
#[derive(Debug, Default)]
pub struct Catalog {
    index: Index,
    shelves: RwLock<Shelves>,
    /// The number of the last change that is in here; held while more are taken in.
    last: Mutex<i64>,
    damaged: AtomicU64,
    /// How often something was taken in.
    turn: AtomicU64,
    /// What servers are called in the MCP world.
    servers: RwLock<Names>,
    /// The tools that have changed last, the last one first.
    recent: RwLock<VecDeque<String>>,
}

/// What is offered, by id.
#[derive(Debug, Default)]
struct Shelves {
    /// To everybody.
    stable: Shelf,
    /// To those who ask for beta versions, where it is something else.
    ahead: Shelf,
}

/// What is after the id in the key of an entry that only those find who ask for beta versions.
const AHEAD: &str = "\0beta";

/// What somebody sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Among whose names.
    pub scope: Scope,
    /// How far along.
    pub channel: Channel,
}

impl View {
    /// What everybody sees of a registry that is open to all.
    pub const ALL: View = View { scope: Scope::All, channel: Channel::Stable };

    fn namespace(&self) -> Option<&str> {
        match &self.scope {
            Scope::All => None,
            Scope::Namespace(name) => Some(name),
        }
    }
}

/// Some of what was found: answers that are ready to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The tools, each as JSON.
    pub rows: Vec<Arc<str>>,
    /// How many there are on all pages.
    pub total: usize,
}

impl Answers {
    /// All of it as JSON.
    pub fn json(&self) -> String {
        let length: usize = self.rows.iter().map(|row| row.len() + 1).sum();
        let mut text = String::with_capacity(length + 40);
        text.push_str("{\"results\":[");
        for (at, row) in self.rows.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(row);
        }
        text.push_str(&format!("],\"total\":{}}}", self.total));
        text
    }
}

impl Catalog {
    /// What was saved in a file, with what the store has of it; none where there is nothing that fits.
    pub async fn saved(file: &Path, store: &Store) -> Option<Self> {
        let file = file.to_owned();
        let read = tokio::task::spawn_blocking(move || Saved::read(&file));
        let saved = read.await.ok().flatten()?;
        let saved::Head { registry, number, package, .. } = saved.head.clone();
        let is_remembered = store.changed_at(number).await.ok()?.as_ref() == Some(&package);
        if registry != store.id() || !is_remembered {
            return None;
        }
        // Both take about as long, so they are done at the same time.
        let indexing = tokio::task::spawn_blocking(move || saved.index());
        let mut catalog = Self { last: Mutex::new(number), ..Self::default() };
        let mut after = 0;
        loop {
            let changes = store.found(after, BATCH).await.ok()?;
            let Some(newest) = changes.last().map(|change| change.number) else { break };
            after = newest;
            catalog.shelve(changes.into_iter().filter(|change| change.number <= number))?;
        }
        catalog.index = indexing.await.ok().flatten()?;
        Some(catalog)
    }

    /// Saves what is found now in a file; the number of the last change that is in it. `None` where that is not worth
    /// it, because the file has almost everything, or did not work.
    pub async fn save(&self, file: &Path, store: &Store, saved: i64) -> Option<i64> {
        let (number, index) = {
            let last = self.last.lock().await;
            (*last, self.index.snapshot())
        };
        if number - saved < WORTH_SAVING {
            return None;
        }
        let package = store.changed_at(number).await.ok()??;
        let (file, registry) = (file.to_owned(), store.id().to_owned());
        let write = move || saved::write(&file, &registry, number, &package, &index);
        tokio::task::spawn_blocking(write).await.ok()?.ok()?;
        Some(number)
    }

    /// Puts on the shelves what the index has already; none where one cannot be read.
    fn shelve(&self, changes: impl Iterator<Item = Changed>) -> Option<()> {
        let mut shelves = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        for Changed { id, namespace, server, offered, ahead, .. } in changes {
            let namespace: Arc<str> = namespace.into();
            if let Some(name) = server {
                servers.put(name, &namespace);
            }
            let shown = |offered: Offered| -> Option<(Row, Found)> {
                let found = serde_json::from_str(&offered.found).ok()?;
                let namespace = Arc::clone(&namespace);
                Some((Row { found: offered.found.into(), namespace }, found))
            };
            if let Some(offered) = offered {
                let (row, found) = shown(offered)?;
                shelves.stable.put(&id, Some((row, &found)));
                recent.push_front(id.clone());
                recent.truncate(RECENT);
            }
            if let Some(ahead) = ahead {
                let (row, found) = shown(ahead)?;
                shelves.ahead.put(&id, Some((row, &found)));
            }
        }
        Some(())
    }

    /// Takes in everything that has changed in the store since the last time.
    pub async fn refresh(&self, store: &Store) -> Result<(), StoreError> {
        let mut last = self.last.lock().await;
        for batch in 0.. {
            let changes = store.changes(*last, BATCH).await?;
            let count = changes.len();
            if let Some(newest) = changes.last().map(|change| change.number) {
                self.take_in(changes);
                *last = newest;
            }
            if count < BATCH as usize {
                if batch > 0 {
                    // Many came at once: all that are searched from now on are worth putting in order.
                    self.index.compact();
                }
                break;
            }
        }
        Ok(())
    }

    fn take_in(&self, changes: Vec<Changed>) {
        let mut indexed = Vec::with_capacity(changes.len());
        let mut rows = Vec::with_capacity(changes.len());
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            let namespace: Arc<str> = change.namespace.as_str().into();
            if let Some(name) = change.server {
                servers.put(name, &namespace);
            }
            let stable = self.read(&change.id, change.offered, &namespace);
            let ahead = self.read(&change.id, change.ahead, &namespace);
            // Without another version ahead, the one that everybody finds is found in both channels.
            let channels: &[Channel] = if ahead.is_some() {
                &[Channel::Stable]
            } else {
                &[Channel::Stable, Channel::Beta]
            };
            let key = format!("{}{AHEAD}", change.id);
            let (entry, stable) = stable.unzip();
            indexed.push(match entry {
                Some(entry) => put(entry, channels),
                None => Change::Remove(change.id.clone()),
            });
            let (entry, ahead) = ahead.unzip();
            match entry {
                Some(entry) => indexed.push(put(entry.renamed(&key), &[Channel::Beta])),
                None if self.is_ahead(&change.id) => indexed.push(Change::Remove(key)),
                None => {}
            }
            rows.push((change.id, stable, ahead));
        }
        drop(servers);
        {
            let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
            for (id, stable, _) in &rows {
                recent.retain(|known| known != id);
                if stable.is_some() {
                    recent.push_front(id.clone());
                    recent.truncate(RECENT);
                }
            }
        }
        {
            let mut known = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
            for (id, stable, ahead) in rows {
                known.stable.put(&id, stable.as_ref().map(|read| (read.row.clone(), &read.found)));
                known.ahead.put(&id, ahead.as_ref().map(|read| (read.row.clone(), &read.found)));
            }
        }
        // What does not fit any more is still listed and described, only not searched.
        if self.index.apply(indexed).is_err() {
            self.damaged.fetch_add(1, Ordering::Relaxed);
        }
        self.turn.fetch_add(1, Ordering::Release);
    }

    fn is_ahead(&self, id: &str) -> bool {
        self.shelves.read().unwrap_or_else(PoisonError::into_inner).ahead.get(id).is_some()
    }

    /// Reads a row of the store; one that cannot be read is counted.
    fn read(
        &self,
        id: &str,
        offered: Option<Offered>,
        namespace: &Arc<str>,
    ) -> Option<(Entry, Read)> {
        let offered = offered?;
        let entry = postcard::from_bytes::<Entry>(&offered.entry).ok();
        let entry = entry.filter(|entry| entry.key() == id);
        let found = serde_json::from_str::<Found>(&offered.found).ok();
        let Some((entry, found)) = entry.zip(found) else {
            self.damaged.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        // The index finds a tool among the names that the store has it among.
        let entry = entry.facet_if_it_fits(Facet::Namespace, namespace);
        let row = Row { found: offered.found.into(), namespace: Arc::clone(namespace) };
        Some((entry, Read { found, row }))
    }

    /// Answers a query of somebody who sees everything that is offered to everybody.
    pub fn search(&self, query: &Query) -> Answers {
        self.search_in(query.clone(), &View::ALL)
    }

    /// How many of what a query finds have which value, as far as it is offered to everybody.
    pub fn counts(&self, query: &Query, facets: &[Facet], most: usize) -> Vec<Vec<FacetCount>> {
        let stable = Channel::Stable.name();
        let narrowed = self.is_split().then(|| query.clone().filter(Facet::Channel, stable).ok());
        self.index.snapshot().count(narrowed.flatten().as_ref().unwrap_or(query), facets, most)
    }

    /// Whether anything is ahead of what is stable. Filters are applied before ranking; where all is stable there is
    /// nothing to filter.
    fn is_split(&self) -> bool {
        self.shelves.read().unwrap_or_else(PoisonError::into_inner).ahead.len(None) > 0
    }

    /// Answers a query. One that names a namespace must not: it is the view that says whose names are seen.
    pub fn search_in(&self, query: Query, view: &View) -> Answers {
        let channel = self.is_split().then_some((Facet::Channel, view.channel.name()));
        let namespace = view.namespace().map(|name| (Facet::Namespace, name));
        let mut query = query;
        for (facet, value) in [channel, namespace].into_iter().flatten() {
            query = match query.filter(facet, value) {
                Ok(query) => query,
                Err(_) => return Answers::default(),
            };
        }
        let _searching = part(Place::Here, "search");
        let page = self.index.search(&query);
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let row = |key: &str| match key.strip_suffix(AHEAD) {
            Some(id) => shelves.ahead.get(id),
            None => shelves.stable.get(key),
        };
        // The index does not know letters of either case apart; whose names they are does.
        let is_seen = |row: &&Row| view.scope.covers(&row.namespace);
        let rows = page.hits.iter().filter_map(|hit| row(&hit.key)).filter(is_seen);
        Answers { rows: rows.map(|row| Arc::clone(&row.found)).collect(), total: page.total }
    }

    /// Some of all tools that somebody sees, by id.
    pub fn list_in(&self, view: &View, offset: usize, limit: usize) -> Answers {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let namespace = view.namespace();
        let Shelves { stable, ahead } = &*shelves;
        if view.channel == Channel::Stable || ahead.len(namespace) == 0 {
            let some = stable.ids(namespace).skip(offset).take(limit);
            let rows = some.filter_map(|id| stable.get(id)).map(|row| Arc::clone(&row.found));
            return Answers { rows: rows.collect(), total: stable.len(namespace) };
        }
        let only_ahead = ahead.ids(namespace).filter(|id| stable.get(id).is_none()).count();
        let merged = merge(stable.ids(namespace), ahead.ids(namespace));
        let rows = merged.skip(offset).take(limit);
        let rows = rows.filter_map(|id| ahead.get(id).or_else(|| stable.get(id)));
        Answers {
            rows: rows.map(|row| Arc::clone(&row.found)).collect(),
            total: stable.len(namespace) + only_ahead,
        }
    }

    /// The first names of servers that hold these small letters, in the order of their bytes, whether anything of them
    /// is offered or not; of a namespace, where one is named.
    pub fn servers_holding(
        &self,
        part: &str,
        from: Bound<&str>,
        namespace: Option<&str>,
        most: usize,
    ) -> Vec<String> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.holding(part, from, namespace, most)
    }

    /// The tools that have changed last and are offered to everybody, the last one first.
    pub fn recent(&self, limit: usize) -> Answers {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let some = recent.iter().filter_map(|id| shelves.stable.get(id)).take(limit);
        let rows = some.map(|row| Arc::clone(&row.found)).collect();
        Answers { rows, total: shelves.stable.len(None) }
    }

    /// The index as it is now, for several questions that must fit together.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.index.snapshot()
    }

    /// All tags of what is offered to everybody among the names of a scope, most frequent first; those that differ in
    /// case alone are one.
    pub fn tags_in(&self, scope: &Scope) -> Vec<Counted> {
        self.counted(scope, shelf::Counts::tags)
    }

    /// Everybody who provides such tools, most frequent first.
    pub fn providers_in(&self, scope: &Scope) -> Vec<Counted> {
        self.counted(scope, shelf::Counts::providers)
    }

    fn counted(&self, scope: &Scope, words: fn(&shelf::Counts) -> Vec<Counted>) -> Vec<Counted> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let namespace = match scope {
            Scope::All => None,
            Scope::Namespace(name) => Some(name.as_str()),
        };
        shelves.stable.counts(namespace).map(words).unwrap_or_default()
    }

    /// Makes old whatever was looked up before, because something has changed that could not be taken in yet.
    pub fn outdate(&self) {
        self.turn.fetch_add(1, Ordering::Release);
    }

    /// A number that changes whenever anything changes here.
    pub fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.shelves.read().unwrap_or_else(PoisonError::into_inner).stable.len(None)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of the last change that is in here.
    pub async fn last(&self) -> i64 {
        *self.last.lock().await
    }

    /// How many rows could not be read.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }
}

/// A row that was read.
struct Read {
    found: Found,
    row: Row,
}

/// An entry that is found in these channels.
fn put(entry: Entry, channels: &[Channel]) -> Change {
    let find_in = |entry: Entry, one: &Channel| entry.facet_if_it_fits(Facet::Channel, one.name());
    Change::Put(channels.iter().fold(entry, find_in))
}

/// What is in either of two ordered lists, in order, once.
fn merge<'s>(
    a: impl Iterator<Item = &'s Arc<str>>,
    b: impl Iterator<Item = &'s Arc<str>>,
) -> impl Iterator<Item = &'s Arc<str>> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(first), Some(second)) if first == second => {
            b.next();
            a.next()
        }
        (Some(first), Some(second)) if first > second => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    })
}
