//! Tools that are requests to servers: what is sent, what comes back, and what is refused.
//!
//! The servers are real: one of ours for failures of every kind, and httpbin and an OAuth provider
//! made of Authlib where `HAFT_HTTP_PEERS` says where they are installed.
#![cfg(unix)]
#![expect(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "a test may panic, and reads better without `&json!`"
)]

mod kit;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use host::{Blocked, CallError, Host, Kind, Made, Output, Records, Settings, Tool, Warmth};
use kit::call_of;
use manifest::document::{self, Options};
use manifest::model::Trust;
use policy::{Consent, Grant, GrantKind, Grants, Policy};
use sandbox::Launcher;
use serde_json::{Value, json};
use vault::{FileVault, Owner, Place, Secret};

fn host_of(settings: &Settings, vault: &Arc<FileVault>, records: &Arc<Records>) -> Host {
    let launcher = Launcher::start(env!("CARGO_BIN_EXE_host-launcher").as_ref()).unwrap();
    Host::new(settings.clone(), launcher, Arc::clone(vault), Arc::clone(records))
}

/// A server, and a host that may reach it.
struct Site {
    server: Child,
    origin: String,
    host: Host,
    records: Arc<Records>,
    settings: Settings,
    vault: Arc<FileVault>,
    grants: Grants,
    runtime: tokio::runtime::Runtime,
}

const VARIABLES: [(&str, &str); 10] = [
    ("DEMO_KEY", "s3cret-key"),
    ("ME_CLIENT_ID", "me"),
    ("ME_CLIENT_SECRET", "p@ss:w rd"),
    ("ME_REFRESH_TOKEN", "r0"),
    ("POSTER_CLIENT_ID", "poster"),
    ("POSTER_CLIENT_SECRET", "posted"),
    ("BAD_CLIENT_ID", "me"),
    ("BAD_CLIENT_SECRET", "wrong"),
    ("PUBLIC_CLIENT_ID", "public"),
    ("SECRET_OF_THE_OWNER", "not for tools"),
];

impl Site {
    /// Our own API.
    fn open() -> Self {
        Self::serving("server.py", None)
    }

    /// Servers we did not write, where they are installed.
    fn peers() -> Option<Self> {
        let installed = std::env::var("HAFT_HTTP_PEERS").ok()?;
        Some(Self::serving("peers.py", Some(&installed)))
    }

    fn serving(script: &str, installed: Option<&str>) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api").join(script);
        let mut command = Command::new("python3");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.envs(installed.map(|folder| ("PYTHONPATH", folder)));
        let mut server = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let port = port.trim();
        let origin = format!("http://127.0.0.1:{port}");
        let mut environment: Vec<(String, String)> =
            VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for prefix in ["ME", "POSTER", "BAD", "PUBLIC"] {
            environment.push((format!("{prefix}_TOKEN_URL"), format!("{origin}/token")));
        }
        environment
            .push(("FAR_TOKEN_URL".to_owned(), "https://auth.example.invalid/token".to_owned()));
        environment.extend([("basic", "b s3cret:&"), ("post", "p s3cret")].into_iter().flat_map(
            |(id, secret)| {
                let name = id.to_uppercase();
                [
                    (format!("{name}_TOKEN_URL"), format!("{origin}/oauth/token")),
                    (format!("{name}_CLIENT_ID"), id.to_owned()),
                    (format!("{name}_CLIENT_SECRET"), secret.to_owned()),
                    (format!("{name}_REFRESH_TOKEN"), "first".to_owned()),
                ]
            },
        ));
        let own = environment.iter().map(|(name, _)| name.clone());
        let granted = own.filter(|name| name != "SECRET_OF_THE_OWNER");
        let grants = granted
            .map(|value| Grant { kind: GrantKind::Environment, value })
            .chain([Grant { kind: GrantKind::Host, value: format!("127.0.0.1:{port}") }])
            .collect();
        let (home, vault, records) = kit::stores();
        let settings = Settings {
            policy: Policy::default(),
            home: home.clone(),
            user_home: None,
            search_path: "/usr/bin:/bin".into(),
            environment,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let host = host_of(&settings, &vault, &records);
        Self { server, origin, host, records, settings, vault, grants, runtime }
    }

