//! MCP over HTTP. Every message is a request of its own; what has to be said before the answer turns that into a stream.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use host::{CancellationToken, TraceContext};
use tokio::sync::mpsc;

use super::client::{Client, Line, lock};
use super::error::{Code, Error};
use super::headers;
use super::listen;
use super::message::{self, Message};
use super::places::unguessed;
use super::revision::Revision;
use super::serve::{self, Taken, Whole};
use crate::gateway::Gateway;
use crate::undertaking::Undertaking;
use crate::view::View;
use crate::watch::context_of_head;
use crate::web::Shown;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How long a session of the older era is kept that nobody uses.
const IDLE: Duration = Duration::from_hours(1);

/// How many sessions there are at a time.
const MOST_SESSIONS: usize = 10_000;

/// How many of them one token has.
const MOST_OF_ONE: usize = 1_000;

/// How often it is looked whether sessions are used.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// How often a stream says that it is still there.
const STILL_THERE: Duration = Duration::from_secs(15);

/// How many events wait for a client to read them.
const EVENTS: usize = 64;

/// The conversations of the older era.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<All>);

#[derive(Debug, Default)]
struct All {
    by_id: HashMap<String, Session>,
    /// When it was last looked whether they are used.
    tidied: Option<Instant>,
}

#[derive(Debug)]
struct Session {
    client: Arc<Client>,
    used: Instant,
    /// Who began it: nobody else goes on with it.
    owner: String,
}

impl All {
    /// Makes room for another one of somebody, who has the one that they used least recently ended for it where they have many.
    /// `None` where there is no room.
    fn room_for(&mut self, owner: &str) -> Option<()> {
        if self.tidied.is_none_or(|at| at.elapsed() >= LOOK_AGAIN) {
            self.by_id.retain(|_, one| one.used.elapsed() < IDLE || one.client.is_busy());
            self.tidied = Some(Instant::now());
        }
        let own = self.by_id.iter().filter(|(_, one)| one.owner == owner);
        if self.by_id.len() >= MOST_OF_ONE && own.clone().count() >= MOST_OF_ONE {
            let idle = own.filter(|(_, one)| !one.client.is_busy());
            let (id, _) = idle.min_by_key(|(_, one)| one.used)?;
            let id = id.clone();
            self.by_id.remove(&id);
        }
        (self.by_id.len() < MOST_SESSIONS).then_some(())
    }
}

impl Sessions {
    fn begin(&self, shown: &Shown, view: View) -> Option<(String, Arc<Client>)> {
        let id = unguessed()?;
        let client = Arc::new(Client::new(shown.caller(id.clone(), view)));
        let mut all = lock(&self.0);
        all.room_for(&shown.name)?;
        let (owner, used) = (shown.name.clone(), Instant::now());
        all.by_id.insert(id.clone(), Session { client: Arc::clone(&client), used, owner });
        Some((id, client))
    }

    fn find(&self, id: &str, shown: &Shown, view: &View) -> Option<Arc<Client>> {
        let mut all = lock(&self.0);
        let found = all.by_id.get_mut(id)?;
        if found.owner != shown.name || found.client.view != *view {
            return None;
        }
        found.used = Instant::now();
        Some(Arc::clone(&found.client))
    }

    fn end(&self, id: &str) {
        if let Some(session) = lock(&self.0).by_id.remove(id) {
            session.client.leave();
        }
    }

