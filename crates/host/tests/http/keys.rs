//! How a server is told who is asking.

use std::sync::Arc;
use std::time::{Duration, Instant};

use host::{Kind, Tool, Warmth};
use policy::Grant;
use serde_json::{Value, json};
use vault::{Owner, Place, Secret};

use super::kit;
use super::kit::call_of;
use super::site::{Site, auth};

#[test]
fn keys_are_sent_as_the_package_wants_them_and_nothing_else_is() {
    let site = Site::open();
    let header = |kind: &str, names: &[&str], name: &str| {
        let tool = site.mcpkg("GET", "/echo", auth(kind, names));
        site.json(&tool, json!({}))["headers"][name].clone()
    };
    assert_eq!(
        header("bearer", &["UNSET", "DEMO_KEY"], "authorization"),
        "Bearer [secret DEMO_KEY]"
    );
    assert_eq!(header("api_key", &["DEMO_KEY"], "x-api-key"), "[secret DEMO_KEY]");
    assert_eq!(header("oauth2", &["DEMO_KEY"], "authorization"), "Bearer [secret DEMO_KEY]");
    assert_eq!(header("none", &["DEMO_KEY"], "authorization"), json!(null));
    let unnamed = site.mcpkg("GET", "/echo", json!({ "auth": { "type": "bearer" } }));
    let owner = Owner::Package(unnamed.package.canonical_id());
    let place = Place::new(owner, "API_KEY").unwrap();
    site.vault.set(&place, &Secret::new("kept-for-it".to_owned()).unwrap()).unwrap();
    let sent = site.json(&unnamed, json!({}))["headers"]["authorization"].clone();
    assert_eq!(sent, "Bearer [secret API_KEY]");
    // What was not granted is not sent, whatever the package lists.
    for (kind, name) in [("bearer", "UNSET"), ("api_key", "SECRET_OF_THE_OWNER")] {
        let error = site.error(&site.mcpkg("GET", "/echo", auth(kind, &[name])), json!({}));
        assert_eq!(error.kind, Kind::MissingInput);
        assert_eq!(error.message, format!("Missing required secret: {name}"));
        assert_eq!(error.details["missing"][0]["name"], name);
    }
}

#[test]
fn a_key_is_not_sent_in_plain_to_another_machine() {
    let site = Site::open();
    let at = |url: &str, auth: Value| {
        let endpoint = json!({ "type": "http", "method": "GET", "url": url });
        let mut more = auth;
        more["endpoint"] = endpoint;
        site.error(&site.mcpkg("GET", "/", more), json!({}))
    };
    // A private one is not first refused for want of a grant, which would not help.
    for url in ["http://api.example.invalid/x", "http://10.1.2.3:8080/x"] {
        let error = at(url, auth("bearer", &["DEMO_KEY"]));
        assert_eq!(error.kind, Kind::Denied);
        assert!(error.message.contains("over plain `http`"), "{error}");
        let without = at(url, json!({}));
        assert!(!without.message.contains("over plain `http`"), "{without}");
    }
    let invocation =
        json!({ "method": "GET", "path": "/x", "headers": { "X-Key": "${env.DEMO_KEY}" } });
    let mut action = site.manifest(&invocation, json!({}));
    let manifest::model::Entry::McpHttp { url, .. } = &mut action.package.implementations[0].entry
    else {
        panic!("another kind of entry")
    };
    "http://api.example.invalid".clone_into(url);
    let error = site.error(&action, json!({}));
    assert!(error.message.contains("over plain `http`"), "{error}");
    let mut needed = action;
    needed.package.inputs[0].required = true;
    let manifest::model::Entry::McpHttp { url, .. } = &mut needed.package.implementations[0].entry
    else {
        panic!("another kind of entry")
    };
    "http://10.1.2.3:8080".clone_into(url);
    let error = site.error(&needed, json!({}));
    assert!(error.message.contains("over plain `http`"), "{error}");
}

