//! The gateway over HTTP: every route on one page, by who uses it.

pub(crate) mod console;
mod guard;
mod oauth;
mod openapi;
mod pages;
mod plain;
mod resolver;
mod serve;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, delete, get, post};
use axum::{Extension, Router};
use futures_util::FutureExt as _;
use host::CancellationToken;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use self::console::Console;
use self::guard::Guard;
pub use self::serve::serve;
use crate::gateway::Gateway;
use crate::lanes::Lanes;
use crate::mcp::client::Caller;
use crate::mcp::http::{self, Sessions, plain};
use crate::token::{ANYBODY, Role, Token, Tokens};
use crate::view::View;
use crate::watch::CONTENT_TYPE;

/// Where everything that is installed is spoken with.
const ALL: &str = "/mcp";

/// The largest body of a request.
const LARGEST: usize = 16 << 20;

/// How long the body of a request may take to come.
const BODY: Duration = Duration::from_mins(1);

/// Where programs ask, and never a person.
const PROGRAMS: [&str; 4] = ["/mcp", "/v1", "/capability", "/metrics"];

/// What whoever serves a gateway over HTTP decides.
#[derive(Debug)]
pub struct Settings {
    /// Where it listens.
    pub listening: SocketAddr,
    /// Further names that it is known by, and origins whose pages are let in.
    pub hosts: Vec<String>,
    /// For whom it is there beside its owner.
    pub agents: Option<Agents>,
    /// Whether its owner finds the console there, where it listens on this machine alone.
    pub has_console: bool,
}

/// Those who call tools.
#[derive(Debug)]
pub struct Agents {
    /// Who may do what.
    pub tokens: Tokens,
    /// What somebody without a token may do.
    pub without_token: Option<Role>,
    /// Where tools are called from.
    pub folder: PathBuf,
}

/// Has the owner find the console at a place of its own, beside whatever else the gateway serves, until it is told to stop. Where
/// there is one already, that stays the only one.
pub fn open_console(
    gateway: &Arc<Gateway>,
    listener: TcpListener,
    lanes: &Arc<Lanes>,
    stop: CancellationToken,
) -> io::Result<()> {
    let listening = listener.local_addr()?;
    if !listening.ip().is_loopback() {
        return Err(io::Error::other("a console is for this machine alone"));
    }
    if gateway.has_console_at(listening) {
        let settings = Settings { listening, hosts: Vec::new(), agents: None, has_console: true };
        let (gateway, lanes) = (Arc::clone(gateway), Arc::clone(lanes));
        let served = Arc::clone(&gateway);
        gateway.console_served.lock().unwrap_or_else(PoisonError::into_inner).replace(
            tokio::spawn(async move {
                serve(served, listener, settings, &lanes, stop.cancelled()).await;
            }),
        );
    }
    Ok(())
}

/// A gateway over HTTP.
#[derive(Debug)]
pub(crate) struct Web {
    gateway: Arc<Gateway>,
    sessions: Sessions,
    guard: Guard,
    /// On this machine alone.
    console: Option<Arc<Console>>,
    agents: Option<Agents>,
}

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// As its owner calls it.
    pub(crate) name: String,
    /// Whether it showed a token, whose name that is.
    pub(crate) has_token: bool,
    pub(crate) role: Role,
    /// The profile that it sees, and nothing else.
    pub(crate) profile: Option<String>,
    /// Where its tools are called from.
    pub(crate) folder: PathBuf,
    /// Whether questions to the owner may be put there.
    pub(crate) asks: bool,
}

impl Shown {
    /// The same as a client of MCP, in a conversation.
    pub(crate) fn caller(&self, session: String, view: View) -> Caller {
        let (name, folder) = (self.name.clone(), self.folder.clone());
        Caller { session, name, has_token: self.has_token, view, folder, asks: self.asks }
    }
}

impl Web {
    fn new(gateway: Arc<Gateway>, settings: Settings) -> Self {
        let guard = Guard::new(settings.listening, &settings.hosts);
        if settings.agents.is_some() {
            gateway.is_for_others.store(!settings.listening.ip().is_loopback(), Ordering::Relaxed);
            let _ = gateway.mcp.set(format!("http://{}{ALL}", settings.listening));
        }
        let is_here = settings.listening.ip().is_loopback() && settings.has_console;
        let console = is_here.then(|| Console::new(Arc::clone(&gateway)));
        Self { gateway, sessions: Sessions::default(), guard, console, agents: settings.agents }
    }

    /// Ends all conversations.
    fn close(&self) {
        self.sessions.end_all();
        self.console.iter().for_each(|console| console.close());
    }

