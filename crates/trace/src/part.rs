//! What a request spends its time with.
//!
//! A part is a value that is held while it lasts. Where no collector is told of the request, it is nothing at all.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most parts of one request that are told; a bundle of a thousand files is no reason to tell a thousand.
const MOST: usize = 32;

/// Where time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// With the database.
    Database,
    /// Where the files of packages are.
    Files,
    /// In this process.
    Here,
}

/// A part that is over.
#[derive(Debug)]
pub struct Part {
    pub(crate) place: Place,
    pub(crate) name: &'static str,
    /// How long after the request it began.
    pub(crate) after: Duration,
    pub(crate) took: Duration,
}

/// The parts of a request that are over.
#[derive(Clone, Debug, Default)]
pub struct Parts(Arc<Mutex<Vec<Over>>>);

#[derive(Debug)]
struct Over {
    place: Place,
    name: &'static str,
    began: Instant,
    took: Duration,
}

impl Parts {
    /// All of them, of a request that began then.
    pub fn since(&self, request: Instant) -> Vec<Part> {
        let over = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let part = |Over { place, name, began, took }| {
            let after = began.saturating_duration_since(request);
            Part { place, name, after, took }
        };
        over.into_iter().map(part).collect()
    }
}

tokio::task_local! {
    static UNDERWAY: Option<Parts>;
}

/// Does the work of a request, whose parts are noted here.
pub async fn within<F: Future>(parts: Option<Parts>, work: F) -> F::Output {
    UNDERWAY.scope(parts, work).await
}

/// Begins a part of the request that is under way; it is over when this is dropped.
pub fn part(place: Place, name: &'static str) -> Running {
    let parts = UNDERWAY.try_with(Clone::clone).ok().flatten();
    Running(parts.map(|parts| (parts, place, name, Instant::now())))
}

/// A part that is under way.
#[must_use = "a part lasts as long as this is held"]
pub struct Running(Option<(Parts, Place, &'static str, Instant)>);

impl Drop for Running {
    fn drop(&mut self) {
        let Some((Parts(parts), place, name, began)) = self.0.take() else { return };
        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        if parts.len() < MOST {
            parts.push(Over { place, name, began, took: began.elapsed() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn parts_are_noted_where_somebody_wants_them_and_not_without_end() {
        let (began, parts) = (Instant::now(), Parts::default());
        drop(part(Place::Here, "outside"));
        within(None, async { drop(part(Place::Here, "untold")) }).await;
        within(Some(parts.clone()), async {
            for _ in 0..MOST + 5 {
                drop(part(Place::Database, "told"));
            }
        })
        .await;
        let told = parts.since(began);
        assert_eq!(told.len(), MOST);
        assert!(told.iter().all(|part| part.name == "told" && part.place == Place::Database));
    }
}
