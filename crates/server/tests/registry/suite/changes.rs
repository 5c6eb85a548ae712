//! Publishing at the same time, yanking, replicas, damage.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use bytes::Bytes;
use package::digest::Digest;
use serde_json::json;
use server::token::Role;

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

pub(crate) async fn what_is_yanked_is_hidden_and_still_downloaded(world: World) {
    for version in ["1.0.0", "1.1.0"] {
        world.publish(mcpkg("acme.pdf.read", version, "")).await;
    }
    let yank = |version: &str| format!("/v1/tools/acme.pdf.read/versions/{version}/yank");
    let send = async |method, version: &str, body: &str| {
        world.send(method, &yank(version), &world.token, body.to_owned()).await
    };
    // Who has kept the description has an old one as soon as it is yanked, and again when it is not.
    let described = "/v1/tools/acme.pdf.read/versions/1.1.0";
    let mut tag = world.get(described).await.header("etag").to_owned();
    let mut is_new = async || {
        let answer = world.get_with(described, ("if-none-match", &tag)).await;
        answer.header("etag").clone_into(&mut tag);
        (answer.status.as_u16(), answer.header("haft-yanked").to_owned())
    };
    assert_eq!(is_new().await, (304, String::new()));
    assert_eq!(
        send(Method::POST, "1.1.0", r#"{"reason":"leaks\nmemory – really"}"#).await.status,
        204
    );
    let told = "leaks%0Amemory %E2%80%93 really".to_owned();
    assert_eq!(is_new().await, (200, told.clone()));
    assert_eq!(is_new().await, (304, told));
    assert_eq!(world.get("/v1/tools/acme.pdf.read").await.json()["version"], "1.0.0");
    assert_eq!(world.get("/v1/tools/search?q=pdf").await.json()["results"][0]["version"], "1.0.0");
    let versions = world.get("/v1/tools/acme.pdf.read/versions").await.json();
    assert_eq!(versions["versions"][0]["yankReason"], "leaks\nmemory – really");
    assert_eq!(versions["versions"][1]["yanked"], false);
    let package = world.get("/v1/tools/acme.pdf.read/versions/1.1.0/package").await;
    assert_eq!(package.status, 200);
    assert_eq!(package.header("haft-yanked"), "leaks%0Amemory %E2%80%93 really");
    assert!(!package.header("cache-control").contains("immutable"));
    // A head that is too long for proxies would make it unreachable.
    let long = "\u{8a71}".repeat(1_000);
    send(Method::DELETE, "1.1.0", "").await;
    send(Method::POST, "1.1.0", &format!(r#"{{"reason":"{long}"}}"#)).await;
    let package = world.get("/v1/tools/acme.pdf.read/versions/1.1.0/package").await;
    let told = package.header("haft-yanked");
    assert!(told.len() < 1_100 && told.starts_with("%E8%A9%B1%E8"), "{told}");
    assert!(told.ends_with("%E8%A9%B1%E2%80%A6"), "{told}");
    let versions = world.get("/v1/tools/acme.pdf.read/versions").await.json();
    assert_eq!(versions["versions"][0]["yankReason"], long);
    send(Method::POST, "1.0.0", "").await;
    let described = world.get("/v1/tools/acme.pdf.read/versions/1.0.0").await;
    assert_eq!(described.header("haft-yanked"), "yes", "there is no reason");
    world.get("/v1/tools/acme.pdf.read").await.refuses(404, "VERSION_NOT_FOUND");
    assert_eq!(world.get("/v1/tools/search?q=pdf").await.json()["total"], 0);
    assert_eq!(world.get("/v1/tools").await.json()["total"], 0);
    // The bytes of a yanked version are still its bytes.
    assert_eq!(world.publish(mcpkg("acme.pdf.read", "1.1.0", "")).await.status, 200);
    world.publish(mcpkg("acme.pdf.read", "1.1.0", "other")).await.refuses(409, "CONFLICT");
    assert_eq!(send(Method::DELETE, "1.1.0", "").await.status, 204);
    assert_eq!(is_new().await, (200, String::new()));
    assert_eq!(world.get("/v1/tools/acme.pdf.read").await.json()["version"], "1.1.0");
    send(Method::POST, "9.9.9", "").await.refuses(404, "VERSION_NOT_FOUND");
    send(Method::POST, "1.1.0", "{\"reason\":1}").await.refuses(400, "INVALID_REQUEST");
    send(Method::POST, "1.1.0", &"x".repeat(70_000)).await.refuses(413, "INVALID_REQUEST");
    world
        .send(Method::POST, "/v1/tools/no.body/versions/1.0.0/yank", &world.token, "")
        .await
        .refuses(404, "TOOL_NOT_FOUND");
}

/// It is known who took back a version; what an administrator took back is not offered again by its publisher.
pub(crate) async fn what_an_administrator_takes_back_stays_so(world: World) {
    let publisher = world.token_for("acme", Role::Publish, None).await;
    let admin = world.token_for("acme", Role::Admin, None).await;
    let bytes = mcpkg("acme.pdf.read", "1.0.0", "");
    assert_eq!(world.send(Method::POST, "/v1/tools", &publisher, bytes).await.status, 201);
    let versions = "/v1/tools/acme.pdf.read/versions";
    let change = async |method: Method, token: &str| {
        let reason = json!({"reason": "mines coins"}).to_string();
        world.send(method, &format!("{versions}/1.0.0/yank"), token, reason).await
    };
    let told =
        async |token: &str| world.get_as(token, versions).await.json()["versions"][0].clone();
    // Its publisher may take it back and offer it again.
    for method in [Method::POST, Method::POST, Method::DELETE, Method::DELETE] {
        assert_eq!(change(method, &publisher).await.status, 204);
    }
    assert_eq!(told(&publisher).await.get("yankedBy"), None);
    assert_eq!(change(Method::POST, &admin).await.status, 204);
    let by = server::token::Secret::shown(&admin).unwrap().id();
    let seen = told(&publisher).await;
    assert_eq!((&seen["yankedBy"], &seen["yankReason"]), (&json!(by), &json!("mines coins")));
    assert!(seen["yankedAt"].as_u64() >= seen["publishedAt"].as_u64(), "{seen}");
    let public = world.get(versions).await.json()["versions"][0].clone();
    assert_eq!((public.get("yankedBy"), &public["yanked"]), (None, &json!(true)));
    // Neither again nor by taking it back once more as if it were its own doing.
    for method in [Method::DELETE, Method::POST, Method::PUT, Method::DELETE] {
        let refused = change(method, &publisher).await;
        refused.refuses(403, "FORBIDDEN");
        let said = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(said.contains("administrator"), "{said}");
    }
    assert_eq!(told(&publisher).await["yankedBy"], json!(by));
    assert_eq!(change(Method::DELETE, &admin).await.status, 204);
    assert_eq!(world.get("/v1/tools/acme.pdf.read").await.json()["version"], "1.0.0");
    assert_eq!(change(Method::POST, &publisher).await.status, 204);
    assert_eq!(change(Method::DELETE, &publisher).await.status, 204);
}

/// Three may take a version back, each more than the one before; who may do less neither offers it again nor makes it
/// their own doing.
pub(crate) async fn what_an_operator_takes_back_only_an_operator_offers_again(world: World) {
    let publisher = world.token_for("*", Role::Publish, None).await;
    let admin = world.token_for("acme", Role::Admin, None).await;
    let operator = world.token_for("*", Role::Admin, None).await;
    assert_eq!(world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await.status, 201);
    let yank = "/v1/tools/acme.pdf.read/versions/1.0.0/yank";
    let change = async |method: Method, token: &str| world.send(method, yank, token, "").await;
    let callers = [&publisher, &admin, &operator];
    for (rank, holder) in callers.into_iter().enumerate() {
        assert_eq!(change(Method::POST, holder).await.status, 204);
        for lower in &callers[..rank] {
            for method in [Method::DELETE, Method::POST, Method::DELETE] {
                let refused = change(method, lower).await;
                refused.refuses(403, "FORBIDDEN");
                let said = refused.json()["error"]["message"].as_str().unwrap().to_owned();
                let who =
                    if rank == 2 { "an operator of the registry" } else { "an administrator" };
                assert!(said.contains(who), "{said}");
            }
        }
        assert_eq!(world.get("/v1/tools").await.json()["total"], 0);
        assert_eq!(change(Method::DELETE, holder).await.status, 204);
        assert_eq!(world.get("/v1/tools").await.json()["total"], 1);
    }
    // Who administers another namespace that owns it is one of its publishers.
    let owner = "/v1/tools/acme.pdf.read/owners/team";
    assert_eq!(world.send(Method::PUT, owner, &admin, "").await.status, 200);
    let team = world.token_for("team", Role::Admin, None).await;
    assert_eq!(change(Method::POST, &team).await.status, 204);
    assert_eq!(change(Method::DELETE, &publisher).await.status, 204);
    assert_eq!(change(Method::POST, &admin).await.status, 204);
    change(Method::DELETE, &team).await.refuses(403, "FORBIDDEN");
    // Who may do more may make it theirs.
    assert_eq!(change(Method::POST, &admin).await.status, 204);
    assert_eq!(change(Method::POST, &operator).await.status, 204);
    change(Method::DELETE, &admin).await.refuses(403, "FORBIDDEN");
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
