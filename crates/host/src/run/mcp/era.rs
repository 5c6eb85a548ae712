//! Which of its eras the protocol of a server is of.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt};

/// An era of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Every request stands for itself: 2026-07-28 and after.
    Stateless,
    /// A handshake comes first: 2025-11-25 and before.
    Handshake,
    /// The same, and over the network events come over one URL and messages go to another: 2024-11-05.
    Events,
}

impl Era {
    /// Its name, as it is written down.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stateless => "stateless",
            Self::Handshake => "handshake",
            Self::Events => "events",
        }
    }

    /// The era of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Stateless, Self::Handshake, Self::Events].into_iter().find(|era| era.name() == name)
    }
}

/// Remembers the era of each server, because to ask one that keeps silent costs seconds. No secret is in
/// what a server is called here.
pub trait Eras: fmt::Debug + Send + Sync {
    /// What is known of a server.
    fn known<'e>(&'e self, server: &'e str) -> BoxFuture<'e, Option<Era>>;

    /// Remembers what was found, or forgets what was wrong.
    fn remember<'e>(&'e self, server: &'e str, era: Option<Era>) -> BoxFuture<'e, ()>;
}

/// Eras for as long as the program runs.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<HashMap<String, Era>>);

/// How many servers are remembered.
const MOST: usize = 4096;

impl Eras for InMemory {
    fn known<'e>(&'e self, server: &'e str) -> BoxFuture<'e, Option<Era>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(server).copied();
        std::future::ready(known).boxed()
    }

    fn remember<'e>(&'e self, server: &'e str, era: Option<Era>) -> BoxFuture<'e, ()> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match era {
            Some(era) => {
                if known.len() >= MOST {
                    known.clear();
                }
                known.insert(server.to_owned(), era);
            }
            None => {
                known.remove(server);
            }
        }
        std::future::ready(()).boxed()
    }
}
