//! Signing in for a capability over HTTP: by who has an owner's token, with a browser that is anywhere.

use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Desk, repository, write_below};
use crate::gate::{Gate, OPEN, home};
use crate::plain::{ask, token};
use crate::program::Program;

/// A command that proves which token it was given.
const COMMAND: &str = r#"printf '{"proof":"%s"}' "$(printf %s "$ACME_TOKEN" | rev)""#;

const START: &str = "/capability/oauth/start";
const COMPLETE: &str = "/capability/oauth/complete";

/// Where people sign in, a home with a capability that wants it, and the gateway before that.
struct Place {
    provider: Program,
    desk: Desk,
    gate: Gate,
    owner: String,
}

impl Place {
    fn new(setup: &Value) -> Self {
        let program = repository().join("crates/cli/tests/login/provider.py");
        let provider = Program::start(Command::new("python3").arg(program).arg(setup.to_string()));
        let desk = home(&[], OPEN);
        let manifest = json!({
            "id": "acme.report", "type": "tool", "version": "1.0.0", "description": "Reports.",
            "origin": {"source": "local", "digest": "0".repeat(64)},
            "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
            "permissions": {"network": "deny", "filesystem": "none", "devices": []},
            "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"}},
            "secrets": [{"name": "ACME_TOKEN", "ref": "secret://ACME_TOKEN"}],
            "trust_level": "local", "requires_oauth": true,
            "implementation": {"kind": "command", "command": {"argv": ["sh", "-c", COMMAND]}},
        });
        let path = write_below(desk.0.path(), "report/manifest.json", &manifest.to_string());
        desk.done(&["install", &path, "--yes"]);
        let owner = token(&desk, &["owner", "--role", "owner"]);
        let gate = Gate::open(&desk, &[]);
        Self { provider, desk, gate, owner }
    }

    fn post(&self, path: &str, token: &str, body: &Value) -> (u16, Value) {
        ask(&self.gate, "POST", path, token, &body.to_string())
    }

    /// Begins at its own authorization server, with something more.
    fn start(&self, more: &Value) -> (u16, Value) {
        let issuer = format!("http://{}", self.provider.host());
        let mut body = json!({ "id": "acme.report", "issuer": issuer });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post(START, &self.owner, &body)
    }

    fn run(&self) -> (u16, Value) {
        self.post("/capability/run", &self.owner, &json!({ "id": "acme.report" }))
    }

    fn log(&self) -> Value {
        let url = format!("http://{}/log", self.provider.host());
        let ran = Command::new("curl").args(["-sS", &url]).output().unwrap();
        serde_json::from_slice(&ran.stdout).unwrap()
    }
}

/// Goes to a page as a browser does, and says what the address is that it is sent to: the address, and what is in its query.
fn browse(page: &str) -> (String, Value) {
    let arguments = ["-sS", "-o", "/dev/null", "-w", "%{redirect_url}", "--", page];
    let ran = Command::new("curl").args(arguments).output().unwrap();
    let address = String::from_utf8(ran.stdout).unwrap();
    let (place, query) = address.split_once('?').unwrap_or_else(|| panic!("{address}"));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap();
        (name.to_owned(), Value::from(value))
    };
    (place.to_owned(), query.split('&').map(pair).collect())
}

#[test]
fn an_owner_signs_in_over_http_and_the_tool_is_given_the_token() {
    let place = Place::new(&json!({"refreshes": true}));
    let (status, told) = place.run();
    assert_eq!(status, 403, "{told}");
    let words = told["error"]["message"].as_str().unwrap();
    assert!(words.contains("capability requires oauth onboarding"), "{told}");

    let (status, begun) = place.start(&json!({}));
    assert_eq!(status, 200, "{begun}");
    assert_eq!((&begun["secret"], &begun["expires_in"]), (&json!("ACME_TOKEN"), &json!(600)));
    let (address, brought) = browse(begun["authorization_url"].as_str().unwrap());
    assert_eq!(
        (&*address, &brought["state"]),
        (begun["redirect_uri"].as_str().unwrap(), &begun["state"])
    );

    let (status, done) = place.post(COMPLETE, &place.owner, &brought);
    assert_eq!(status, 200, "{done}");
    assert_eq!(
        (&done["package"], &done["renews"]),
        (&json!("capability:acme.report"), &json!(true))
    );
    let log = place.log();
    let kept = log["tokens"][0].as_str().unwrap();
    let verifier = log["forms"][0]["code_verifier"].as_str().unwrap();
    for secret in [kept, verifier, "refresh-"] {
        assert!(!begun.to_string().contains(secret) && !done.to_string().contains(secret));
        // Nor is it in any file of the home.
        let mut search = Command::new("grep");
        let found = search.args(["-rqaF", secret]).arg(place.desk.path("home")).status().unwrap();
        assert!(!found.success(), "{secret}");
    }
    let (status, told) = place.run();
    assert_eq!(
        (status, &told["result"]["proof"]),
        (200, &kept.chars().rev().collect::<String>().into())
    );

    // It counts once.
    let (status, told) = place.post(COMPLETE, &place.owner, &brought);
    assert_eq!((status, &told["error"]["code"]), (404, &json!("unknown_state")));
    assert_eq!(place.log()["forms"].as_array().unwrap().len(), 1);
}

