//! A server behind one URL: each message is a request, and no answer is longer than it may be.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use egress::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
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

use super::WantsLogin;
use super::events::{Event, Events};

/// How much of a refusal is read.
const MOST_REFUSAL: usize = 64 << 10;

/// How many requests of one server are under way at a time.
const AT_A_TIME: usize = 64;

/// Where the session of the older era is written.
const SESSION: &str = "mcp-session-id";

/// A wire to a server behind one URL.
pub(in crate::run::mcp) fn wire(
    client: &Client,
    url: &str,
    headers: &HeaderMap,
    longest: u64,
) -> StreamableHttpClientTransport<Bounded> {
    let longest = usize::try_from(longest).unwrap_or(usize::MAX);
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers.collect())
        .max_concurrent_requests(AT_A_TIME)
        .max_sse_event_size(longest);
    StreamableHttpClientTransport::with_client(Bounded { client: client.clone(), longest }, config)
}

/// A client that reads no more than it may.
#[derive(Clone, Debug)]
pub(in crate::run::mcp) struct Bounded {
    client: Client,
    longest: usize,
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
        let response = request.send().await.map_err(StreamableHttpError::Client)?;
        self.read(response, &message, session.is_some()).await
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
        let most = self.longest;
        self.client
            .get_stream_with_max_sse_event_size(url, session, last, bearer, headers, most)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        bearer: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<Error>> {
        self.client
            .get_stream_with_max_sse_event_size(url, session, last, bearer, headers, most)
            .await
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
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
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
            let events = Events::of(response, self.longest);
            let events = stream::unfold(Some(events), |events| async {
                let mut events = events?;
                match events.next().await {
                    Ok(Some(event)) => Some((Ok(sse(event)), Some(events))),
                    Ok(None) => None,
                    Err(error) => Some((Err(SseError::Body(error.into())), None)),
                }
            });
            return Ok(StreamableHttpPostResponse::Sse(events.boxed(), session));
        }
        let body = read(response, self.longest).await?;
        match serde_json::from_slice(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            // To what is no request there is no answer to understand.
            Err(_) if !matches!(message, JsonRpcMessage::Request(_)) => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            Err(_) => Err(unexpected(format!("its answer is no message but `{kind}`"))),
        }
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
    let body = read(response, MOST_REFUSAL).await.unwrap_or_default();
    let JsonRpcMessage::Request(request) = message else {
        return Err(unexpected(format!("HTTP {status}")));
    };
    let told = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(JsonRpcMessage::Error(told)) => Some(told.error),
        // A server of the older era need not say in the words of the newer that it is none.
        _ if status.is_client_error()
            && matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
        {
            Some(ErrorData::invalid_request(format!("HTTP {status}"), None))
        }
        _ => None,
    };
    match told {
        // One that could not read the request does not know its id.
        Some(told) => {
            let answer = ServerJsonRpcMessage::error(told, Some(request.id.clone()));
            Ok(StreamableHttpPostResponse::Json(answer, session))
        }
        None => Err(unexpected(format!("HTTP {status}"))),
    }
}

fn unexpected(words: String) -> StreamableHttpError<Error> {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(words))
}

/// Reads a body of at most so many bytes.
async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, StreamableHttpError<Error>> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(StreamableHttpError::Client)? {
        if body.len() + piece.len() > most {
            let words = "the answer is longer than it may be";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, words).into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn sse(event: Event) -> Sse {
    let data = Some(event.data).filter(|data| !data.is_empty());
    Sse { event: event.name, data, id: event.id, retry: event.retry }
}
