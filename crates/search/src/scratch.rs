//! Memory that a search works in, kept for the next one.

use std::sync::{Mutex, PoisonError};

use crate::documents::Documents;
use crate::segment::SEGMENT;

/// How many are kept: as many as search at once on a large machine.
const KEPT: usize = 16;

/// A number for each document of a segment.
pub(crate) type Scores = [u32; SEGMENT];

/// All zero, between searches.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) scores: Box<Scores>,
    /// For words with several spellings: what counts most so far.
    pub(crate) highest: Box<Scores>,
    /// The documents that have a score, where they are few.
    pub(crate) met: Vec<u16>,
    /// Those of them that can be among the best.
    pub(crate) near: Vec<u16>,
    /// Their scores, to find the last of the best.
    pub(crate) sorted: Vec<u32>,
    /// All that are found, to count them.
    pub(crate) found: Documents,
}

/// Scratches that nobody uses.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Scratch>>);

impl Pool {
    pub(crate) fn take(&self) -> Scratch {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Scratch {
            scores: zeros(),
            highest: zeros(),
            met: Vec::new(),
            near: Vec::new(),
            sorted: Vec::new(),
            found: Documents::none(0),
        })
    }

    /// Gives one back, all zero.
    pub(crate) fn give(&self, scratch: Scratch) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(scratch);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() * 2 * size_of::<Scores>()
    }
}

/// Made on the heap: it is too large for a stack.
fn zeros() -> Box<Scores> {
    vec![0; SEGMENT].into_boxed_slice().try_into().expect("it has as many numbers as it says")
}
