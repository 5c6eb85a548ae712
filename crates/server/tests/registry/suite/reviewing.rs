//! Quarantine and channels.

use axum::http::Method;
use serde_json::{Value, json};
use server::settings::Quarantine;
use server::token::Role;

use super::packages::mcpkg;
use super::world::{Answer, World, moment};

async fn quarantined(mut world: World) -> World {
    let names = ["acme".to_owned()].into();
    world.set(|settings| settings.quarantine = Quarantine::Namespaces(names)).await;
    world
}

async fn decide(world: &World, token: &str, version: &str, body: Value) -> Answer {
    let path = format!("/v1/tools/acme.pdf.read/versions/{version}/review");
    world.send(Method::POST, &path, token, body.to_string()).await
}

pub(crate) async fn what_waits_is_seen_by_its_publisher_and_reviewers_alone(world: World) {
    let world = quarantined(world).await;
    let publisher = world.token_for("acme", Role::Publish, None).await;
    let reviewer = world.token_for("acme", Role::Review, None).await;
    let stranger = world.token_for("other", Role::Publish, None).await;
    let reader = world.token_for("acme", Role::Read, None).await;
    let other_reviewer = world.token_for("other", Role::Review, None).await;
    let published = world
        .send(Method::POST, "/v1/tools", &publisher, mcpkg("acme.pdf.read", "1.0.0", ""))
        .await;
    assert_eq!(
        (published.status.as_u16(), &published.json()["channel"]),
        (201, &json!("quarantine"))
    );
    // Another namespace is not held back.
    let free = world.publish(mcpkg("free.pdf.read", "1.0.0", "")).await;
    assert_eq!(free.json()["channel"], "stable");
    let paths = [
        "/v1/tools/acme.pdf.read/versions",
        "/v1/tools/acme.pdf.read/versions/1.0.0",
        "/v1/tools/acme.pdf.read/versions/1.0.0/package",
        "/v1/tools/acme.pdf.read/owners",
    ];
    for path in paths {
        world.get(path).await.refuses(404, "TOOL_NOT_FOUND");
        for token in [&stranger, &reader, &other_reviewer] {
            world.get_as(token, path).await.refuses(404, "TOOL_NOT_FOUND");
        }
        for token in [&publisher, &reviewer, &world.token] {
            let answer = world.get_as(token, path).await;
            assert_eq!(answer.status, 200, "{path}");
            let control = answer.header("cache-control");
            assert!(!control.contains("public") && !control.contains("immutable"), "{control}");
        }
    }
    for path in ["/v1/tools/acme.pdf.read", "/v1/tools/acme.pdf.read/versions/latest"] {
        world.get(path).await.refuses(404, "TOOL_NOT_FOUND");
        world.get_as(&reviewer, path).await.refuses(404, "VERSION_NOT_FOUND");
    }
    for channel in ["stable", "beta"] {
        let list = world.get_as(&world.token, &format!("/v1/tools?channel={channel}")).await;
        assert_eq!(list.json()["total"], 1);
        let found = world.get(&format!("/v1/tools/search?q=pdf&channel={channel}")).await;
        assert_eq!(found.json()["total"], 1);
    }
    world.get("/v1/tools?channel=gold").await.refuses(400, "INVALID_REQUEST");
    let waiting = world.get_as(&reviewer, "/v1/reviews").await.json();
    assert_eq!(
        (&waiting["total"], &waiting["waiting"][0]["version"]),
        (&json!(1), &json!("1.0.0"))
    );
    assert_eq!(world.get_as(&other_reviewer, "/v1/reviews").await.json()["total"], 0);
    world.get_as(&publisher, "/v1/reviews").await.refuses(403, "FORBIDDEN");
    world.get("/v1/reviews").await.refuses(401, "UNAUTHORIZED");
    // The version is taken, whether others see it or not.
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "other")).await.refuses(409, "CONFLICT");
    let again = world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await.json();
    assert_eq!((&again["outcome"], &again["channel"]), (&json!("unchanged"), &json!("quarantine")));
    // A replica that is started now does not show it either.
    assert_eq!(world.replica().await.catalog.len(), 1);
}

