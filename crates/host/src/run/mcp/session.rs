//! A conversation with an MCP server, over any wire. This module and those below it are the only
//! ones that know the library.

mod events;
mod face;
mod health;
pub(super) mod http;
mod lane;
pub(super) mod line;
mod listening;
pub(super) mod sse;
pub(super) mod stdio;
mod told;

use std::io;
use std::sync::Arc;

use egress::http::{SendError, Url};
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, ListToolsRequest, MetaObject,
    PaginatedRequestParams, ProtocolVersion, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions,
    RoleClient, RunningService, ServiceError,
};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::{Map, Value, json};

pub(super) use self::face::Client;
use self::face::{Ears, Face, own_name};
pub(super) use self::health::Health;
use self::lane::Lane;
use self::line::Fault;
use self::listening::{Ear, Listening};
pub(super) use self::told::Claim;
pub(crate) use self::told::Told;
use super::era::Era;
use crate::error::{CallError, Kind};
use crate::login::challenge::WantsLogin;
use crate::run::http::not_sent;
use crate::run::place_of;

/// JSON-RPC: the parameters are not what the method takes.
const BAD_PARAMETERS: i32 = -32602;

/// Calls a tool.
const CALL: &str = "tools/call";

/// Why a server need not go on.
const UNAWAITED: &str = "nobody waits for it any more";

/// A conversation with a server. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Session {
    service: RunningService<RoleClient, Face>,
    ears: Ears,
    health: Arc<Health>,
    /// The short way to its tools, where there is one, and what every request of its era says of us.
    lane: Option<(Arc<Lane>, Map<String, Value>)>,
    /// What it says to nobody in particular, where it has to be listened to for that.
    listening: Option<Listening>,
}

/// A tool that is called, as it is asked for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCall<'c> {
    pub(super) name: &'c str,
    pub(super) arguments: &'c Map<String, Value>,
    /// What was asked for before, and what the server wants to be told again with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input_responses: Option<&'c Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_state: Option<&'c str>,
}

/// How a conversation is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// As the server's era is known.
    Known(Era),
    /// By asking the server for its era.
    Ask,
}

/// Why a conversation gave no answer.
#[derive(Debug)]
pub(super) enum AskError {
    /// The server refused, with an error of the protocol.
    Refused { code: i32, message: String, data: Option<Value> },
    /// The wire is gone.
    Closed,
    /// The wire failed.
    Wire(String),
    /// The wire failed, and it is known why.
    Told(Box<CallError>),
    /// The server wants to know who is asking, or wants them to be allowed more.
    Login(WantsLogin),
    /// The answer is longer than it may be.
    TooMuch,
    /// The server said something that is no answer to what was asked.
    Odd(String),
}

impl Session {
    /// Begins a conversation, as a client of whom the server may ask this.
    pub(super) async fn open(
        transport: impl Transport<RoleClient> + 'static,
        health: Arc<Health>,
        opening: Opening,
        client: &Client,
    ) -> Result<Self, AskError> {
        let modern = || vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match opening {
            Opening::Known(Era::Stateless) => {
                ClientLifecycleMode::Discover { preferred_versions: modern() }
            }
            Opening::Known(Era::Handshake | Era::Events) => ClientLifecycleMode::Initialize,
            Opening::Ask => ClientLifecycleMode::Auto {
                preferred_versions: modern(),
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
        };
        let ears = Ears::of(client);
        let face = Face::new(ears.clone(), client.clone());
        let opened = tokio::select! {
            opened = face.serve_with_lifecycle(transport, lifecycle) => opened.map_err(of_opening),
            () = health.broken() => Err(AskError::Closed),
        };
        let service = opened.map_err(|error| known(error, &health))?;
        Ok(Self { service, ears, health, lane: None, listening: None })
    }

    /// The same conversation, whose tools are called by the short way.
    pub(super) fn by(mut self, lane: Option<Arc<Lane>>, client: &Client) -> Self {
        let context = match self.era() {
            Era::Handshake | Era::Events => Map::new(),
            Era::Stateless => context(client),
        };
        if let Some(lane) = &lane {
            lane.listen(&self.ears);
        }
        self.lane = lane.map(|lane| (lane, context));
        self
    }

    /// Listens to a server of the newer era, on behalf of who is told what it says to nobody in particular.
    pub(super) fn listen(&mut self) {
        if self.era() == Era::Stateless {
            let (peer, ears) = (self.service.peer().clone(), self.ears.clone());
            self.listening = Listening::begin(Ear { peer, ears });
        }
    }

    /// The server's era.
    pub(super) fn era(&self) -> Era {
        let info = self.service.peer().peer_info();
        if info.is_some_and(|info| info.protocol_version.has_initialize()) {
            Era::Handshake
        } else {
            Era::Stateless
        }
    }

    /// How often the server said that its tools are others.
    pub(super) fn changes(&self) -> u64 {
        self.ears.changes.count()
    }

    /// Takes it up for somebody: see [`told::Listeners::claim`].
    pub(super) fn claim(&self, peer: &dyn crate::Peer, asks: bool) -> Option<Claim> {
        self.ears.listeners.claim(peer, asks)
    }

    /// Whether the wire is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.service.is_closed()
            || self.service.peer().is_transport_closed()
            || self.health.fault().is_some()
            || self.lane.as_ref().is_some_and(|(lane, _)| lane.is_closed())
    }

