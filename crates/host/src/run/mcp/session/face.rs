//! What a server sees of us: a name, no capabilities, and a polite no to every question.
#![expect(deprecated, reason = "servers of the older era still ask these")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ConstString, ElicitRequestParams, ElicitResult,
    ElicitationCreateRequestMethod, ErrorCode, ErrorData, Implementation, ListRootsRequestMethod,
    ListRootsResult, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

use crate::call::{Advance, Progress};

/// What a server sees of us.
#[derive(Debug)]
pub(super) struct Face {
    listeners: Listeners,
    changes: Changes,
}

impl Face {
    pub(super) fn new(listeners: Listeners, changes: Changes) -> Self {
        Self { listeners, changes }
    }
}

/// How often a server said that its tools are others.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes(Arc<AtomicU64>);

impl Changes {
    /// So often until now.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl ClientHandler for Face {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("haft", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(not_offered(ListRootsRequestMethod::VALUE))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(not_offered(ElicitationCreateRequestMethod::VALUE))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.0.fetch_add(1, Ordering::AcqRel);
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let found = self.listeners.lock().get(&params.progress_token).cloned();
        if let Some(listener) = found {
            listener.advanced(&Advance {
                done: params.progress,
                total: params.total,
                message: params.message,
            });
        }
    }
}

fn not_offered(method: &'static str) -> ErrorData {
    let message = format!("`{method}` is not among this client's capabilities");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Who is told how far which request is.
#[derive(Clone, Default)]
pub(super) struct Listeners(Arc<Mutex<HashMap<ProgressToken, Arc<dyn Progress>>>>);

impl Listeners {
    /// Tells somebody about a request for as long as what is returned lives.
    pub(super) fn add(&self, token: &ProgressToken, listener: Arc<dyn Progress>) -> Listening {
        self.lock().insert(token.clone(), listener);
        Listening { listeners: self.clone(), token: token.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, Arc<dyn Progress>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Listeners").field("count", &self.lock().len()).finish()
    }
}

/// Somebody who listens.
pub(super) struct Listening {
    listeners: Listeners,
    token: ProgressToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.listeners.lock().remove(&self.token);
    }
}