pub(crate) async fn what_is_approved_is_offered_in_its_channel(world: World) {
    let world = quarantined(world).await;
    let publisher = world.token_for("acme", Role::Publish, None).await;
    let reviewer = world.token_for("acme", Role::Review, None).await;
    let admin = world.token_for("acme", Role::Admin, None).await;
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        let bytes = mcpkg("acme.pdf.read", version, "");
        assert_eq!(
            world.send(Method::POST, "/v1/tools?channel=stable", &publisher, bytes).await.status,
            201
        );
    }
    let stable = json!({"channel": "stable", "reason": "read it all"});
    for (token, status, code) in [(publisher.as_str(), 403, "FORBIDDEN"), ("", 401, "UNAUTHORIZED")]
    {
        decide(&world, token, "1.0.0", stable.clone()).await.refuses(status, code);
    }
    let other = world.token_for("other", Role::Review, None).await;
    decide(&world, &other, "1.0.0", stable.clone()).await.refuses(404, "TOOL_NOT_FOUND");
    assert_eq!(decide(&world, &reviewer, "1.0.0", stable.clone()).await.status, 204);
    assert_eq!(decide(&world, &reviewer, "1.1.0", json!({"channel": "beta"})).await.status, 204);
    decide(&world, &reviewer, "9.9.9", stable.clone()).await.refuses(404, "VERSION_NOT_FOUND");
    decide(&world, &reviewer, "2.0.0", json!({})).await.refuses(400, "INVALID_REQUEST");
    decide(&world, &reviewer, "2.0.0", json!({"channel": "x"}))
        .await
        .refuses(400, "INVALID_REQUEST");
    // Whoever publishes does not approve, whatever else they may.
    let bytes = mcpkg("acme.pdf.read", "3.0.0", "");
    assert_eq!(world.send(Method::POST, "/v1/tools", &admin, bytes).await.status, 201);
    decide(&world, &admin, "3.0.0", stable.clone()).await.refuses(403, "FORBIDDEN");
    for (query, version) in
        [("", "1.0.0"), ("?channel=stable", "1.0.0"), ("?channel=beta", "1.1.0")]
    {
        let described = world.get(&format!("/v1/tools/acme.pdf.read{query}")).await.json();
        assert_eq!(described["version"], version, "{query}");
        let latest = world.get(&format!("/v1/tools/acme.pdf.read/versions/latest{query}")).await;
        assert_eq!(latest.json()["version"], version, "{query}");
        let query = query.replace('?', "&");
        let found = world.get(&format!("/v1/tools/search?q=pdf{query}")).await.json();
        assert_eq!(
            (&found["total"], &found["results"][0]["version"]),
            (&json!(1), &json!(version))
        );
        let list = world.get(&format!("/v1/tools?limit=5{query}")).await.json();
        assert_eq!((&list["total"], &list["results"][0]["version"]), (&json!(1), &json!(version)));
    }
    let versions = world.get("/v1/tools/acme.pdf.read/versions").await.json();
    let told: Vec<_> = versions["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (v["version"].as_str().unwrap(), v["channel"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("1.1.0", "beta"), ("1.0.0", "stable")]);
    world.get("/v1/tools/acme.pdf.read/versions/2.0.0").await.refuses(404, "VERSION_NOT_FOUND");
    // From beta to stable: one entry again, the same for all.
    assert_eq!(decide(&world, &reviewer, "1.1.0", stable).await.status, 204);
    for query in ["", "&channel=beta"] {
        let found = world.get(&format!("/v1/tools/search?q=pdf{query}")).await.json();
        assert_eq!(
            (&found["total"], &found["results"][0]["version"]),
            (&json!(1), &json!("1.1.0"))
        );
    }
    let replica = world.replica().await;
    assert_eq!((replica.catalog.len(), replica.catalog.damaged()), (1, 0));
    // Who, when and why is kept.
    let path = "/v1/tools/acme.pdf.read/versions/1.1.0/review";
    let said = world.get_as(&publisher, path).await.json();
    let reviews = said["reviews"].as_array().unwrap();
    assert_eq!(
        (&reviews[0]["channel"], &reviews[1]["reason"]),
        (&json!("beta"), &json!("read it all"))
    );
    assert!(moment(&reviews[0]["at"]) > 1_600_000_000_000 && reviews[0]["reviewer"].is_string());
    world.get(path).await.refuses(401, "UNAUTHORIZED");
    world.get_as(&other, path).await.refuses(404, "TOOL_NOT_FOUND");
    assert_eq!(world.get_as(&reviewer, "/v1/reviews").await.json()["total"], 2);
}

