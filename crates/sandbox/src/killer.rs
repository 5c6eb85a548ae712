//! What ends a program from anywhere.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a program from anywhere. Cheap to clone.
#[derive(Clone)]
pub struct Killer {
    end: Arc<dyn Fn() + Send + Sync>,
    was_used: Arc<AtomicBool>,
}

impl Killer {
    /// Ends the program and all it started, at once.
    pub fn kill(&self) {
        self.was_used.store(true, Ordering::Release);
        (self.end)();
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
impl Killer {
    pub(crate) fn new(end: impl Fn() + Send + Sync + 'static) -> Self {
        Self { end: Arc::new(end), was_used: Arc::default() }
    }

    pub(crate) fn was_used(&self) -> bool {
        self.was_used.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Killer").field("was_used", &self.was_used).finish_non_exhaustive()
    }
}
