//! Tokens and owners, over HTTP.

use axum::http::Method;
use serde_json::{Value, json};
use server::token::Role;

use super::packages::{bundle, mcpkg};
use super::world::{World, moment};

pub(crate) async fn tokens_are_made_listed_and_revoked_over_http(world: World) {
    let admin = world.token_for("*", Role::Admin, None).await;
    let acme = world.token_for("acme", Role::Admin, None).await;
    let make = async |by: &str, body: Value| {
        world.send(Method::POST, "/v1/tokens", by, body.to_string()).await
    };
    let made = make(&acme, json!({"namespace": "acme", "role": "publish", "expiresIn": 60})).await;
    assert_eq!((made.status.as_u16(), made.header("cache-control")), (201, "no-store"));
    let made = made.json();
    let token = made["token"].as_str().unwrap();
    assert_eq!((&made["role"], &made["namespace"]), (&json!("publish"), &json!("acme")));
    assert!(moment(&made["expiresAt"]) == moment(&made["createdAt"]) + 60_000);
    let publish = async |token: &str| {
        world.send(Method::POST, "/v1/tools", token, mcpkg("acme.pdf.read", "1.0.0", "")).await
    };
    assert_eq!(publish(token).await.status, 201);
    // Whoever has a token may know what it is for.
    let own = world.get_as(token, "/v1/token").await;
    assert_eq!((own.status.as_u16(), own.header("cache-control")), (200, "no-store"));
    let mut known = made.clone();
    known.as_object_mut().unwrap().remove("token");
    assert_eq!(own.json(), known);
    world.get("/v1/token").await.refuses(401, "UNAUTHORIZED");
    world.get_as("haft_wrong", "/v1/token").await.refuses(401, "UNAUTHORIZED");
    // Nobody gives more than they have.
    for wide in ["*", "other"] {
        make(&acme, json!({"namespace": wide, "role": "read"})).await.refuses(403, "FORBIDDEN");
    }
    assert_eq!(make(&admin, json!({"namespace": "other", "role": "admin"})).await.status, 201);
    for role in [Role::Read, Role::Publish, Role::Review] {
        let other = world.token_for("*", role, None).await;
        make(&other, json!({"namespace": "acme", "role": "read"})).await.refuses(403, "FORBIDDEN");
        world.get_as(&other, "/v1/tokens").await.refuses(403, "FORBIDDEN");
        world.send(Method::DELETE, "/v1/tokens/x", &other, "").await.refuses(403, "FORBIDDEN");
        world.get_as(&other, "/v1/publishers").await.refuses(403, "FORBIDDEN");
    }
    for bad in [
        json!({"namespace": "acme", "role": "king"}),
        json!({"namespace": "", "role": "read"}),
        json!({"namespace": "a b", "role": "read"}),
        json!({"namespace": "acme", "role": "read", "expiresIn": 0}),
        json!({"namespace": "acme", "role": "read", "expires": 9}),
        json!(7),
    ] {
        make(&acme, bad).await.refuses(400, "INVALID_REQUEST");
    }
    world.get("/v1/tokens").await.refuses(401, "UNAUTHORIZED");
    let seen = |listed: Value| {
        let all = listed["tokens"].as_array().unwrap().clone();
        assert!(!listed.to_string().contains("haft_"));
        all.iter().map(|token| token["namespace"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(seen(world.get_as(&acme, "/v1/tokens").await.json()).iter().all(|name| name == "acme"));
    assert!(seen(world.get_as(&admin, "/v1/tokens").await.json()).contains(&"*".to_owned()));
    let revoke = async |by: &str, id: &Value| {
        let path = format!("/v1/tokens/{}", id.as_str().unwrap());
        world.send(Method::DELETE, &path, by, "").await
    };
    let foreign = world.token_for("other", Role::Admin, None).await;
    revoke(&foreign, &made["id"]).await.refuses(404, "INVALID_REQUEST");
    assert_eq!(publish(token).await.status, 200);
    assert_eq!(revoke(&acme, &made["id"]).await.status, 204);
    publish(token).await.refuses(401, "UNAUTHORIZED");
    revoke(&acme, &json!("nobody")).await.refuses(404, "INVALID_REQUEST");
    // A rule makes the registry ask an address, so it is for those who administer everything.
    let rule = json!({"issuer": "https://issuer.example", "audience": "registry",
        "namespace": "acme", "claims": {"repository": "acme/tools"}});
    let trust = async |by: &str, rule: &Value| {
        world.send(Method::POST, "/v1/publishers", by, rule.to_string()).await
    };
    trust(&acme, &rule).await.refuses(403, "FORBIDDEN");
    let trusted = trust(&admin, &rule).await;
    assert_eq!(trusted.status, 201);
    assert_eq!(trust(&admin, &rule).await.json()["id"], trusted.json()["id"]);
    for (name, value) in [
        ("issuer", json!("http://issuer.example")),
        ("issuer", json!("issuer")),
        ("keys", json!("file:///etc/passwd")),
        ("algorithms", json!(["HS256"])),
        ("algorithms", json!(["none"])),
        ("claims", json!({})),
        ("claims", json!({"repository": "*"})),
        ("claims", json!({"ref": "refs/heads/main"})),
        ("claims", json!({"sub": "repo:*", "ref": "refs/heads/main"})),
        ("audience", json!("")),
    ] {
        let mut bad = rule.clone();
        bad[name] = value;
        let refused = trust(&admin, &bad).await;
        refused.refuses(400, "INVALID_REQUEST");
        let said = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(name != "claims" || said.contains("nobody in particular"), "{said}");
    }
    let listed = world.get_as(&admin, "/v1/publishers").await.json();
    assert_eq!(listed["publishers"].as_array().unwrap().len(), 1);
    let path = format!("/v1/publishers/{}", trusted.json()["id"].as_str().unwrap());
    assert_eq!(world.send(Method::DELETE, &path, &admin, "").await.status, 204);
    world.send(Method::DELETE, &path, &admin, "").await.refuses(404, "INVALID_REQUEST");
}

pub(crate) async fn owners_publish_and_add_no_others(world: World) {
    let acme = world.token_for("acme", Role::Publish, None).await;
    let team = world.token_for("team", Role::Publish, None).await;
    let post = async |token: &str, id: &str, version: &str| {
        world.send(Method::POST, "/v1/tools", token, mcpkg(id, version, "")).await
    };
    assert_eq!(post(&acme, "acme.pdf.read", "1.0.0").await.status, 201);
    post(&team, "acme.pdf.read", "1.1.0").await.refuses(403, "FORBIDDEN");
    let owner = |name: &str| format!("/v1/tools/acme.pdf.read/owners/{name}");
    let change =
        async |method, name: &str, token: &str| world.send(method, &owner(name), token, "").await;
    change(Method::PUT, "team", &team).await.refuses(403, "FORBIDDEN");
    change(Method::PUT, "team", "").await.refuses(401, "UNAUTHORIZED");
    let reader = world.token_for("acme", Role::Read, None).await;
    change(Method::PUT, "team", &reader).await.refuses(403, "FORBIDDEN");
    assert_eq!(change(Method::PUT, "team", &acme).await.json()["owners"], json!(["team"]));
    assert_eq!(change(Method::PUT, "team", &acme).await.status, 200);
    assert_eq!(
        world.get("/v1/tools/acme.pdf.read/owners").await.json(),
        json!({"id": "tool:acme.pdf.read", "namespace": "acme", "owners": ["team"]})
    );
    assert_eq!(post(&team, "acme.pdf.read", "1.1.0").await.status, 201);
    post(&team, "acme.pdf.write", "1.0.0").await.refuses(403, "FORBIDDEN");
    let yank = "/v1/tools/acme.pdf.read/versions/1.1.0/yank";
    assert_eq!(world.send(Method::POST, yank, &team, "").await.status, 204);
    change(Method::PUT, "third", &team).await.refuses(403, "FORBIDDEN");
    let reviewer = world.token_for("team", Role::Review, None).await;
    world.send(Method::POST, yank, &reviewer, "").await.refuses(403, "FORBIDDEN");
    // Everybody is nobody's namespace.
    for (name, words) in [
        ("*", "`*` is for everybody's names, and one namespace is meant"),
        ("a%20b", "`a b` cannot be the namespace of a tool"),
        ("a*", "`a*` cannot be the namespace of a tool"),
    ] {
        let refused = change(Method::PUT, name, &acme).await;
        refused.refuses(400, "INVALID_REQUEST");
        let said = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(said.starts_with(words), "{said}");
    }
    // Its own namespace is not taken away from it.
    let refused = change(Method::DELETE, "acme", &acme).await;
    refused.refuses(409, "CONFLICT");
    let words = "`acme` is the tool's own namespace, which owns it always";
    assert_eq!(refused.json()["error"]["message"], words);
    assert_eq!(change(Method::DELETE, "team", &acme).await.json()["owners"], json!([]));
    post(&team, "acme.pdf.read", "1.2.0").await.refuses(403, "FORBIDDEN");
    world.send(Method::POST, &owner("x"), &acme, "").await.refuses(405, "INVALID_REQUEST");
    world
        .send(Method::PUT, "/v1/tools/no.body/owners/x", &acme, "")
        .await
        .refuses(404, "TOOL_NOT_FOUND");
    // A tool of another namespace does not take an owner's name along.
    let named = bundle("tool:team.x", "acme.pdf.read", "1.0.0").to_string();
    world.send(Method::POST, "/v1/tools", &team, named).await.refuses(403, "FORBIDDEN");
}
