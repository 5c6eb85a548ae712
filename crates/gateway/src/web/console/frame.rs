//! What all pages have around them, and the headers they are sent with.

use std::sync::Arc;

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::visit::Visit;
use super::{Console, assets};
use crate::door::Note;
use crate::steward::Trouble;

/// What a browser may do with a page: show it, with our own style, script and pictures. Nothing that stands in a page
/// itself is run, whatever got into it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The parts of the console, as its menu has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Today,
    Tools,
    Approvals,
    Calls,
    Install,
    Secrets,
    Policy,
    Machine,
}

impl Part {
    const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Today, "/", "Today"),
        (Self::Tools, "/tools", "Tools"),
        (Self::Approvals, "/approvals", "Approvals"),
        (Self::Calls, "/calls", "Calls"),
        (Self::Install, "/install", "Install"),
        (Self::Secrets, "/secrets", "Secrets"),
        (Self::Policy, "/policy", "Policy"),
        (Self::Machine, "/machine", "Machine"),
    ];
}

/// A line of the menu.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) address: &'static str,
    pub(super) name: &'static str,
    pub(super) is_here: bool,
    /// How much waits there.
    pub(super) waiting: usize,
}

/// What stands around a page.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) title: String,
    pub(super) menu: Vec<Item>,
    /// How strong the walls are.
    pub(super) level: String,
    /// What came of what the owner did last.
    pub(super) notes: Vec<Note>,
    /// What every form carries; nothing where nobody is signed in.
    pub(super) form: String,
    pub(super) style: &'static str,
    pub(super) script: &'static str,
    pub(super) icon: &'static str,
}

impl Frame {
    /// That of a page for somebody who is signed in.
    pub(super) async fn new(
        console: &Arc<Console>,
        visit: &Visit,
        part: Part,
        title: impl Into<String>,
    ) -> Self {
        let stock = console.gateway.stock().await;
        let waiting = console.waiting().await.len();
        let item = |(one, address, name): &(Part, &'static str, &'static str)| Item {
            address,
            name,
            is_here: *one == part,
            waiting: if *one == Part::Approvals { waiting } else { 0 },
        };
        let notes =
            if visit.is_live { Vec::new() } else { console.gateway.door.notes(&visit.session) };
        Self {
            menu: Part::ALL.iter().map(item).collect(),
            level: stock.host.level().to_string(),
            notes,
            form: visit.session.form.clone(),
            ..Self::bare(title)
        }
    }

    /// That of a page for anybody.
    pub(super) fn bare(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            menu: Vec::new(),
            level: String::new(),
            notes: Vec::new(),
            form: String::new(),
            style: &assets::STYLE.path,
            script: &assets::SCRIPT.path,
            icon: &assets::ICON.path,
        }
    }
}

/// Sends a page.
pub(super) fn page(template: &impl Template) -> Response {
    with(StatusCode::OK, template)
}

fn with(status: StatusCode, template: &impl Template) -> Response {
    let (status, text) = match template.render() {
        Ok(text) => (status, text),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
    };
    let mut response = (status, text).into_response();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, html);
    dress(response.headers_mut());
    response
}

/// Puts on what every answer of the console has. Pages tell their own origin where a form comes from, and nobody else anything.
pub(super) fn dress(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
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

/// Sends a browser elsewhere, to look at what came of its form.
pub(super) fn see(address: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(address) = HeaderValue::from_str(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    dress(response.headers_mut());
    response
}

/// Why somebody does not get what they asked for.
#[derive(Debug)]
pub(super) struct Refusal {
    heading: String,
    words: String,
    /// More about it, a line each.
    more: Vec<String>,
    /// What to type instead.
    command: Option<String>,
}

impl Refusal {
    pub(super) fn new(heading: &str, words: &str) -> Self {
        let (heading, words) = (heading.to_owned(), words.to_owned());
        Self { heading, words, more: Vec::new(), command: None }
    }
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage<'r> {
    frame: Frame,
    refusal: &'r Refusal,
}

/// A page that says why there is no other.
pub(super) fn refused(status: StatusCode, refusal: &Refusal) -> Response {
    with(status, &RefusedPage { frame: Frame::bare(&refusal.heading), refusal })
}

/// The page for whoever is not signed in.
pub(super) fn sign_in_needed() -> Response {
    let words = "This is the console of the tools on this machine, for their owner. At your terminal, print an \
                 address that opens it:";
    let refusal = Refusal {
        command: Some("haft console".to_owned()),
        ..Refusal::new("Sign in first", words)
    };
    refused(StatusCode::UNAUTHORIZED, &refusal)
}

/// The page for whoever asks for what is not there.
pub(super) fn missing(words: &str) -> Response {
    refused(StatusCode::NOT_FOUND, &Refusal::new("There is nothing here", words))
}

/// What is wrong, as a note.
pub(super) fn of_trouble(trouble: &Trouble) -> Note {
    let more = trouble
        .causes
        .iter()
        .cloned()
        .chain(trouble.hints.iter().map(|hint| format!("Hint: {hint}")));
    Note { is_done: false, words: sentence(&trouble.message), more: more.collect() }
}

/// What was done, as a note.
pub(super) fn done(words: impl Into<String>) -> Note {
    Note { is_done: true, words: words.into(), more: Vec::new() }
}

/// What programs are told, as people write it.
pub(super) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(char::to_uppercase);
    let end = if message.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    first.into_iter().flatten().chain(letters).chain(end.chars()).collect()
}
