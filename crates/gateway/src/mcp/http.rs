//! MCP over HTTP. Every message is a request of its own; what has to be said before the answer turns that into a stream.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream::{self, StreamExt};
use host::CancellationToken;
use tokio::sync::mpsc;

use super::client::{Client, Line, lock};
use super::error::{Code, Error};
use super::headers;
use super::message::{self, Message};
use super::revision::Revision;
use super::serve::{self, Whole};
use crate::gateway::Gateway;
use crate::view::View;
use crate::web::Shown;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// How long a session of the older era is kept that nobody uses.
const IDLE: Duration = Duration::from_hours(1);

/// How many sessions there are at a time.
const MOST_SESSIONS: usize = 10_000;

/// How often a stream says that it is still there.
const STILL_THERE: Duration = Duration::from_secs(15);

/// How many events wait for a client to read them.
const EVENTS: usize = 64;

/// The conversations of the older era.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Session>>);

#[derive(Debug)]
struct Session {
    client: Arc<Client>,
    used: Instant,
    /// Who began it: nobody else goes on with it.
    owner: String,
}

impl Sessions {
    fn begin(&self, shown: &Shown, view: View) -> Option<(String, Arc<Client>)> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let id = format!("{:032x}", u128::from_be_bytes(bytes));
        let client = Arc::new(Client::new(shown.caller(id.clone(), view)));
        let mut all = lock(&self.0);
        if all.len() >= MOST_SESSIONS {
            all.retain(|_, one| one.used.elapsed() < IDLE);
        }
        if all.len() >= MOST_SESSIONS {
            return None;
        }
        let (owner, used) = (shown.name.clone(), Instant::now());
        all.insert(id.clone(), Session { client: Arc::clone(&client), used, owner });
        Some((id, client))
    }

    fn find(&self, id: &str, shown: &Shown, view: &View) -> Option<Arc<Client>> {
        let mut all = lock(&self.0);
        let found = all.get_mut(id)?;
        if found.owner != shown.name || found.client.view != *view {
            return None;
        }
        found.used = Instant::now();
        Some(Arc::clone(&found.client))
    }

    fn end(&self, id: &str) {
        if let Some(session) = lock(&self.0).remove(id) {
            session.client.leave();
        }
    }

    pub(crate) fn end_all(&self) {
        for (_, session) in lock(&self.0).drain() {
            session.client.leave();
        }
    }
}

/// Answers a message that was posted.
pub(crate) async fn post(
    gateway: &Arc<Gateway>,
    sessions: &Sessions,
    shown: &Shown,
    view: View,
    head: &HeaderMap,
    body: &[u8],
) -> Response {
    let Ok(text) = std::str::from_utf8(body) else {
        return refused(None, &Error::new(Code::NoJson, "this is no UTF-8"));
    };
    let in_session = head.get(SESSION).map(|id| id.to_str().unwrap_or_default());
    let client = in_session.and_then(|id| sessions.find(id, shown, &view));
    if let Some(client) = &client
        && let Some(batch) = serve::batch_of(client, text)
    {
        // What is told meanwhile has no stream to go to.
        let (line, _unheard) = Line::new();
        return match Box::pin(serve::answer_batch(gateway, client, &batch, &line)).await {
            Some(answers) => json(StatusCode::OK, answers),
            None => status(StatusCode::ACCEPTED),
        };
    }
    let asked = match message::parse(text) {
        Ok(Message::Request(request)) => match Whole::of(&request) {
            Ok(whole) => Ok(whole),
            Err(error) => return refused(Some(&request.id), &error),
        },
        Ok(other) => Err(other),
        Err((id, error)) => return refused(id.as_ref(), &error),
    };
    let client = match client {
        Some(client) => client,
        None if in_session.is_some() => {
            return plain(StatusCode::NOT_FOUND, "there is no such session");
        }
        None => match asked {
            Ok(request) if is_greeting(&request, head) => {
                let Some((id, client)) = sessions.begin(shown, view) else {
                    return plain(StatusCode::SERVICE_UNAVAILABLE, "there are too many sessions");
                };
                gateway.join(&client);
                let (line, _unheard) = Line::new();
                let named = request.id.clone();
                let answer = Box::pin(serve::answer(gateway, &client, request, &line)).await;
                let is_well = answer.is_ok();
                let mut response = json(StatusCode::OK, message::answer(Some(&named), &answer));
                if is_well && let Ok(id) = HeaderValue::from_str(&id) {
                    response.headers_mut().insert(SESSION, id);
                } else {
                    sessions.end(&id);
                }
                return response;
            }
            // Of the newer era: nobody remembers it after this request.
            _ => Arc::new(Client::new(shown.caller(shown.name.clone(), view))),
        },
    };
    let said = head.get(REVISION).map(|value| value.to_str().unwrap_or_default());
    if in_session.is_some() && said.is_some_and(|name| Revision::named(name).is_none()) {
        let words = "the header `mcp-protocol-version` names a revision that is not spoken here";
        return plain(StatusCode::BAD_REQUEST, words);
    }
    match asked {
        Ok(request) => {
            if in_session.is_none()
                && let Err(error) = Box::pin(check(gateway, &client, head, &request)).await
            {
                return refused(Some(&request.id), &error);
            }
            answer((Arc::clone(gateway), client, request), in_session.is_some(), head).await
        }
        Err(other) => {
            serve::hear(&client, &other);
            status(StatusCode::ACCEPTED)
        }
    }
}

