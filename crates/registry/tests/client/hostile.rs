//! Registries that lie, flood, point elsewhere, or have a bad moment.

use std::sync::{Arc, Mutex};

use egress::{Passed, Watch};
use registry::client::{FetchError, Kind, Question, Remote};
use registry::{Channel, Yank};
use serde_json::{Value, json};

use crate::stand_in::{Asked, Desk, Packed, Reply, StandIn, wait};

fn found(id: &str) -> Value {
    json!({"id": id, "name": id.trim_start_matches("tool:"), "version": "1.0.0", "summary": "Does it"})
}

fn question() -> Question {
    Question { words: "pdf".to_owned(), limit: 20, ..Question::default() }
}

fn describe(desk: &Desk, registry: &StandIn) -> FetchError {
    wait(desk.remote(&registry.url).describe("demo.echo", Some("0.1.0"))).unwrap_err()
}

#[test]
fn an_answer_about_something_else_is_refused() {
    for (member, value) in [
        ("id", json!("tool:demo.evil")),
        ("version", json!("0.2.0")),
        ("sha256", json!("abc")),
        ("summary", json!("x".repeat(20_000))),
        ("tags", json!(vec!["x"; 600])),
        ("entry", json!([])),
    ] {
        let mut answer = Packed::new(1).describe;
        answer[member] = value;
        if member == "id" {
            answer["name"] = "demo.evil".into();
        }
        let registry = StandIn::new(move |_, _| Reply::json(&answer));
        let error = describe(&Desk::new(), &registry);
        assert_eq!(error.kind(), Kind::Untrustworthy, "{member}: {error}");
        assert_eq!(registry.paths().len(), 1, "what is wrong is not asked for again");
    }
}

#[test]
fn what_is_no_answer_is_refused() {
    for body in ["", "null", "[]", "{", "{\"id\":1}", "\u{feff}{}", "<html>"] {
        let registry = StandIn::new(move |_, _| Reply::new(200, body));
        let error = describe(&Desk::new(), &registry);
        assert!(matches!(error, FetchError::Unreadable(..)), "{body}: {error}");
    }
    let deep = "[".repeat(100_000);
    let registry = StandIn::new(move |_, _| Reply::new(200, deep.clone()));
    assert!(matches!(describe(&Desk::new(), &registry), FetchError::Unreadable(..)));
}

#[test]
fn a_flood_is_cut_off() {
    let mut desk = Desk::new();
    desk.settings.limits.describe = 10_000;
    let flood = vec![b' '; 50_000];
    let registry = StandIn::new(move |_, number| {
        let reply = Reply::new(200, flood.clone());
        // With a length that says so, and with one that lies.
        if number == 0 { reply } else { reply.with("transfer-encoding", "identity") }
    });
    assert!(matches!(describe(&desk, &registry), FetchError::TooMuch(_)));
}

#[test]
fn a_page_with_more_than_was_asked_for_is_refused() {
    let many: Vec<_> = (0..21).map(|number| found(&format!("tool:a.b{number}"))).collect();
    let twice = vec![found("tool:a.b"), found("tool:a.b")];
    for results in [many, twice] {
        let page = json!({"results": results, "total": 21});
        let registry = StandIn::new(move |_, _| Reply::json(&page));
        let error = wait(Desk::new().remote(&registry.url).search(&question())).unwrap_err();
        assert!(matches!(error, FetchError::TooMuch(_)), "{error}");
    }
}

#[test]
fn nobody_goes_where_a_registry_points() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = StandIn::new(|_, _| Reply::json(&Packed::new(1).describe));
        let to = elsewhere.url.clone();
        let registry = StandIn::new(move |asked, _| {
            Reply::new(status, "").with("location", &format!("{to}{}", asked.path))
        });
        let desk = Desk::new();
        let remote = Remote::new("r", desk.fetcher(&registry.url, Some("haft_secret")));
        let error = wait(remote.describe("demo.echo", None)).unwrap_err();
        assert!(
            matches!(&error, FetchError::Redirected(to) if to.contains("127.0.0.1")),
            "{error}"
        );
        let error = wait(remote.publish(vec![1], None, Channel::Stable)).unwrap_err();
        assert!(matches!(error, FetchError::Redirected(_)), "{error}");
        assert_eq!(elsewhere.paths().len(), 0);
    }
}

#[test]
fn a_token_goes_to_its_registry_and_not_in_plain() {
    let desk = Desk::new();
    let registry = StandIn::new(|_, _| Reply::json(&Packed::new(1).describe));
    let remote = Remote::new("r", desk.fetcher(&registry.url, Some("haft_secret")));
    wait(remote.describe("demo.echo", None)).unwrap();
    assert_eq!(registry.asked()[0].header("authorization"), Some("Bearer haft_secret"));
    let plain = Remote::new("r", desk.fetcher("http://192.0.2.1", Some("haft_secret")));
    assert!(matches!(
        wait(plain.publish(vec![1], None, Channel::Stable)),
        Err(FetchError::TokenInPlain)
    ));
    let without = Remote::new("r", desk.fetcher(&registry.url, None));
    assert!(matches!(
        wait(without.publish(vec![1], None, Channel::Stable)),
        Err(FetchError::NoToken)
    ));
    assert_eq!(registry.paths().len(), 1);
}

