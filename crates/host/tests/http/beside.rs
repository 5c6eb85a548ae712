//! Requests beside the calls of a package: its smoke test, and its kill switch.

use host::smoke::Verdict;
use host::{CallError, CancellationToken, Killed, Kind, Smoked, Tool};
use ledger::audit;
use manifest::kill_switch::ByHand;
use manifest::model::{Invocation, Trust};
use policy::{Consent, Grant, GrantKind, Grants, Policy};
use serde_json::{Value, json};
use vault::{Owner, Place, Secret};

use super::kit;
use super::site::{Site, host_of, tool};

const KEY: &str = "s3cret-key-of-the-install";

/// A package of a site with a smoke test and a kill switch, and whatever it was given.
fn package(site: &Site, smoke: Value, kill_switch: Value, given: &[(&str, &str)]) -> Tool {
    let env = |name: &str, secret: bool| json!({ "name": name, "secret": secret, "required": false, "prompt": "It." });
    let mut tool = tool(&json!({
        "manifest_version": "0.4",
        "tool": {
            "id": "beside", "version": "1.0.0", "name": "Beside", "summary": "Asks a server.",
            "homepage": "https://example.com/beside",
        },
        "runtime": {
            "kind": "mcp-http",
            "install": {
                "method": "url", "url": "https://example.com/beside", "sha256": "5f".repeat(32),
            },
            "endpoint_url": site.origin,
        },
        "env": [env("KEY", true), env("OTHER_KEY", true), env("ZONE", false)],
        "actions": [{
            "name": "ask", "summary": "Asks.", "side_effects": "read",
            "invocation": {
                "kind": "http", "method": "GET", "path": "/echo", "headers": { "X-Key": "${env.KEY}" },
            },
            "output": { "format": "json" },
        }],
        "smoke": smoke,
        "kill_switch": kill_switch,
    }));
    let own = |(name, value): &(&str, &str)| {
        ((*name).to_owned(), Secret::new((*value).to_owned()).unwrap())
    };
    tool.given.values = given.iter().map(own).collect();
    tool
}

fn smoke_of(site: &Site, smoke: Value) -> Tool {
    let manual = json!({ "kind": "manual", "instructions": "Ask us." });
    package(site, smoke, manual, &[("KEY", KEY), ("ZONE", "eu west")])
}

fn switch_of(site: &Site, kill_switch: Value, given: &[(&str, &str)]) -> Tool {
    let smoke = json!({ "kind": "http", "url": site.origin, "success": { "http_status": 200 } });
    package(site, smoke, kill_switch, given)
}

/// The hosts of these sites, as an owner grants them.
fn hosts(sites: &[&Site]) -> Grants {
    let host = |site: &&Site| site.origin.strip_prefix("http://").unwrap().to_owned();
    sites.iter().map(|site| Grant { kind: GrantKind::Host, value: host(site) }).collect()
}

fn smoke(site: &Site, tool: &Tool, grants: &Grants) -> Result<Smoked, CallError> {
    site.runtime.block_on(async {
        kit::set_grants(&site.records, &tool.package.canonical_id(), grants).await;
        site.host.smoke(tool, &CancellationToken::new()).await
    })
}

fn kill(site: &Site, tool: &Tool, secret: Option<&str>) -> Result<Killed, CallError> {
    site.runtime.block_on(async {
        kit::set_grants(&site.records, &tool.package.canonical_id(), &hosts(&[site])).await;
        site.host.kill(tool, secret, &CancellationToken::new()).await
    })
}

fn unconfirmed(killed: Result<Killed, CallError>) -> (String, Option<ByHand>) {
    match killed {
        Ok(Killed::Unconfirmed { why, by_hand }) => (why, by_hand),
        other => panic!("{other:?}"),
    }
}

fn verdicts(smoked: &Smoked) -> Vec<Verdict> {
    smoked.checks.iter().map(|check| check.verdict).collect()
}

