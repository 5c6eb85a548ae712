//! What comes back, and what does not.

use std::time::{Duration, Instant};

use host::{Kind, Made, Output};
use policy::{Grant, GrantKind, Grants};
use serde_json::json;

use super::site::Site;

#[test]
fn every_format_is_read_and_what_was_not_promised_is_refused() {
    let site = Site::open();
    let ask = |path: &str, format: &str| {
        let invocation = json!({ "method": "GET", "path": path });
        site.call(&site.manifest(&invocation, json!({ "output": { "format": format } })), json!({}))
            .0
    };
    let ok = |path: &str, format: &str| ask(path, format).unwrap();
    assert_eq!(ok("/text", "text"), Output::Text("plain wörds".to_owned()));
    let media_type = Some("image/x-demo".to_owned());
    assert_eq!(ok("/bytes", "binary"), Output::Binary { bytes: (0..=255).collect(), media_type });
    assert_eq!(
        ok("/records", "ndjson-stream"),
        Output::Records(vec![json!({"n": 1}), json!({"n": 2})])
    );
    assert_eq!(ok("/text", "none"), Output::Nothing);
    assert_eq!(ok("/empty", "json"), Output::Json(json!(null)));
    assert_eq!(ok("/nothing", "json"), Output::Json(json!(null)));
    let bad = |path: &str, format: &str| ask(path, format).unwrap_err().kind;
    assert_eq!(bad("/nonsense", "json"), Kind::BadOutput);
    assert_eq!(bad("/bytes", "text"), Kind::BadOutput);
    assert_eq!(bad("/nonsense", "ndjson-stream"), Kind::BadOutput);
    assert_eq!(bad("/packed", "json"), Kind::BadOutput);
    assert_eq!(bad("/large", "json"), Kind::TooMuchOutput);
    let schema = json!({ "output_schema": { "type": "object", "required": ["zone"] } });
    assert_eq!(
        site.error(&site.mcpkg("GET", "/echo", schema.clone()), json!({})).kind,
        Kind::BadOutput
    );
    assert_eq!(site.error(&site.mcpkg("GET", "/empty", schema), json!({})).kind, Kind::BadOutput);
}

#[test]
fn a_server_that_fails_is_told_with_its_status_and_its_own_words() {
    let site = Site::open();
    let raw = site.error(&site.mcpkg("GET", "/status/404", json!({})), json!({}));
    assert_eq!(
        (raw.kind, raw.message.as_str()),
        (Kind::Failed, "the server answered 404 Not Found")
    );
    assert_eq!(raw.details["status"], 404);
    assert!(raw.details["body"].as_str().unwrap().contains("no_such_zone"));
    let invocation = json!({ "method": "GET", "path": "/status/422" });
    let standard =
        site.error(&site.manifest(&invocation, json!({ "error_envelope": "standard" })), json!({}));
    assert_eq!((standard.kind, standard.message.as_str()), (Kind::Failed, "there is no such zone"));
    assert_eq!(
        standard.details,
        json!({ "code": "no_such_zone", "details": { "zone": "x" }, "status": 422 })
    );
    let slow = json!({ "endpoint": {
        "type": "http", "method": "GET", "url": format!("{}/slow", site.origin), "timeoutMs": 300,
    } });
    let began = Instant::now();
    assert_eq!(site.error(&site.mcpkg("GET", "/slow", slow), json!({})).kind, Kind::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(4));
}

#[test]
fn only_what_is_idempotent_is_sent_again() {
    let site = Site::open();
    let ask = |idempotent: bool, key: &str, query: &str| {
        let path = format!("/flaky?key={key}&{query}");
        let invocation = json!({ "method": "POST", "path": path });
        let tool = site.manifest(&invocation, json!({ "idempotent": idempotent }));
        site.make(&tool, &json!({}), &site.grants)
    };
    for how in ["502", "503", "504", "429", "429&wait=0", "reset", "close"] {
        let key = how.replace(['&', '='], "-");
        let made = ask(true, &key, &format!("how={how}&times=2"));
        let seen = (made.attempts, made.reply);
        assert_eq!(seen, (3, Ok(Output::Json(json!({ "seen": 3 })))), "{how}");
        let key = format!("once-{key}");
        assert!(ask(false, &key, &format!("how={how}&times=2")).reply.is_err(), "{how}");
        assert_eq!(site.count(&key), 1, "{how}");
    }
    let made = ask(true, "always", "how=503&times=9");
    assert_eq!((made.reply.unwrap_err().kind, made.attempts), (Kind::Failed, 3));
    assert_eq!(site.count("always"), 3);
    for how in ["500", "400", "404"] {
        assert!(ask(true, how, &format!("how={how}&times=1")).reply.is_err());
        assert_eq!(site.count(how), 1, "{how} is no passing trouble");
    }
    let began = Instant::now();
    assert!(ask(true, "long", "how=429&times=1&wait=3600").reply.is_err());
    assert!(began.elapsed() < Duration::from_secs(10), "nobody waits for an hour");
    // Nothing says of an mcpkg tool that it may be sent twice.
    let tool = site.mcpkg("GET", "/flaky?key=mcpkg&how=503", json!({}));
    assert_eq!(site.error(&tool, json!({})).details["status"], 503);
    assert_eq!(site.count("mcpkg"), 1);
}

#[test]
fn nobody_is_reached_whom_the_owner_did_not_allow() {
    let site = Site::open();
    let echo = site.mcpkg("GET", "/echo", json!({}));
    // The package's own word leads nowhere private.
    let Made { reply, blocked, .. } = site.make(&echo, &json!({}), &Grants::default());
    let error = reply.unwrap_err();
    let asked = site.origin.strip_prefix("http://").unwrap();
    assert_eq!((error.kind.code(), &error.details["host"]), ("denied", &json!(asked)));
    assert_eq!(blocked.len(), 1);
    assert_eq!(blocked[0].asked, asked);
    let elsewhere = site.mcpkg("GET", "/elsewhere", json!({}));
    for to in ["http://169.254.169.254/latest/", "http://localhost:1/", "http://evil.invalid/"] {
        let (reply, blocked) = site.call(&elsewhere, json!({ "to": to }));
        assert_eq!(reply.unwrap_err().kind.code(), "denied", "{to}");
        assert_eq!(blocked.len(), 1, "{to}");
    }
    let here = site.json(&elsewhere, json!({ "to": format!("{}/echo?x=1", site.origin) }));
    assert_eq!(here["query"], json!([["x", "1"]]));
    let nobody = site.mcpkg(
        "GET",
        "/",
        json!({ "endpoint": { "type": "http", "method": "GET", "url": "http://127.0.0.1:9/?key=k" } }),
    );
    let grant = Grant { kind: GrantKind::Host, value: "127.0.0.1:9".to_owned() };
    let grants = [grant].into_iter().collect();
    let error = site.make(&nobody, &json!({}), &grants).reply.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    let words = "the request to `127.0.0.1:9` failed: no connection was made: ";
    assert!(error.message.starts_with(words), "{}", error.message);
}
