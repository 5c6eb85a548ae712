//! A server behind one URL: each message is a request, and no answer is longer than it may be.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use egress::http::{HeaderMap, HeaderName, HeaderValue, SendError, StatusCode};
use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Error, Response};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::sync::watch;

use super::events::{Event, Events};
use super::health::Health;
use super::line::{self, Fault, Line};
use super::not_reached;
use crate::error::{CallError, Kind};
use crate::login::challenge::WantsLogin;
use crate::run::http::answered;
use crate::weight::is_bearable;

/// How much of a refusal is read.
const MOST_REFUSAL: usize = 64 << 10;

/// How many requests of one server are under way at a time.
const AT_A_TIME: usize = 64;

/// How long a request waits for the stream of its session to stand.
const STANDING: Duration = Duration::from_secs(1);

/// Where the session of the older era is written.
const SESSION: &str = "mcp-session-id";

/// A wire to a server behind one URL.
pub(in crate::run::mcp) fn wire(
    client: &Client,
    url: &str,
    headers: &HeaderMap,
    longest: u64,
) -> (StreamableHttpClientTransport<Bounded>, Arc<Health>) {
    let health = Health::new(longest);
    let longest = usize::try_from(longest).unwrap_or(usize::MAX);
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers.collect())
        .max_concurrent_requests(AT_A_TIME)
        .max_sse_event_size(longest);
    let stands = Arc::new(watch::Sender::new(false));
    let client = Bounded { client: client.clone(), longest, health: Arc::clone(&health), stands };
    (StreamableHttpClientTransport::with_client(client, config), health)
}

/// A client that reads no more than it may.
#[derive(Clone, Debug)]
pub(in crate::run::mcp) struct Bounded {
    client: Client,
    longest: usize,
    health: Arc<Health>,
    /// Whether the stream was asked for on which a session is told what belongs to no request. What is asked before that could be
    /// answered there: to a server it looks like somebody who comes back for an answer.
    stands: Arc<watch::Sender<bool>>,
}

