//! What one part of a registry must know of the others: whatever door somebody comes by, they see the same.

use std::sync::Arc;

use axum::http::{Method, Request};
use serde_json::{Value, json};
use server::settings::{Counting, Quarantine, Reading};
use server::token::Role;
use tower::ServiceExt;

use super::doors::{alone, capability, installed};
use super::hub::form;
use super::packages::mcpkg;
use super::world::World;

/// Where a version is shown without being asked for, each with what is there then.
const SHOWN: [(&str, &str); 15] = [
    ("/v0.1/servers", "acme-mail"),
    ("/v0.1/servers?updated_since=2020-01-01T00:00:00Z&include_deleted=true", "acme-mail"),
    ("/v0.1/servers?search=mail&version=latest", "acme-mail"),
    ("/v0/servers/acme%2Facme-mail/versions", "acme-mail"),
    ("/v0.1/servers/acme%2Facme-mail/versions/latest", "acme-mail"),
    ("/v0.1/servers/acme%2Facme-mail/versions/1.0.0", "acme-mail"),
    ("/.well-known/install-manifests.json", "acme-mail"),
    ("/v1/catalog.json", "acme.hash"),
    ("/v1/tools/acme%2Facme-mail/versions/latest/manifest", "acme-mail"),
    ("/", "/tools/acme/acme-mail\""),
    ("/search?q=reads", "/tools/acme/acme-mail\""),
    ("/suggest?q=rea", "/tools/acme/acme-mail\""),
    ("/namespaces/acme", "/tools/acme/acme-mail\""),
    ("/tools/acme/acme-mail", "Mail"),
    ("/tools/acme.hash", "Hashes"),
];

/// Where it is asked for by its version or its channel.
const ASKED: [(&str, &str); 5] = [
    ("/v1/tools/acme%2Facme-mail/versions/1.0.0/manifest", "acme-mail"),
    ("/v1/tools/acme%2Facme-mail/versions/latest/manifest?channel=beta", "acme-mail"),
    ("/tools/acme/acme-mail?channel=beta", "Mail"),
    ("/tools/acme/acme-mail/versions/1.0.0", "Mail"),
    ("/tools/acme.hash/versions/1.0.0", "Hashes"),
];

fn mail(namespace: &str) -> Value {
    let runtime = json!({"kind": "mcp-http", "install": {"method": "pip", "package": "unused"},
        "endpoint_url": "https://mail.example.com/mcp"});
    let mut mail = installed(&format!("{namespace}-mail"), "1.0.0", &runtime);
    mail["tool"]["namespace"] = namespace.into();
    mail
}

/// The places that show what they could.
async fn showing<'p>(world: &World, places: &[(&'p str, &str)]) -> Vec<&'p str> {
    let mut showing = Vec::new();
    for (path, part) in places {
        let answer = world.get_with(path, ("host", "tools.example.com")).await;
        assert!([200, 404].contains(&answer.status.as_u16()), "{path}: {}", answer.status);
        let text = String::from_utf8_lossy(&answer.body);
        if answer.status == 200 && text.contains(part) {
            showing.push(*path);
        }
    }
    showing
}

fn paths<'p>(places: &[(&'p str, &str)]) -> Vec<&'p str> {
    places.iter().map(|(path, _)| *path).collect()
}