#[test]
fn a_token_is_fetched_kept_and_renewed_once() {
    let site = Site::open();
    let names = ["ME_TOKEN_URL", "ME_CLIENT_ID", "ME_CLIENT_SECRET"];
    let me = site.mcpkg("GET", "/private", auth("oauth2", &names));
    let make = || site.make(&me, &json!({}), &site.grants);
    let first = make();
    let said = first.reply.unwrap().into_value();
    assert_eq!(
        said["as"],
        json!({ "client": "[secret ME_CLIENT_ID]", "grant": "client_credentials", "scope": "read write" })
    );
    assert_eq!(first.attempts, 1);
    assert_eq!(said["token"], "[secret token]");
    let fetched = site.count("tokens");
    site.json(&me, json!({}));
    assert_eq!(site.count("tokens"), fetched, "it is kept");
    site.json(&site.mcpkg("POST", "/revoke", json!({})), json!({}));
    assert_eq!(make().attempts, 2, "one refusal, one renewal");
    assert_eq!(site.count("tokens"), fetched + 1);
    let refreshing = ["ME_TOKEN_URL", "ME_CLIENT_ID", "ME_CLIENT_SECRET", "ME_REFRESH_TOKEN"];
    let owner = site.mcpkg("GET", "/private", auth("oauth2", &refreshing));
    assert_eq!(site.json(&owner, json!({}))["as"]["grant"], "refresh_token");
    site.json(&site.mcpkg("POST", "/revoke", json!({})), json!({}));
    // A refresh token can be used once here, so this one is the one that came with the last answer.
    assert_eq!(site.json(&owner, json!({}))["as"]["grant"], "refresh_token");
    let poster = ["POSTER_TOKEN_URL", "POSTER_CLIENT_ID", "POSTER_CLIENT_SECRET"];
    let poster = site.mcpkg("GET", "/private", auth("oauth2", &poster));
    assert_eq!(site.json(&poster, json!({}))["as"]["client"], "[secret POSTER_CLIENT_ID]");
    let public = ["PUBLIC_TOKEN_URL", "PUBLIC_CLIENT_ID", "ME_REFRESH_TOKEN"];
    let public = site.mcpkg("GET", "/private", auth("oauth2", &public));
    let spent = site.error(&public, json!({}));
    assert_eq!((spent.kind, &spent.details["error"]), (Kind::Failed, &json!("invalid_grant")));
}

/// A tool whose refresh token lies in the vault: one that is granted from outside could not be replaced. A token
/// endpoint takes two seconds over those that end with `slow`.
fn refreshing(site: &mut Site, token: &str, more: Value) -> (Tool, Place) {
    let names = ["ME_TOKEN_URL", "ME_CLIENT_ID", "ME_CLIENT_SECRET", "ME_REFRESH_TOKEN"];
    let mut manifest = auth("oauth2", &names);
    if let (Value::Object(members), Value::Object(more)) = (&mut manifest, more) {
        members.extend(more);
    }
    let owner = site.mcpkg("GET", "/private", manifest);
    let is_kept = |grant: &Grant| grant.value == "ME_REFRESH_TOKEN";
    site.grants = site.grants.iter().filter(|one| !is_kept(one)).cloned().collect();
    let place = Owner::Package(owner.package.canonical_id());
    let place = Place::new(place, "ME_REFRESH_TOKEN").unwrap();
    site.vault.set(&place, &Secret::new(token.to_owned()).unwrap()).unwrap();
    (owner, place)
}

#[test]
fn the_newest_refresh_token_is_kept_for_the_next_program() {
    let mut site = Site::open();
    let (owner, place) = refreshing(&mut site, "r0", json!({}));
    for _ in 0..3 {
        let before = site.vault.get(&place).unwrap().unwrap();
        assert_eq!(site.json(&owner, json!({}))["as"]["grant"], "refresh_token");
        let after = site.vault.get(&place).unwrap().unwrap();
        assert_ne!(before.expose(), after.expose());
        // Another program knows nothing but what is kept.
        site.host = site.another_host();
    }
}