/// Whether a request begins a conversation of the older era.
fn is_greeting(request: &Whole, head: &HeaderMap) -> bool {
    let is_newer = |name: &str| Revision::named(name).is_some_and(Revision::is_stateless);
    let by_head = head.get(REVISION).and_then(|value| value.to_str().ok()).is_some_and(is_newer);
    let by_meta = request.meta.revision.as_deref().is_some_and(is_newer);
    request.method == "initialize" && !by_head && !by_meta
}

/// Refuses a request of the newer era that is not whole, or whose headers say something else.
async fn check(
    gateway: &Arc<Gateway>,
    client: &Client,
    head: &HeaderMap,
    request: &Whole,
) -> Result<(), Error> {
    let Whole { method, params, meta, .. } = request;
    let by_head = head.get(REVISION).map(|value| value.to_str().unwrap_or_default());
    let said = meta.revision.as_deref();
    if let (Some(by_head), Some(said)) = (by_head, said)
        && by_head != said
    {
        let words = "the header `mcp-protocol-version` says something else than the request";
        return Err(Error::new(Code::Headers, words));
    }
    let (revision, _) = meta.check()?;
    if !revision.is_stateless() {
        let words = "a request of this revision belongs to a session, which `initialize` begins";
        return Err(Error::new(Code::BadRequest, words));
    }
    if by_head.is_none() {
        let words = "the header `mcp-protocol-version` is missing";
        return Err(Error::new(Code::Headers, words));
    }
    if method != "tools/call" {
        return headers::check(head, method, params, None);
    }
    let stock = gateway.shelf.stock_for_call().await;
    let list = stock.list(&client.view);
    let offer = params["name"].as_str().and_then(|name| list.offer(name));
    let schema = offer.map(|offer| &offer.definition["inputSchema"]);
    headers::check(head, method, params, schema)
}

/// Works on a request, and answers it at once where nothing has to be said before.
async fn answer(
    (gateway, client, request): (Arc<Gateway>, Arc<Client>, Whole),
    is_in_session: bool,
    head: &HeaderMap,
) -> Response {
    // The line is kept until nobody listens to it: who waits for what comes by it would be woken for nothing when it ends.
    let (line, mut outgoing) = Line::new();
    let may_stream = accepts_events(head);
    let gone = CancellationToken::new();
    let working = {
        let (gone, line) = (gone.clone(), line.clone());
        async move {
            let id = request.id.clone();
            let answer = tokio::select! {
                answer = serve::answer(&gateway, &client, request, &line) => answer,
                () = gone.cancelled() => Err(Error::new(Code::BadRequest, "nobody waits for it any more")),
            };
            let status = match &answer {
                Err(error) if !is_in_session => error.status(),
                _ => 200,
            };
            (status, message::answer(Some(&id), &answer))
        }
    };
    let mut working = Box::pin(working);
    let first = tokio::select! {
        biased;
        (status, text) = &mut working => {
            let mut waiting = Vec::new();
            while let Ok(message) = outgoing.try_recv() {
                waiting.push(message);
            }
            if waiting.is_empty() || !may_stream {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
                return json(status, text);
            }
            waiting.push(text);
            let events = stream::iter(waiting).map(|message| Ok::<_, Infallible>(event(&message)));
            return events_of(Body::from_stream(events));
        }
        Some(first) = outgoing.recv(), if may_stream => first,
    };
    // What is left is worked on beside, so that it goes on while its client is slow to read.
    let (events, body) = mpsc::channel(EVENTS);
    let left = Left { outgoing, events, gone, is_in_session };
    tokio::spawn(left.follow(first, working));
    let body = stream::unfold(body, |mut body| async move { Some((body.recv().await?, body)) });
    events_of(Body::from_stream(body.map(Ok::<_, Infallible>)))
}