pub(crate) async fn what_is_held_back_is_told_by_no_door(mut world: World) {
    world.set(|settings| settings.quarantine = Quarantine::Everybody).await;
    let reviewer = world.token_for("*", Role::Review, None).await;
    for document in [mail("acme"), capability("acme.hash")] {
        let answer = world.publish(alone("manifest.json", &document)).await;
        assert_eq!(answer.json()["channel"], "quarantine", "{}", answer.json());
    }
    let decide = async |decision: Value| {
        for tool in ["acme%2Facme-mail", "acme.hash"] {
            let path = format!("/v1/tools/{tool}/versions/1.0.0/review");
            let answer = world.send(Method::POST, &path, &reviewer, decision.to_string()).await;
            assert_eq!(answer.status, 204, "{tool}");
        }
    };
    let nowhere: [&str; 0] = [];
    assert_eq!(showing(&world, &SHOWN).await, nowhere, "what waits is shown to nobody");
    assert_eq!(showing(&world, &ASKED).await, nowhere, "not even to those who know its version");
    decide(json!({"channel": "beta"})).await;
    assert_eq!(showing(&world, &SHOWN).await, nowhere, "a beta version is shown to those who ask");
    assert_eq!(showing(&world, &ASKED).await, paths(&ASKED));
    let page = world.get("/tools/acme/acme-mail/versions/1.0.0").await;
    assert!(String::from_utf8_lossy(&page.body).contains("is a beta"));
    // Whoever follows the changes of the MCP world learns of it when it is approved, not when it was published.
    let before = world.get_with("/v0.1/servers", ("host", "x")).await.json();
    assert_eq!(before["metadata"]["count"], 0);
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let moment = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    decide(json!({"channel": "stable"})).await;
    assert_eq!(showing(&world, &SHOWN).await, paths(&SHOWN));
    assert_eq!(showing(&world, &ASKED).await, paths(&ASKED));
    let since = format!("/v0.1/servers?updated_since={moment}");
    assert_eq!(showing(&world, &[(&since, "acme-mail")]).await, [since.as_str()]);
    decide(json!({"reason": "reads more than it says"})).await;
    assert_eq!(showing(&world, &SHOWN).await, nowhere, "what was refused is gone everywhere");
    assert_eq!(showing(&world, &ASKED).await, nowhere);
    // Whoever may not see it learns nothing by trying to change it.
    let stranger = world.token_for("other", Role::Publish, None).await;
    let path = "/v1/tools/acme.hash/versions/1.0.0/yank";
    world.send(Method::POST, path, &stranger, "").await.refuses(404, "TOOL_NOT_FOUND");
}

pub(crate) async fn a_form_of_the_hub_waits_like_everything_else(mut world: World) {
    world.set(|settings| settings.quarantine = Quarantine::Everybody).await;
    let fields = [("name", "Add Two"), ("description", "Adds two numbers.")];
    for version in ["1.0.0", "1.0.1"] {
        let python: &[u8] = b"def run(a, b):\n    return a + b\n";
        let answer = world.ask(form(&world.token, &fields, Some(("add.py", python)))).await;
        let made = answer.json();
        assert_eq!(
            (&made["version"], &made["channel"]),
            (&json!(version), &json!("quarantine")),
            "{made}"
        );
    }
    world.get("/v1/tools/tool:add.two").await.refuses(404, "TOOL_NOT_FOUND");
    assert_eq!(world.get("/v1/tools").await.json()["total"], 0);
}

