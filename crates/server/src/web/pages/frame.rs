//! What all pages have around them, and the headers they are sent with.

use askama::Template;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use package::digest::Digest;
use registry::ErrorBody;

use super::assets;
use crate::web::answer::{self, Keep};

/// What a browser may do with a page: show it, with our own style, script and pictures. Nothing that stands in a
/// page itself is run, whatever got into it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Where programs ask, who are answered in the error model whatever they accept.
const PROGRAMS: [&str; 8] =
    ["/v1/", "/v0/", "/v0.1/", "/.well-known/", "/assets/", "/healthz", "/readyz", "/metrics"];

/// What stands around a page.
#[derive(Debug)]
pub(super) struct Frame {
    /// The title, before our name.
    pub(super) title: String,
    /// What is in the search field.
    pub(super) words: String,
    pub(super) style: &'static str,
    pub(super) script: &'static str,
    pub(super) icon: &'static str,
}

impl Frame {
    pub(super) fn new(title: impl Into<String>, words: &str) -> Self {
        Self {
            title: title.into(),
            words: words.to_owned(),
            style: &assets::STYLE.path,
            script: &assets::SCRIPT.path,
            icon: &assets::ICON.path,
        }
    }
}

/// A page, or that the browser has it already.
pub(super) fn page(asked: &HeaderMap, template: &impl Template) -> Response {
    let text = template.render().unwrap_or_default();
    let tag = format!("W/\"{}\"", Digest::of(text.as_bytes()));
    let mut response =
        answer::kept(asked, &tag, Keep::Checked, || (StatusCode::OK, text).into_response());
    dress(response.headers_mut());
    response
}

fn dress(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (
            header::HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=()",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    frame: Frame,
    status: u16,
    heading: &'static str,
    message: String,
    code: String,
    /// Whether the browser has asked for a password.
    asks_for_token: bool,
}

/// Tells people in words and HTML what programs are told in the error model.
pub(in crate::web) fn for_people(response: Response) -> Response {
    let Some(body) = response.extensions().get::<ErrorBody>() else { return response };
    let status = response.status();
    let challenge = response.headers().get(header::WWW_AUTHENTICATE);
    let asks_for_token = challenge.is_some_and(|text| text.as_bytes().starts_with(b"Basic"));
    let page = ErrorPage {
        asks_for_token,
        heading: heading(status),
        frame: Frame::new(heading(status), ""),
        status: status.as_u16(),
        message: sentence(&body.error.message),
        code: body.error.code.clone(),
    };
    let text = page.render().unwrap_or_default();
    let (mut parts, _) = response.into_parts();
    for stale in [header::CONTENT_LENGTH, header::CONTENT_ENCODING, header::ETAG] {
        parts.headers.remove(stale);
    }
    parts.headers.append(header::VARY, HeaderValue::from_static("accept"));
    dress(&mut parts.headers);
    Response::from_parts(parts, text.into())
}

/// What programs are told, as people write it.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(char::to_uppercase);
    let end = if message.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    first.into_iter().flatten().chain(letters).chain(end.chars()).collect()
}

/// Whether somebody reads with a browser, wherever.
pub(in crate::web) fn is_browser(request: &Request) -> bool {
    let accepts = request.headers().get_all(header::ACCEPT).iter();
    let mut accepts = accepts.filter_map(|value| value.to_str().ok());
    [Method::GET, Method::HEAD].contains(request.method())
        && accepts.any(|value| value.contains("text/html"))
}

/// Whether somebody reads with a browser where pages are.
pub(in crate::web) fn is_person(request: &Request) -> bool {
    let path = request.uri().path();
    is_browser(request) && !PROGRAMS.iter().any(|place| path.starts_with(place))
}

fn heading(status: StatusCode) -> &'static str {
    match status.as_u16() {
        404 => "There is nothing here",
        401 => "Sign in with a token",
        403 => "This is not for everybody",
        429 => "Too much at once",
        503 => "Not now",
        500.. => "Something broke on our side",
        _ => "That does not work",
    }
}
