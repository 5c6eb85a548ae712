//! Requests to authorization servers: none is redirected, and none is longer than it may be.

use std::time::Duration;

use egress::http::{Client, HeaderName, HeaderValue, Method, Request, Response, Url};
use serde_json::Value;

use super::address::{check_safe, shown};
use super::error::LoginError;
use super::form::{basic, encoded, form};
use super::register::{self, Known};
use crate::run::place_of;
use crate::strict::strict;

/// The longest answer.
const MOST: u64 = 256 << 10;

/// How long one request may take.
const WITHIN: Duration = Duration::from_secs(10);

/// What came of asking for a document.
pub(super) enum Fetched {
    Document(Vec<u8>),
    /// There is none, and in which words that was said.
    Nothing(String),
}

/// Asks for a document.
pub(super) async fn get(
    client: &Client,
    url: &Url,
    what: &'static str,
) -> Result<Fetched, LoginError> {
    let response = send(client, request(Method::GET, url)?, what).await?;
    match response.status.as_u16() {
        200 => Ok(Fetched::Document(response.body)),
        // Some servers answer whatever they do not know with who may ask.
        400..500 => Ok(Fetched::Nothing(format!("`{}` answered {}", shown(url), response.status))),
        // A redirect would carry us where nobody agreed to.
        status => Err(LoginError::Answered { what, status, code: None }),
    }
}

/// Posts a body.
pub(super) async fn post(
    client: &Client,
    url: &Url,
    body: Vec<u8>,
    kind: &'static str,
    authorization: Option<HeaderValue>,
    what: &'static str,
) -> Result<Response, LoginError> {
    let mut request = request(Method::POST, url)?;
    request.headers.insert("content-type", HeaderValue::from_static(kind));
    if let Some(value) = authorization {
        request.headers.insert("authorization", value);
    }
    request.body = Some(body);
    send(client, request, what).await
}

/// Posts a form, and says who we are in the way that was agreed.
pub(super) async fn post_form(
    client: &Client,
    url: &Url,
    known: &Known,
    mut pairs: Vec<(&str, &str)>,
    what: &'static str,
) -> Result<Response, LoginError> {
    let secret = known.secret.as_ref().map(vault::Secret::expose);
    // Some servers look for the name in the form only, also where the header has it.
    pairs.push(("client_id", &known.id));
    let authorization = match (known.method, secret) {
        (register::Method::Basic, Some(secret)) => {
            Some(basic(&encoded(&known.id), &encoded(secret)))
        }
        (register::Method::Post, Some(secret)) => {
            pairs.push(("client_secret", secret));
            None
        }
        (register::Method::None, _) | (_, None) => None,
    };
    let body = form(pairs).into_bytes();
    post(client, url, body, "application/x-www-form-urlencoded", authorization, what).await
}

/// What an answer says, where it is JSON.
pub(crate) fn said(response: &Response) -> Value {
    said_by(&response.body)
}

/// The same of the body of one.
pub(super) fn said_by(body: &[u8]) -> Value {
    std::str::from_utf8(body).ok().and_then(strict).unwrap_or_default()
}

/// The code of an answer that is a refusal; other words of a stranger are not told.
pub(crate) fn code(said: &Value) -> Option<String> {
    let is_code = |letter: &char| letter.is_ascii_alphanumeric() || "_-.".contains(*letter);
    said["error"].as_str().map(|code| code.chars().filter(is_code).take(64).collect())
}

/// An answer that is a refusal, with its code.
pub(super) fn refused(response: &Response, what: &'static str) -> LoginError {
    let code = code(&said(response));
    LoginError::Answered { what, status: response.status.as_u16(), code }
}

fn request(method: Method, url: &Url) -> Result<Request, LoginError> {
    check_safe(url)?;
    let mut request = Request::new(method, url.clone());
    request
        .headers
        .insert(HeaderName::from_static("accept"), HeaderValue::from_static("application/json"));
    request.most = MOST;
    request.within = WITHIN;
    request.redirects = 0;
    Ok(request)
}

pub(super) async fn send(
    client: &Client,
    request: Request,
    what: &'static str,
) -> Result<Response, LoginError> {
    let place = place_of(&request.url);
    client.send(request).await.map_err(|source| LoginError::NotReached { what, place, source })
}
