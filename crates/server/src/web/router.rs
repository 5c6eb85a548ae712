//! Every route.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::compression::{CompressionLayer, CompressionLevel};

use super::refused::Refused;
use super::{answer, change, find, pages, tool};
use crate::service::Registry;

/// The least bytes that are worth compressing.
const WORTH: u16 = 256;

/// The API of a registry.
pub fn router(registry: Arc<Registry>) -> Router {
    let worth = SizeAbove::new(WORTH).and(NotForContentType::new(answer::PACKAGE));
    Router::new()
        // For everybody.
        .route("/v1/tools/search", get(find::search))
        .route("/v1/tools", get(find::list).post(change::publish))
        .route("/v1/tools/upload", axum::routing::post(change::publish))
        .route("/v1/tags", get(find::tags))
        .route("/v1/providers", get(find::providers))
        // One tool and what is beneath it: ids may have slashes, so the path is taken apart from its end.
        .route("/v1/tools/{*rest}", any(tool::route))
        // For people.
        .merge(pages::routes(&registry))
        // For the operator.
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth))
        .layer(middleware::from_fn(share))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            Refused::internal("the registry failed").into_response()
        }))
        .layer(middleware::from_fn(pages::for_browsers))
        .with_state(registry)
}

async fn unknown(request: Request) -> Refused {
    Refused::unknown_path(request.uri().path())
}

async fn wrong_method(request: Request) -> Refused {
    Refused::wrong_method(request.method())
}

/// Whether the process is there.
async fn healthy() -> Response {
    answer::json(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// Whether it can do its work.
async fn ready(State(registry): State<Arc<Registry>>) -> Result<Response, Refused> {
    registry
        .store
        .check_alive()
        .await
        .map_err(|_| Refused::unavailable("the database does not answer"))?;
    registry
        .blobs
        .check_alive()
        .await
        .map_err(|_| Refused::unavailable("the place of the packages does not answer"))?;
    let ready = serde_json::json!({"status": "ready", "damaged": registry.catalog.damaged()});
    Ok(answer::json(StatusCode::OK, ready.to_string()))
}

/// Lets pages of other sites read, and nothing else; keeps browsers from guessing what an answer is.
async fn share(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let is_asking = method == Method::OPTIONS && request.uri().path().starts_with("/v1/");
    let mut response =
        if is_asking { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_asking || [Method::GET, Method::HEAD].contains(&method) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        let exposed = "ETag, Repr-Digest, Content-Range, Accept-Ranges, Haft-Yanked";
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
    }
    if is_asking {
        let methods = HeaderValue::from_static("GET, HEAD, OPTIONS");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods.clone());
        headers.insert(header::ALLOW, methods);
        let asked = HeaderValue::from_static("Authorization, Range, If-None-Match");
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    }
    response
}