    /// What another program with the same home would be.
    fn another_host(&self) -> Host {
        host_of(&self.settings, &self.vault, &self.records)
    }

    /// An mcpkg tool of this site.
    fn mcpkg(&self, method: &str, path: &str, more: Value) -> Tool {
        let mut manifest = json!({
            "toolId": "demo.web.tool",
            "name": "Demo",
            "version": "1.0.0",
            "description": "Asks a server.",
            "capabilities": ["demo"],
            "endpoint": { "type": "http", "method": method, "url": format!("{}{path}", self.origin), "timeoutMs": 20000 },
            "input_schema": { "type": "object" },
            "output_schema": {},
        });
        if let (Value::Object(members), Value::Object(more)) = (&mut manifest, more) {
            members.extend(more);
        }
        tool(&manifest)
    }

    /// An install-manifest of this site with one action.
    fn manifest(&self, invocation: &Value, more: Value) -> Tool {
        let mut action = json!({
            "name": "ask",
            "summary": "Asks a server.",
            "invocation": invocation,
            "input": {
                "type": "object",
                "properties": { "id": { "type": ["string", "integer"] } },
                "additionalProperties": true,
            },
            "output": { "format": "json" },
            "side_effects": "read",
        });
        action["invocation"]["kind"] = "http".into();
        if let (Value::Object(members), Value::Object(more)) = (&mut action, more) {
            members.extend(more);
        }
        tool(&json!({
            "manifest_version": "0.2",
            "tool": {
                "id": "demo-tool",
                "version": "1.0.0",
                "name": "Demo Tool",
                "summary": "Asks a server.",
                "homepage": "https://example.com/demo-tool",
            },
            "runtime": {
                "kind": "mcp-http",
                "install": {
                    "method": "url",
                    "url": "https://example.com/demo-tool/demo",
                    "sha256": "5f".repeat(32),
                },
                "endpoint_url": self.origin,
            },
            "env": [{ "name": "DEMO_KEY", "required": false, "secret": true, "prompt": "The key." }],
            "actions": [action],
            "smoke": { "kind": "http", "url": "https://example.com/", "success": { "http_status": 200 } },
            "kill_switch": { "kind": "manual", "instructions_url": "https://example.com/" },
        }))
    }

    fn call(&self, tool: &Tool, input: Value) -> (Result<Output, CallError>, Vec<Blocked>) {
        let made = self.make(tool, &input, &self.grants);
        (made.reply, made.blocked)
    }

    fn make(&self, tool: &Tool, input: &Value, grants: &Grants) -> Made {
        let call = call_of(tool, input);
        self.runtime.block_on(async {
            kit::set_grants(&self.records, &tool.package.canonical_id(), grants).await;
            self.host.call(tool, &call, Warmth::Cold).await
        })
    }

    fn ok(&self, tool: &Tool, input: Value) -> Output {
        let (reply, blocked) = self.call(tool, input);
        assert_eq!(blocked, []);
        reply.unwrap()
    }

    fn json(&self, tool: &Tool, input: Value) -> Value {
        self.ok(tool, input).into_value()
    }

    fn error(&self, tool: &Tool, input: Value) -> CallError {
        self.call(tool, input).0.unwrap_err()
    }