#[test]
fn a_request_is_filled_in_and_its_answer_held_against_every_condition() {
    let site = Site::open();
    let tool = smoke_of(
        &site,
        json!({
            "kind": "http", "method": "POST", "url": format!("{}/echo/${{ZONE}}", site.origin),
            "headers": { "X-Key": "Bearer ${KEY}", "X-Other": "${OTHER_KEY}" },
            "body": r#"{"zone":"${ZONE}"}"#,
            "success": {
                "http_status": 200,
                "body_regex": "\"method\": \"POST\"",
                "json_pointer_equals": {
                    "/body/zone": "${ZONE}", "/path": "/echo/eu%20west",
                    "/headers/x-key": "Bearer ${KEY}", "/headers/x-other": "${OTHER_KEY}",
                },
                "json_pointer_in": { "/method": ["PUT", "POST"] },
                "json_pointer_exists": "/query",
                "json_pointer_present": "/headers/host",
                "no_error_field": true,
            },
        }),
    );
    let smoked = smoke(&site, &tool, &hosts(&[&site])).unwrap();
    assert!(smoked.passed, "{smoked:?}");
    let skipped: Vec<_> =
        smoked.checks.iter().filter(|one| one.verdict == Verdict::Skipped).collect();
    assert_eq!(skipped.len(), 1, "{smoked:?}");
    assert_eq!(skipped[0].what, "json_pointer_equals `/headers/x-other`");
    let told = smoked.to_value().to_string();
    assert!(!told.contains(KEY) && told.contains("[secret KEY]"), "{told}");
    let log = site.settings.home.join("audit");
    let page = audit::page(&log, &audit::Filter::default(), None, 10).unwrap();
    assert!(page.records.iter().all(|record| record.action == "smoke"), "{page:?}");
    assert_eq!(page.records.len(), 2, "it began and it ended");
    assert!(!format!("{page:?}").contains(KEY));
}

#[test]
fn what_does_not_come_as_it_should_is_told_with_what_came() {
    let site = Site::open();
    let asked = |path: &str, success: Value| {
        let url = format!("{}{path}", site.origin);
        let written =
            json!({ "kind": "http", "url": url, "timeout_seconds": 1, "success": success });
        smoke(&site, &smoke_of(&site, written), &hosts(&[&site])).unwrap()
    };
    let failed = asked("/status/404", json!({ "http_status": 200, "no_error_field": true }));
    assert_eq!(verdicts(&failed), [Verdict::Failed, Verdict::Failed]);
    assert!(!failed.passed && failed.output.contains("there is no such zone"), "{failed:?}");
    assert_eq!((&*failed.checks[0].expected, &*failed.checks[0].found), ("200", "404"));
    // An author who names no status means one of success.
    assert!(!asked("/status/500", json!({ "body_regex": "zone" })).passed);
    assert!(asked("/status/404", json!({ "http_status": 404 })).passed);
    let page = asked("/nonsense", json!({ "json_pointer_exists": "/a" }));
    assert_eq!(verdicts(&page), [Verdict::Passed, Verdict::Failed]);
    assert_eq!(page.output, "<html>no</html>");
    let late = asked("/slow?seconds=5", json!({ "http_status": 200 }));
    assert!(!late.passed && late.checks[0].found.contains("1 s"), "{late:?}");
    let large = asked("/large", json!({ "http_status": 200 }));
    assert!(!large.passed, "{large:?}");
}