    /// Who asks, by the token that is shown.
    fn shown(&self, headers: &HeaderMap) -> Option<Shown> {
        let agents = self.agents.as_ref()?;
        let folder = agents.folder.clone();
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(bearer) = bearer else {
            let role = agents.without_token?;
            let name = ANYBODY.to_owned();
            let (has_token, profile, asks) = (false, None, false);
            return Some(Shown { name, has_token, role, profile, folder, asks });
        };
        let (kind, secret) = bearer.split_once(' ')?;
        if !kind.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let now = host::records::now();
        let Token { name, role, profile, asks, .. } = agents.tokens.find(secret.trim(), now)?;
        Some(Shown { name, has_token: true, role, profile, folder, asks })
    }
}

/// Answers a request, so that the page that asks can read it, where it may.
async fn answer(web: &Arc<Web>, router: &Router, request: Request) -> Response {
    let origin = pages::asking(&web.guard, &request);
    let mut response = match &origin {
        Some(_) if pages::is_question(&request) => pages::allowed(request.headers()),
        _ => find(web, router, request).await,
    };
    if let Some(origin) = origin {
        pages::open_to(origin, &mut response);
    }
    response
}

/// Finds the answer to a request. Nearly all are messages to everything that is installed, so that comes before any other route.
async fn find(web: &Arc<Web>, router: &Router, request: Request) -> Response {
    if request.uri().path() != ALL || web.agents.is_none() {
        let Ok(response) = Box::pin(router.clone().oneshot(request)).await;
        return response;
    }
    if let Err(words) = web.guard.check(request.headers()) {
        return plain(StatusCode::FORBIDDEN, words);
    }
    match web.shown(request.headers()) {
        Some(shown) => speak(web, request, shown, View::Usual).await,
        None => nobody(ALL),
    }
}

/// Every other route.
fn router(web: Arc<Web>) -> Router {
    let agents = Router::new()
        .route("/mcp/{profile}", any(profile))
        .route("/mcp/raw/{*package}", any(raw))
        .route("/v1/tools.json", get(plain::tools))
        .route("/v1/tools/{name}/call", post(plain::call))
        .route("/metrics", get(metrics))
        .route("/capability/list", get(resolver::list))
        .route("/capability/get/{*id}", get(resolver::get))
        .route("/capability/search", post(resolver::search))
        .route("/capability/resolve", post(resolver::resolve))
        .route("/capability/run", post(resolver::run))
        .route("/capability/install", post(resolver::install))
        .route("/capability/remove/{*id}", delete(resolver::remove))
        .route("/capability/oauth/start", post(oauth::start))
        .route("/capability/oauth/complete", post(oauth::complete))
        .route("/capability/factory_reset", post(resolver::reset))
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&web), let_in));
    let open = Router::new()
        .route("/openapi.json", get(openapi::document))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/version", get(|| async { concat!(env!("CARGO_PKG_VERSION"), "\n") }));
    let mut all = if web.agents.is_some() { agents.merge(open) } else { open };
    if let Some(console) = &web.console {
        all = all.merge(console::routes(console));
    }
    let all = all.method_not_allowed_fallback(wrong_method).fallback(nothing);
    let guarded = all.layer(from_fn_with_state(Arc::clone(&web), only_ours));
    guarded.with_state(web)
}

/// Refuses what is meant for somebody else, before anything of it is read.
async fn only_ours(State(web): State<Arc<Web>>, request: Request, next: Next) -> Response {
    match web.guard.check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(words) => refused(request.uri().path(), StatusCode::FORBIDDEN, "forbidden", words),
    }
}

/// There is nothing at an address: told as a page where pages are, and to programs everywhere else.
async fn nothing(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (path, head) = (request.uri().path(), request.headers());
    let is_for_programs = is_below(path, &PROGRAMS);
    let accepted = head.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_by_program = head.contains_key(AUTHORIZATION)
        || (accepted.contains("application/json") && !accepted.contains("text/html"));
    if web.console.is_some() && !is_for_programs && !is_by_program {
        return console::missing();
    }
    refused(path, StatusCode::NOT_FOUND, "not_found", "there is nothing at this address")
}

/// Whether a path is one of these places, or below one.
fn is_below(path: &str, places: &[&str]) -> bool {
    let is_there = |rest: &str| rest.is_empty() || rest.starts_with('/');
    places.iter().any(|place| path.strip_prefix(place).is_some_and(is_there))
}

/// There is something at an address, which is asked for in another way.
async fn wrong_method(request: Request) -> Response {
    let words =
        format!("{} is not what this address is asked by; `Allow` says what is", request.method());
    refused(request.uri().path(), StatusCode::METHOD_NOT_ALLOWED, "bad_method", &words)
}

/// A refusal as whoever asks there reads it: MCP has errors of its own.
fn refused(path: &str, status: StatusCode, code: &str, words: &str) -> Response {
    if path == ALL || path.starts_with("/mcp/") {
        plain(status, words)
    } else {
        plain::wrong(status, code, words)
    }
}

/// Refuses whoever shows no token.
async fn let_in(State(web): State<Arc<Web>>, mut request: Request, next: Next) -> Response {
    let Some(shown) = web.shown(request.headers()) else { return nobody(request.uri().path()) };
    request.extensions_mut().insert(shown);
    next.run(request).await
}

