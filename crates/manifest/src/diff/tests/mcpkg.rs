use serde_json::{Value, json};

use super::Edit::{Remove, Set};
use super::{check_basics, check_nothing_goes_unseen, check_rows};
use crate::diff::Class::{Additive, Breaking, Cosmetic, NeedsReview};

fn sample(version: &str) -> Value {
    json!({
        "toolId": "demo.text.status", "name": "Status", "version": version,
        "description": "Asks whether a service is up.", "capabilities": ["http"],
        "implementations": [
            {"id": "python", "language": "python", "runtime": "python3", "platforms": ["linux-x64"],
             "endpoint": {"type": "local", "command": "python3 ./status.py", "timeoutMs": 5000},
             "requirements": {"packages": ["a"]}},
            {"id": "node", "platforms": ["linux-x64", "win-x64"],
             "endpoint": {"type": "http", "method": "POST", "url": "https://a.test/s", "timeoutMs": 9000}}
        ],
        "input_schema": {"type": "object"},
        "output_schema": {"type": "object"},
        "auth": {"type": "bearer", "scopes": ["status:read"],
                 "configHints": {"env": ["TOKEN"], "docsUrl": "https://a.test/docs"}},
        "tests": ["tests/a.test.json"], "examples": ["examples/a.md"],
        "meta": {"publisher": {"id": "demo", "name": "Demo", "website": "https://a.test"},
                 "license": "MIT", "homepage": "https://a.test", "tags": ["example"]}
    })
}

fn chain(version: &str) -> Value {
    let mut chain = sample(version);
    let members = chain.as_object_mut().unwrap();
    for key in ["implementations", "auth"] {
        members.shift_remove(key);
    }
    chain["chain"] = json!([
        {"step": "clean", "tool": "demo.text.clean", "inputMapping": {"t": "$.input.t"}, "outputKey": "c"},
        {"step": "count", "tool": "demo.text.count", "inputMapping": {"t": "$.c.t"}, "outputKey": "n"}
    ]);
    chain
}

#[test]
fn nothing_but_the_version_changes_nothing() {
    check_basics(&sample("1.0.0"), &sample("1.1.0"));
    check_basics(&chain("1.0.0"), &chain("1.1.0"));
}

#[test]
fn every_value_that_may_change_is_looked_at() {
    // Another way to run serves the same system.
    let unseen = ["/implementations/0/platforms", "/implementations/1/platforms/0"];
    check_nothing_goes_unseen(&sample("1.0.0"), &sample("1.1.0"), &unseen);
    check_nothing_goes_unseen(&chain("1.0.0"), &chain("1.1.0"), &[]);
}

#[test]
fn each_field_is_classed() {
    let way = json!({"id": "more", "platforms": ["linux-x64"], "endpoint": {"type": "local", "command": "sh x"}});
    check_rows(
        &sample("1.0.0"),
        &sample("1.1.0"),
        vec![
            ("/name", Set(json!("State")), Cosmetic, "display name"),
            ("/capabilities/-", Set(json!("net")), Cosmetic, "tags"),
            ("/meta/license", Remove, NeedsReview, "licence"),
            ("/meta/publisher/id", Set(json!("evil")), NeedsReview, "publisher"),
            ("/meta/publisher/website", Set(json!("https://b.test")), Cosmetic, "publisher"),
            ("/tests/0", Remove, NeedsReview, "package tests"),
            ("/tests/-", Set(json!("tests/b.test.json")), Additive, "package tests"),
            ("/examples/0", Remove, Cosmetic, "examples"),
            ("/auth/type", Set(json!("oauth2")), NeedsReview, "authentication"),
            ("/auth/scopes/-", Set(json!("status:write")), NeedsReview, "authentication"),
            ("/auth/scopes", Set(json!([])), Additive, "authentication"),
            ("/auth/configHints/env/-", Set(json!("OTHER")), NeedsReview, "secret OTHER"),
            ("/auth/configHints/docsUrl", Remove, Cosmetic, "authentication"),
            ("/auth", Remove, Additive, "authentication"),
            ("/implementations/-", Set(way), NeedsReview, "implementation more"),
            ("/implementations/0", Remove, NeedsReview, "implementation python"),
            ("/implementations/1", Remove, Breaking, "platforms"),
            ("/implementations/1/platforms/1", Remove, Breaking, "platforms"),
            ("/implementations/0/platforms/-", Set(json!("darwin-x64")), Additive, "platforms"),
            ("/implementations/0/platforms", Remove, Additive, "platforms"),
            (
                "/implementations/0/endpoint/command",
                Set(json!("sh x")),
                NeedsReview,
                "implementation python",
            ),
            (
                "/implementations/1/endpoint/url",
                Set(json!("https://b.test/s")),
                NeedsReview,
                "host b.test",
            ),
            (
                "/implementations/0/runtime",
                Set(json!("pypy")),
                NeedsReview,
                "implementation python",
            ),
            ("/implementations/0/language", Set(json!("py")), Cosmetic, "implementation python"),
            (
                "/implementations/0/requirements/packages/-",
                Set(json!("b")),
                NeedsReview,
                "implementation python",
            ),
            ("/implementations/0/requirements", Remove, Additive, "implementation python"),
            ("/implementations/0/endpoint/timeoutMs", Set(json!(4000)), NeedsReview, "time limit"),
            (
                "/implementations/1/endpoint/timeoutMs",
                Set(json!(9999)),
                Additive,
                "implementation node",
            ),
        ],
    );
}

#[test]
fn a_chain_that_calls_other_tools_needs_review() {
    let step =
        json!({"step": "send", "tool": "demo.mail.send", "inputMapping": {}, "outputKey": "s"});
    check_rows(
        &chain("1.0.0"),
        &chain("1.1.0"),
        vec![
            ("/chain/-", Set(step), NeedsReview, "chain step send"),
            ("/chain/1", Remove, NeedsReview, "chain step count"),
            ("/chain/1/tool", Set(json!("demo.text.sum")), NeedsReview, "chain step count"),
            ("/chain/1/inputMapping/t", Set(json!("$.input.t")), NeedsReview, "chain step count"),
        ],
    );
}

#[test]
fn ways_to_run_in_another_order_are_cosmetic() {
    let way = |id: &str| json!({"id": id, "endpoint": {"type": "local", "command": id}});
    let (mut old, new) = (sample("1.0.0"), sample("1.1.0"));
    old["implementations"] = json!([way("a"), way("b")]);
    let turned = json!([way("b"), way("a")]);
    check_rows(&old, &new, vec![("/implementations", Set(turned), Cosmetic, "implementations")]);
}

#[test]
fn a_host_that_comes_to_stand_for_those_below_it_is_put_before_the_owner() {
    let (old, mut new) =
        (super::read(&sample("1.0.0")).remove(0), super::read(&sample("1.1.0")).remove(0));
    let hosts = vec!["A.test".to_owned(), "b.test".to_owned()];
    let companion = crate::companion::Companion {
        permissions: crate::model::Permissions {
            domains: hosts.clone(),
            hosts,
            ..Default::default()
        },
        ..Default::default()
    };
    crate::companion::apply(&companion, &mut new);
    let changes = crate::diff::diff(&old, &new);
    let told: Vec<_> = changes.iter().map(|it| (it.class, it.subject.as_str())).collect();
    let expected =
        [(NeedsReview, "domain a.test"), (NeedsReview, "host b.test"), (Cosmetic, "version")];
    assert_eq!(told, expected);
}
