//! The end of what a server said beside its answers.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use crate::output::clip;

/// How much of it is kept.
const MOST: usize = 16 << 10;

/// The end of what a server said on standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    /// Adds what it says now; what it said long ago goes.
    pub(super) fn add(&self, bytes: &[u8]) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&bytes[bytes.len().saturating_sub(MOST)..]);
        let extra = said.len().saturating_sub(MOST);
        said.drain(..extra);
    }

    /// Adds all that can be read, to its end.
    pub(super) fn add_all(&self, mut from: impl Read) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            self.add(&buffer[..count]);
        }
    }

    /// The text.
    pub(super) fn text(&self) -> String {
        clip(&self.bytes(), MOST)
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