pub(crate) async fn a_token_for_one_namespace_comes_by_every_door(mut world: World) {
    for document in [mail("acme"), mail("post"), capability("acme.hash"), capability("post.hash")] {
        let answer = world.publish(alone("manifest.json", &document)).await;
        assert_eq!(answer.status, 201, "{}", answer.json());
    }
    world.set(|settings| settings.reading = Reading::Tokens).await;
    let acme = world.token_for("acme", Role::Read, None).await;
    let all = world.token_for("*", Role::Read, None).await;
    let get = async |token: &str, path: &str| {
        let request = Request::get(path).header("host", "tools.example.com");
        let request = request.header("authorization", format!("Bearer {token}"));
        world.ask(request.body(axum::body::Body::empty()).unwrap()).await
    };
    for (path, list) in [
        ("/v0.1/servers", "servers"),
        ("/v0/servers?search=mail&limit=1", "servers"),
        ("/.well-known/install-manifests.json", "manifests"),
        ("/v1/catalog.json", "capabilities"),
        ("/v1/catalog.json?namespace=acme", "capabilities"),
    ] {
        let answer = get(&acme, path).await;
        let found = answer.json();
        assert_eq!(found[list].as_array().map(Vec::len), Some(1), "{path}: {found}");
        assert!(!found.to_string().contains("post"), "{path}: {found}");
        assert!(answer.header("cache-control").contains("private"), "{path}");
        assert!(get(&all, path).await.status == 200, "{path}");
        let refused = world.get_with(path, ("host", "tools.example.com")).await;
        assert_eq!(refused.status, 401, "{path}");
        assert_eq!(refused.header("www-authenticate"), "Bearer", "{path}");
    }
    assert_eq!(get(&all, "/v0.1/servers").await.json()["metadata"]["count"], 2);
    let problem = world.get_with("/v0.1/servers", ("host", "x")).await;
    assert_eq!(problem.header("content-type"), "application/problem+json");
    for path in ["/v1/catalog.json", "/.well-known/install-manifests.json"] {
        get(&acme, &format!("{path}?namespace=post")).await.refuses(403, "FORBIDDEN");
    }
    for path in [
        "/v0.1/servers/post%2Fpost-mail/versions",
        "/v0.1/servers/post%2Fpost-mail/versions/latest",
        "/v1/tools/post%2Fpost-mail/versions/1.0.0/manifest",
    ] {
        assert_eq!(get(&acme, path).await.status, 404, "{path}");
        assert_eq!(get(&all, path).await.status, 200, "{path}");
    }
    // Pages show everybody's names.
    for path in ["/", "/search?q=mail", "/suggest?q=mail", "/tools/acme.hash", "/namespaces/acme"] {
        get(&acme, path).await.refuses(403, "FORBIDDEN");
        assert_eq!(get(&all, path).await.status, 200, "{path}");
        world.get(path).await.refuses(401, "UNAUTHORIZED");
    }
    // People are told so on a page that looks like one.
    world.get("/assets/nothing").await.refuses(404, "INVALID_REQUEST");
}

pub(crate) async fn what_is_counted_is_for_the_operator(mut world: World) {
    world.publish(mcpkg("acme.pdf.read", "1.0.0", "")).await;
    world.set(|settings| settings.reading = Reading::Tokens).await;
    world.get("/metrics").await.refuses(401, "UNAUTHORIZED");
    for (namespace, role) in
        [("*", Role::Read), ("*", Role::Publish), ("*", Role::Review), ("acme", Role::Admin)]
    {
        let token = world.token_for(namespace, role, None).await;
        world.get_as(&token, "/metrics").await.refuses(403, "FORBIDDEN");
    }
    let admin = world.token_for("*", Role::Admin, None).await;
    assert_eq!(world.get_as(&admin, "/metrics").await.status, 200);
    // At an address of its own nobody needs a token, and nothing else is there.
    world.set(|settings| settings.counting = Counting::Apart).await;
    world.get_as(&admin, "/metrics").await.refuses(404, "INVALID_REQUEST");
    for (path, status) in
        [("/metrics", 200), ("/healthz", 200), ("/readyz", 200), ("/v1/tools", 404), ("/", 404)]
    {
        let app = server::web::watching(Arc::clone(&world.registry));
        let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
        assert_eq!(app.oneshot(request).await.unwrap().status().as_u16(), status, "{path}");
    }
}

pub(crate) async fn a_form_may_be_as_large_as_a_package(mut world: World) {
    world.set(|settings| settings.upload_bytes = 4 << 20).await;
    let note: String = (0..90_000_u32)
        .map(|n| package::digest::Digest::of(&n.to_le_bytes()).to_string())
        .collect();
    let bytes = mcpkg("acme.large", "1.0.0", &note);
    assert!((5 << 19..4 << 20).contains(&bytes.len()), "{}", bytes.len());
    let answer = world.ask(form(&world.token, &[], Some(("acme.mcpkg", &bytes)))).await;
    assert_eq!(answer.status, 201, "{}", answer.json());
    let more = vec![b'x'; 5 << 20];
    let answer = world.ask(form(&world.token, &[], Some(("acme.mcpkg", &more)))).await;
    answer.refuses(413, "INVALID_REQUEST");
    // Who may not publish is told so before anybody looks at what they send.
    let reader = world.token_for("*", Role::Read, None).await;
    world.send(Method::POST, "/v1/tools", &reader, "junk").await.refuses(403, "FORBIDDEN");
}
