//! Every request is counted and told of, once, when it is over.
//!
//! What is told holds no token, no header and no query: the route is written as the router has it, and who asked
//! is the id of a token that was good.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::asked::{Asked, Part};
use crate::service::Registry;

/// What a request is called, by whoever asks or by us.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Where a request belongs in the traces of whoever asks.
const TRACE_PARENT: &str = "traceparent";
/// The longest name of a request that is taken over.
const LONGEST: usize = 64;
/// Where a token is revoked, and the longest id of one.
const TOKEN: &str = "/v1/tokens/{id}";
const TOKEN_ID: usize = 16;
/// Where package files are.
const PACKAGE: &str = "/package";
/// What beneath which every tool is.
const TOOLS: &str = "/v1/tools/{*rest}";

/// A request that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What it is called; the answer has it too, as `X-Request-Id`.
    pub id: String,
    /// The method, as it was sent.
    pub method: String,
    /// The route, as the router has it.
    pub route: String,
    /// The path that was asked for, without its query.
    pub path: String,
    /// The status.
    pub status: u16,
    /// How long it took, the sending of the body and all.
    pub took: Duration,
    /// How many bytes of a body were sent.
    pub bytes: u64,
    /// Whether all of the body was sent.
    pub whole: bool,
    /// The id of the token that was shown, where it was good.
    pub caller: Option<String>,
    /// Why the registry failed, where it did; whoever asked is told less.
    pub cause: Option<String>,
    /// The trace it belongs to, where whoever asks said so.
    pub trace: Option<Trace>,
}

/// Where a request belongs in the traces of whoever asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The trace, in hexadecimal.
    pub id: String,
    /// The part of it that asked.
    pub parent: String,
    /// The part of it that the request is, drawn by us.
    pub span: String,
}

/// What is learned of a request while it is answered.
#[derive(Default)]
struct Learned {
    caller: Option<String>,
    cause: Option<String>,
}

tokio::task_local! {
    static LEARNED: RefCell<Learned>;
}

/// Notes who asks: the id of a token that is good.
pub(super) fn note_caller(id: &str) {
    let _outside_of_a_request =
        LEARNED.try_with(|learned| learned.borrow_mut().caller = Some(id.to_owned()));
}

/// Notes why the registry fails, for its operator alone.
pub(super) fn note_cause(error: &dyn std::error::Error) {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    let _outside_of_a_request = LEARNED.try_with(|learned| learned.borrow_mut().cause = Some(text));
}

/// Counts a request and tells of it.
pub(super) async fn watch<F: Future<Output = Response>>(
    registry: &Arc<Registry>,
    request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let started = Instant::now();
    let id = given_id(request.headers()).unwrap_or_else(drawn);
    let name = HeaderValue::from_str(&id);
    let route = route(&request);
    let method = request.method().clone();
    // Most are told to nobody: then there is nothing to remember.
    let is_told = registry.settings.log.is_some() || route.ends_with(PACKAGE);
    let told = is_told.then(|| Told {
        id,
        method: method.to_string(),
        path: told_path(&route, request.uri().path()),
        trace: request.headers().get(TRACE_PARENT).and_then(trace),
        route: route.clone(),
        status: 0,
        took: Duration::ZERO,
        bytes: 0,
        whole: false,
        caller: None,
        cause: None,
    });
    let underway = Underway::begin(registry);
    let (mut response, learned) = LEARNED
        .scope(RefCell::default(), async {
            let response = answer(request).await;
            (response, LEARNED.with(RefCell::take))
        })
        .await;
    let status = response.status().as_u16();
    if method == Method::POST
        && ["/v1/tools", "/v1/tools/upload"].contains(&route.as_str())
        && status >= 400
    {
        registry.metrics.refused(status);
    }
    underway.end(route, method.as_str(), status, started.elapsed());
    if let Ok(name) = name {
        response.headers_mut().insert(REQUEST_ID, name);
    }
    let Some(told) = told else { return response };
    let whole = response.body().is_end_stream();
    let Learned { caller, cause } = learned;
    let told = Some(Told { status, whole, caller, cause, ..told });
    let registry = Arc::clone(registry);
    response.map(|body| Body::new(Watched { body, told, started, registry }))
}

/// A request that is counted as under way until it is answered, or given up.
struct Underway<'r> {
    registry: &'r Registry,
    is_over: bool,
}

impl<'r> Underway<'r> {
    fn begin(registry: &'r Registry) -> Self {
        registry.metrics.begins();
        Self { registry, is_over: false }
    }