pub(crate) async fn what_is_refused_stays_hidden_with_its_reason(mut world: World) {
    let reviewer = world.token_for("*", Role::Review, None).await;
    let publisher = world.token_for("acme", Role::Publish, None).await;
    // Without quarantine a version is offered at once, in the channel its publisher wants.
    let bytes = mcpkg("acme.pdf.read", "1.0.0", "");
    let beta = world.send(Method::POST, "/v1/tools?channel=beta", &publisher, bytes).await;
    assert_eq!(beta.json()["channel"], "beta");
    world.get("/v1/tools/acme.pdf.read").await.refuses(404, "VERSION_NOT_FOUND");
    assert_eq!(world.get("/v1/tools").await.json()["total"], 0);
    assert_eq!(world.get("/v1/tools?channel=beta").await.json()["total"], 1);
    let moved = decide(&world, &publisher, "1.0.0", json!({"channel": "stable"})).await;
    assert_eq!(moved.status, 204);
    assert_eq!(world.get("/v1/tools/acme.pdf.read").await.json()["version"], "1.0.0");
    decide(&world, &publisher, "1.0.0", json!({"reason": "no"})).await.refuses(403, "FORBIDDEN");
    // What a reviewer has said is not undone by who publishes.
    world.send(Method::POST, "/v1/tools", &publisher, mcpkg("acme.pdf.read", "1.0.1", "")).await;
    let beta = json!({"channel": "beta"});
    assert_eq!(decide(&world, &reviewer, "1.0.1", beta).await.status, 204);
    let stable = json!({"channel": "stable"});
    decide(&world, &publisher, "1.0.1", stable).await.refuses(403, "FORBIDDEN");
    assert_eq!(decide(&world, &reviewer, "1.0.1", json!({"reason": "no"})).await.status, 204);
    world.set(|settings| settings.quarantine = Quarantine::Everybody).await;
    decide(&world, &publisher, "1.0.0", json!({"channel": "beta"})).await.refuses(403, "FORBIDDEN");
    world.send(Method::POST, "/v1/tools", &publisher, mcpkg("acme.pdf.read", "1.1.0", "")).await;
    let no = json!({"reason": "reads more\nthan it says"});
    assert_eq!(decide(&world, &reviewer, "1.1.0", no).await.status, 204);
    let path = "/v1/tools/acme.pdf.read/versions";
    let own = world.get_as(&publisher, path).await.json();
    assert_eq!(
        (&own["versions"][0]["channel"], &own["versions"][0]["reviewReason"]),
        (&json!("rejected"), &json!("reads more\nthan it says"))
    );
    assert_eq!(world.get(path).await.json()["versions"].as_array().unwrap().len(), 1);
    world.get(&format!("{path}/1.1.0/package")).await.refuses(404, "VERSION_NOT_FOUND");
    // What was offered can be refused later: a reviewer who finds something need not wait for its publisher.
    assert_eq!(
        decide(&world, &reviewer, "1.0.0", json!({"reason": "mines coins"})).await.status,
        204
    );
    world.get(path).await.refuses(404, "TOOL_NOT_FOUND");
    assert_eq!(world.get("/v1/tools/search?q=pdf").await.json()["total"], 0);
}

/// Who may only publish does not undo a refusal, however many of its requests are under way meanwhile.
pub(crate) async fn a_refusal_is_not_undone_by_who_came_before_it(world: World) {
    let publisher = world.token_for("acme", Role::Publish, None).await;
    let reviewer = world.token_for("acme", Role::Review, None).await;
    for round in 0..4 {
        let version = format!("1.{round}.0");
        let bytes = mcpkg("acme.pdf.read", &version, "");
        assert_eq!(world.send(Method::POST, "/v1/tools", &publisher, bytes).await.status, 201);
        let stable = json!({"channel": "stable"});
        let moving = (0..24).map(|_| decide(&world, &publisher, &version, stable.clone()));
        let refusing = decide(&world, &reviewer, &version, json!({"reason": "mines coins"}));
        let (moved, refused) =
            futures_util::future::join(futures_util::future::join_all(moving), refusing).await;
        for answer in moved {
            assert!([204, 403, 503].contains(&answer.status.as_u16()), "{answer:?}");
        }
        // Whoever was told that it is refused finds it refused.
        if refused.status == 204 {
            let path = format!("/v1/tools/acme.pdf.read/versions/{version}");
            assert_eq!(world.get(&path).await.status, 404);
        } else {
            assert_eq!(refused.status, 503, "{refused:?}");
        }
    }
}
