//! Somebody who looks at a page, or sends a form.

use std::sync::Arc;
use std::time::Instant;

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use zeroize::Zeroizing;

use super::Console;
use super::fields::Fields;
use super::frame::{self, Refusal};
use crate::door::Session;

/// What browsers show their session as.
pub(super) const COOKIE_NAME: &str = "haft_console";

/// The largest form.
const LARGEST: usize = 512 << 10;

/// Set by our script where it looks for what is new on a page.
const LIVE: &str = "x-haft-live";

/// Somebody who looks at a page.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) session: Session,
    /// What the address says after its question mark.
    pub(super) query: Fields,
    /// Whether nobody sees this page: only what is new on it is taken.
    pub(super) is_live: bool,
}

/// Somebody who sent a form of ours.
#[derive(Clone, Debug)]
pub(super) struct Posted {
    pub(super) visit: Visit,
    pub(super) fields: Fields,
}

impl FromRequestParts<Arc<Console>> for Visit {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        console: &Arc<Console>,
    ) -> Result<Self, Response> {
        check_place(&parts.headers)?;
        let session = session(&parts.headers, console).ok_or_else(frame::sign_in_needed)?;
        let query = Fields::parse(parts.uri.query().unwrap_or_default());
        let is_live = parts.headers.contains_key(LIVE);
        Ok(Self { session, query, is_live })
    }
}

impl FromRequest<Arc<Console>> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, console: &Arc<Console>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        check_origin(&parts.headers)?;
        let visit = Visit::from_request_parts(&mut parts, console).await?;
        let fields = read(Request::from_parts(parts, body)).await?;
        if !fields.get("form").is_some_and(|form| visit.session.owns(form)) {
            let words = "The form is not one of this session. Load the page anew, and try again.";
            return Err(frame::refused(
                StatusCode::FORBIDDEN,
                &Refusal::new("That form does not count", words),
            ));
        }
        Ok(Self { visit, fields })
    }
}

/// Reads the fields of a form.
pub(super) async fn read(request: Request) -> Result<Fields, Response> {
    let too_large = || {
        let words = "What you sent is longer than anything that is asked for here.";
        frame::refused(StatusCode::PAYLOAD_TOO_LARGE, &Refusal::new("That is too much", words))
    };
    let body = to_bytes(request.into_body(), LARGEST).await.map_err(|_| too_large())?;
    let text = Zeroizing::new(String::from_utf8_lossy(&body).into_owned());
    Ok(Fields::parse(&text))
}

/// The session that a browser shows.
fn session(headers: &HeaderMap, console: &Console) -> Option<Session> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs =
        cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut shown = pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value);
    shown.find_map(|value| console.gateway.door.session(value, Instant::now()))
}

/// Refuses whoever asks by another name than those of this machine: a gateway may be known by others, for agents.
pub(super) fn check_place(headers: &HeaderMap) -> Result<(), Response> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let is_here = name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_here {
        return Ok(());
    }
    let words = "The console is seen on the machine that it runs on, and nowhere else.";
    Err(frame::refused(StatusCode::NOT_FOUND, &Refusal::new("There is nothing here", words)))
}

/// Refuses a form that another page sent. A browser says which page it was.
pub(super) fn check_origin(headers: &HeaderMap) -> Result<(), Response> {
    let text =
        |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    let is_own = match (text(ORIGIN), text(HOST)) {
        (Some(origin), Some(host)) => origin.strip_prefix("http://") == Some(host),
        _ => false,
    };
    if is_own {
        return Ok(());
    }
    let words = "Another page sent this, or nobody can tell which one did.";
    Err(frame::refused(StatusCode::FORBIDDEN, &Refusal::new("That form does not count", words)))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(axum::http::HeaderName, &str)]) -> HeaderMap {
        let pair = |(name, value): &(axum::http::HeaderName, &str)| {
            (name.clone(), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_own_pages_send_forms() {
        let host = (HOST, "127.0.0.1:7171");
        assert!(check_origin(&headers(&[host.clone(), (ORIGIN, "http://127.0.0.1:7171")])).is_ok());
        for origin in [
            "http://127.0.0.1:8080",
            "https://127.0.0.1:7171",
            "null",
            "http://localhost:7171",
            "http://evil.example",
        ] {
            assert!(check_origin(&headers(&[host.clone(), (ORIGIN, origin)])).is_err(), "{origin}");
        }
        assert!(check_origin(&headers(&[host])).is_err(), "without an origin");
    }

    #[test]
    fn the_console_is_seen_by_the_names_of_this_machine_alone() {
        for host in ["127.0.0.1:7171", "localhost", "LOCALHOST:1", "[::1]:7171", "127.0.0.2:1"] {
            assert!(check_place(&headers(&[(HOST, host)])).is_ok(), "{host}");
        }
        for host in
            ["tools.example.com", "10.0.0.1:7171", "localhost.evil.example", "", "127.0.0.1.nip.io"]
        {
            assert!(check_place(&headers(&[(HOST, host)])).is_err(), "{host}");
        }
    }
}