#[test]
fn a_request_goes_only_where_the_owner_agreed_to() {
    let site = Site::open();
    let at = |url: &str| {
        let headers = json!({ "X-Key": "${KEY}" });
        smoke_of(&site, json!({ "kind": "http", "url": url, "headers": headers, "success": {} }))
    };
    // What a package says of itself leads to no private address.
    let own = format!("{}/given", site.origin);
    let error = smoke(&site, &at(&own), &Grants::default()).unwrap_err();
    assert!(matches!(error.kind, Kind::Blocked(_)), "{error:?}");
    assert_eq!(site.count("GET nobody"), 0);
    let error =
        smoke(&site, &at("https://elsewhere.example.invalid/"), &hosts(&[&site])).unwrap_err();
    assert!(matches!(error.kind, Kind::Blocked(_)), "{error:?}");
    let error =
        smoke(&site, &at("http://elsewhere.example.invalid/"), &hosts(&[&site])).unwrap_err();
    assert!(error.message.contains("over plain `http`"), "{error:?}");
    // What was agreed to on a card counts before it is written down, and leads to no private address either.
    let mut agreed = at(&own);
    agreed.consent = Consent::ByCard { admitted: Trust::Local };
    let name = format!("localhost:{}", site.origin.rsplit(':').next().unwrap());
    for (hosts, url) in [
        (vec![], own.clone()),
        (vec![site.origin.strip_prefix("http://").unwrap().to_owned()], own.clone()),
        (vec![name.clone()], format!("http://{name}/given")),
    ] {
        let mut tool = at(&url);
        (tool.consent, tool.given.hosts) = (Consent::ByCard { admitted: Trust::Local }, hosts);
        let error = smoke(&site, &tool, &Grants::default()).unwrap_err();
        assert!(matches!(error.kind, Kind::Blocked(_)), "{error:?}");
    }
    agreed.given.grants = hosts(&[&site]).iter().cloned().collect();
    assert!(smoke(&site, &agreed, &Grants::default()).unwrap().passed);
    assert_eq!(site.count("GET nobody"), 1);
}

#[test]
fn nobody_else_is_told_a_secret_by_a_redirect() {
    let (site, other) = (Site::open(), Site::open());
    let both = hosts(&[&site, &other]);
    let to = |to: &str, status: u16| format!("{}/elsewhere?status={status}&to={to}", site.origin);
    let there = format!("{}/heard", other.origin);
    let header = json!({
        "kind": "http", "url": to(&there, 302), "headers": { "X-Key": "${KEY}" },
        "success": { "json_pointer_equals": { "/key": null } },
    });
    let smoked = smoke(&site, &smoke_of(&site, header), &both).unwrap();
    assert!(smoked.passed, "{smoked:?}");
    let body = |status: u16, body: &str| {
        let written = json!({
            "kind": "http", "method": "POST", "url": to(&there, 307), "body": body,
            "success": { "http_status": status },
        });
        smoke(&site, &smoke_of(&site, written), &both).unwrap()
    };
    let told = body(307, "${KEY}");
    assert!(told.passed, "{told:?}");
    assert_eq!(other.count(KEY), 0);
    assert!(body(200, "plain").passed);
    assert_eq!(other.count("plain"), 1);
    // Where nothing may be reached, no redirect leads either.
    let written = json!({ "kind": "http", "url": to(&there, 302), "success": {} });
    let error = smoke(&site, &smoke_of(&site, written), &hosts(&[&site])).unwrap_err();
    assert!(matches!(error.kind, Kind::Blocked(_)), "{error:?}");
}

#[test]
fn an_action_that_changes_nothing_is_called_as_every_call_is() {
    let site = Site::open();
    let written = json!({
        "kind": "action-call", "action": "ask", "arguments": {},
        "success": { "json_pointer_equals": { "/method": "GET" }, "no_error_field": true },
    });
    let mut tool = smoke_of(&site, written);
    let smoked = smoke(&site, &tool, &hosts(&[&site])).unwrap();
    assert!(smoked.passed && smoked.kind == "action-call", "{smoked:?}");
    // Even where the owner wants to be asked before each call: they accepted the card.
    let policy = Policy::parse("[approval]\nread = \"ask\"\n").unwrap();
    let strict = host::Settings { policy, ..site.settings.clone() };
    let host = host_of(&strict, &site.vault, &site.records);
    let asked = site.runtime.block_on(host.smoke(&tool, &CancellationToken::new()));
    assert!(asked.unwrap().passed);
    let policy = Policy::parse("[approval]\nread = \"deny\"\n").unwrap();
    let denying = host::Settings { policy, ..site.settings.clone() };
    let host = host_of(&denying, &site.vault, &site.records);
    let denied = site.runtime.block_on(host.smoke(&tool, &CancellationToken::new()));
    assert_eq!(denied.unwrap_err().kind, Kind::Denied);
    tool.package.actions[0].side_effects = Some(manifest::model::SideEffects::Write);
    let error = smoke(&site, &tool, &hosts(&[&site])).unwrap_err();
    assert_eq!(error.kind, Kind::Denied);
    assert!(error.message.contains("whose side effects are `write`"), "{error}");
}