#[test]
fn only_who_began_with_an_owners_token_goes_on() {
    let place = Place::new(&json!({}));
    let others = [("agent", "agent"), ("installer", "installer")]
        .map(|(name, role)| token(&place.desk, &[name, "--role", role]));
    let (_, begun) = place.start(&json!({}));
    let (_, brought) = browse(begun["authorization_url"].as_str().unwrap());
    for other in &others {
        for (path, body) in [(START, json!({ "id": "acme.report" })), (COMPLETE, brought.clone())] {
            let (status, told) = place.post(path, other, &body);
            assert_eq!((status, &told["error"]["code"]), (403, &json!("denied")), "{path}");
        }
    }
    let second = token(&place.desk, &["second", "--role", "owner"]);
    assert_eq!(place.post(COMPLETE, &second, &brought).0, 404);
    let mut other = brought.clone();
    other["state"] = "other".into();
    assert_eq!(place.post(COMPLETE, &place.owner, &other).0, 404);
    // None of them has used it up.
    assert_eq!(place.log()["forms"], json!([]));
    assert_eq!(place.post(COMPLETE, &place.owner, &brought).0, 200);

    for (path, body) in [
        (START, json!({})),
        (START, json!({ "id": "acme.report", "scopes": "read" })),
        (START, json!({ "id": "acme.report", "client_secret": "x" })),
        (COMPLETE, json!({ "state": "x" })),
        (COMPLETE, json!({ "code": "x" })),
    ] {
        assert_eq!(place.post(path, &place.owner, &body).0, 400, "{body}");
    }
    assert_eq!(place.post(START, &place.owner, &json!({ "id": "nobody" })).0, 404);
}

#[test]
fn what_is_brought_back_by_another_server_or_refused_is_no_sign_in() {
    let place = Place::new(&json!({}));
    for (more, words) in [
        (json!({ "iss": "https://evil.example", "code": "x" }), "another"),
        (json!({ "error": "access_denied" }), "access_denied"),
    ] {
        let (_, begun) = place.start(&json!({}));
        let mut body = json!({ "state": begun["state"] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, told) = place.post(COMPLETE, &place.owner, &body);
        assert_eq!(status, 403, "{told}");
        assert!(told["error"]["message"].as_str().unwrap().contains(words), "{told}");
        // That was its one time.
        assert_eq!(place.post(COMPLETE, &place.owner, &body).0, 404);
    }
    assert_eq!(place.log()["forms"], json!([]));
    assert!(!place.desk.done(&["secret", "list"]).stdout.contains("(login)"));
}

#[test]
fn an_application_of_the_owner_may_take_the_answer() {
    let place = Place::new(&json!({}));
    let redirect = "https://app.example.com/back?from=haft";
    assert_eq!(place.start(&json!({ "redirect_uri": redirect })).0, 200);
    let registered = &place.log()["registered"][0];
    assert_eq!(
        (&registered["redirect_uris"], &registered["application_type"]),
        (&json!([redirect]), &json!("web"))
    );
    let client =
        json!({ "redirect_uri": redirect, "client_id": "mine", "client_secret": "s3cret & co" });
    let (status, begun) = place.start(&client);
    assert_eq!((status, &begun["redirect_uri"]), (200, &json!(redirect)), "{begun}");
    let page = begun["authorization_url"].as_str().unwrap();
    assert!(page.contains("client_id=mine") && !begun.to_string().contains("s3cret"), "{begun}");
    browse(page);
    let body = json!({ "state": begun["state"], "code": "c0de" });
    let (status, told) = place.post(COMPLETE, &place.owner, &body);
    assert_eq!(status, 200, "{told}");
    assert_eq!(place.log()["forms"][0]["redirect_uri"], redirect);
    let (status, told) = place.start(&json!({ "redirect_uri": "http://app.example.com/back" }));
    assert_eq!(status, 409, "{told}");
}

#[test]
fn where_the_policy_wants_more_than_a_token_nobody_signs_in_so() {
    let place = Place::new(&json!({}));
    for presence in ["terminal", "passphrase"] {
        let policy = format!("{OPEN}owner_presence = \"{presence}\"\n");
        write_below(&place.desk.path("home"), "policy.toml", &policy);
        let (status, told) = place.start(&json!({}));
        assert_eq!(status, 403, "{told}");
        let words = told["error"]["message"].as_str().unwrap();
        assert!(words.contains("more than a token"), "{told}");
    }
    assert_eq!(place.log()["registered"], json!([]));
}