/// What somebody is told who shows no token that counts.
fn nobody(path: &str) -> Response {
    let words = "show a token that counts: `Authorization: Bearer …`; the owner makes one with `haft token new NAME`";
    let mut response = refused(path, StatusCode::UNAUTHORIZED, "unauthorized", words);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// What somebody is told who asks while too many are answered.
fn too_many(path: &str) -> Response {
    let words = "too many requests are worked on; try again soon";
    let mut response = refused(path, StatusCode::SERVICE_UNAVAILABLE, "busy", words);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn not_now(words: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, words).into_response()
}

/// Whether calls can be made: what is allowed can be read, and so can the state, in time.
async fn ready(State(web): State<Arc<Web>>) -> Response {
    /// How long somebody waits who sends requests elsewhere otherwise.
    const PATIENCE: Duration = Duration::from_secs(3);
    let stock = web.gateway.stock().await;
    let state = &stock.host.records().state;
    let is_there = tokio::time::timeout(PATIENCE, state.names()).await;
    match (&stock.trouble, is_there) {
        (None, Ok(Ok(_))) => "ok\n".into_response(),
        (Some(_), _) => not_now("the policy cannot be read\n"),
        (None, _) => not_now("the state cannot be read\n"),
    }
}

/// What was counted, for Prometheus.
async fn metrics(State(web): State<Arc<Web>>) -> Response {
    let mut response = Response::new(Body::from(web.gateway.counted().await));
    let kind = HeaderValue::from_static(CONTENT_TYPE);
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, kind);
    response
}

async fn profile(
    State(web): State<Arc<Web>>,
    Path(name): Path<String>,
    Extension(shown): Extension<Shown>,
    request: Request,
) -> Response {
    // Nobody learns from it which others there are.
    if shown.profile.as_ref().is_some_and(|own| *own != name) {
        return for_one_profile();
    }
    // Whose own it is learns why it is empty.
    if shown.profile.is_none() && web.gateway.stock().await.is_without(&name) {
        return plain(StatusCode::NOT_FOUND, "there is no such profile");
    }
    speak(&web, request, shown, View::Profile(name)).await
}

async fn raw(
    State(web): State<Arc<Web>>,
    Path(package): Path<String>,
    Extension(shown): Extension<Shown>,
    request: Request,
) -> Response {
    if shown.profile.is_some() {
        return for_one_profile();
    }
    match web.gateway.stock().await.package(&package) {
        Some(found) => speak(&web, request, shown, View::Raw(found.id.clone())).await,
        None => plain(StatusCode::NOT_FOUND, "there is no such package"),
    }
}

/// What somebody is told whose token is for another part of what is there.
fn for_one_profile() -> Response {
    let words = "this token is for one profile alone: do not try again with it; the owner can make another by `haft token new`";
    plain(StatusCode::FORBIDDEN, words)
}

async fn speak(web: &Arc<Web>, request: Request, shown: Shown, view: View) -> Response {
    let view = match (&shown.profile, view) {
        // A token for a part of what is there sees no more of it under any address.
        (Some(own), View::Usual) => View::Profile(own.clone()),
        (Some(own), View::Profile(name)) if *own == name => View::Profile(name),
        (Some(_), _) => return for_one_profile(),
        (None, view) => view,
    };
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    match parts.method {
        Method::POST => match read(parts.uri.path(), body).await {
            Ok(body) => {
                let (gateway, sessions) = (&web.gateway, &web.sessions);
                http::post(gateway, sessions, &shown, view, headers, &body).boxed().await
            }
            Err(response) => response,
        },
        Method::GET => http::get(&web.sessions, &shown, &view, headers),
        Method::DELETE => http::delete(&web.sessions, &shown, &view, headers),
        _ => http::not_allowed("DELETE, GET, POST"),
    }
}

/// The body of a request to a path.
async fn read(path: &str, body: Body) -> Result<axum::body::Bytes, Response> {
    read_within(BODY, path, body).await
}

async fn read_within(
    time: Duration,
    path: &str,
    body: Body,
) -> Result<axum::body::Bytes, Response> {
    let Ok(read) = tokio::time::timeout(time, to_bytes(body, LARGEST)).await else {
        let words = "the body of the request took too long to come";
        return Err(refused(path, StatusCode::REQUEST_TIMEOUT, "too_slow", words));
    };
    let words = "a message has at most 16 MiB";
    read.map_err(|_| refused(path, StatusCode::PAYLOAD_TOO_LARGE, "too_large", words))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for_for_ever() {
        let body = Body::from_stream(stream::pending::<Result<Vec<u8>, Infallible>>());
        let read = read_within(Duration::from_millis(20), "/v1/tools/a/call", body).await;
        assert_eq!(read.unwrap_err().status(), StatusCode::REQUEST_TIMEOUT);
        let body = Body::from(vec![b'x'; LARGEST + 1]);
        let read = read_within(Duration::from_secs(20), "/mcp", body).await;
        assert_eq!(read.unwrap_err().status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
