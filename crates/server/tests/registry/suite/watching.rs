//! Metrics, logs, request ids, the description of the API, and closing.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::Value;
use server::web::Told;
use server::{Registry, Settings, Store};

use super::packages::mcpkg;
use super::world::{World, ask};

pub(crate) async fn what_happens_is_counted_without_words_from_outside(world: World) {
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await;
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await;
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "other")).await.refuses(409, "CONFLICT");
    world.publish("junk").await.refuses(400, "INVALID_REQUEST");
    world.send(Method::POST, "/v1/tools", "wrong", "junk").await.refuses(401, "UNAUTHORIZED");
    world.get("/v1/tools/search?q=secretword").await;
    world.get("/v1/tools/secretword/versions/1.0.0/package").await;
    world.get("/v1/tools/acme.pdf.read/versions/1.0.0/package").await;
    for path in [
        "/secretword",
        "/v1/tools/secretword/owners",
        "/v1/tools/secretword/owners/secretword",
        "/v1/tools/secretword/versions/1.0.0/review",
        "/v1/tools/secretword/versions/1.0.0/manifest",
        "/v1/tokens/secretword",
        "/v1/publishers/secretword",
        "/v1/reviews?offset=secretword",
        "/v1/catalog.json?namespace=secretword",
        "/.well-known/install-manifests.json?namespace=secretword",
        "/v0.1/servers?search=secretword",
        "/v0.1/servers/secretword/versions",
        "/v0/secretword",
        "/tools/secretword",
        "/namespaces/secretword",
        "/assets/secretword",
        "/search?q=secretword",
    ] {
        world.get(path).await;
        world.send(Method::DELETE, path, &world.token, "").await;
    }
    let request = Request::builder().method("SECRETWORD").uri("/v1/tools");
    world.ask(request.body(Body::empty()).unwrap()).await;
    let answer = world.get("/metrics").await;
    assert!(answer.header("content-type").starts_with("application/openmetrics-text"));
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    for line in [
        "haft_publishes_total{outcome=\"published\"} 1",
        "haft_publishes_total{outcome=\"unchanged\"} 1",
        "haft_publishes_total{outcome=\"conflict\"} 1",
        "haft_publishes_total{outcome=\"invalid\"} 1",
        "haft_publishes_total{outcome=\"forbidden\"} 1",
        "haft_requests_total{route=\"/v1/tools/search\",method=\"GET\",status=\"200\"} 1",
        "haft_requests_total{route=\"/v1/tools/{id}/versions/{version}/package\",method=\"GET\",status=\"404\"} 1",
        "haft_requests_total{route=\"unknown\",method=\"GET\",status=\"404\"} 1",
        "haft_requests_total{route=\"/v1/tools/{id}/owners/{namespace}\",method=\"DELETE\",status=\"404\"} 1",
        "haft_requests_total{route=\"/v0.1/servers/{*rest}\",method=\"GET\",status=\"404\"} 1",
        "haft_requests_total{route=\"/v1/tools\",method=\"other\",status=\"405\"} 1",
        "haft_request_duration_seconds_count{route=\"/v1/tools/search\"} 1",
        "haft_catalog_tools 1",
        "haft_requests_underway 1",
        "# EOF",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
    for name in [
        "haft_blob_bytes_total{direction=\"in\"}",
        "haft_blob_bytes_total{direction=\"out\"}",
        "haft_feed_lag_seconds ",
        "haft_database_connections ",
    ] {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
    if cfg!(target_os = "linux") {
        assert!(text.contains("process_resident_memory_bytes "));
    }
    assert!(!text.to_lowercase().contains("secretword"), "{text}");
}

pub(crate) async fn each_request_is_told_of_once_and_without_secrets(world: World) {
    let told = Arc::new(Mutex::new(Vec::<Told>::new()));
    let kept = Arc::clone(&told);
    let log: server::service::Log =
        Arc::new(move |told: &Told| kept.lock().unwrap().push(told.clone()));
    let store = Store::open(&world.database).await.unwrap();
    let settings = Settings { log: Some(log), ..Settings::default() };
    let registry = Arc::new(Registry::open(store, world.blobs.clone(), settings).await.unwrap());
    let request = Request::post("/v1/tools?id=query-secret")
        .header("authorization", format!("Bearer {}", world.token))
        .header("x-request-id", "mine-1")
        .header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .body(Body::from(mcpkg("acme.pdf.read", "1.0.0", "")))
        .unwrap();
    let answer = ask(&registry, request).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-request-id")), (201, "mine-1"));
    let request = Request::get("/v1/tools/acme.pdf.read")
        .header("authorization", "Bearer not-a-good-one")
        .header("x-request-id", "bad\"name")
        .body(Body::empty())
        .unwrap();
    let answer = ask(&registry, request).await;
    let drawn = answer.header("x-request-id").to_owned();
    assert_eq!(drawn.len(), 16);
    // Who revokes a token may write the token itself where its id belongs.
    let request = Request::delete(format!("/v1/tokens/{}", world.token))
        .header("authorization", format!("Bearer {}", world.token))
        .body(Body::empty())
        .unwrap();
    ask(&registry, request).await.refuses(403, "FORBIDDEN");
    let told = told.lock().unwrap().clone();
    let [publish, describe, revoke] = told.as_slice() else { panic!("{told:#?}") };
    assert_eq!(revoke.path, "/v1/tokens/{id}");
    assert_eq!(
        (publish.id.as_str(), publish.route.as_str(), publish.status),
        ("mine-1", "/v1/tools", 201)
    );
    assert_eq!(publish.caller.as_ref().map(String::len), Some(12));
    assert_eq!(publish.trace.as_ref().unwrap().id, "4bf92f3577b34da6a3ce929d0e0e4736");
    assert!(publish.whole && publish.bytes > 0);
    assert_eq!(
        (&describe.id, describe.route.as_str(), &describe.caller),
        (&drawn, "/v1/tools/{id}", &None)
    );
    assert_eq!(describe.bytes, answer.body.len() as u64);
    let all = format!("{told:?}");
    for secret in [world.token.as_str(), "not-a-good-one", "query-secret"] {
        assert!(!all.contains(secret), "{all}");
    }
}

pub(crate) async fn a_registry_that_closes_says_that_it_is_not_ready(world: World) {
    assert_eq!(world.get("/readyz").await.status, 200);
    world.registry.close();
    world.get("/readyz").await.refuses(503, "UNAVAILABLE");
    assert_eq!(world.get("/healthz").await.status, 200);
    assert_eq!(world.get("/v1/tools").await.status, 200);
}

pub(crate) async fn the_api_describes_itself(world: World) {
    let answer = world.get("/v1/openapi.json").await;
    assert_eq!(answer.json()["openapi"], "3.1.0");
    assert_eq!(answer.header("content-type"), "application/json");
    let again = world.get_with("/v1/openapi.json", ("if-none-match", answer.header("etag"))).await;
    assert_eq!(again.status, 304);
    // Everything that can be filtered by is described.
    let described = answer.json()["paths"]["/v1/tools/search"]["get"]["parameters"].clone();
    for name in search::Facet::FILTERS.map(search::Facet::name).into_iter().chain(["tags", "tag"]) {
        let is_it = |parameter: &Value| parameter["name"] == name;
        assert!(described.as_array().unwrap().iter().any(is_it), "{name}");
    }
}
