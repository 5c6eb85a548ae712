//! Identities of whoever builds packages, sworn by a real issuer.

use std::time::{Duration, Instant};

use axum::http::Method;
use serde_json::{Value, json};
use server::identity::keys::Asking;
use server::settings::Reading;
use server::token::Role;
use testkit::issuer::Issuer;

use super::packages::mcpkg;
use super::world::{Answer, World, moment};

/// Set where the issuer must be there.
const DEMANDED: &str = "HAFT_TEST_SERVERS";

/// The issuer, where its library is installed.
fn issuer() -> Option<Issuer> {
    let issuer = Issuer::start();
    assert!(issuer.is_some() || std::env::var_os(DEMANDED).is_none(), "joserfc is not installed");
    issuer
}

fn rule(issuer: &str) -> Value {
    json!({"issuer": issuer, "audience": "registry", "namespace": "acme",
        "claims": {"repository": "acme/tools", "ref": "refs/tags/*"},
        "algorithms": ["RS256", "ES256", "EdDSA"]})
}

async fn trust(world: &World, rule: &Value) -> String {
    let admin = world.token_for("*", Role::Admin, None).await;
    let answer = world.send(Method::POST, "/v1/publishers", &admin, rule.to_string()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

async fn exchange(world: &World, identity: &str) -> Answer {
    let body = json!({"identity": identity}).to_string();
    let request = axum::http::Request::post("/v1/tokens/exchange");
    world.ask(request.body(body.into()).unwrap()).await
}

pub(crate) async fn an_identity_is_exchanged_once_and_told_with_the_version(mut world: World) {
    let Some(issuer) = issuer() else { return };
    // Where reading needs a token an identity still gets one.
    world.set(|settings| settings.reading = Reading::Tokens).await;
    trust(&world, &rule(&issuer.named("good"))).await;
    for (number, how) in ["RS256", "ES256", "EdDSA"].into_iter().enumerate() {
        let identity = issuer.identity(&json!({"how": how}));
        let given = exchange(&world, &identity).await;
        assert_eq!((given.status.as_u16(), given.header("cache-control")), (201, "no-store"));
        let given = given.json();
        assert_eq!((&given["role"], &given["namespace"]), (&json!("publish"), &json!("acme")));
        let life = moment(&given["expiresAt"]) - moment(&given["createdAt"]);
        assert_eq!(life, 15 * 60 * 1_000);
        let token = given["token"].as_str().unwrap();
        let version = format!("1.0.{number}");
        let publish = async |id: &str| {
            world.send(Method::POST, "/v1/tools", token, mcpkg(id, &version, "")).await
        };
        assert_eq!(publish("acme.pdf.read").await.status, 201);
        publish("other.pdf.read").await.refuses(403, "FORBIDDEN");
        world.get_as(token, "/v1/tokens").await.refuses(403, "FORBIDDEN");
        let owner = "/v1/tools/acme.pdf.read/owners/evil";
        world.send(Method::PUT, owner, token, "").await.refuses(403, "FORBIDDEN");
        // Once is enough.
        let again = exchange(&world, &identity).await;
        again.refuses(401, "UNAUTHORIZED");
        assert!(again.json()["error"]["message"].as_str().unwrap().contains("used before"));
        let told = json!({"issuer": issuer.named("good"), "subject": "repo:acme/tools:ref:refs/tags/v1",
            "repository": "acme/tools", "ref": "refs/tags/v1", "sha": "0".repeat(40)});
        let path = format!("/v1/tools/acme.pdf.read/versions/{version}");
        assert_eq!(world.get_as(token, &path).await.json()["provenance"], told);
        let versions = world.get_as(token, "/v1/tools/acme.pdf.read/versions").await.json();
        assert_eq!(versions["versions"][0]["provenance"], told);
    }
    let page = world.get_as(&world.token, "/tools/acme.pdf.read").await;
    let page = String::from_utf8_lossy(&page.body).into_owned();
    for part in ["Built from", "acme/tools", "refs/tags/v1", "Sworn by"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // What is published by hand has none.
    world.publish(mcpkg("acme.pdf.write", "1.0.0", "")).await;
    let by_hand = world.get_as(&world.token, "/v1/tools/acme.pdf.write").await.json();
    assert_eq!(by_hand.get("provenance"), None);
    let admin = world.token_for("*", Role::Admin, None).await;
    let tokens = world.get_as(&admin, "/v1/tokens").await.json();
    assert!(tokens.to_string().contains("repo:acme/tools"), "a token says whom it was given for");
    // Two at the same moment: one of them is given a token.
    let identity = issuer.identity(&json!({}));
    let answers = futures_util::future::join_all((0..6).map(|_| exchange(&world, &identity))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 401, 401, 401, 401, 401]);
    // An identity without an id is known by what was signed.
    let unnamed = issuer.identity(&json!({"claims": {"jti": null}}));
    let given = exchange(&world, &unnamed).await;
    assert_eq!(given.status, 201);
    exchange(&world, &unnamed).await.refuses(401, "UNAUTHORIZED");
    // Where it cannot be read any more whom a token was given for, it may not do more than before.
    let token = given.json()["token"].as_str().unwrap().to_owned();
    world.sql("UPDATE tokens SET provenance = '?' WHERE provenance IS NOT NULL").await;
    let owner = "/v1/tools/acme.pdf.read/owners/evil";
    let refused = world.send(Method::PUT, owner, &token, "").await;
    assert!(refused.status.is_server_error(), "{refused:?}");
    assert_eq!(world.registry.store.unreadable_tokens().await.unwrap().len(), 5);
}

pub(crate) async fn identities_that_are_not_good_are_refused(world: World) {
    let Some(issuer) = issuer() else { return };
    let good = issuer.named("good");
    let id = trust(&world, &rule(&good)).await;
    trust(&world, &rule(&issuer.named("secret"))).await;
    let mut strict = rule(&issuer.named("strict"));
    strict["algorithms"] = json!(["ES256"]);
    trust(&world, &strict).await;
    for (why, wish) in [
        ("alg none", json!({"how": "none"})),
        ("the public key as a secret", json!({"how": "HS256"})),
        ("a secret among the keys", json!({"how": "HS256", "issuer": "/secret"})),
        ("an algorithm the rule does not allow", json!({"how": "RS256", "issuer": "/strict"})),
        ("another key under a known name", json!({"how": "stranger", "kid": "first-RS256"})),
        ("a key that nobody knows", json!({"how": "stranger"})),
        ("a key of another kind", json!({"how": "RS256", "kid": "first-ES256"})),
        ("no key named among several", json!({"kid": null})),
        ("a key that is too short", json!({"how": "weak"})),
        ("a key for something else", json!({"how": "encrypting"})),
        ("changed after signing", json!({"changed": true})),
        ("something critical that is not known", json!({"header": {"crit": ["x"], "x": 1}})),
        ("another audience", json!({"claims": {"aud": "somebody else"}})),
        ("no audience", json!({"claims": {"aud": null}})),
        ("ended", json!({"claims": {"exp": -60}})),
        ("no end", json!({"claims": {"exp": null}})),
        ("not yet good", json!({"claims": {"nbf": 120}})),
        ("from the future", json!({"claims": {"iat": 120}})),
        ("no beginning", json!({"claims": {"iat": null}})),
        ("good for too long", json!({"claims": {"exp": 200_000}})),
        ("another repository", json!({"claims": {"repository": "evil/tools"}})),
        ("a repository that begins the same", json!({"claims": {"repository": "acme/tools-evil"}})),
        ("no repository", json!({"claims": {"repository": null}})),
        ("a list where a text should be", json!({"claims": {"repository": ["acme/tools"]}})),
        ("a branch", json!({"claims": {"ref": "refs/heads/main"}})),
        ("an issuer that nobody trusts", json!({"issuer": "/other"})),
        ("an issuer that is written otherwise", json!({"issuer": "/good/"})),
    ] {
        let answer = exchange(&world, &issuer.identity(&wish)).await;
        assert_eq!(answer.status, 401, "{why}: {:?}", answer.json());
        answer.refuses(401, "UNAUTHORIZED");
    }
    // Clocks may be a little apart.
    let late = json!({"claims": {"exp": -10, "iat": -300, "nbf": -300}});
    assert_eq!(exchange(&world, &issuer.identity(&late)).await.status, 201);
    let early = json!({"claims": {"iat": 10, "nbf": 10}});
    assert_eq!(exchange(&world, &issuer.identity(&early)).await.status, 201);
    let several = json!({"claims": {"aud": ["other", "registry"]}});
    assert_eq!(exchange(&world, &issuer.identity(&several)).await.status, 201);
    for junk in ["", "x", "a.b", "a.b.c", "a.b.c.d", "..", "\u{1f600}.x.y", &"a".repeat(20_000)] {
        let answer = exchange(&world, junk).await;
        assert!([400, 401].contains(&answer.status.as_u16()), "{junk:?}: {answer:?}");
    }
    let long = json!({"identity": "a".repeat(100_000)}).to_string();
    let request = axum::http::Request::post("/v1/tokens/exchange").body(long.into()).unwrap();
    world.ask(request).await.refuses(413, "INVALID_REQUEST");
    assert_eq!(world.get("/v1/tokens/exchange").await.status, 405);
    // An identity is no token by itself.
    let identity = issuer.identity(&json!({}));
    world
        .send(Method::POST, "/v1/tools", &identity, mcpkg("acme.pdf.read", "1.0.0", ""))
        .await
        .refuses(401, "UNAUTHORIZED");
    // Two rules that fit: the namespace must be named, and only one that fits is given.
    let mut second = rule(&good);
    second["namespace"] = json!("tools");
    trust(&world, &second).await;
    let answer = exchange(&world, &identity).await;
    answer.refuses(400, "INVALID_REQUEST");
    assert_eq!(answer.json()["error"]["details"]["namespaces"], json!(["acme", "tools"]));
    let named = async |namespace: &str| {
        let body = json!({"identity": identity, "namespace": namespace}).to_string();
        let request = axum::http::Request::post("/v1/tokens/exchange").body(body.into()).unwrap();
        world.ask(request).await
    };
    named("evil").await.refuses(401, "UNAUTHORIZED");
    assert_eq!(named("tools").await.json()["namespace"], "tools");
    // A rule that is gone trusts nobody.
    assert!(world.registry.store.remove_publisher(&id).await.unwrap());
    let body = issuer.identity(&json!({}));
    let answer = exchange(&world, &body).await;
    assert_eq!(answer.json()["namespace"], "tools");
}

pub(crate) async fn issuers_that_lie_or_are_slow_are_not_waited_for(mut world: World) {
    let Some(issuer) = issuer() else { return };
    world.set(|settings| settings.asking.within = Duration::from_millis(800)).await;
    let names = [
        "huge",
        "many",
        "redirect",
        "hang",
        "trickle",
        "junk",
        "broken",
        "elsewhere",
        "plain",
        "lies",
    ];
    for name in names {
        trust(&world, &rule(&issuer.named(name))).await;
        let start = Instant::now();
        let identity = issuer.identity(&json!({"issuer": format!("/{name}")}));
        exchange(&world, &identity).await.refuses(503, "UNAVAILABLE");
        let again = exchange(&world, &identity).await;
        again.refuses(503, "UNAVAILABLE");
        assert_eq!(again.header("retry-after"), "1");
        assert!(start.elapsed() < Duration::from_secs(5), "{name} took {:?}", start.elapsed());
    }
    // One that is not there at all.
    let gone = format!("http://127.0.0.1:{}/gone", testkit::ports::unused());
    trust(&world, &rule(&gone)).await;
    let identity = issuer.identity(&json!({"claims": {"iss": gone}}));
    exchange(&world, &identity).await.refuses(503, "UNAVAILABLE");
    // The same keys at a place that the rule names.
    let mut elsewhere = rule(&issuer.named("elsewhere"));
    elsewhere["keys"] = json!(issuer.named("good/keys"));
    trust(&world, &elsewhere).await;
    let identity = issuer.identity(&json!({"issuer": "/elsewhere"}));
    assert_eq!(exchange(&world, &identity).await.status, 201);
}

/// One issuer has rules with and without a place for its keys: each is looked at.
pub(crate) async fn rules_of_one_issuer_do_not_shadow_one_another(mut world: World) {
    let Some(issuer) = issuer() else { return };
    world.set(|settings| settings.asking.within = Duration::from_millis(800)).await;
    let good = issuer.named("good");
    let ruled = |repository: &str, namespace: &str, keys: Option<String>| {
        let mut rule = rule(&good);
        rule["claims"]["repository"] = repository.into();
        rule["namespace"] = namespace.into();
        rule["keys"] = keys.into();
        rule
    };
    trust(&world, &ruled("acme/tools", "acme", None)).await;
    trust(&world, &ruled("beta/tools", "beta", Some(issuer.named("good/keys")))).await;
    for namespace in ["acme", "beta"] {
        let claims = json!({"claims": {"repository": format!("{namespace}/tools")}});
        let given = exchange(&world, &issuer.identity(&claims)).await;
        assert_eq!((given.status.as_u16(), &given.json()["namespace"]), (201, &namespace.into()));
    }
    // A place that does not answer hides no rule, and may have the key that the others lack.
    trust(&world, &ruled("late/tools", "late", Some(issuer.named("hang")))).await;
    assert_eq!(exchange(&world, &issuer.identity(&json!({}))).await.status, 201);
    let unknown = issuer.identity(&json!({"how": "stranger"}));
    exchange(&world, &unknown).await.refuses(503, "UNAVAILABLE");
    // Who fits rules of two places says which is meant.
    trust(&world, &ruled("acme/tools", "tools", Some(issuer.named("good/keys")))).await;
    let answer = exchange(&world, &issuer.identity(&json!({}))).await;
    assert_eq!(answer.json()["error"]["details"]["namespaces"], json!(["acme", "tools"]));
    // A rule for everybody's names gives those of one namespace too.
    trust(&world, &ruled("all/tools", "*", None)).await;
    let named = async |namespace: &str| {
        let identity = issuer.identity(&json!({"claims": {"repository": "all/tools"}}));
        let body = json!({"identity": identity, "namespace": namespace}).to_string();
        let request = axum::http::Request::post("/v1/tokens/exchange");
        world.ask(request.body(body.into()).unwrap()).await
    };
    let given = named("one").await.json();
    let token = given["token"].as_str().unwrap();
    for (id, status) in [("one.x", 201), ("two.x", 403)] {
        let answer = world.send(Method::POST, "/v1/tools", token, mcpkg(id, "1.0.0", "")).await;
        assert_eq!(answer.status, status, "{id}");
    }
    named("a b").await.refuses(400, "INVALID_REQUEST");
}

pub(crate) async fn keys_are_kept_and_changed(mut world: World) {
    let Some(issuer) = issuer() else { return };
    trust(&world, &rule(&issuer.named("good"))).await;
    for _ in 0..3 {
        assert_eq!(exchange(&world, &issuer.identity(&json!({}))).await.status, 201);
    }
    assert_eq!(issuer.asked(), 1, "the keys are kept");
    // Whoever shows keys that nobody has makes the registry ask no more often.
    for _ in 0..5 {
        exchange(&world, &issuer.identity(&json!({"how": "stranger"})))
            .await
            .refuses(401, "UNAUTHORIZED");
    }
    assert_eq!(issuer.asked(), 1);
    world
        .set(|settings| settings.asking = Asking { rest: Duration::ZERO, ..Asking::default() })
        .await;
    assert_eq!(exchange(&world, &issuer.identity(&json!({}))).await.status, 201);
    issuer.rotate();
    assert_eq!(
        exchange(&world, &issuer.identity(&json!({}))).await.status,
        201,
        "new keys are asked for"
    );
    assert_eq!(issuer.asked(), 3);
    let old = issuer.identity(&json!({"kid": "first-RS256"}));
    exchange(&world, &old).await.refuses(401, "UNAUTHORIZED");
}