    fn end(mut self, route: String, method: &str, status: u16, took: Duration) {
        self.is_over = true;
        self.registry.metrics.answered(route, method, status, took);
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.registry.metrics.given_up();
        }
    }
}

/// A body that tells of its request when it has been sent, or nobody wants the rest.
struct Watched {
    body: Body,
    told: Option<Told>,
    started: Instant,
    registry: Arc<Registry>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Some(told) = &mut self.told {
            match &polled {
                Poll::Ready(Some(Ok(frame))) => {
                    told.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                }
                Poll::Ready(None) => told.whole = true,
                _ => {}
            }
        }
        if self.body.is_end_stream()
            && let Some(told) = &mut self.told
        {
            told.whole = true;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let Some(mut told) = self.told.take() else { return };
        told.took = self.started.elapsed();
        if told.route.ends_with(PACKAGE) {
            self.registry.metrics.sent(told.bytes);
        }
        if let Some(log) = &self.registry.settings.log {
            log(&told);
        }
    }
}

/// The route as the router has it; what is beneath a tool is told apart.
pub(super) fn route(request: &Request) -> String {
    let Some(matched) = request.extensions().get::<MatchedPath>() else {
        return "unknown".to_owned();
    };
    if matched.as_str() != TOOLS {
        return matched.as_str().to_owned();
    }
    let part = match Asked::read(request.uri().path()).map(|asked| asked.part) {
        Ok(Part::Highest) => "",
        Ok(Part::Versions) => "/versions",
        Ok(Part::Version(_)) => "/versions/{version}",
        Ok(Part::Bundle(_)) => "/versions/{version}/bundle",
        Ok(Part::Package(_)) => "/versions/{version}/package",
        Ok(Part::Manifest(_)) => "/versions/{version}/manifest",
        Ok(Part::Yank(_)) => "/versions/{version}/yank",
        Ok(Part::Review(_)) => "/versions/{version}/review",
        Ok(Part::Owners) => "/owners",
        Ok(Part::Owner(_)) => "/owners/{namespace}",
        Err(_) => return "unknown".to_owned(),
    };
    format!("/v1/tools/{{id}}{part}")
}

/// The path as it is told. Who revokes a token may write the token itself where its id belongs.
fn told_path(route: &str, path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or_default();
    if route == TOKEN && last.len() > TOKEN_ID { route.to_owned() } else { path.to_owned() }
}

/// What whoever asks calls the request, where that is plain.
fn given_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (!id.is_empty() && id.len() <= LONGEST && id.bytes().all(is_plain)).then(|| id.to_owned())
}

/// Reads a header of the form `00-<trace>-<parent>-<flags>`; one that is not of it is passed over.
fn trace(header: &HeaderValue) -> Option<Trace> {
    let text = header.to_str().ok()?;
    let mut parts = text.split('-');
    let (version, id, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hexadecimal = |text: &str, length: usize| {
        text.len() == length
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_set = |text: &str| text.bytes().any(|byte| byte != b'0');
    let is_good = is_hexadecimal(version, 2)
        && version != "ff"
        && (version != "00" || parts.next().is_none())
        && is_hexadecimal(id, 32)
        && is_hexadecimal(parent, 16)
        && is_hexadecimal(flags, 2)
        && is_set(id)
        && is_set(parent);
    is_good.then(|| Trace { id: id.to_owned(), parent: parent.to_owned(), span: drawn() })
}

/// A name that no other request has: a number that nobody guesses, and another from it each time.
fn drawn() -> String {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        let mut seed = [0; 8];
        // Without randomness requests of two starts have the same names, and are answered all the same.
        let _ = getrandom::fill(&mut seed);
        AtomicU64::new(u64::from_le_bytes(seed))
    });
    let step = 0x9e37_79b9_7f4a_7c15;
    let mut number = NEXT.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    format!("{:016x}", number ^ (number >> 31))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_taken_over_when_it_is_one() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let found = trace(&HeaderValue::from_static(good)).unwrap();
        assert_eq!(found.id, "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((found.parent.as_str(), found.span.len()), ("00f067aa0ba902b7", 16));
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        ] {
            assert_eq!(trace(&HeaderValue::from_static(bad)), None, "{bad}");
        }
    }

    #[test]
    fn a_request_keeps_a_plain_name_alone() {
        let named = |name: &'static str| {
            given_id(&HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_static(name))]))
        };
        assert_eq!(named("a-1.B_2").as_deref(), Some("a-1.B_2"));
        for bad in ["", "a b", "a\"b", "a/b"] {
            assert_eq!(named(bad), None, "{bad}");
        }
    }
}