    /// What it said of itself when it greeted: its capabilities, and what else it would have its clients know.
    pub(super) fn greeting(&self) -> Value {
        let info = self.service.peer().peer_info();
        info.and_then(|info| serde_json::to_value(&*info).ok()).unwrap_or_default()
    }

    /// Calls a tool. Whoever stops waiting has the server told so.
    pub(super) async fn call(&self, call: &ToolCall<'_>, told: Told) -> Result<Value, AskError> {
        let Some((lane, context)) = &self.lane else {
            let params = serde_json::to_value(call).unwrap_or_default();
            return Box::pin(self.request(CALL, params, told)).await;
        };
        let asked = lane.ask((CALL, call), context, (&self.ears, told)).await;
        asked.map_err(|error| known(error, &self.health))
    }

    /// Asks for anything else, in the words of the protocol.
    pub(super) async fn request(
        &self,
        method: &str,
        params: Value,
        told: Told,
    ) -> Result<Value, AskError> {
        // In the newer era a resource is watched by who listens.
        if let (Some(listening), Some(uri)) = (&self.listening, params["uri"].as_str()) {
            match method {
                "resources/subscribe" => {
                    return Box::pin(listening.watch(uri)).await.map(|()| json!({}));
                }
                "resources/unsubscribe" => {
                    return Box::pin(listening.unwatch(uri)).await.map(|()| json!({}));
                }
                _ => {}
            }
        }
        let request = serde_json::from_value(json!({ "method": method, "params": params }));
        let request: ClientRequest = request.map_err(|_| AskError::Refused {
            code: BAD_PARAMETERS,
            message: format!("these are no parameters of `{method}`"),
            data: None,
        })?;
        self.ask(request, told).await
    }

    /// A page of its tools, and where the next one begins.
    pub(super) async fn tools(
        &self,
        cursor: Option<String>,
    ) -> Result<(Vec<Value>, Option<String>), AskError> {
        let mut request = ListToolsRequest::default();
        if cursor.is_some() {
            request.params = Some(PaginatedRequestParams::default().with_cursor(cursor));
        }
        let mut page = self.ask(ClientRequest::ListToolsRequest(request), Told::default()).await?;
        let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        match page.get_mut("tools").map(Value::take) {
            Some(Value::Array(tools)) => Ok((tools, next)),
            _ => Err(AskError::Odd("its list of tools is none".to_owned())),
        }
    }

