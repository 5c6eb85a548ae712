//! Agents that want to know who is asking: by their challenge, at the known places, by their card.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Ran, repository};
use crate::desk::{Desk, browse};
use crate::program::Program;
use crate::provider::{Provider, fails};

const ID: &str = "capability:acme.agent";

/// A capability that is the agent of a provider.
fn agent(desk: &Desk, provider: &Provider, changes: &Value) -> String {
    agent_at(desk, &provider.host(), "agent", changes)
}

/// A capability that is an agent at a host.
fn agent_at(desk: &Desk, host: &str, path: &str, changes: &Value) -> String {
    let endpoint = format!("http://{host}/{path}");
    let mut manifest = json!({
        "id": "acme.agent", "type": "a2a_peer", "version": "1.0.0", "description": "Asks an agent.",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
        "permissions": {
            "network": "allowlist", "network_allowlist": ["127.0.0.1"], "filesystem": "none",
            "devices": [],
        },
        "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"}},
        "trust_level": "local", "requires_oauth": true,
        "implementation": {"kind": "a2a_rpc", "a2a": {"endpoint": endpoint}},
    });
    for (name, value) in changes.as_object().unwrap() {
        manifest[name] = value.clone();
    }
    assert_eq!(desk.run(&["grant", ID, "--host", host]).code, 0);
    desk.write("agent/manifest.json", &manifest.to_string())
}

fn sign_in(desk: &Desk, path: &str, more: &[&str]) -> Ran {
    desk.browsing(&[&["login", "--from", path, "--timeout", "30s"], more].concat())
}

fn call(desk: &Desk, path: &str, text: &str) -> Ran {
    desk.run(&["call", "--from", path, "acme.agent", &json!({"text": text}).to_string()])
}

