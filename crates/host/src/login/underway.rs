//! What must not be broken off once it has begun.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::RwLock;
use tokio::task::JoinError;

/// How long is waited for it at the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// What goes on also when nobody waits for it any more: a refresh token that a server has taken is gone, so
/// whoever sent it has to keep what comes back. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Underway(Arc<RwLock<()>>);

impl Underway {
    /// Does something to its end, whoever waits for it.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        run: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        let busy = Arc::clone(&self.0).read_owned().await;
        let spawned = tokio::spawn(async move {
            let _busy = busy;
            run.await
        });
        spawned.await
    }

    /// Waits until all of it is done, for a while.
    pub(crate) async fn settle(&self) {
        let _ = tokio::time::timeout(PATIENCE, self.0.write()).await;
    }
}
