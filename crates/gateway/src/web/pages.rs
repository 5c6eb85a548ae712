//! Pages of other origins that the owner let in: what browsers want to hear before such a page may ask, and before it may read an answer.
//!
//! They have what any program has, by a token. Nothing here lets a page have what the browser knows of its owner.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};

use super::guard::Guard;
use super::is_below;

/// Where they may ask: never where the console is.
const OPEN: [&str; 3] = ["/mcp", "/v1", "/capability"];

/// How they may.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// What they may send along.
const SENT: &str = "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id, traceparent, tracestate";

/// What arguments that are repeated in the head begin with, which tools name themselves.
const ARGUMENT: &str = "mcp-param-";

/// What they may read of the head of an answer.
const READ: HeaderValue =
    HeaderValue::from_static("mcp-session-id, www-authenticate, haft-left-out");

/// For how many seconds a browser need not ask again.
const AGE: HeaderValue = HeaderValue::from_static("600");

/// The origin of the page that asks, where it may.
pub(super) fn asking(guard: &Guard, request: &Request) -> Option<HeaderValue> {
    let origin = guard.named_page(request.headers())?;
    is_below(request.uri().path(), &OPEN).then(|| origin.clone())
}

/// Whether a browser asks first what a page may do.
pub(super) fn is_question(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// What a page may do.
pub(super) fn allowed(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, sent(asked));
    headers.insert(ACCESS_CONTROL_MAX_AGE, AGE);
    response
}

/// What a page may send along that would send this.
fn sent(asked: &HeaderMap) -> HeaderValue {
    let mut sent = SENT.to_owned();
    let named = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|value| value.to_str().ok());
    let names = named.unwrap_or_default().split(',').map(str::trim);
    for name in names.filter(|name| name.starts_with(ARGUMENT)) {
        sent = sent + ", " + name;
    }
    HeaderValue::from_str(&sent).unwrap_or(HeaderValue::from_static(SENT))
}

/// Lets pages of an origin read an answer.
pub(super) fn open_to(origin: HeaderValue, response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, READ);
    headers.append(VARY, HeaderValue::from_static("origin"));
}