/// A card of version 1.0 with one scheme, and the scopes that it requires.
fn card(kind: &str, scheme: &Value, scopes: &Value) -> Value {
    json!({
        "name": "Agent", "description": "Tries.", "version": "1.0.0", "skills": [], "capabilities": {},
        "supportedInterfaces": [
            {"url": "OWN/agent", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        ],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["application/json"],
        "securitySchemes": {"a": {kind: scheme}},
        "securityRequirements": [{"schemes": {"a": {"list": scopes}}}],
    })
}

/// A card whose flow names the endpoints.
fn flow(changes: &Value) -> Value {
    let mut flow = json!({
        "authorizationUrl": "OWN/authorize", "tokenUrl": "OWN/token", "scopes": {"read": "Reads."},
    });
    for (name, value) in changes.as_object().unwrap() {
        flow[name] = value.clone();
    }
    card("oauth2SecurityScheme", &json!({"flows": {"authorizationCode": flow}}), &json!([]))
}

#[test]
fn an_agent_says_where_to_sign_in_in_every_way_that_there_is() {
    let openid = json!({"openIdConnectUrl": "OWN/.well-known/openid-configuration"});
    let metadata = json!({"oauth2MetadataUrl": "OWN/.well-known/oauth-authorization-server"});
    let old = json!({
        "url": "OWN/agent", "protocolVersion": "0.3.0", "security": [{"a": ["read"]}],
        "securitySchemes": {"a": {"type": "openIdConnect", "openIdConnectUrl": "OWN"}},
    });
    for setup in [
        json!({"agent": "challenge"}),
        json!({"agent": "known"}),
        json!({"card": card("openIdConnectSecurityScheme", &openid, &json!(["read"]))}),
        json!({"card": card("oauth2SecurityScheme", &metadata, &json!(["read"]))}),
        json!({"card": flow(&json!({}))}),
        json!({"card": old}),
    ] {
        let provider = Provider::new(&setup);
        let desk = provider.desk();
        let path = agent(&desk, &provider, &json!({}));
        let ran = desk.run(&["validate", &path]);
        assert!(ran.code == 0 && !ran.stdout.contains("oauth"), "{}", ran.stdout);
        let command = format!("`haft login --from {path}` signs in");
        fails(&call(&desk, &path, "hi"), 4, &["capability requires oauth onboarding", &command]);
        assert_eq!(provider.log()["calls"], json!([]));
        let server = format!("Server   http://{}/agent", provider.host());
        fails(&sign_in(&desk, &path, &[]), 0, &[&server, "Signed in for capability:acme.agent"]);
        let asked = provider.log()["forms"][0]["resource"].clone();
        assert_eq!(asked, format!("http://{}/agent", provider.host()), "{setup}");

        let ran = call(&desk, &path, "hi");
        assert_eq!(ran.code, 0, "{setup}: {}", ran.stderr);
        let said = ran.json();
        assert_eq!(said["heard"]["text"], "hi");
        // The agent tells the token, and nobody hears it.
        assert!(!ran.stdout.contains("access-"), "{}", ran.stdout);
        assert!(said["as"].as_str().unwrap().starts_with("Bearer ["), "{said}");
    }
}

#[test]
fn a_token_that_an_agent_does_not_take_is_renewed_once_and_more_is_asked_for_by_a_command() {
    let provider = Provider::new(&json!({"agent": "challenge", "refreshes": true}));
    let desk = provider.desk();
    let path = agent(&desk, &provider, &json!({}));
    fails(&sign_in(&desk, &path, &[]), 0, &["Signed in"]);
    browse(&format!("http://{}/end", provider.host()));
    let ran = call(&desk, &path, "hi");
    assert_eq!((ran.code, &provider.log()["refreshes"]), (0, &json!(1)), "{}", ran.stderr);
    assert_eq!(provider.log()["calls"], json!(["agent"]));

    let ran = call(&desk, &path, "change");
    let command = format!("`haft login --from {path} --scope write` signs in");
    fails(&ran, 4, &["the agent wants you to be granted more", &command]);
    fails(&sign_in(&desk, &path, &["--scope", "write"]), 0, &["(scopes: read write)"]);
    assert_eq!(call(&desk, &path, "change").code, 0);

    // Nothing brings another one.
    browse(&format!("http://{}/end", provider.host()));
    browse(&format!("http://{}/forget", provider.host()));
    let again = format!("`haft login --from {path} --scope read` signs in");
    fails(&call(&desk, &path, "hi"), 4, &["the agent wants you to sign in", &again]);
    assert_eq!(desk.run(&["logout", ID]).code, 0);
    assert!(!desk.is_signed_in());
}

#[test]
fn a_card_alone_is_enough_where_it_says_that_codes_are_protected() {
    let hidden = |card: Value| Provider::new(&json!({"card": card, "hidden": true}));
    let provider = hidden(flow(&json!({"pkceRequired": true})));
    let desk = provider.desk();
    let path = agent(&desk, &provider, &json!({}));
    fails(&sign_in(&desk, &path, &[]), 2, &["it needs a client id", "--client-id"]);
    fails(&sign_in(&desk, &path, &["--client-id", "mine"]), 0, &["Signed in", "(scopes: read)"]);
    assert_eq!(call(&desk, &path, "hi").code, 0);

    for (changes, code, words) in [
        (json!({}), 4, "PKCE"),
        (json!({"tokenUrl": "http://evil.example/token"}), 4, "is not safe to sign in with"),
        (json!({"tokenUrl": "https://evil.example/token"}), 4, "evil.example:443"),
        (
            json!({"authorizationUrl": "https://evil.example/a", "pkceRequired": true}),
            4,
            "evil.example:443",
        ),
        (json!({"tokenUrl": null}), 1, "`tokenUrl` is missing"),
    ] {
        let provider = hidden(flow(&changes));
        let desk = provider.desk();
        let path = agent(&desk, &provider, &json!({}));
        fails(&sign_in(&desk, &path, &["--client-id", "mine"]), code, &[words]);
        assert!(!desk.is_signed_in(), "{changes}");
    }
}

#[test]
fn an_agent_that_does_not_say_where_is_signed_in_to_where_the_owner_says() {
    let provider = Provider::new(&json!({}));
    let desk = provider.desk();
    let path = agent(&desk, &provider, &json!({}));
    let looked = format!("`http://{}/.well-known/agent-card.json` answered 404", provider.host());
    let wants = "the agent wants you to sign in, and has no metadata that says how";
    fails(&sign_in(&desk, &path, &[]), 1, &[wants, &looked, "--issuer"]);
    let issuer = format!("http://{}", provider.host());
    let other = ["--issuer", &issuer, "--resource", "https://other.example"];
    fails(&sign_in(&desk, &path, &other), 4, &["another resource"]);
    let secret = ["--issuer", &issuer, "--secret", "TOKEN"];
    fails(&sign_in(&desk, &path, &secret), 2, &["it declares no secret", "without --secret"]);
    fails(&sign_in(&desk, &path, &["--issuer", &issuer]), 0, &["/agent", "Signed in"]);
    assert_eq!(call(&desk, &path, "hi").code, 0);
    // Whom they named is remembered.
    fails(&sign_in(&desk, &path, &["--scope", "write"]), 0, &["Signed in"]);
}

#[test]
fn a_key_that_an_agent_does_not_take_is_no_reason_to_sign_in() {
    let provider = Provider::new(&json!({"agent": "challenge"}));
    let desk = provider.desk();
    let secrets = json!([{"name": "AGENT_KEY", "ref": "secret://AGENT_KEY"}]);
    let changes = json!({"secrets": secrets, "requires_oauth": false});
    let path = agent(&desk, &provider, &changes);
    let home = desk.home();
    let keep = ["--home", home.to_str().unwrap(), "secret", "set", ID, "AGENT_KEY"];
    assert_eq!(crate::common::run_in(&home, &keep, Some(b"a-wrong-key\n")).code, 0);
    let ran = call(&desk, &path, "hi");
    fails(&ran, 1, &["the agent answered 401"]);
    assert!(!ran.stderr.contains("haft login"), "{}", ran.stderr);
    // Who signs in all the same is told by their token alone.
    fails(&sign_in(&desk, &path, &[]), 0, &["Signed in"]);
    assert_eq!(call(&desk, &path, "hi").code, 0);
}

/// An agent made of the protocol's own library, whose card says where to sign in; until this is dropped.
fn library(release: &str, provider: &Provider) -> Program {
    let installed = std::env::var_os("HAFT_A2A_PEERS")
        .map_or_else(|| repository().join("target/tools/a2a"), PathBuf::from);
    let library = installed.join(release);
    assert!(library.is_dir(), "run `./test` once: nothing is at `{}`", library.display());
    Program::start(
        Command::new("python3")
            .arg(repository().join("crates/host/tests/a2a/agent.py"))
            .args(["oauth", &format!("http://{}", provider.host())])
            .env("PYTHONPATH", library)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stderr(Stdio::null()),
    )
}

#[test]
fn the_cards_of_the_protocols_own_library_say_where_to_sign_in() {
    for release in ["1", "0.3"] {
        let provider = Provider::new(&json!({}));
        let library = library(release, &provider);
        let desk = provider.desk();
        let path = agent_at(&desk, &library.host(), "rpc", &json!({"requires_oauth": false}));
        let command = format!("`haft login --from {path}` signs in");
        fails(&call(&desk, &path, "hi"), 4, &["the agent wants you to sign in", &command]);
        // The card names the authorization server, and only the owner lets it be reached.
        let refused = ["login", "--from", &path];
        fails(&desk.run(&refused), 4, &[&provider.host(), "--allow-host"]);
        let ran = sign_in(&desk, &path, &["--allow-host", &provider.host()]);
        fails(&ran, 0, &["Scopes   read\n", "Signed in for capability:acme.agent"]);
        let ran = call(&desk, &path, "hi");
        assert_eq!((ran.code, ran.stdout.trim()), (0, "you said hi"), "{release}: {}", ran.stderr);
    }
}
