//! Every route.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::FutureExt;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::compression::{CompressionLayer, CompressionLevel};

use super::receive::{Receiving, Sharing};
use super::refused::Refused;
use super::{
    admin, answer, caller, change, door, find, listings, openapi, pages, review, servers, tool,
};
use crate::ready::Unready;
use crate::service::Registry;
use crate::settings::{Counting, Reading};

/// The least bytes that are worth compressing.
const WORTH: u16 = 256;

/// The API of a registry.
pub fn router(registry: Arc<Registry>) -> Router {
    let worth = SizeAbove::new(WORTH).and(NotForContentType::new(answer::PACKAGE));
    let known = Arc::clone(&registry);
    let tools =
        tower::service_fn(move |request| tool::route(&known, request).map(Ok::<_, Infallible>));
    Router::new()
        // For everybody.
        .route("/v1/tools/search", get(find::search))
        .route("/v1/tools", get(find::list).post(change::publish))
        .route("/v1/tools/upload", axum::routing::post(change::publish))
        .route("/v1/foresee", axum::routing::post(change::foresee))
        .route("/v1/tags", get(find::tags))
        .route("/v1/providers", get(find::providers))
        .route("/v1/catalog.json", get(listings::catalog))
        .route("/.well-known/install-manifests.json", get(listings::index))
        // For clients of the MCP world; the older name of the API is the same.
        .route("/v0.1/servers", get(servers::list).fallback(servers::not_here))
        .route("/v0.1/servers/{*rest}", any(servers::one))
        .route("/v0.1/{*rest}", any(servers::unknown).post(servers::not_here))
        .route("/v0/servers", get(servers::list).fallback(servers::not_here))
        .route("/v0/servers/{*rest}", any(servers::one))
        .route("/v0/{*rest}", any(servers::unknown).post(servers::not_here))
        // One tool and what is beneath it: ids may have slashes, so the path is taken apart from its end.
        .route_service("/v1/tools/{*rest}", tools)
        // For whoever has a token.
        .route("/v1/token", get(admin::own_token))
        // For reviewers and administrators.
        .route("/v1/reviews", get(review::waiting))
        .route("/v1/tokens", get(admin::tokens).post(admin::make_token))
        .route(door::EXCHANGE, axum::routing::post(admin::exchange))
        .route("/v1/tokens/{id}", axum::routing::delete(admin::revoke_token))
        .route("/v1/publishers", get(admin::publishers).post(admin::add_publisher))
        .route("/v1/publishers/{id}", axum::routing::delete(admin::remove_publisher))
        // For people.
        .merge(pages::routes(&registry))
        // For the operator.
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/v1/openapi.json", get(openapi::document))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        // Whatever is added above is behind the door. All are one layer to the router, which has each request find its
        // way through its layers by a copy of them.
        .layer((
            Receiving(Arc::clone(&registry)),
            CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth),
            // Bodies are bounded where they are read, each by what it is.
            DefaultBodyLimit::disable(),
        ))
        .with_state(registry)
}

/// What the operator's own programs ask, at an address of its own: nobody needs a token there.
pub fn watching(registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .route("/metrics", get(counted))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn(async |request: Request, next: Next| {
            let sharing = Sharing::of(&request);
            let mut response = match sharing.told() {
                Some(response) => response,
                None => next.run(request).await,
            };
            sharing.mark(&mut response);
            response
        }))
        .with_state(registry)
}

async fn unknown(request: Request) -> Refused {
    // That asks for another place than this one, and has no path.
    if request.method() == Method::CONNECT {
        return Refused::wrong_method(request.method());
    }
    Refused::unknown_path(request.uri().path())
}

async fn wrong_method(request: Request) -> Refused {
    Refused::wrong_method(request.method())
}

/// Whether the process is there.
async fn healthy() -> Response {
    answer::json(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// What is counted, for those who may know.
async fn metrics(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    match (registry.settings.counting, registry.settings.reading) {
        (Counting::Apart, _) => return Err(Refused::unknown_path(request.uri().path())),
        (Counting::Here, Reading::Tokens) => {
            registry.check_operator(&caller::required(&request)?)?;
        }
        (Counting::Here, Reading::Everybody) => {}
    }
    Ok(counted(State(registry)).await)
}

/// What is counted.
async fn counted(State(registry): State<Arc<Registry>>) -> Response {
    let text = registry.metrics.text(&registry).await;
    let kind = HeaderValue::from_static(crate::metrics::CONTENT_TYPE);
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Whether it can do its work.
async fn ready(State(registry): State<Arc<Registry>>) -> Result<Response, Refused> {
    if registry.is_closing() {
        return Err(Refused::unavailable("the registry is closing"));
    }
    registry.check_ready().await.map_err(|unready| {
        Refused::unavailable(match unready {
            Unready::Database => "the database does not answer",
            Unready::Blobs => "the place of the packages does not answer",
        })
    })?;
    let ready = serde_json::json!({"status": "ready", "damaged": registry.catalog.damaged()});
    Ok(answer::json(StatusCode::OK, ready.to_string()))
}