type Headers = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for Bounded {
    type Error = Error;

    async fn post_message(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Error>> {
        let mut request = self
            .client
            .post(&*url)
            .headers(headers.into_iter().collect())
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(&message)?);
        if let Some(session) = &session {
            request = request.header(SESSION, &**session);
        }
        if let Some(bearer) = bearer {
            request = request.bearer_auth(bearer);
        }
        if session.is_some() && matches!(message, JsonRpcMessage::Request(_)) {
            let mut stands = self.stands.subscribe();
            let _ = tokio::time::timeout(STANDING, stands.wait_for(|stands| *stands)).await;
        }
        let _telling = self.health.tell(&message);
        let response = request.send().await.map_err(|error| lost(error, &url))?;
        let answer = self.read(response, &message, session.is_some()).await?;
        if let StreamableHttpPostResponse::Json(message, _) = &answer {
            self.health.take(message).map_err(|_| too_much())?;
        }
        Ok(answer)
    }

    async fn delete_session(
        &self,
        url: Arc<str>,
        session: Arc<str>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<(), StreamableHttpError<Error>> {
        self.client.delete_session(url, session, bearer, headers).await
    }

    async fn get_stream(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<Error>> {
        if self.health.fault().is_some() {
            return Err(too_much());
        }
        let request = self.client.get(&*url).headers(headers.into_iter().collect());
        let mut request = request.header(ACCEPT, "text/event-stream");
        if let Some(session) = &session {
            request = request.header(SESSION, &**session);
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        if let Some(bearer) = bearer {
            request = request.bearer_auth(bearer);
        }
        let response = request.send().await;
        self.stands.send_replace(true);
        let response = response.map_err(|error| lost(error, &url))?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if response.status().is_client_error() || response.status().is_server_error() {
            return Err(unexpected(format!("HTTP {}", response.status())));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let kind = kind.map(str::to_owned);
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        Ok(self.events(response))
    }
}

impl Bounded {
    async fn read(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Error>> {
        let status = response.status();
        let is_asked = matches!(message, JsonRpcMessage::Request(_));
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) && !is_asked {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let text = |name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let (session, kind) = (text(SESSION), text(CONTENT_TYPE.as_str()).unwrap_or_default());
        if !status.is_success() {
            return refused(response, message, session).await;
        }
        if kind.starts_with("text/event-stream") {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        let body = read(response, self.longest).await?;
        if !is_bearable(&body) {
            return Err(too_much());
        }
        match serde_json::from_slice(&body) {
            Ok(answer) => {
                let line = Line::Messages(vec![answer]);
                self.health.hear(body.len(), &line).map_err(|_| too_much())?;
                let Line::Messages(mut messages) = line else { return Err(too_much()) };
                Ok(StreamableHttpPostResponse::Json(messages.remove(0), session))
            }
            // To what is no request there is no answer to understand.
            Err(_) if !is_asked => Ok(StreamableHttpPostResponse::Accepted),
            Err(_) => Err(told(no_message(status, &kind, &body))),
        }
    }
}

impl Bounded {
    /// The events of a response, each of which is counted.
    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let begun = (Events::of(response, self.longest), Arc::clone(&self.health));
        let events = stream::unfold(Some(begun), |state| async {
            let (mut events, health) = state?;
            let event = match events.next().await {
                Ok(event) => event?,
                Err(error) => {
                    health.lost(&error);
                    return Some((Err(SseError::Body(error.into())), None));
                }
            };
            match count(&event, &health) {
                Ok(()) => Some((Ok(sse(event)), Some((events, health)))),
                Err(_) => Some((Err(SseError::Body(long().into())), None)),
            }
        });
        events.boxed()
    }
}

/// Counts what is in an event. Only those without a name, or with this one, hold messages.
fn count(event: &Event, health: &Health) -> Result<(), Fault> {
    let data = event.data.as_bytes();
    let line = match event.name.as_deref() {
        None | Some("message") if !data.is_empty() => health.noting(line::understand_any(data))?,
        _ => Line::Messages(Vec::new()),
    };
    health.hear(event.size, &line)?;
    match &line {
        Line::Messages(messages) => messages.iter().try_for_each(|one| health.take(one)),
        Line::Noise => Ok(()),
    }
}

/// What a server means that refused a request.
async fn refused(
    response: Response,
    message: &ClientJsonRpcMessage,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, StreamableHttpError<Error>> {
    let status = response.status();
    if let Some(login) = WantsLogin::of(status, response.headers()) {
        return Err(io::Error::other(login).into());
    }
    let headers = response.headers().clone();
    let body = read(response, MOST_REFUSAL).await.unwrap_or_default();
    let answered = || told(answered(status, &headers, &body));
    let JsonRpcMessage::Request(request) = message else { return Err(answered()) };
    let said = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(JsonRpcMessage::Error(said)) => Some(said.error),
        // A server of the older era need not say in the words of the newer that it is none.
        _ if status.is_client_error()
            && matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
        {
            Some(ErrorData::invalid_request(format!("HTTP {status}"), None))
        }
        _ => None,
    };
    match said {
        // One that could not read the request does not know its id.
        Some(said) => {
            let answer = ServerJsonRpcMessage::error(said, Some(request.id.clone()));
            Ok(StreamableHttpPostResponse::Json(answer, session))
        }
        None => Err(answered()),
    }
}

/// An answer that holds no message.
fn no_message(status: StatusCode, kind: &str, body: &[u8]) -> CallError {
    let kind = if kind.is_empty() { "no type".to_owned() } else { format!("`{kind}`") };
    let message = format!("the server answered {status} with {kind}, and no message of MCP");
    CallError::new(Kind::BadOutput, message).with("answer", String::from_utf8_lossy(body))
}

/// Why there is no response.
fn lost(error: Error, url: &str) -> StreamableHttpError<Error> {
    told(not_reached(error, url))
}

/// A failure of which all is known. The library carries it in one of its own.
fn told(error: CallError) -> StreamableHttpError<Error> {
    io::Error::other(error).into()
}

fn unexpected(words: String) -> StreamableHttpError<Error> {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(words))
}

/// Reads a body of at most so many bytes.
async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, StreamableHttpError<Error>> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(broken_off)? {
        if body.len() + piece.len() > most {
            return Err(too_much());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// A body that ended before its time.
fn broken_off(error: Error) -> StreamableHttpError<Error> {
    io::Error::other(SendError::within(error)).into()
}

fn too_much() -> StreamableHttpError<Error> {
    long().into()
}

fn long() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "the answer is longer than it may be")
}

fn sse(event: Event) -> Sse {
    let data = Some(event.data).filter(|data| !data.is_empty());
    // A server must not have us come again and again without a pause, or never.
    let retry = event.retry.map(|wait| wait.clamp(1_000, 60_000));
    Sse { event: event.name, data, id: event.id, retry }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_event_holds_beside_its_data_is_counted_too() {
        let event = Event { id: Some("x".repeat(1000)), size: 1006, ..Event::default() };
        let health = Health::new(10_000);
        let counted = (0..100).position(|_| count(&event, &health).is_err());
        assert_eq!((counted, health.fault()), (Some(9), Some(Fault::TooMuch)));
    }
}