    pub(crate) fn end_all(&self) {
        for (_, session) in lock(&self.0).by_id.drain() {
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
        let batch = serve::take_up_all(client, &batch);
        return match Box::pin(serve::answer_all(gateway, client, batch, &unheard())).await {
            Some(answers) => json(StatusCode::OK, answers),
            None => status(StatusCode::ACCEPTED),
        };
    }
    let asked = match message::parse(text) {
        Ok(Message::Request(request)) => match Whole::of(&request) {
            Ok(whole) => Ok(traced(spoken_here(whole), head)),
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
                let named = request.id.clone();
                let taken = match request.take_up(&client) {
                    Ok(taken) => taken,
                    Err(error) => return refused(Some(&named), &error),
                };
                let answer = Box::pin(serve::answer(gateway, &client, taken, &unheard())).await;
                let answer = answer.unwrap_or_else(|| Err(serve::called_off()));
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
            let id = request.id.clone();
            match request.take_up(&client) {
                Ok(taken) => {
                    answer((Arc::clone(gateway), client, taken), in_session.is_some(), head).await
                }
                Err(error) => json(StatusCode::OK, message::answer(Some(&id), &Err(error))),
            }
        }
        Err(other) => {
            serve::hear(&client, &other);
            status(StatusCode::ACCEPTED)
        }
    }
}

/// The same request in the trace that its head tells of, where it tells of none itself.
fn traced(mut request: Box<Whole>, head: &HeaderMap) -> Box<Whole> {
    let passed = &mut request.meta.passed;
    if !passed.contains_key(TraceContext::PARENT)
        && let Some(context) = context_of_head(head)
    {
        context.put_into_meta(passed);
    }
    request
}

/// A line that leads nowhere: what is only told is left out, and what is asked is refused at once.
fn unheard() -> Line {
    Line::new().0
}

/// A greeting in a revision that had another way over HTTP is one for the newest that begins with a greeting, as it is for those that
/// nobody knows.
fn spoken_here(mut request: Box<Whole>) -> Box<Whole> {
    if request.method == "initialize"
        && let Some(asked) = request.params.get_mut("protocolVersion")
        && *asked == Revision::V2024_11_05.name()
    {
        *asked = Revision::NEWEST_WITH_HANDSHAKE.name().into();
    }
    request
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
    (gateway, client, taken): (Arc<Gateway>, Arc<Client>, Taken),
    is_in_session: bool,
    head: &HeaderMap,
) -> Response {
    // The line is kept until nobody listens to it: who waits for what comes by it would be woken for nothing when it ends.
    let (line, mut outgoing) = Line::new();
    let may_stream = accepts_events(head);
    if !may_stream {
        // Whatever would be asked meanwhile could not be.
        outgoing.close();
    }
    let (gone, id) = (CancellationToken::new(), taken.whole.id.clone());
    let working = {
        let (gone, line, id) = (gone.clone(), line.clone(), id.clone());
        // Whoever only listens is refused nothing when that ends.
        let ended = (taken.whole.method == listen::METHOD).then(|| listen::ended(&id));
        async move {
            let answer = tokio::select! {
                answer = serve::answer(&gateway, &client, taken, &line) => {
                    answer.unwrap_or_else(|| ended.ok_or_else(serve::called_off))
                }
                // In a session, whoever lost the connection has called nothing off.
                () = gone.cancelled(), if !is_in_session => {
                    Err(Error::new(Code::BadRequest, "nobody waits for it any more"))
                }
            };
            let status = match &answer {
                Err(error) if !is_in_session => error.status(),
                _ => 200,
            };
            (status, message::answer(Some(&id), &answer))
        }
    };
    let mut working = if is_in_session {
        let broke_off = || Err(Error::new(Code::Internal, "the request broke off"));
        let told = move |_| (200, message::answer(Some(&id), &broke_off()));
        Undertaking::to_its_end(working).map(|done| done.unwrap_or_else(told)).boxed()
    } else {
        working.boxed()
    };
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
    let left = Left { outgoing, events, gone };
    tokio::spawn(left.follow(first, working));
    let body = stream::unfold(body, |mut body| async move { Some((body.recv().await?, body)) });
    events_of(Body::from_stream(body.map(Ok::<_, Infallible>)))
}

/// What is left of an answer that became a stream.
struct Left {
    outgoing: mpsc::Receiver<String>,
    events: mpsc::Sender<Bytes>,
    /// Says that its client has left.
    gone: CancellationToken,
}

impl Left {
    /// Says what is to be said, then the answer. It is worked on whether or not anybody reads meanwhile.
    async fn follow(mut self, first: String, mut working: BoxFuture<'static, (u16, String)>) {
        let mut next = Some(event(&first));
        let mut ticks = tokio::time::interval(STILL_THERE);
        ticks.tick().await;
        let mut is_heard = true;
        let text = loop {
            tokio::select! {
                (_, text) = &mut working => break text,
                room = self.events.reserve(), if next.is_some() => {
                    if let (Ok(room), Some(event)) = (room, next.take()) {
                        room.send(event);
                    }
                }
                Some(message) = self.outgoing.recv(), if next.is_none() => {
                    next = Some(event(&message));
                }
                () = self.events.closed(), if is_heard => {
                    is_heard = false;
                    self.gone.cancel();
                }
                _ = ticks.tick() => {
                    let _ = self.events.try_send(Bytes::from_static(b": still there\n\n"));
                }
            }
        };
        let rest = std::iter::from_fn(|| self.outgoing.try_recv().ok());
        for event in next.into_iter().chain(rest.map(|message| event(&message))) {
            let _ = self.events.send(event).await;
        }
        let _ = self.events.send(event(&text)).await;
    }
}

/// The stream of what is no part of a request, in the older era.
pub(crate) fn get(sessions: &Sessions, shown: &Shown, view: &View, head: &HeaderMap) -> Response {
    let Some(id) = head.get(SESSION).and_then(|id| id.to_str().ok()) else {
        return not_allowed("POST");
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
        return not_allowed("POST");
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
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // A proxy that would wait for more of it is told not to.
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
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

/// What is told where it is asked in another way.
pub(crate) fn not_allowed(allowed: &'static str) -> Response {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "messages are posted here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Role;

    fn shown(name: &str) -> Shown {
        let (name, folder) = (name.to_owned(), "/".into());
        Shown { name, has_token: true, role: Role::Agent, profile: None, folder, asks: false }
    }

    #[tokio::test]
    async fn what_is_worked_on_goes_on_while_nobody_reads() {
        let (line, outgoing) = Line::new();
        let (events, mut body) = mpsc::channel(1);
        let (done, mut is_done) = tokio::sync::oneshot::channel();
        let working = Box::pin(async move {
            for word in ["second", "third"] {
                line.tell(word.to_owned());
                tokio::task::yield_now().await;
            }
            done.send(()).unwrap();
            (200, "last".to_owned())
        });
        let left = Left { outgoing, events, gone: CancellationToken::new() };
        let following = tokio::spawn(left.follow("first".to_owned(), working));
        tokio::time::timeout(Duration::from_secs(10), &mut is_done).await.unwrap().unwrap();
        let mut read = Vec::new();
        while let Some(event) = body.recv().await {
            read.push(event);
        }
        following.await.unwrap();
        assert_eq!(read, ["first", "second", "third", "last"].map(event));
    }

    #[test]
    fn whoever_has_many_sessions_loses_the_one_that_was_not_used_for_longest() {
        let (sessions, one, other) = (Sessions::default(), shown("one"), shown("other"));
        let begin = |shown| sessions.begin(shown, View::All).unwrap();
        let (kept, _) = begin(&other);
        let own: Vec<_> = (0..MOST_OF_ONE).map(|_| begin(&one)).collect();
        let is_there = |shown, id: &str| sessions.find(id, shown, &View::All).is_some();
        // The first is used again, and something is worked on in the second.
        assert!(is_there(&one, &own[0].0));
        let asked = message::Id::own(1);
        let underway = own[1].1.begin(&asked).unwrap();
        begin(&one);
        begin(&one);
        let left: Vec<_> =
            own[..5].iter().map(|(id, _)| lock(&sessions.0).by_id.contains_key(id)).collect();
        assert_eq!(left, [true, true, false, false, true]);
        assert!(is_there(&other, &kept));
        drop(underway);
        begin(&one);
        assert!(is_there(&one, &own[0].0) && !is_there(&one, &own[1].0));
    }

    #[test]
    fn sessions_that_nobody_uses_are_forgotten_before_there_are_many() {
        let (sessions, one) = (Sessions::default(), shown("one"));
        let begin = || sessions.begin(&one, View::All).unwrap();
        let ((idle, _), (busy, client)) = (begin(), begin());
        let (line, listening) = Line::new();
        client.open_outlet(line);
        let Some(long_ago) = Instant::now().checked_sub(IDLE) else { return };
        let age = || {
            let mut all = lock(&sessions.0);
            all.tidied = Some(long_ago);
            all.by_id.values_mut().for_each(|one| one.used = long_ago);
        };
        let are_there = || [&idle, &busy].map(|id| lock(&sessions.0).by_id.contains_key(id));
        age();
        begin();
        assert_eq!(are_there(), [false, true]);
        drop(listening);
        age();
        begin();
        assert_eq!(are_there(), [false, false]);
    }
}
