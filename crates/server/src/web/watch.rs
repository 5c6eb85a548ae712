//! Every request is counted and told of, once, when it is over.
//!
//! What is told holds no token, no header and no query: the route is written as the router has it, and who asked
//! is the id of a token that was good.

use std::borrow::Cow;
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
use futures_util::FutureExt;
use hyper::body::{Frame, SizeHint};

use super::asked::{Asked, Part};
use crate::metrics::known_method;
use crate::service::Registry;
use trace::{Finished, Parts, Span, Trace, drawn};

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

/// A request that is counted, and told of when it is over.
pub(super) struct Watch {
    started: Instant,
    name: Option<HeaderValue>,
    route: Cow<'static, str>,
    method: Method,
    underway: Underway,
    parts: Option<Parts>,
    /// Most are told to nobody: then there is nothing to remember.
    told: Option<Box<Told>>,
}

impl Watch {
    pub(super) fn begin(registry: &Arc<Registry>, request: &Request) -> Self {
        let started = Instant::now();
        let id = given_id(request.headers()).unwrap_or_else(drawn);
        let name = HeaderValue::from_str(&id).ok();
        let route = route(request);
        let method = request.method().clone();
        let trace = trace(registry, request.headers());
        let parts = trace.as_ref().filter(|trace| trace.is_sampled).map(|_| Parts::default());
        let is_told = registry.settings.log.is_some() || parts.is_some();
        let told = is_told.then(|| Told {
            id,
            method: method.to_string(),
            path: told_path(&route, request.uri().path()),
            trace,
            route: route.clone().into_owned(),
            status: 0,
            took: Duration::ZERO,
            bytes: 0,
            whole: false,
            caller: None,
            cause: None,
        });
        let underway = Underway::begin(registry);
        Self { started, name, route, method, underway, parts, told: told.map(Box::new) }
    }

    /// Has the request answered.
    pub(super) async fn over<E>(
        self,
        answering: impl Future<Output = Response>,
    ) -> Result<Response, E> {
        let answering = answering.map(|response| (response, LEARNED.with(RefCell::take)));
        let answering = LEARNED.scope(RefCell::default(), answering);
        let (response, learned) = trace::within(self.parts.clone(), answering).await;
        Ok(self.answered(response, learned))
    }

    fn answered(self, mut response: Response, learned: Learned) -> Response {
        let Self { started, name, route, method, underway, parts, told } = self;
        let registry = Arc::clone(&underway.registry);
        let status = response.status().as_u16();
        if method == Method::POST
            && ["/v1/tools", "/v1/tools/upload"].contains(&&*route)
            && status >= 400
        {
            registry.metrics.refused(status);
        }
        let is_package = route.ends_with(PACKAGE);
        underway.end(route, method.as_str(), status, started.elapsed());
        if let Some(name) = name {
            response.headers_mut().insert(REQUEST_ID, name);
        }
        if told.is_none() && !is_package {
            return response;
        }
        let whole = response.body().is_end_stream();
        let Learned { caller, cause } = learned;
        let told = told.map(|told| Box::new(Told { status, whole, caller, cause, ..*told }));
        let bytes = 0;
        response.map(|body| {
            Body::new(Watched { body, bytes, is_package, told, parts, started, registry })
        })
    }
}

/// A request that is counted as under way until it is answered, or given up.
struct Underway {
    registry: Arc<Registry>,
    is_over: bool,
}

impl Underway {
    fn begin(registry: &Arc<Registry>) -> Self {
        registry.metrics.begins();
        Self { registry: Arc::clone(registry), is_over: false }
    }

    fn end(mut self, route: Cow<'static, str>, method: &str, status: u16, took: Duration) {
        self.is_over = true;
        self.registry.metrics.answered(route, method, status, took);
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        if !self.is_over {
            self.registry.metrics.given_up();
        }
    }
}

/// A body that tells of its request when it has been sent, or nobody wants the rest.
struct Watched {
    body: Body,
    /// How much of it was sent.
    bytes: u64,
    is_package: bool,
    told: Option<Box<Told>>,
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
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        let is_over = matches!(polled, Poll::Ready(None)) || self.body.is_end_stream();
        if let Some(told) = self.told.as_mut().filter(|_| is_over) {
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
        if self.is_package {
            self.registry.metrics.sent(self.bytes);
        }
        let Some(mut told) = self.told.take() else { return };
        told.took = self.started.elapsed();
        told.bytes = self.bytes;
        if let Some(log) = &self.registry.settings.log {
            log(&told);
        }
        if let (Some(traces), Some(parts)) = (&self.registry.settings.traces, self.parts.take()) {
            let parts = parts.since(self.started);
            if let Some(span) = span(*told) {
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
        kind: trace::Kind::Server,
        began: SystemTime::now().checked_sub(told.took).unwrap_or(SystemTime::UNIX_EPOCH),
        took: told.took,
        attributes,
        failed,
    })
}

/// The route as the router has it; what is beneath a tool is told apart.
pub(super) fn route(request: &Request) -> Cow<'static, str> {
    let Some(matched) = request.extensions().get::<MatchedPath>() else {
        return "unknown".into();
    };
    if matched.as_str() != TOOLS {
        return matched.as_str().to_owned().into();
    }
    let route = match Asked::read(request.uri().path()).map(|asked| asked.part) {
        Ok(Part::Highest) => "/v1/tools/{id}",
        Ok(Part::Versions) => "/v1/tools/{id}/versions",
        Ok(Part::Version(_)) => "/v1/tools/{id}/versions/{version}",
        Ok(Part::Bundle(_)) => "/v1/tools/{id}/versions/{version}/bundle",
        Ok(Part::Package(_)) => "/v1/tools/{id}/versions/{version}/package",
        Ok(Part::Manifest(_)) => "/v1/tools/{id}/versions/{version}/manifest",
        Ok(Part::Yank(_)) => "/v1/tools/{id}/versions/{version}/yank",
        Ok(Part::Review(_)) => "/v1/tools/{id}/versions/{version}/review",
        Ok(Part::Owners) => "/v1/tools/{id}/owners",
        Ok(Part::Owner(_)) => "/v1/tools/{id}/owners/{namespace}",
        Err(_) => "unknown",
    };
    route.into()
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
