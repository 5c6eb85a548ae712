//! Headers of what is sent.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use registry::Yank;

/// The type of a package file.
pub(super) const PACKAGE: &str = "application/zip";
/// Says that a version was taken back, and why.
const YANKED: HeaderName = HeaderName::from_static("haft-yanked");
/// Says that it was for security.
const YANKED_FOR: HeaderName = HeaderName::from_static("haft-yanked-for");
/// What a header cannot hold as it is.
const NOT_PLAIN: &AsciiSet = &CONTROLS.add(b'%');
/// The longest reason in a header, in bytes.
const LONGEST_REASON: usize = 1_000;
/// An ellipsis, encoded.
const CUT: &str = "%E2%80%A6";

/// How many headers an answer has, about.
const HEADERS: usize = 12;

/// How long an answer may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// For ever: it never changes.
    Forever,
    /// As long as it is asked each time whether it is still so.
    Checked,
}

/// A JSON text.
pub(super) fn json(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = (status, text.into()).into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// An answer that clients may keep; nothing but its tag, when they have it already.
pub(super) fn kept(
    asked: &HeaderMap,
    tag: &str,
    keep: Keep,
    make: impl FnOnce() -> Response,
) -> Response {
    let mut response =
        if has(asked, tag) { StatusCode::NOT_MODIFIED.into_response() } else { make() };
    let headers = response.headers_mut();
    // More are added on the way out, and a map that grows is made anew each time.
    headers.reserve(HEADERS);
    let control = match keep {
        Keep::Forever => "public, max-age=31536000, immutable",
        Keep::Checked => "no-cache",
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(control));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// Says in a header that a version was taken back, and why: the beginning of a long reason, since proxies take only so
/// much of a head. All of it is told with the versions.
pub(super) fn mark_yanked(response: &mut Response, yank: Option<&Yank>) {
    let Some(yank) = yank else { return };
    let mut text = String::new();
    for c in yank.reason.chars() {
        if text.len() > LONGEST_REASON {
            text += CUT;
            break;
        }
        text.extend(utf8_percent_encode(c.encode_utf8(&mut [0; 4]), NOT_PLAIN));
    }
    if text.is_empty() {
        text += Yank::NO_REASON;
    }
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(YANKED, value);
    }
    if yank.security {
        let security = HeaderValue::from_static(Yank::SECURITY);
        response.headers_mut().insert(YANKED_FOR, security);
    }
}

/// Whether a client has what this tag stands for.
pub(super) fn has(asked: &HeaderMap, tag: &str) -> bool {
    let plain = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let all = asked.get_all(header::IF_NONE_MATCH);
    let mut tags =
        all.iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    tags.any(|known| known.trim() == "*" || plain(known) == plain(tag))
}
