//! What a collector is told of requests, and what becomes of them without one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;
use testkit::collector::Collector as Peer;
use trace::{Collector, Sampler, Traces};

use super::packages::mcpkg;
use super::world::World;

/// Set where the collector must be there.
const DEMANDED: &str = "HAFT_TEST_SERVERS";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// The collector, where what it reads with is installed.
fn peer() -> Option<Peer> {
    let peer = Peer::start();
    let is_demanded = std::env::var_os(DEMANDED).is_some();
    assert!(peer.is_some() || !is_demanded, "opentelemetry-proto is not installed");
    peer
}

/// Traces of this world that go to this address, and what the operator is told of that.
async fn told_to(world: &mut World, url: &str) -> (Traces, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&told);
    let collector = Collector {
        url: format!("{url}/v1/traces").parse().unwrap(),
        headers: [("x-key".parse().unwrap(), "of the owner".parse().unwrap())]
            .into_iter()
            .collect(),
        within: Duration::from_mins(1),
        resource: vec![("service.name".to_owned(), "tools".to_owned())],
        sampler: Sampler::default(),
    };
    let tell = move |text: &str| kept.lock().unwrap().push(text.to_owned());
    let traces = Traces::begin(collector, tell).unwrap();
    world.set(|settings| settings.traces = Some(traces.clone())).await;
    (traces, told)
}

fn attribute<'s>(span: &'s Value, key: &str) -> &'s Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|it| it["key"] == key);
    &found.unwrap_or_else(|| panic!("no {key} in {span}"))["value"]
}

fn moment(span: &Value, which: &str) -> u64 {
    span[which].as_str().unwrap().parse().unwrap()
}

pub(crate) async fn a_collector_is_told_what_a_request_spends_its_time_with(mut world: World) {
    let Some(peer) = peer() else { return };
    let (traces, told) = told_to(&mut world, &peer.url()).await;
    let publish = |flags: &str, version: &str| {
        Request::post("/v1/tools?id=query-secret")
            .header("authorization", format!("Bearer {}", world.token))
            .header("traceparent", format!("00-{TRACE}-{PARENT}-{flags}"))
            .body(Body::from(mcpkg("acme.pdf.read", version, "")))
            .unwrap()
    };
    assert_eq!(world.ask(publish("01", "1.0.0")).await.status, 201);
    // Whoever asks does not want this one to be told.
    assert_eq!(world.ask(publish("00", "1.0.1")).await.status, 201);
    assert_eq!(world.get("/v1/tools/search?q=pdf").await.status, 200);
    let file = world.get("/v1/tools/acme.pdf.read/versions/1.0.0/package").await;
    traces.close().await;
    let seen = peer.seen();
    assert_eq!(
        (&seen["refused"], told.lock().unwrap().len()),
        (&Value::Array(vec![]), 0),
        "{seen}"
    );
    assert_eq!(seen["headers"]["x-key"], "of the owner");
    let spans = seen["spans"].as_array().unwrap();
    let is_request = |span: &&Value| span["kind"] == "SPAN_KIND_SERVER";
    let names: Vec<&str> =
        spans.iter().filter(is_request).map(|span| span["name"].as_str().unwrap()).collect();
    let route = "GET /v1/tools/{id}/versions/{version}/package";
    assert_eq!(names, ["POST /v1/tools", "GET /v1/tools/search", route]);
    let named = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
    let publish = named("POST /v1/tools");
    assert_eq!((&publish["traceId"], &publish["parentSpanId"]), (&TRACE.into(), &PARENT.into()));
    assert_eq!(publish["resource"]["attributes"][0]["value"]["stringValue"], "tools");
    assert_eq!(attribute(publish, "http.response.status_code")["intValue"], "201");
    let size = file.body.len().to_string();
    assert_eq!(attribute(named(route), "http.response.body.size")["intValue"], size.as_str());
    // Each part is within the request it is of.
    for (request, expected) in [
        (
            "POST /v1/tools",
            &[
                "receive the package",
                "look at the package",
                "files: write a package file",
                "database: publish a version",
            ][..],
        ),
        ("GET /v1/tools/search", &["search"]),
        (route, &["database: look for a version", "files: read a package file"]),
    ] {
        let whole = named(request);
        let parts: Vec<&Value> =
            spans.iter().filter(|span| span["parentSpanId"] == whole["spanId"]).collect();
        for name in expected {
            assert!(parts.iter().any(|part| part["name"] == *name), "{name} is not in {parts:#?}");
        }
        for part in parts {
            assert_eq!(part["traceId"], whole["traceId"]);
            assert!(moment(whole, "startTimeUnixNano") <= moment(part, "startTimeUnixNano"));
            assert!(moment(part, "startTimeUnixNano") <= moment(part, "endTimeUnixNano"));
            assert!(moment(part, "endTimeUnixNano") <= moment(whole, "endTimeUnixNano"));
        }
    }
    assert!(named("GET /v1/tools/search").get("parentSpanId").is_none());
    assert_ne!(named("GET /v1/tools/search")["traceId"], named(route)["traceId"]);
    let all = seen["spans"].to_string();
    for secret in [world.token.as_str(), "query-secret"] {
        assert!(!all.contains(secret), "{all}");
    }
}

pub(crate) async fn a_collector_that_is_away_is_told_of_once_and_is_found_again(mut world: World) {
    let Some(peer) = peer() else { return };
    peer.answer(503);
    let (traces, told) = told_to(&mut world, &peer.url()).await;
    assert_eq!(world.get("/v1/tools").await.status, 200);
    let wait_for = async |done: &dyn Fn(&Value) -> bool| {
        let started = Instant::now();
        while !done(&peer.seen()) {
            assert!(started.elapsed() < Duration::from_secs(30), "{}", peer.seen());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // It is tried again, and told of once.
    wait_for(&|seen| seen["sent"].as_u64() >= Some(2)).await;
    assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
    peer.answer(200);
    wait_for(&|seen| seen["spans"].as_array().is_some_and(|spans| !spans.is_empty())).await;
    traces.close().await;
    let told = told.lock().unwrap().clone();
    let [away, again] = told.as_slice() else { panic!("{told:?}") };
    assert!(away.contains("503") && again.contains("again"), "{told:?}");
    assert_eq!(traces.lost(), 0);
}

pub(crate) async fn a_collector_that_never_answers_slows_nobody(mut world: World) {
    // It lets everybody connect and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let (traces, _) = told_to(&mut world, &url).await;
    let asked = 3_000;
    let app = server::web::router(Arc::clone(&world.registry));
    for _ in 0..asked {
        let request = Request::get("/healthz").body(Body::empty()).unwrap();
        let answer = tower::ServiceExt::oneshot(app.clone(), request);
        // Whoever waited for the collector would wait for a minute.
        let answer = tokio::time::timeout(Duration::from_secs(5), answer).await.unwrap().unwrap();
        assert_eq!(answer.status(), 200);
    }
    // What waits is bounded: one batch that is being sent, and the queue.
    assert!((1..asked).contains(&traces.lost()), "{}", traces.lost());
    let text = String::from_utf8(world.get("/metrics").await.body.to_vec()).unwrap();
    assert!(text.contains("haft_traces_lost_total "), "{text}");
    assert!(!text.contains("haft_traces_lost_total 0"), "{text}");
    let started = Instant::now();
    traces.close().await;
    assert!(started.elapsed() < Traces::FAREWELL + Duration::from_secs(2));
}
