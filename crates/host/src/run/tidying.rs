//! Ends what nobody has needed for a while.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long something that has nothing to do is kept.
pub(crate) const IDLE: Duration = Duration::from_mins(1);

/// A thread that looks now and then, from the first time something is kept until nobody has the pool any more.
#[derive(Debug, Default)]
pub(crate) struct Tidying(OnceLock<()>);

impl Tidying {
    /// Sees to it that somebody looks.
    pub(crate) fn begin<T: Send + Sync + 'static>(&self, name: &str, pool: &Arc<T>, tidy: fn(&T)) {
        self.0.get_or_init(|| {
            let pool = Arc::downgrade(pool);
            let look = move || {
                loop {
                    std::thread::sleep(IDLE / 12);
                    let Some(pool) = pool.upgrade() else { return };
                    tidy(&pool);
                }
            };
            // Without the thread they would only be kept longer.
            let _ = std::thread::Builder::new().name(name.into()).spawn(look);
        });
    }
}