#[test]
fn a_token_that_is_being_fetched_is_kept_though_the_call_is_called_off() {
    let mut site = Site::open();
    let (owner, place) = refreshing(&mut site, "r0-slow", json!({}));
    let call = call_of(&owner, &json!({}));
    let off = call.called_off.clone();
    let made = site.runtime.block_on(async {
        kit::set_grants(&site.records, &owner.package.canonical_id(), &site.grants).await;
        let calling = site.host.call(&owner, &call, Warmth::Warm);
        let stopping = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            off.cancel();
        };
        let (made, ()) = tokio::join!(calling, stopping);
        site.host.settle().await;
        made
    });
    assert_eq!(made.reply.unwrap_err().kind, Kind::Cancelled);
    assert_ne!(site.vault.get(&place).unwrap().unwrap().expose(), "r0-slow");
}

#[test]
fn a_token_endpoint_that_says_no_or_may_not_be_asked_ends_the_call() {
    let site = Site::open();
    let bad = ["BAD_TOKEN_URL", "BAD_CLIENT_ID", "BAD_CLIENT_SECRET"];
    let error = site.error(&site.mcpkg("GET", "/private", auth("oauth2", &bad)), json!({}));
    assert_eq!((error.kind, &error.details["error"]), (Kind::Failed, &json!("invalid_client")));
    assert!(!error.message.contains("wrong"), "{}", error.message);
    let far = ["FAR_TOKEN_URL", "ME_CLIENT_ID", "ME_CLIENT_SECRET"];
    let tool = site.mcpkg("GET", "/private", auth("oauth2", &far));
    let (reply, blocked) = site.call(&tool, json!({}));
    assert_eq!(reply.unwrap_err().kind, Kind::Blocked(Box::new(blocked[0].clone())));
    assert_eq!(blocked[0].asked, "auth.example.invalid:443");
    // Every token is refused there, so the call ends after one renewal.
    let me = ["ME_TOKEN_URL", "ME_CLIENT_ID", "ME_CLIENT_SECRET"];
    let before = site.count("tokens");
    let error = site.error(&site.mcpkg("GET", "/status/401", auth("oauth2", &me)), json!({}));
    assert_eq!((error.kind, &error.details["status"]), (Kind::Failed, &json!(401)));
    assert_eq!(site.count("tokens"), before + 2);
}

#[test]
fn what_the_owner_does_while_a_token_is_fetched_is_not_undone() {
    for theirs in [None, Some("r-of-the-owner")] {
        let mut site = Site::open();
        let (owner, place) = refreshing(&mut site, "r0-slow", json!({}));
        let vault = Arc::clone(&site.vault);
        let doing = std::thread::spawn({
            let place = place.clone();
            move || {
                std::thread::sleep(Duration::from_millis(700));
                match theirs {
                    None => assert!(vault.remove(&place).unwrap()),
                    Some(text) => {
                        vault.set(&place, &Secret::new(text.to_owned()).unwrap()).unwrap();
                    }
                }
            }
        });
        assert_eq!(site.json(&owner, json!({}))["as"]["grant"], "refresh_token");
        doing.join().unwrap();
        let kept = site.vault.get(&place).unwrap();
        assert_eq!(kept.as_ref().map(Secret::expose), theirs);
    }
}

#[test]
fn a_call_ends_in_its_time_while_a_token_is_fetched_and_the_token_is_kept() {
    let mut site = Site::open();
    let endpoint = json!({
        "type": "http", "method": "GET", "url": format!("{}/private", site.origin), "timeoutMs": 1000,
    });
    let (owner, place) = refreshing(&mut site, "r0-slow", json!({ "endpoint": endpoint }));
    let began = Instant::now();
    assert_eq!(site.error(&owner, json!({})).kind, Kind::TimedOut);
    assert!(began.elapsed() < Duration::from_millis(1800), "{:?}", began.elapsed());
    site.runtime.block_on(site.host.settle());
    assert_ne!(site.vault.get(&place).unwrap().unwrap().expose(), "r0-slow");
}