#[test]
fn a_bad_moment_passes() {
    let registry = StandIn::new(|asked, number| match number {
        0 => Reply::new(503, r#"{"error":{"code":"UNAVAILABLE","message":"wait"}}"#)
            .with("retry-after", "0"),
        1 => Reply::new(200, "{\"id\"").cut(3),
        2 => Reply::new(502, "<html>"),
        _ => Packed::new(1).reply(asked),
    });
    wait(Desk::new().remote(&registry.url).describe("demo.echo", None)).unwrap();
    assert_eq!(registry.paths().len(), 4);
}

#[test]
fn a_registry_that_stays_bad_is_left() {
    for (reply, tries) in [
        (Reply::new(503, ""), 4),
        (Reply::new(429, "").with("retry-after", "3600"), 1),
        (Reply::new(500, ""), 1),
        (Reply::new(404, r#"{"error":{"code":"TOOL_NOT_FOUND","message":"none"}}"#), 1),
        (Reply::new(401, ""), 1),
    ] {
        let status = reply.status;
        let registry = StandIn::new(move |_, _| reply.clone());
        let error = describe(&Desk::new(), &registry);
        assert!(matches!(error, FetchError::Refused { status: s, .. } if s == status), "{error}");
        assert_eq!(registry.paths().len(), tries, "{status}");
    }
}

#[test]
fn a_publish_is_sent_again_and_a_yank_is_not() {
    let bytes = Packed::new(1).bytes;
    let digest = package::digest::Digest::of(&bytes).to_string();
    let published = json!({
        "id": "tool:demo.echo", "name": "demo.echo", "version": "0.1.0",
        "sha256": digest, "outcome": "unchanged",
    });
    let answer = published.clone();
    let registry = StandIn::new(move |_: &Asked, number| match number {
        // It is done, but nobody hears of it.
        0 => Reply::json(&answer).cut(5),
        _ => Reply::json(&answer),
    });
    let desk = Desk::new();
    let remote = |url: &str| Remote::new("r", desk.fetcher(url, Some("haft_x")));
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let watch = Watch::new(move |passed| heard.lock().unwrap().push(passed));
    let watched = remote(&registry.url).watched(watch);
    wait(watched.publish(bytes.clone(), None, Channel::Stable)).unwrap();
    // Who watches sees it leave, and begin anew.
    let once = Passed::Bytes(bytes.len() as u64);
    assert_eq!(*told.lock().unwrap(), [once, Passed::Again, once]);
    let asked = registry.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|asked| asked.method == "POST" && asked.body == bytes));
    let registry = StandIn::new(|_, _| Reply::new(204, "xxxxx").cut(0));
    let yanked =
        wait(remote(&registry.url).yank("demo.echo", "0.1.0", Some(&Yank::because("bad"))));
    assert_eq!(registry.paths().len(), 1, "{yanked:?}");
    let registry = StandIn::new(|_, number| match number {
        0 => Reply::new(429, "").with("retry-after", "0"),
        _ => Reply::new(204, ""),
    });
    wait(remote(&registry.url).yank("demo.echo", "0.1.0", Some(&Yank::because("bad")))).unwrap();
    assert_eq!(registry.paths().len(), 2);
}

#[test]
fn a_registry_that_keeps_other_bytes_than_were_published_is_told_of() {
    let answer = json!({
        "id": "tool:demo.echo", "name": "demo.echo", "version": "0.1.0",
        "sha256": "0".repeat(64), "outcome": "published",
    });
    let registry = StandIn::new(move |_, _| Reply::json(&answer));
    let desk = Desk::new();
    let remote = Remote::new("r", desk.fetcher(&registry.url, Some("haft_x")));
    let error = wait(remote.publish(Packed::new(1).bytes, None, Channel::Stable)).unwrap_err();
    assert!(matches!(error, FetchError::Other { what: "digest", .. }), "{error}");
}

#[test]
fn an_answer_that_did_not_change_is_not_sent_again() {
    let registry = StandIn::new(|asked, number| match asked.header("if-none-match") {
        Some("W/\"1\"") if number == 1 => Reply::new(304, "").with("haft-yanked", "loses%20data"),
        Some("W/\"1\"") => Reply::new(304, ""),
        _ => Reply::json(&Packed::new(1).describe).with("etag", "W/\"1\""),
    });
    let desk = Desk::new();
    let first = wait(desk.remote(&registry.url).describe("demo.echo", None)).unwrap();
    let again = wait(desk.remote(&registry.url).describe("demo.echo", None)).unwrap();
    assert_eq!(first.describe, again.describe);
    // It was taken back meanwhile, which offline is known too.
    assert_eq!((&first.yanked, &again.yanked), (&None, &Some(Yank::because("loses data"))));
    let without = StandIn::new(|_, number| match number {
        0 => {
            Reply::json(&Packed::new(1).describe).with("haft-yanked", "yes").with("etag", "W/\"2\"")
        }
        1 => Reply::new(304, "").with("haft-yanked", "yes").with("haft-yanked-for", "security"),
        _ => Reply::new(304, ""),
    });
    let yanked = || wait(desk.remote(&without.url).describe("demo.echo", None)).unwrap().yanked;
    assert_eq!(yanked(), Some(Yank::because("")), "it was taken back without a reason");
    let security = Some(Yank { security: true, ..Yank::default() });
    assert_eq!((yanked(), yanked()), (security.clone(), security), "the mark alone is new");
    let third = wait(desk.remote(&registry.url).describe("demo.echo", None)).unwrap();
    assert_eq!(third, again, "what does not change need not be told again");
    let (desk, url) = (desk.offline(), registry.url.clone());
    let kept = wait(desk.remote(&url).describe("demo.echo", None)).unwrap();
    assert_eq!(kept, again);
    let error = wait(desk.remote(&url).describe("demo.other", None)).unwrap_err();
    assert!(matches!(error, FetchError::Offline(_)), "{error}");
    assert_eq!(registry.paths().len(), 3);
}

#[test]
fn versions_are_of_the_tool_and_each_once() {
    let version = |number: &str| json!({"version": number, "sha256": "0".repeat(64), "size": 1, "publishedAt": "2026-11-16T00:00:00Z", "signature": "unsigned"});
    let answer = |id: &str, latest: &str, versions: Vec<Value>| json!({"id": id, "name": id, "latest": latest, "versions": versions});
    let good = answer("tool:demo.echo", "1.0.0", vec![version("1.0.0")]);
    for bad in [
        answer("tool:demo.evil", "1.0.0", vec![version("1.0.0")]),
        answer("tool:demo.echo", "2.0.0", vec![version("1.0.0")]),
        answer("tool:demo.echo", "1.0.0", vec![version("1.0.0"), version("1.0.0")]),
        answer("tool:demo.echo", "1.0.0", vec![version("one")]),
    ] {
        let registry = StandIn::new(move |_, _| Reply::json(&bad));
        let error = wait(Desk::new().remote(&registry.url).versions("demo.echo")).unwrap_err();
        assert_eq!(error.kind(), Kind::Untrustworthy, "{error}");
    }
    let registry = StandIn::new(move |_, _| Reply::json(&good));
    wait(Desk::new().remote(&registry.url).versions("demo.echo")).unwrap();
}

#[test]
fn a_bundle_is_what_was_described_and_nothing_leaves_its_folder() {
    let describe = |more: Value| {
        let mut all = json!({
            "id": "tool:demo.dice", "name": "demo.dice", "version": "1.0.0", "summary": "Rolls",
            "description": "Rolls dice.", "entry": {"runtime": "node", "main": "index.js"},
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let file = |path: &str| json!({"path": path, "content": "export const tool = {}"});
    let fetch = |describe: Value, bundle: Value| {
        let registry = StandIn::new(move |asked, _| {
            Reply::json(if asked.path.ends_with("/bundle") { &bundle } else { &describe })
        });
        wait(Desk::new().remote(&registry.url).bundle("demo.dice", "1.0.0"))
    };
    let good = describe(json!({}));
    let bundle = fetch(good.clone(), json!({"manifest": good, "files": [file("index.js")]}));
    let bundle = bundle.unwrap();
    assert!(package::contents::Contents::size(&bundle, "index.js").is_some());
    let other = describe(json!({"summary": "Rolls more"}));
    let digest = describe(json!({"filesSha256": "0".repeat(64)}));
    let python = describe(json!({"entry": {"runtime": "python"}}));
    for (describe, manifest, files) in [
        (&good, &other, vec![file("index.js")]),
        (&digest, &digest, vec![file("index.js")]),
        (&python, &python, vec![file("index.js")]),
        (&good, &good, vec![file("../index.js")]),
        (&good, &good, vec![file("/index.js")]),
        (&good, &good, vec![file("C:/index.js")]),
        (&good, &good, vec![file("index.js"), file("index.js")]),
        (&good, &good, vec![json!({"path": "index.js", "content": "x", "encoding": "rot13"})]),
    ] {
        let bundle = json!({"manifest": manifest, "files": files});
        let error = fetch(describe.clone(), bundle.clone()).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), Kind::Untrustworthy, "{bundle}: {error}");
    }
}