#[test]
fn what_is_given_stands_before_what_is_kept_and_is_kept_nowhere() {
    let site = Site::open();
    let mut tool = smoke_of(
        &site,
        json!({
            "kind": "http", "method": "POST", "url": format!("{}/heard", site.origin),
            "body": "${KEY}", "success": {},
        }),
    );
    let place = Place::new(Owner::Package(tool.package.canonical_id()), "KEY").unwrap();
    site.vault.set(&place, &Secret::new("kept-before".to_owned()).unwrap()).unwrap();
    assert!(smoke(&site, &tool, &hosts(&[&site])).unwrap().passed);
    assert_eq!((site.count(KEY), site.count("kept-before")), (1, 0));
    // So it does in an ordinary call.
    tool.package.actions[0].invocation = Invocation::Http {
        method: "GET".into(),
        path: "/given".into(),
        headers: vec![("Authorization".into(), "Bearer ${env.KEY}".into())],
    };
    site.json(&tool, json!({}));
    assert_eq!(site.count(&format!("GET Bearer {KEY}")), 1);
    assert_eq!(site.vault.get(&place).unwrap().unwrap().expose(), "kept-before");
    assert!(!format!("{tool:?}").contains(KEY));
    tool.given = host::Given::default();
    assert!(smoke(&site, &tool, &hosts(&[&site])).unwrap().passed);
    assert_eq!((site.count(KEY), site.count("kept-before")), (1, 1));
}

#[test]
fn a_deletion_that_succeeds_confirms_and_shows_who_revokes() {
    let site = Site::open();
    let url = format!("{}/given/${{ZONE}}", site.origin);
    let given = [("KEY", KEY), ("ZONE", "eu")];
    let mut tool = switch_of(&site, json!({ "kind": "url", "url": url }), &given);
    assert_eq!(kill(&site, &tool, None), Ok(Killed::Confirmed));
    assert_eq!(site.count(&format!("DELETE Bearer {KEY}")), 1);
    // Also of one that is switched off, which nothing else may use.
    tool.package.enabled = false;
    let refused = site.error(&tool, json!({}));
    assert_eq!(refused.kind, Kind::Denied);
    assert_eq!(kill(&site, &tool, Some("KEY")), Ok(Killed::Confirmed));
    assert_eq!(site.count(&format!("DELETE Bearer {KEY}")), 2);
    let filter = audit::Filter { action: Some("kill_switch".into()), ..audit::Filter::default() };
    let page = audit::page(&site.settings.home.join("audit"), &filter, None, 10).unwrap();
    assert_eq!(page.records.len(), 4, "each began and ended");
    assert!(!format!("{page:?}").contains(KEY), "{page:?}");
}

