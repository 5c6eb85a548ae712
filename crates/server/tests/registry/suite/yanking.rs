//! Taking back versions, and offering them again.

use axum::http::Method;
use serde_json::json;
use server::token::Role;

use super::doors::{alone, weather};
use super::packages::mcpkg;
use super::world::{World, moment};

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
    assert!(moment(&seen["yankedAt"]) >= moment(&seen["publishedAt"]), "{seen}");
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

/// A version that endangers those who have it is told apart from one that is merely bad, by every door.
pub(crate) async fn a_yank_for_security_is_told_by_every_door(world: World) {
    assert_eq!(world.publish(alone("server.json", &weather("1.0.0"))).await.status, 201);
    let tool = "/v1/tools/com.example%2Fweather";
    let version = format!("{tool}/versions/1.0.0");
    let yank = async |method: Method, body: &str| {
        let path = format!("{version}/yank");
        assert_eq!(world.send(method, &path, &world.token, body.to_owned()).await.status, 204);
    };
    let mut tag = String::new();
    let mut told = async || {
        let answer = world.get_with(&version, ("if-none-match", &tag)).await;
        answer.header("etag").clone_into(&mut tag);
        let versions = world.get(&format!("{tool}/versions")).await.json();
        let server = "/v0.1/servers/com.example%2Fweather/versions/1.0.0?include_deleted=true";
        let server = world.get(server).await.json();
        let meta = &server["_meta"];
        let page = world.get("/tools/com.example/weather/versions/1.0.0").await;
        let page = String::from_utf8_lossy(&page.body).into_owned();
        (
            answer.status.as_u16(),
            answer.header("haft-yanked-for").to_owned(),
            versions["versions"][0].get("yankSecurity").cloned(),
            meta["haft.registry/package"].get("yankSecurity").cloned(),
            meta["io.modelcontextprotocol.registry/official"]["statusMessage"].clone(),
            page.matches("for security").count(),
        )
    };
    let nothing = |status, said| (status, String::new(), None, None, said, 0);
    let security = |status, said| {
        (status, "security".to_owned(), Some(json!(true)), Some(json!(true)), json!(said), 3)
    };
    assert_eq!(told().await, nothing(200, json!(null)));
    yank(Method::POST, r#"{"reason":"leaks keys"}"#).await;
    assert_eq!(told().await, nothing(200, json!("leaks keys")));
    // Who has kept the description has an old one when the mark alone changes.
    yank(Method::POST, r#"{"reason":"leaks keys","security":true}"#).await;
    assert_eq!(told().await, security(200, "security: leaks keys"));
    assert_eq!(told().await, security(304, "security: leaks keys"));
    for part in ["package", "manifest"] {
        let answer = world.get(&format!("{version}/{part}")).await;
        assert_eq!(answer.header("haft-yanked-for"), "security", "{part}");
    }
    let exposed = world.get(&version).await.header("access-control-expose-headers").to_owned();
    assert!(exposed.contains("Haft-Yanked-For"), "{exposed}");
    yank(Method::POST, r#"{"security":true}"#).await;
    assert_eq!(told().await, security(200, "security"));
    // Offered again it has no mark, and none comes back with the next yank.
    yank(Method::DELETE, "").await;
    assert_eq!(told().await, nothing(200, json!(null)));
    yank(Method::POST, "").await;
    assert_eq!(told().await, nothing(200, json!(null)));
    // What an operator has marked, a publisher does not unmark; other publishers' tools nobody marks.
    let operator = world.token_for("*", Role::Admin, None).await;
    let path = format!("{version}/yank");
    let body = r#"{"security":true}"#;
    assert_eq!(world.send(Method::POST, &path, &operator, body).await.status, 204);
    world.send(Method::POST, &path, &world.token, "{}").await.refuses(403, "FORBIDDEN");
    let other = world.token_for("other", Role::Publish, None).await;
    world.send(Method::POST, &path, &other, body).await.refuses(403, "FORBIDDEN");
    assert_eq!(told().await, security(200, "security"));
    world
        .send(Method::POST, &path, &operator, r#"{"security":"yes"}"#)
        .await
        .refuses(400, "INVALID_REQUEST");
}
