//! Memory that is given out by the piece, so that all who ask together never take more than there is.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bytes of a piece.
const PIECE: usize = 64 << 10;
/// How long somebody waits for a piece.
const TURN: Duration = Duration::from_secs(30);

/// So much memory, for all of them.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Semaphore>);

/// What somebody has of it, until this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Memory,
    pieces: Option<OwnedSemaphorePermit>,
}

/// There is none left, and none came back for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory;

impl Memory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.div_ceil(PIECE))))
    }

    /// A share of nothing yet.
    pub(crate) fn share(&self) -> Share {
        Share { memory: self.clone(), pieces: None }
    }
}

impl Share {
    /// Sees to it that there is room for so many bytes in all.
    pub(crate) async fn hold(&mut self, bytes: usize) -> Result<(), NoMemory> {
        let held = self.pieces.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = bytes.div_ceil(PIECE).saturating_sub(held);
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).map_err(|_| NoMemory)?;
        let taking = Arc::clone(&self.memory.0).acquire_many_owned(more);
        let taken = tokio::time::timeout(TURN, taking).await.map_err(|_| NoMemory)?;
        let taken = taken.map_err(|_| NoMemory)?;
        match &mut self.pieces {
            Some(pieces) => pieces.merge(taken),
            none => *none = Some(taken),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_given_back_is_given_out_again_and_never_more() {
        let memory = Memory::new(3 * PIECE);
        let mut first = memory.share();
        first.hold(1).await.unwrap();
        first.hold(PIECE).await.unwrap();
        assert_eq!(memory.0.available_permits(), 2, "a piece is taken once");
        first.hold(PIECE + 1).await.unwrap();
        let mut second = memory.share();
        second.hold(PIECE).await.unwrap();
        let soon = Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, second.hold(2 * PIECE)).await.is_err());
        drop(first);
        second.hold(3 * PIECE).await.unwrap();
        assert_eq!(memory.0.available_permits(), 0);
        drop(second);
        assert_eq!(memory.0.available_permits(), 3);
    }
}
