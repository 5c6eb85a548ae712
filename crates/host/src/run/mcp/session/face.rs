//! What a server sees of us: a name, what those can be asked whom we call it for, and a polite no to every other question.
#![expect(deprecated, reason = "servers of the older era still ask these")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientConfig, ConstString, CreateMessageRequestMethod, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationCreateRequestMethod,
    ErrorCode, ErrorData, Implementation, ListRootsRequestMethod, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::told::{Listeners, Meant};
use crate::call::{Advance, Refused};
use crate::run::mcp::notice::{Notice, Notices};

/// Who a server is spoken with for.
#[derive(Clone, Debug, Default)]
pub(in crate::run::mcp) struct Client {
    /// What they can be asked, as the protocol writes it.
    pub(in crate::run::mcp) capabilities: Map<String, Value>,
    /// Who is told what the server says to nobody in particular.
    pub(in crate::run::mcp) notices: Notices,
    /// Whether servers of its package are known to ask those whom they work for.
    pub(in crate::run::mcp) asks: Arc<AtomicBool>,
}

/// Says who we are, as the protocol writes it.
pub(super) fn own_name() -> Implementation {
    Implementation::new("haft", env!("CARGO_PKG_VERSION"))
}

/// What a server sees of us.
#[derive(Debug)]
pub(super) struct Face {
    ears: Ears,
    client: Client,
}

impl Face {
    pub(super) fn new(ears: Ears, client: Client) -> Self {
        Self { ears, client }
    }

    /// Asks whoever it is called for.
    async fn pass_on<T: DeserializeOwned>(
        &self,
        method: &'static str,
        capability: &str,
        params: impl Serialize,
    ) -> Result<T, ErrorData> {
        if !self.client.capabilities.contains_key(capability) {
            return Err(not_offered(method));
        }
        self.client.asks.store(true, Ordering::Release);
        let peer = match self.ears.listeners.meant().await {
            Meant::One(peer) => peer,
            Meant::Nobody => return Err(unanswered("no call is under way that it could be for")),
            Meant::Several => {
                return Err(unanswered(
                    "several clients wait for this server, and it does not say which one it asks",
                ));
            }
        };
        let _asking = self.ears.listeners.asking(&*peer);
        let params = serde_json::to_value(params).map_err(|error| odd(&error))?;
        let answer = tokio::select! {
            answer = peer.ask(method, params) => answer.map_err(of_refusal)?,
            () = self.ears.listeners.over(peer.client()) => {
                return Err(unanswered("the call that it was asked for is over"));
            }
        };
        serde_json::from_value(answer).map_err(|error| odd(&error))
    }

    fn hear(&self, method: &str, params: impl Serialize) {
        self.ears.hear(method, serde_json::to_value(params).unwrap_or_default());
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

const PROGRESS: &str = "notifications/progress";
const MESSAGE: &str = "notifications/message";
pub(super) const TOOLS: &str = "notifications/tools/list_changed";
pub(super) const PROMPTS: &str = "notifications/prompts/list_changed";
pub(super) const RESOURCES: &str = "notifications/resources/list_changed";
pub(super) const RESOURCE: &str = "notifications/resources/updated";

/// Who is told what a server says without being asked.
#[derive(Clone, Debug)]
pub(super) struct Ears {
    pub(super) listeners: Listeners,
    pub(super) changes: Changes,
    pub(super) notices: Notices,
}

impl Ears {
    /// Those of a client.
    pub(super) fn of(client: &Client) -> Self {
        let notices = client.notices.clone();
        Self { listeners: Listeners::default(), changes: Changes::default(), notices }
    }

    /// Hears what a server says; whether it is of those things that somebody is told.
    pub(super) fn hear(&self, method: &str, params: Value) -> bool {
        match method {
            PROGRESS => self.advanced(params),
            MESSAGE => {
                if let Meant::One(peer) = self.listeners.meant_at_once() {
                    peer.tell(MESSAGE, params);
                }
            }
            TOOLS => {
                self.changes.0.fetch_add(1, Ordering::AcqRel);
                self.note(TOOLS, Value::Null);
            }
            PROMPTS => self.note(PROMPTS, Value::Null),
            RESOURCES => self.note(RESOURCES, Value::Null),
            RESOURCE => self.note(RESOURCE, params),
            _ => return false,
        }
        true
    }

    fn advanced(&self, params: Value) {
        let Ok(params) = serde_json::from_value::<ProgressNotificationParam>(params) else {
            return;
        };
        let told = self.listeners.told(&params.progress_token);
        if let Some(listener) = told.and_then(|told| told.progress) {
            listener.advanced(&Advance {
                done: params.progress,
                total: params.total,
                message: params.message,
            });
        }
    }

    fn note(&self, method: &'static str, params: Value) {
        self.notices.tell(Notice { method, params });
    }
}

impl ClientHandler for Face {
    fn get_info(&self) -> ClientConfig {
        let name = own_name();
        let offered = Value::Object(self.client.capabilities.clone());
        let capabilities = serde_json::from_value(offered).unwrap_or_default();
        ClientConfig::new(capabilities, name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.pass_on(CreateMessageRequestMethod::VALUE, "sampling", request).await
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.pass_on(ListRootsRequestMethod::VALUE, "roots", json!({})).await
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.pass_on(ElicitationCreateRequestMethod::VALUE, "elicitation", request).await
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.hear(TOOLS, ());
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.hear(PROMPTS, ());
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.hear(RESOURCES, ());
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(RESOURCE, params);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(MESSAGE, params);
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(PROGRESS, params);
    }
}

fn not_offered(method: &'static str) -> ErrorData {
    let message = format!("`{method}` is not among this client's capabilities");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

fn unanswered(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, why.to_owned(), None)
}

fn odd(error: &serde_json::Error) -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, format!("the answer cannot be read: {error}"), None)
}

fn of_refusal(refused: Refused) -> ErrorData {
    ErrorData::new(ErrorCode(refused.code), refused.message, refused.data)
}