/// What is left of an answer that became a stream.
struct Left {
    outgoing: mpsc::Receiver<String>,
    events: mpsc::Sender<Bytes>,
    /// Calls the request off.
    gone: CancellationToken,
    is_in_session: bool,
}

impl Left {
    /// Says what is to be said, then the answer.
    async fn follow(
        mut self,
        first: String,
        mut working: std::pin::Pin<Box<impl Future<Output = (u16, String)>>>,
    ) {
        let _ = self.events.send(event(&first)).await;
        let mut ticks = tokio::time::interval(STILL_THERE);
        ticks.tick().await;
        let mut is_heard = true;
        let text = loop {
            tokio::select! {
                biased;
                Some(message) = self.outgoing.recv() => {
                    let _ = self.events.send(event(&message)).await;
                }
                (_, text) = &mut working => break text,
                () = self.events.closed(), if is_heard => {
                    is_heard = false;
                    // In the older era that is no reason to stop.
                    if !self.is_in_session {
                        self.gone.cancel();
                    }
                }
                _ = ticks.tick() => {
                    let _ = self.events.try_send(Bytes::from_static(b": still there\n\n"));
                }
            }
        };
        while let Ok(message) = self.outgoing.try_recv() {
            let _ = self.events.send(event(&message)).await;
        }
        let _ = self.events.send(event(&text)).await;
    }
}

/// The stream of what is no part of a request, in the older era.
pub(crate) fn get(sessions: &Sessions, shown: &Shown, view: &View, head: &HeaderMap) -> Response {
    let Some(id) = head.get(SESSION).and_then(|id| id.to_str().ok()) else {
        return not_allowed();
    };
    let Some(client) = sessions.find(id, shown, view) else {
        return plain(StatusCode::NOT_FOUND, "there is no such session");
    };
    if !accepts_events(head) {
        return plain(StatusCode::NOT_ACCEPTABLE, "this is a stream of events");
    }
    let (line, outgoing) = Line::new();
    client.open_outlet(line);
    let body = stream::unfold(outgoing, |mut outgoing| async move {
        let next = tokio::time::timeout(STILL_THERE, outgoing.recv()).await;
        let bytes = match next {
            Ok(message) => event(&message?),
            Err(_) => Bytes::from_static(b": still there\n\n"),
        };
        Some((bytes, outgoing))
    });
    events_of(Body::from_stream(body.map(Ok::<_, Infallible>)))
}

/// Ends a session of the older era.
pub(crate) fn delete(
    sessions: &Sessions,
    shown: &Shown,
    view: &View,
    head: &HeaderMap,
) -> Response {
    let Some(id) = head.get(SESSION).and_then(|id| id.to_str().ok()) else {
        return not_allowed();
    };
    if sessions.find(id, shown, view).is_none() {
        return plain(StatusCode::NOT_FOUND, "there is no such session");
    }
    sessions.end(id);
    status(StatusCode::NO_CONTENT)
}

fn accepts_events(head: &HeaderMap) -> bool {
    let all = head.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut all = all.flat_map(|value| value.split(','));
    all.any(|one| {
        let kind = one.split(';').next().unwrap_or_default().trim();
        ["text/event-stream", "text/*", "*/*"].contains(&kind)
    })
}

/// A message as an event.
fn event(message: &str) -> Bytes {
    // JSON as we write it has no line ends.
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

fn events_of(body: Body) -> Response {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn json(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A request that was not worked on.
fn refused(id: Option<&message::Id>, error: &Error) -> Response {
    let status = match error.status() {
        200 => 400,
        status => status,
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    json(status, message::answer(id, &Err(error.clone())))
}

pub(crate) fn plain(status: StatusCode, words: &str) -> Response {
    let error = Error::new(Code::BadRequest, words);
    json(status, message::answer(None, &Err(error)))
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn not_allowed() -> Response {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "messages are posted here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}
