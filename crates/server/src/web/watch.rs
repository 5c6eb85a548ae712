//! Every request is counted and told of, once, when it is over.
//!
//! What is told holds no token, no header and no query: the route is written as the router has it, and who asked
//! is the id of a token that was good.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::asked::{Asked, Part};
use crate::metrics::known_method;
use crate::service::Registry;
use crate::traces::{self, Finished, Parts, Span, Trace, drawn};

/// What a request is called, by whoever asks or by us.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Where a request belongs in the traces of whoever asks.
const TRACE_PARENT: &str = "traceparent";
/// The longest name of a request that is taken over.
const LONGEST: usize = 64;
/// The longest path that a collector is told.
const PATH: usize = 512;
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
    let trace = trace(registry, request.headers());
    let parts = trace.as_ref().filter(|trace| trace.is_sampled).map(|_| Parts::default());
    // Most are told to nobody: then there is nothing to remember.
    let is_told = registry.settings.log.is_some() || parts.is_some() || route.ends_with(PACKAGE);
    let told = is_told.then(|| Told {
        id,
        method: method.to_string(),
        path: told_path(&route, request.uri().path()),
        trace,
        route: route.clone(),
        status: 0,
        took: Duration::ZERO,
        bytes: 0,
        whole: false,
        caller: None,
        cause: None,
    });
    let underway = Underway::begin(registry);
    let answering = async {
        let response = answer(request).await;
        (response, LEARNED.with(RefCell::take))
    };
    let answering = LEARNED.scope(RefCell::default(), answering);
    let (mut response, learned) = traces::within(parts.clone(), answering).await;
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
    response.map(|body| Body::new(Watched { body, told, parts, started, registry }))
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
    /// What it spent its time with, where that is told to a collector.
    parts: Option<Parts>,
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
        if let (Some(traces), Some(parts)) = (&self.registry.settings.traces, self.parts.take()) {
            let parts = parts.since(self.started);
            if let Some(span) = span(told) {
                traces.send(Finished { span, parts });
            }
        }
    }
}

/// Where a request belongs: as whoever asks says, or in a trace of its own where a collector is told of it.
fn trace(registry: &Registry, headers: &HeaderMap) -> Option<Trace> {
    let follow = || {
        let told = headers.get(TRACE_PARENT)?.to_str().ok()?;
        Trace::follow(told)
    };
    match (&registry.settings.traces, &registry.settings.log) {
        (Some(traces), _) => Some(traces.sampled(follow())),
        (None, Some(_)) => follow(),
        (None, None) => None,
    }
}

/// A request as a collector is told of it.
fn span(told: Told) -> Option<Span> {
    let method = known_method(&told.method);
    let mut attributes = vec![
        ("http.request.method", method.unwrap_or("_OTHER").into()),
        ("http.route", told.route.clone().into()),
        ("url.path", told.path.chars().take(PATH).collect::<String>().into()),
        ("http.response.status_code", told.status.into()),
        ("http.response.body.size", told.bytes.into()),
        ("haft.request.id", told.id.into()),
    ];
    attributes.extend(told.caller.map(|caller| ("haft.token.id", caller.into())));
    attributes.extend((!told.whole).then(|| ("haft.cut_off", true.into())));
    // What whoever asks did wrong is no failure of the registry.
    let failed = (told.status >= 500).then(|| told.cause.unwrap_or_default());
    attributes.extend(failed.as_ref().map(|_| ("error.type", told.status.to_string().into())));
    Some(Span {
        trace: told.trace?,
        name: format!("{} {}", method.unwrap_or("HTTP"), told.route),
        began: SystemTime::now().checked_sub(told.took).unwrap_or(SystemTime::UNIX_EPOCH),
        took: told.took,
        attributes,
        failed,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

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
