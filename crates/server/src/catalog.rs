//! What can be found, in memory: the index, and the answer for each tool.
//!
//! It is loaded from rows that are kept ready in the store and kept current by what has changed there.
//! A row that cannot be read is left out and counted; it breaks no other.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use registry::{Counted, Found};
use search::{Change, Index, Query, Snapshot};
use tokio::sync::Mutex;

use crate::store::feed::Changed;
use crate::store::{Store, StoreError};

/// How many changes are read at once.
const BATCH: u32 = 5_000;

/// How many of the last changed tools are known by name.
const RECENT: usize = 24;

/// What can be found.
#[derive(Debug, Default)]
pub struct Catalog {
    index: Index,
    rows: RwLock<BTreeMap<String, Arc<str>>>,
    /// The number of the last change that is in here; held while more are taken in.
    last: Mutex<i64>,
    damaged: AtomicU64,
    /// The tools that have changed last, the last one first.
    recent: RwLock<VecDeque<String>>,
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
    /// Takes in everything that has changed in the store since the last time.
    pub async fn refresh(&self, store: &Store) -> Result<(), StoreError> {
        let mut last = self.last.lock().await;
        loop {
            let changes = store.changes(*last, BATCH).await?;
            let Some(newest) = changes.last().map(|change| change.number) else { return Ok(()) };
            let is_all = changes.len() < BATCH as usize;
            self.take_in(changes);
            *last = newest;
            if is_all {
                return Ok(());
            }
        }
    }

    fn take_in(&self, changes: Vec<Changed>) {
        let mut indexed = Vec::with_capacity(changes.len());
        let mut rows = Vec::with_capacity(changes.len());
        for change in changes {
            let read = change.offered.map(|offered| {
                let entry = postcard::from_bytes::<search::Entry>(&offered.entry).ok();
                let is_ours = |entry: &search::Entry| entry.key() == change.id;
                let is_readable = serde_json::from_str::<Found>(&offered.found).is_ok();
                entry.filter(is_ours).filter(|_| is_readable).zip(Some(offered.found))
            });
            let found = match read {
                Some(Some((entry, found))) => {
                    indexed.push(Change::Put(entry));
                    Some(found.into())
                }
                Some(None) => {
                    self.damaged.fetch_add(1, Ordering::Relaxed);
                    indexed.push(Change::Remove(change.id.clone()));
                    None
                }
                None => {
                    indexed.push(Change::Remove(change.id.clone()));
                    None
                }
            };
            rows.push((change.id, found));
        }
        {
            let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
            for (id, found) in &rows {
                recent.retain(|known| known != id);
                if found.is_some() {
                    recent.push_front(id.clone());
                    recent.truncate(RECENT);
                }
            }
        }
        {
            let mut known = self.rows.write().unwrap_or_else(PoisonError::into_inner);
            for (id, found) in rows {
                match found {
                    Some(found) => known.insert(id, found),
                    None => known.remove(&id),
                };
            }
        }
        // What does not fit any more is still listed and described, only not searched.
        if self.index.apply(indexed).is_err() {
            self.damaged.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers a query.
    pub fn search(&self, query: &Query) -> Answers {
        let page = self.index.search(query);
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let found = page.hits.iter().filter_map(|hit| rows.get(&hit.key).cloned()).collect();
        Answers { rows: found, total: page.total }
    }

    /// Some of all tools, by id.
    pub fn list(&self, offset: usize, limit: usize) -> Answers {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let some = rows.values().skip(offset).take(limit).cloned().collect();
        Answers { rows: some, total: rows.len() }
    }

    /// The tools that have changed last, the last one first.
    pub fn recent(&self, limit: usize) -> Answers {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let some = recent.iter().filter_map(|id| rows.get(id).cloned()).take(limit).collect();
        Answers { rows: some, total: rows.len() }
    }

    /// The index as it is now, for several questions that must fit together.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.index.snapshot()
    }

    /// All tags, most frequent first; those that differ in case alone are one.
    pub fn tags(&self) -> Vec<Counted> {
        self.count(|found| found.tags.iter().map(|tag| tag.trim().to_lowercase()).collect())
    }

    /// Everybody who provides tools, most frequent first.
    pub fn providers(&self) -> Vec<Counted> {
        self.count(|found| found.provider.into_iter().collect())
    }

    fn count(&self, words: impl Fn(Found) -> std::collections::BTreeSet<String>) -> Vec<Counted> {
        let all: Vec<Arc<str>> = {
            let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
            rows.values().cloned().collect()
        };
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for row in all {
            let Ok(found) = serde_json::from_str::<Found>(&row) else { continue };
            for word in words(found).into_iter().filter(|word| !word.is_empty()) {
                *counts.entry(word).or_default() += 1;
            }
        }
        let mut counted: Vec<Counted> =
            counts.into_iter().map(|(name, count)| Counted { name, count }).collect();
        counted.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        counted
    }

    /// How many rows could not be read.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }
}