    async fn ask(&self, request: ClientRequest, told: Told) -> Result<Value, AskError> {
        let peer = self.service.peer();
        let mut options = PeerRequestOptions::no_options();
        let meta = told.meta();
        if !meta.is_empty() {
            options = options.with_meta(RequestMetaObject(MetaObject(meta)));
        }
        let sent = peer.send_request_with_option(request, options).await;
        let handle = sent.map_err(|error| known(of_asking(error), &self.health))?;
        let listening = self.ears.listeners.add(&handle.progress_token, told);
        let mut waiting = Waiting { peer, id: Some(handle.id.clone()) };
        let answered = tokio::select! {
            answered = handle.await_response() => answered.map_err(of_asking),
            () = self.health.broken() => Err(AskError::Closed),
        };
        waiting.id = None;
        listening.note(&answered);
        let result: ServerResult = answered.map_err(|error| known(error, &self.health))?;
        serde_json::to_value(result).map_err(|error| AskError::Odd(error.to_string()))
    }
}

/// What every request to a server of the newer era says of us.
fn context(client: &Client) -> Map<String, Value> {
    let offered = Value::Object(client.capabilities.clone());
    let capabilities = serde_json::from_value(offered).unwrap_or_default();
    let said = RequestMetaObject::with_client_context(
        ProtocolVersion::V_2026_07_28,
        own_name(),
        capabilities,
    );
    said.0.0
}

/// A request that is waited for. When nobody does any more, the server is told.
struct Waiting<'w> {
    peer: &'w Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some(UNAWAITED.to_owned());
            let params = CancelledNotificationParam::new(Some(id), reason);
            let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
        });
    }
}

/// Why there is no answer, where more is known than that the wire is gone.
fn known(error: AskError, health: &Health) -> AskError {
    match (error, health.fault()) {
        (AskError::Closed | AskError::Wire(_), Some(Fault::TooMuch)) => AskError::TooMuch,
        (AskError::Closed | AskError::Wire(_), Some(Fault::Garbled(how))) => {
            AskError::Odd(how.to_owned())
        }
        (error, _) => error,
    }
}

fn of_asking(error: ServiceError) -> AskError {
    match error {
        ServiceError::McpError(error) => AskError::Refused {
            code: error.code.0,
            message: error.message.into_owned(),
            data: error.data,
        },
        ServiceError::TransportClosed => AskError::Closed,
        ServiceError::TransportSend(error) => of_wire(&*error.error),
        other => AskError::Odd(other.to_string()),
    }
}

fn of_opening(error: ClientInitializeError) -> AskError {
    match error {
        ClientInitializeError::ConnectionClosed(_) => AskError::Closed,
        ClientInitializeError::TransportError { error, .. } => of_wire(&*error.error),
        ClientInitializeError::JsonRpcError(error) => AskError::Refused {
            code: error.code.0,
            message: error.message.into_owned(),
            data: error.data,
        },
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_opening(*fallback),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            AskError::Odd(format!("it only speaks other revisions: {}", versions.join(", ")))
        }
        // The others print what the server sent, which is for nobody's terminal.
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            AskError::Odd("its greeting is none".to_owned())
        }
        other => AskError::Odd(other.to_string()),
    }
}

/// Why nobody answered who is asked at a URL.
fn not_reached(error: reqwest::Error, url: &str) -> CallError {
    match Url::parse(url) {
        Ok(url) => not_sent(&SendError::before(error, &place_of(&url)), &url),
        Err(_) => CallError::new(Kind::Unavailable, "the URL of the server is none"),
    }
}

/// What an error says, and what its causes say that it does not.
pub(super) fn of_wire(error: &(dyn std::error::Error + 'static)) -> AskError {
    let mut words = error.to_string();
    let mut next = Some(error);
    while let Some(cause) = next {
        let own = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        if own == Some(io::ErrorKind::FileTooLarge) {
            return AskError::TooMuch;
        }
        // What the system said is all that anybody wants to know of it.
        if let Some(said) =
            cause.downcast_ref::<io::Error>().filter(|one| one.raw_os_error().is_some())
        {
            return AskError::Wire(said.to_string());
        }
        let within = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let login = within.and_then(|inner| inner.downcast_ref::<WantsLogin>());
        if let Some(login) = login {
            return AskError::Login(login.clone());
        }
        if let Some(told) = within.and_then(|inner| inner.downcast_ref::<CallError>()) {
            return AskError::Told(Box::new(told.clone()));
        }
        let says = cause.to_string();
        if !words.contains(&says) {
            words = format!("{words}: {says}");
        }
        next = cause.source();
    }
    AskError::Wire(words)
}
