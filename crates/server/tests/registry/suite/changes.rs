//! Publishing at the same time, replicas, damage.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use bytes::Bytes;
use package::digest::Digest;
use serde_json::json;

use super::packages::{archive, bundle, mcpkg};
use super::world::{World, ask};

pub(crate) async fn a_version_never_has_two_contents(world: World) {
    let replicas = [Arc::clone(&world.registry), world.replica().await];
    for round in 0..3 {
        let version = format!("1.0.{round}");
        let mut publishing = Vec::new();
        for publisher in 0..8 {
            let registry = Arc::clone(&replicas[publisher % 2]);
            // Two of each content.
            let bytes = mcpkg("acme.pdf.read", &version, &format!("content {}", publisher / 2));
            let request = Request::post("/v1/tools")
                .header("authorization", format!("Bearer {}", world.token))
                .body(Body::from(bytes))
                .unwrap();
            publishing.push(tokio::spawn(async move { ask(&registry, request).await }));
        }
        let mut statuses = Vec::new();
        for answer in publishing {
            let answer = answer.await.unwrap();
            if answer.status == 409 {
                answer.refuses(409, "CONFLICT");
            }
            statuses.push(answer.status.as_u16());
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 201, 409, 409, 409, 409, 409, 409], "round {round}");
        let versions = world.get("/v1/tools/acme.pdf.read/versions").await.json();
        let package =
            world.get(&format!("/v1/tools/acme.pdf.read/versions/{version}/package")).await;
        assert_eq!(versions["versions"][0]["sha256"], Digest::of(&package.body).to_string());
    }
}

pub(crate) async fn one_id_has_one_dialect_and_no_twins(world: World) {
    assert_eq!(world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await.status, 201);
    let other =
        world.publish(bundle("tool:acme.pdf.read", "acme.pdf.read", "2.0.0").to_string()).await;
    other.refuses(409, "CONFLICT");
    assert_eq!(other.json()["error"]["details"]["dialect"], "mcpkg");
    world
        .publish(bundle("tool:ACME.pdf.read", "x", "1.0.0").to_string())
        .await
        .refuses(409, "CONFLICT");
    world
        .publish(bundle("tool:b", "acme.pdf.read", "1.0.0").to_string())
        .await
        .refuses(409, "CONFLICT");
    assert_eq!(world.publish(bundle("tool:c", "c", "1.0.0").to_string()).await.status, 201);
    world.publish(bundle("tool:c", "d", "1.1.0").to_string()).await.refuses(409, "CONFLICT");
    // What nobody sees, and letters that look like others, make no other name.
    for twin in ["\u{e0041}", "\u{180e}", "\u{3164}", "\u{fe0f}", "\u{2800}", "\u{200b}", "\u{435}"]
    {
        let name = format!("acme.pdf.write{twin}");
        let sent = bundle(&format!("tool:{name}"), &name, "1.0.0").to_string();
        world.publish(sent).await.refuses(400, "INVALID_REQUEST");
    }
    for name in ["\u{447}\u{438}\u{442}\u{430}\u{442}\u{44c}", "acme.\u{65e5}\u{672c}"] {
        let sent = bundle(&format!("tool:{name}"), name, "1.0.0").to_string();
        assert_eq!(world.publish(sent).await.status, 201, "{name}");
    }
    // Nor does a name of one alphabet that reads as a name of another, whichever was there first. What only looks like
    // a word is one, until somebody has it.
    let named = async |id: &str, name: &str| {
        world.publish(bundle(&format!("tool:{id}"), name, "1.0.0").to_string()).await
    };
    for name in ["copy.ace", "\u{445}\u{43e}\u{440}", "caf\u{e9}", "rnodern"] {
        assert_eq!(named(name, name).await.status, 201, "{name}");
    }
    for twin in ["\u{441}\u{43e}\u{440}\u{443}.\u{430}\u{441}\u{435}", "xop", "XOP", "cafe\u{301}"]
    {
        named(twin, twin).await.refuses(409, "CONFLICT");
        let own = format!("own.{}", twin.len());
        named(&own, twin).await.refuses(409, "CONFLICT");
    }
    for name in ["cafe", "modern", "\u{445}\u{43e}\u{440}\u{44b}", "xo"] {
        assert_eq!(named(name, name).await.status, 201, "{name} is no other name");
    }
    // A tools.json has no id of its own.
    let tools = br#"{"tools":[{"name":"a","description":"Does a","command":["./tools/bin/a"],"schema":{"type":"object"}}]}"#;
    let bytes = archive(&[("tools.json", tools), ("tools/bin/a", b"#!/bin/sh\n")]);
    world.publish(bytes.clone()).await.refuses(400, "INVALID_REQUEST");
    let answer = world.send(Method::POST, "/v1/tools?id=acme.tools", &world.token, bytes).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let version = answer.json()["version"].as_str().unwrap().to_owned();
    assert!(version.starts_with("0.0.0+"));
    for version in [version.replace('+', "%2B"), version] {
        assert_eq!(
            world.get(&format!("/v1/tools/acme.tools/versions/{version}")).await.status,
            200
        );
    }
}

pub(crate) async fn another_replica_finds_what_is_published(world: World) {
    let other = world.replica().await;
    let following = tokio::spawn(Arc::clone(&other).follow());
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await;
    let asked = async {
        loop {
            let request = Request::get("/v1/tools/search?q=pdf").body(Body::empty()).unwrap();
            if ask(&other, request).await.json()["total"] == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(2), asked)
        .await
        .expect("it is found within two seconds");
    following.abort();
    // One that is started later finds it at once.
    assert_eq!(world.replica().await.catalog.len(), 1);
}

pub(crate) async fn a_damaged_part_breaks_no_other(world: World) {
    for id in ["acme.pdf.one", "acme.pdf.two"] {
        world.publish(mcpkg(id, "1.0.0", id)).await;
    }
    // Somebody published bytes whose blob is there already, but as something else.
    let bytes = mcpkg("acme.pdf.three", "1.0.0", "");
    world.blobs.put(Digest::of(&bytes), Bytes::from(bytes.clone())).await.unwrap();
    assert_eq!(
        world.publish(bytes).await.status,
        201,
        "a publish that was cut off can be done again"
    );
    let known = world.replica().await;
    assert_eq!((known.catalog.len(), known.catalog.damaged()), (3, 0));
    assert_eq!(world.get("/readyz").await.json(), json!({"status": "ready", "damaged": 0}));
    // The file of one version is gone.
    let missing = Digest::of(b"nothing");
    assert!(world.blobs.get(missing).await.is_err());
}
