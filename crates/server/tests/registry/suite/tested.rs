//! What publishers report of the tests of their packages.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use package::digest::Digest;
use serde_json::{Value, json};
use server::care::backup::backup;
use server::care::restore::{Others, restore};
use server::{Blobs, Store};

use super::hub::form;
use super::shelf::{HOSTILE, hostile, reader};
use super::world::{Answer, World, ask};

/// What is reported of these tests of a package: that all of them passed.
pub(crate) fn report(bytes: &[u8], paths: &[&str], name: &str) -> Value {
    let case = |path: &&str| json!({"path": path, "name": name, "passed": true, "tookMs": 21});
    json!({
        "sha256": Digest::of(bytes).to_string(), "passed": paths.len(), "failed": 0,
        "cases": paths.iter().map(case).collect::<Vec<_>>(),
        "ranAt": "2026-11-16T00:00:00.000Z", "tookMs": 42, "sandbox": "L3", "ranBy": "haft 0.1.0",
    })
}

/// The tests that the reader on the shelf carries.
pub(crate) const READER: [&str; 2] = ["tests/one.test.json", "tests/two.test.json"];

/// Publishes a package with a report.
pub(crate) async fn publish(world: &World, bytes: &[u8], report: &str) -> Answer {
    world.ask(form(&world.token, &[("report", report)], Some(("a.mcpkg", bytes)))).await
}

pub(crate) async fn a_report_is_kept_with_the_version_and_told_as_a_claim(world: World) {
    let bytes = reader("1.0.0", true);
    let mut sent = report(&bytes, &READER, "one_page");
    sent["more"] = "than we know".into();
    let published = publish(&world, &bytes, &sent.to_string()).await;
    assert_eq!(published.status, 201, "{}", published.json());
    sent.as_object_mut().unwrap().remove("more");
    let described = world.get("/v1/tools/acme.pdf.read").await.json();
    assert_eq!(described["tests"], json!({"reported": sent}));
    // What is said of a version never changes: the same bytes with another report are the same bytes.
    sent["ranBy"] = "somebody else".into();
    assert_eq!(publish(&world, &bytes, &sent.to_string()).await.status, 200);
    assert_eq!(world.get("/v1/tools/acme.pdf.read").await.json(), described);
    let page = world.get("/tools/acme.pdf.read").await;
    let page = std::str::from_utf8(&page.body).unwrap();
    for part in
        ["All 2 passed</span>", "its publisher</bdi>", "haft 0.1.0", "level <bdi>L3", "in 21 ms"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    // Without a report nothing is claimed.
    assert_eq!(world.publish(reader("1.1.0", false)).await.status, 201);
    let silent = world.get("/v1/tools/acme.pdf.read").await.json();
    assert!(silent["version"] == "1.1.0" && silent.get("tests").is_none());
    let page = world.get("/tools/acme.pdf.read").await;
    let page = std::str::from_utf8(&page.body).unwrap();
    assert!(page.contains("Nobody has reported") && !page.contains("passed</span>"));

    // It is in a backup, and comes back in whatever it is restored into.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("registry.tar");
    backup(&world.registry.store, &world.blobs, &file).await.unwrap();
    let store = Store::file(&folder.path().join("other.db")).await.unwrap();
    let blobs = Blobs::folder(&folder.path().join("blobs")).unwrap();
    restore(&store, &blobs, &file, Others::Refuse, &std::env::temp_dir()).await.unwrap();
    let restored = server::Registry::open(store, blobs, server::Settings::default()).await.unwrap();
    let path = "/v1/tools/acme.pdf.read/versions/1.0.0";
    let request = Request::get(path).body(Body::empty()).unwrap();
    assert_eq!(ask(&Arc::new(restored), request).await.json(), described);
}

pub(crate) async fn a_report_of_anything_else_is_refused(world: World) {
    let bytes = reader("1.0.0", false);
    let good = report(&bytes, &READER, "one_page");
    let changed = |at: &str, value: Value| {
        let mut other = good.clone();
        *other.pointer_mut(at).unwrap() = value;
        other.to_string()
    };
    let other = publish(&world, &bytes, &changed("/sha256", json!("5f".repeat(32)))).await;
    other.refuses(400, "INVALID_REQUEST");
    assert_eq!(other.json()["error"]["details"]["sha256"], "5f".repeat(32));
    for bad in [
        String::new(),
        "[]".to_owned(),
        "{}".to_owned(),
        "not JSON".to_owned(),
        good.to_string().replace("\"failed\":0", "\"failed\":0,\"failed\":0"),
        changed("/passed", json!(3)),
        changed("/cases", json!([])),
        changed("/cases/0/path", json!("tests/another.test.json")),
        changed("/cases/0/path", json!("index.js")),
        changed("/ranBy", json!("x".repeat(300))),
    ] {
        publish(&world, &bytes, &bad).await.refuses(400, "INVALID_REQUEST");
    }
    let mut large = good.clone();
    large["note"] = "x".repeat(300 << 10).into();
    let refused = publish(&world, &bytes, &large.to_string()).await;
    refused.refuses(413, "INVALID_REQUEST");
    let good = good.to_string();
    let twice = [("report", good.as_str()), ("report", good.as_str())];
    let file = Some(("a.mcpkg", bytes.as_slice()));
    world.ask(form(&world.token, &twice, file)).await.refuses(400, "INVALID_REQUEST");
    let tool = [("name", "a tool"), ("report", good.as_str())];
    world.ask(form(&world.token, &tool, file)).await.refuses(400, "INVALID_REQUEST");
    assert_eq!(world.get("/v1/tools").await.json()["total"], 0, "nothing was published");
    // What a report says is only text.
    let (bytes, words) = (hostile(), &HOSTILE[..120]);
    let mut sent = report(&bytes, &["tests/x.test.json"], words);
    (sent["ranBy"], sent["sandbox"]) = (words.into(), words.into());
    assert_eq!(publish(&world, &bytes, &sent.to_string()).await.status, 201);
    let page = world.get("/tools/evil.tool").await;
    let page = std::str::from_utf8(&page.body).unwrap();
    assert!(page.contains("The test passed") && !page.contains("<script>"));
}