#[test]
fn anything_else_leaves_it_unconfirmed_and_tells_where_to_go() {
    let (site, other) = (Site::open(), Site::open());
    let given = [("KEY", KEY)];
    let at = |url: String| {
        let tool = switch_of(&site, json!({ "kind": "url", "url": url }), &given);
        let (why, by_hand) = unconfirmed(kill(&site, &tool, None));
        assert_eq!(by_hand, Some(ByHand::Url(url)));
        why
    };
    assert_eq!(at(format!("{}/status/404", site.origin)), "the server answered 404 Not Found");
    let there = format!("{}/given", other.origin);
    for status in [302, 303, 307] {
        let why = at(format!("{}/elsewhere?status={status}&to={there}", site.origin));
        assert!(why.contains("the secret is told to nobody else"), "{why}");
    }
    let why = at(there);
    assert!(why.contains("is refused"), "{why}");
    for method in ["GET", "DELETE"] {
        assert_eq!(other.count(&format!("{method} nobody")), 0);
        assert_eq!(other.count(&format!("{method} Bearer {KEY}")), 0);
    }
    let why = at("http://elsewhere.example.invalid/".to_owned());
    assert!(why.contains("over plain `http`"), "{why}");
    let gone = at("http://127.0.0.1:1/".to_owned());
    assert!(gone.contains("is refused"), "{gone}");
}

#[test]
fn of_several_secrets_the_one_to_revoke_with_is_named() {
    let site = Site::open();
    let url = json!({ "kind": "url", "url": format!("{}/given", site.origin) });
    let both = [("KEY", KEY), ("OTHER_KEY", "another-s3cret")];
    let tool = switch_of(&site, url.clone(), &both);
    let error = kill(&site, &tool, None).unwrap_err();
    assert_eq!(
        (error.kind, &error.details["secrets"]),
        (Kind::BadInput, &json!(["KEY", "OTHER_KEY"]))
    );
    assert_eq!(kill(&site, &tool, Some("ZONE")).unwrap_err().kind, Kind::BadInput);
    assert_eq!(kill(&site, &tool, Some("OTHER_KEY")), Ok(Killed::Confirmed));
    assert_eq!(site.count("DELETE Bearer another-s3cret"), 1);
    // Without any there is nothing to show.
    assert_eq!(kill(&site, &switch_of(&site, url, &[]), None), Ok(Killed::Confirmed));
    assert_eq!(site.count("DELETE nobody"), 1);
}

#[test]
fn an_owner_whose_policy_refuses_a_package_can_still_revoke_it() {
    let site = Site::open();
    let url = json!({ "kind": "url", "url": format!("{}/given", site.origin) });
    let tool = switch_of(&site, url, &[("KEY", KEY)]);
    let shell = switch_of(&site, json!({ "kind": "shell", "command": ["true"] }), &[]);
    let policy = Policy::parse("[package.\"install-manifest:beside\"]\nallow = false\n").unwrap();
    let settings = host::Settings { policy, ..site.settings.clone() };
    let host = host_of(&settings, &site.vault, &site.records);
    let kill = |tool: &Tool| {
        site.runtime.block_on(async {
            kit::set_grants(&site.records, &tool.package.canonical_id(), &hosts(&[&site])).await;
            host.kill(tool, None, &CancellationToken::new()).await
        })
    };
    assert_eq!(kill(&tool), Ok(Killed::Confirmed));
    // What the package would run itself is not run.
    let (why, _) = unconfirmed(kill(&shell));
    assert_eq!(why, "your policy refuses this package");
}

#[test]
fn what_only_people_can_do_is_told_and_nothing_is_nothing() {
    let site = Site::open();
    for (written, by_hand) in [
        (
            json!({ "kind": "manual", "instructions": "Press it." }),
            ByHand::Instructions("Press it.".into()),
        ),
        (
            json!({ "kind": "manual", "instructions_url": "https://example.com/" }),
            ByHand::Url("https://example.com/".into()),
        ),
    ] {
        let (_, told) = unconfirmed(kill(&site, &switch_of(&site, written, &[]), None));
        assert_eq!(told, Some(by_hand));
    }
    let mut tool = switch_of(&site, json!({ "kind": "manual", "instructions": "x" }), &[]);
    tool.package.kill_switch = None;
    assert_eq!(kill(&site, &tool, None), Ok(Killed::NothingToDo));
}
