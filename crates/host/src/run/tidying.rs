//! Ends what nobody has needed for a while.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long something that has nothing to do is kept, unless somebody says otherwise.
const IDLE: Duration = Duration::from_mins(1);

/// How long it is waited between two looks at least.
const SHORTEST: Duration = Duration::from_millis(10);

/// A thread that looks now and then, from the first time something is kept until nobody has the pool any more.
#[derive(Debug)]
pub(crate) struct Tidying {
    idle: Duration,
    begun: OnceLock<()>,
}

impl Default for Tidying {
    fn default() -> Self {
        Self::after(IDLE)
    }
}

impl Tidying {
    /// Of what has had nothing to do for so long.
    pub(crate) fn after(idle: Duration) -> Self {
        Self { idle, begun: OnceLock::new() }
    }

    /// How long something that has nothing to do is kept.
    pub(crate) fn idle(&self) -> Duration {
        self.idle
    }

    /// How long it is waited between two looks.
    fn pause(&self) -> Duration {
        (self.idle / 12).max(SHORTEST)
    }

    /// Sees to it that somebody looks.
    pub(crate) fn begin<T: Send + Sync + 'static>(&self, name: &str, pool: &Arc<T>, tidy: fn(&T)) {
        self.begun.get_or_init(|| {
            let (pool, pause) = (Arc::downgrade(pool), self.pause());
            let look = move || {
                loop {
                    std::thread::sleep(pause);
                    let Some(pool) = pool.upgrade() else { return };
                    tidy(&pool);
                }
            };
            // Without the thread they would only be kept longer.
            let _ = std::thread::Builder::new().name(name.into()).spawn(look);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looks_all_the_time() {
        for idle in [Duration::ZERO, Duration::from_nanos(1), Duration::from_mins(1)] {
            assert!(Tidying::after(idle).pause() >= SHORTEST, "{idle:?}");
        }
    }
}
