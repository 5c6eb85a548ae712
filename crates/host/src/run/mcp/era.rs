//! Which of its two eras the protocol of a server is of.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// An era of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Every request stands for itself: 2026-07-28 and after.
    Stateless,
    /// A handshake comes first: 2025-11-25 and before.
    Handshake,
}

/// Remembers the era of each server, because to ask one that keeps silent costs seconds.
///
/// A home that keeps it between runs brings its own. Keys are long and may hold what nobody should
/// read, so what is written down should be a digest of them.
pub trait Eras: fmt::Debug + Send + Sync {
    /// What is known of a server.
    fn known(&self, server: &str) -> Option<Era>;

    /// Remembers what was found, or forgets what was wrong.
    fn remember(&self, server: &str, era: Option<Era>);
}

/// Eras for as long as the program runs.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<HashMap<String, Era>>);

/// How many servers are remembered.
const MOST: usize = 4096;

impl Eras for InMemory {
    fn known(&self, server: &str) -> Option<Era> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(server).copied()
    }

    fn remember(&self, server: &str, era: Option<Era>) {
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
    }
}
