//! Hearing of changes at once.
//!
//! `PostgreSQL` tells whoever listens. What is told is a hint and nothing more: whoever hears nothing, because the
//! connection was cut or something between does not pass it on, looks by itself now and then.

use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};

use super::Store;

/// What is listened for.
const CHANNEL: &str = "haft_registry";
/// How long is waited before it is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Somebody who listens. It connects when it is first asked, and again whenever it was cut off.
#[derive(Default)]
pub struct Ear {
    listener: Option<PgListener>,
}

impl std::fmt::Debug for Ear {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Ear").field("listens", &self.listens()).finish()
    }
}

impl Ear {
    /// Whether it is connected.
    pub fn listens(&self) -> bool {
        self.listener.is_some()
    }

    /// Waits until something may have changed. A database that tells nobody is waited for without end.
    pub async fn hear(&mut self, store: &Store) {
        let Some(options) = &store.listening else { return std::future::pending().await };
        loop {
            match &mut self.listener {
                Some(listener) => {
                    // Nothing without an error is a connection that was cut: something may have been missed.
                    if !matches!(listener.try_recv().await, Ok(Some(_))) {
                        self.listener = None;
                    }
                    return;
                }
                None => {
                    let pool = PgPoolOptions::new()
                        .max_connections(1)
                        .acquire_timeout(PATIENCE)
                        .max_lifetime(None)
                        .idle_timeout(None)
                        .connect_lazy_with(options.clone());
                    let connected = async {
                        let mut listener = PgListener::connect_with(&pool).await?;
                        listener.eager_reconnect(false);
                        listener.listen(CHANNEL).await?;
                        Ok::<_, sqlx::Error>(listener)
                    };
                    if let Ok(listener) = connected.await {
                        self.listener = Some(listener);
                        // What came before is not told again.
                        return;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}
