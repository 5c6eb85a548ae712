//! What every request goes through, from the outside to the inside: it is watched, shared with other sites, told to
//! people in their way, and let in at the door. It is one layer, because each costs as much as a small answer. Nothing
//! is answered but what the door lets through.
//!
//! What has to be known of a request is noted before it is passed on, so that little is held while its answer is made:
//! what is large is moved about, and taken from a heap that all threads share.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{FutureExt, TryFutureExt};
use tower::{Layer, Service};

use super::refused::Refused;
use super::watch::{self, Watch};
use super::{door, openapi, pages};
use crate::service::Registry;

/// An answer in the making.
pub(super) type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// An answer that is there.
pub(super) fn at_once(response: Response) -> Answering {
    Box::pin(std::future::ready(response))
}

/// What answers requests behind the door, and its answers.
pub(super) trait Inside:
    Service<Request, Error = Infallible, Future: Send + 'static> + Send + 'static
{
    /// Has a request answered.
    fn answer(&mut self, request: Request) -> impl Future<Output = Response> + Send + 'static;
}

impl<S, B> Inside for S
where
    S: Service<Request, Response = Response<B>, Error = Infallible, Future: Send + 'static>
        + Send
        + 'static,
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    fn answer(&mut self, request: Request) -> impl Future<Output = Response> + Send + 'static {
        self.call(request).map(|answered| {
            let Ok(response) = answered;
            response.map(Body::new)
        })
    }
}

/// The layer.
#[derive(Clone, Debug)]
pub(super) struct Receiving(pub(super) Arc<Registry>);

impl<S> Layer<S> for Receiving {
    type Service = Received<S>;

    fn layer(&self, inside: S) -> Received<S> {
        Received { registry: Arc::clone(&self.0), inside }
    }
}

/// What is inside, behind everything that a request goes through.
#[derive(Clone, Debug)]
pub(super) struct Received<S> {
    registry: Arc<Registry>,
    inside: S,
}

impl<S: Inside + Clone> Service<Request> for Received<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inside.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let watch = Watch::begin(&self.registry, &request);
        let (sharing, is_person) = (Sharing::of(&request), pages::is_person(&request));
        let answered = match sharing.told() {
            Some(response) => at_once(response),
            None => door::keep(&self.registry, request, &mut self.inside),
        };
        let answered = AssertUnwindSafe(answered).catch_unwind();
        let answered =
            answered.unwrap_or_else(|_| Refused::internal("the registry failed").into_response());
        Box::pin(watch.over(answered.map(move |mut response| {
            sharing.mark(&mut response);
            if is_person { pages::for_people(response) } else { response }
        })))
    }
}

/// Lets pages of other sites read, and nothing else; keeps browsers from guessing what an answer is.
pub(super) struct Sharing {
    /// Whether it is a reading, and what it may be asked for is for others.
    is_reading: bool,
    /// What may be done at a place, where a browser asks that beforehand.
    allowed: Option<String>,
}

impl Sharing {
    pub(super) fn of(request: &Request) -> Self {
        let method = request.method();
        let is_shared = |path: &str| {
            ["/v1/", "/v0/", "/v0.1/", "/.well-known/"].iter().any(|at| path.starts_with(at))
        };
        let is_asking = method == Method::OPTIONS && is_shared(request.uri().path());
        Self {
            is_reading: [Method::GET, Method::HEAD].contains(method),
            allowed: is_asking.then(|| openapi::methods(&watch::route(request))),
        }
    }

    /// The answer to a browser that asks beforehand.
    pub(super) fn told(&self) -> Option<Response> {
        self.allowed.is_some().then(|| StatusCode::NO_CONTENT.into_response())
    }

    /// Says so in an answer.
    pub(super) fn mark(self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if self.is_reading || self.allowed.is_some() {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            let exposed = "ETag, Link, Repr-Digest, Content-Range, Accept-Ranges, Haft-Yanked, \
                           Haft-Yanked-For, X-Request-Id";
            headers
                .insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
        }
        let Some(allowed) = self.allowed else { return };
        let methods = HeaderValue::from_static("GET, HEAD, OPTIONS");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        if let Ok(allowed) = HeaderValue::try_from(allowed) {
            headers.insert(header::ALLOW, allowed);
        }
        let asked = HeaderValue::from_static("Authorization, Range, If-None-Match");
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    }
}
