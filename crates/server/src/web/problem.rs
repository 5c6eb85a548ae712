//! The answer that is no success, as the MCP world has it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use registry::mcp::{Problem, ProblemDetail};

use super::answer;
use super::refused::{Refused, clip};

/// An answer that is no success, in the words of the MCP world.
#[derive(Debug)]
pub(super) struct Wrong(Box<(StatusCode, Problem)>);

impl Wrong {
    pub(super) fn new(status: StatusCode, what: &str) -> Self {
        let problem = Problem {
            error: what.to_owned(),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: what.to_owned(),
            errors: Vec::new(),
        };
        Self(Box::new((status, problem)))
    }

    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Server not found")
    }

    /// A parameter is not what it should be.
    pub(super) fn parameter(name: &str, value: &str, expected: &str) -> Self {
        let mut wrong = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "validation failed");
        wrong.0.1.errors.push(ProblemDetail {
            message: expected.to_owned(),
            location: format!("query.{name}"),
            value: clip(value),
        });
        wrong
    }
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        let (status, problem) = *self.0;
        let text = serde_json::to_string(&problem).unwrap_or_default();
        let mut response = answer::json(status, text);
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// A refusal, in the words that are spoken where it was asked.
pub(super) fn refuse_at(path: &str, refused: Refused) -> Response {
    if !["/v0/", "/v0.1/"].iter().any(|world| path.starts_with(world)) {
        return refused.into_response();
    }
    let header = refused.with_header().cloned();
    let mut response = Wrong::from(refused).into_response();
    if let Some((name, value)) = header {
        response.headers_mut().insert(name, value);
    }
    response
}

impl From<Refused> for Wrong {
    fn from(refused: Refused) -> Self {
        Self::new(refused.status(), refused.message())
    }
}