    /// How often something was counted by the server.
    fn count(&self, key: &str) -> u64 {
        let counted = self.json(&self.mcpkg("GET", "/count", json!({})), json!({ "key": key }));
        counted["count"].as_u64().unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

fn tool(manifest: &Value) -> Tool {
    let text = manifest.to_string();
    let (_, mut packages) = document::read(text.as_bytes(), &Options::default())
        .unwrap_or_else(|report| panic!("{report:?}"));
    let package = packages.remove(0);
    Tool {
        package,
        root: "/usr/share".into(),
        place: "/usr/share".into(),
        consent: Consent::ByPath,
        source_trust: Trust::Local,
    }
}

fn auth(kind: &str, names: &[&str]) -> Value {
    json!({ "auth": { "type": kind, "scopes": ["read", "write"], "configHints": { "env": names } } })
}

#[test]
fn the_input_is_a_body_or_a_query_as_the_method_has_it() {
    let site = Site::open();
    let input = json!({ "text": "a b&c=d", "n": 3, "on": true, "tags": ["x", "y"], "deep": { "k": [1] }, "gone": null });
    for method in ["POST", "PUT", "PATCH"] {
        let said = site.json(&site.mcpkg(method, "/echo?v=1", json!({})), input.clone());
        assert_eq!((&said["method"], &said["body"]), (&json!(method), &input));
        assert_eq!(said["query"], json!([["v", "1"]]));
        assert_eq!(said["headers"]["content-type"], "application/json");
    }
    for method in ["GET", "DELETE", "OPTIONS"] {
        let said = site.json(&site.mcpkg(method, "/echo?v=1", json!({})), input.clone());
        assert_eq!((&said["method"], &said["body"]), (&json!(method), &json!(null)));
        let pairs = json!([
            ["v", "1"],
            ["text", "a b&c=d"],
            ["n", "3"],
            ["on", "true"],
            ["tags", "x"],
            ["tags", "y"],
            ["deep", "{\"k\":[1]}"]
        ]);
        assert_eq!(said["query"], pairs);
    }
    assert_eq!(site.json(&site.mcpkg("HEAD", "/echo", json!({})), input), json!(null));
}

#[test]
fn an_action_fills_its_path_its_headers_and_its_body() {
    let site = Site::open();
    let invocation = json!({
        "method": "POST",
        "path": "/echo/items/${input.id}/${input.who.name}",
        "headers": {
            "Authorization": "Bearer ${env.DEMO_KEY}",
            "X-Trace": "t-${input.trace}",
            "X-Left-Out": "${input.gone}",
        },
    });
    let demo = site.manifest(&invocation, json!({
        "input": {
            "type": "object",
            "properties": {
                "id": { "type": "string" }, "trace": { "type": "integer" }, "gone": { "type": "string" },
                "who": { "type": "object", "properties": { "name": {}, "age": {} } }, "text": { "type": "string", "default": "by default" },
            },
        },
    }));
    let input = json!({ "id": "a/../b?c#d", "who": { "name": "x y", "age": 3 }, "trace": 7 });
    let said = site.json(&demo, input);
    assert_eq!(said["path"], "/echo/items/a%2F..%2Fb%3Fc%23d/x%20y");
    assert_eq!(said["headers"]["authorization"], "Bearer [secret DEMO_KEY]");
    assert_eq!(
        (&said["headers"]["x-trace"], &said["headers"]["x-left-out"]),
        (&json!("t-7"), &json!(null))
    );
    assert_eq!(said["body"], json!({ "who": { "age": 3 }, "trace": 7, "text": "by default" }));
    let get = site.manifest(&json!({ "method": "GET", "path": "/echo/${input.id}" }), json!({}));
    let said = site.json(&get, json!({ "id": 5, "q": "x" }));
    assert_eq!((&said["path"], &said["query"]), (&json!("/echo/5"), &json!([["q", "x"]])));
    for id in ["..", "."] {
        assert_eq!(site.error(&get, json!({ "id": id })).kind, Kind::BadInput, "{id}");
    }
    let odd = site.error(&demo, json!({ "id": "a\nb", "who": { "name": "x" } }));
    assert_eq!(odd.kind, Kind::BadInput);
    let smuggling = site.manifest(
        &json!({ "method": "GET", "path": "/echo", "headers": { "Host": "evil.test" } }),
        json!({}),
    );
    assert_eq!(site.error(&smuggling, json!({})).kind, Kind::Denied);
}

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
    // What was not granted is not sent, whatever the package lists.
    for (kind, name) in [("bearer", "UNSET"), ("api_key", "SECRET_OF_THE_OWNER")] {
        let error = site.error(&site.mcpkg("GET", "/echo", auth(kind, &[name])), json!({}));
        assert_eq!(error.kind, Kind::MissingInput);
        assert_eq!(error.message, format!("Missing required secret: {name}"));
        assert_eq!(error.details["name"], name);
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
    for url in ["http://api.example.invalid/x", "http://192.0.2.1/x"] {
        let error = at(url, auth("bearer", &["DEMO_KEY"]));
        assert_eq!(error.kind, Kind::Denied);
        assert!(error.message.contains("over plain `http`"), "{error}");
        let without = at(url, json!({}));
        assert!(!without.message.contains("over plain `http`"), "{without}");
    }
    let invocation =
        json!({ "method": "GET", "path": "/x", "headers": { "X-Key": "${env.DEMO_KEY}" } });
    let mut action = site.manifest(&invocation, json!({}));
    let manifest::model::Entry::McpHttp { url } = &mut action.package.implementations[0].entry
    else {
        panic!("another kind of entry")
    };
    "http://192.0.2.1".clone_into(url);
    let error = site.error(&action, json!({}));
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

#[test]
fn the_newest_refresh_token_is_kept_for_the_next_program() {
    let mut site = Site::open();
    let names = ["ME_TOKEN_URL", "ME_CLIENT_ID", "ME_CLIENT_SECRET", "ME_REFRESH_TOKEN"];
    let owner = site.mcpkg("GET", "/private", auth("oauth2", &names));
    // What is granted from outside cannot be replaced, so this one is in the vault.
    let is_kept = |grant: &Grant| grant.value == "ME_REFRESH_TOKEN";
    site.grants = site.grants.iter().filter(|one| !is_kept(one)).cloned().collect();
    let place = Owner::Package(owner.package.canonical_id());
    let place = Place::new(place, "ME_REFRESH_TOKEN").unwrap();
    site.vault.set(&place, &Secret::new("r0".to_owned()).unwrap()).unwrap();
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
    let names = ["ME_TOKEN_URL", "ME_CLIENT_ID", "ME_CLIENT_SECRET", "ME_REFRESH_TOKEN"];
    let owner = site.mcpkg("GET", "/private", auth("oauth2", &names));
    let is_kept = |grant: &Grant| grant.value == "ME_REFRESH_TOKEN";
    site.grants = site.grants.iter().filter(|one| !is_kept(one)).cloned().collect();
    let place = Owner::Package(owner.package.canonical_id());
    let place = Place::new(place, "ME_REFRESH_TOKEN").unwrap();
    site.vault.set(&place, &Secret::new("r0-slow".to_owned()).unwrap()).unwrap();
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

/// A tool whose refresh token lies in the vault, where a token endpoint takes two seconds to answer it.
fn slow_refresh(site: &mut Site, more: Value) -> (Tool, Place) {
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
    site.vault.set(&place, &Secret::new("r0-slow".to_owned()).unwrap()).unwrap();
    (owner, place)
}

#[test]
fn what_the_owner_does_while_a_token_is_fetched_is_not_undone() {
    for theirs in [None, Some("r-of-the-owner")] {
        let mut site = Site::open();
        let (owner, place) = slow_refresh(&mut site, json!({}));
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
    let (owner, place) = slow_refresh(&mut site, json!({ "endpoint": endpoint }));
    let began = Instant::now();
    assert_eq!(site.error(&owner, json!({})).kind, Kind::TimedOut);
    assert!(began.elapsed() < Duration::from_millis(1800), "{:?}", began.elapsed());
    site.runtime.block_on(site.host.settle());
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
        json!({ "endpoint": { "type": "http", "method": "GET", "url": "http://127.0.0.1:9/" } }),
    );
    let grant = Grant { kind: GrantKind::Host, value: "127.0.0.1:9".to_owned() };
    let grants = [grant].into_iter().collect();
    let error = site.make(&nobody, &json!({}), &grants).reply.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.message.starts_with("no connection was made: "), "{}", error.message);
}

#[test]
fn a_plan_shows_the_request_and_no_secret() {
    let site = Site::open();
    let shown = |tool: &Tool, input: Value| {
        let plan = site.runtime.block_on(async {
            kit::set_grants(&site.records, &tool.package.canonical_id(), &site.grants).await;
            site.host.plan(tool, &call_of(tool, &input)).await.unwrap()
        });
        assert!(!format!("{plan:?}").contains("s3cret-key"));
        plan.to_value()
    };
    let invocation = json!({
        "method": "GET",
        "path": "/echo/${input.id}",
        "headers": { "Authorization": "Bearer ${env.DEMO_KEY}" },
    });
    let plan = shown(
        &site.manifest(&invocation, json!({})),
        json!({ "id": "own-words", "q": "own-words" }),
    );
    assert_eq!((&plan["decision"], &plan["method"]), (&json!("allowed"), &json!("GET")));
    assert_eq!(plan["url"], format!("{}/echo/${{input.id}}?q=…", site.origin));
    assert_eq!(plan["headers"], json!(["accept", "authorization"]));
    let text = plan.to_string();
    assert!(!text.contains("s3cret-key") && !text.contains("own-words"), "{text}");
    let names = ["ME_TOKEN_URL", "ME_CLIENT_ID", "ME_CLIENT_SECRET"];
    let plan = shown(&site.mcpkg("POST", "/echo", auth("oauth2", &names)), json!({}));
    assert_eq!(plan["headers"], json!(["accept", "content-type", "authorization"]));
    assert!(!plan.to_string().contains("p@ss"), "{plan}");
}

#[test]
fn servers_of_others_understand_us() {
    let Some(site) = Site::peers() else { return };
    let said = site.json(&site.mcpkg("POST", "/anything", json!({})), json!({ "a": [1, "ü"] }));
    assert_eq!(said["json"], json!({ "a": [1, "ü"] }));
    let said =
        site.json(&site.mcpkg("GET", "/get", json!({})), json!({ "a": ["x", "y"], "b": "ü &" }));
    assert_eq!(said["args"], json!({ "a": ["x", "y"], "b": "ü &" }));
    let bearer = site.mcpkg("GET", "/bearer", auth("bearer", &["DEMO_KEY"]));
    assert_eq!(site.json(&bearer, json!({}))["token"], "[secret DEMO_KEY]");
    assert_eq!(
        site.error(&site.mcpkg("GET", "/bearer", json!({})), json!({})).details["status"],
        401
    );
    let chunked = site.manifest(
        &json!({ "method": "GET", "path": "/stream/3" }),
        json!({ "output": { "format": "ndjson-stream" } }),
    );
    let Output::Records(records) = site.ok(&chunked, json!({})) else { panic!("no records") };
    assert_eq!(records.len(), 3);
    let image = site.manifest(
        &json!({ "method": "GET", "path": "/image/png" }),
        json!({ "output": { "format": "binary" } }),
    );
    let Output::Binary { bytes, media_type } = site.ok(&image, json!({})) else {
        panic!("no bytes")
    };
    assert!(bytes.starts_with(b"\x89PNG") && media_type.as_deref() == Some("image/png"));
    let redirected = site.json(&site.mcpkg("GET", "/redirect/3", json!({})), json!({}));
    assert!(redirected["url"].as_str().unwrap().ends_with("/get"), "{redirected}");
    assert_eq!(
        site.error(&site.mcpkg("GET", "/redirect/9", json!({})), json!({})).kind,
        Kind::Failed
    );
    assert_eq!(site.error(&site.mcpkg("GET", "/gzip", json!({})), json!({})).kind, Kind::BadOutput);
    assert_eq!(
        site.error(&site.mcpkg("GET", "/status/418", json!({})), json!({})).details["status"],
        418
    );
    for (prefix, more) in [("BASIC", None), ("POST", None), ("BASIC", Some("BASIC_REFRESH_TOKEN"))]
    {
        let names =
            ["TOKEN_URL", "CLIENT_ID", "CLIENT_SECRET"].map(|role| format!("{prefix}_{role}"));
        let names: Vec<&str> = names.iter().map(String::as_str).chain(more).collect();
        let private = site.mcpkg("GET", "/oauth/private", auth("oauth2", &names));
        assert_eq!(site.json(&private, json!({})), json!({ "message": "private" }), "{names:?}");
    }
}
