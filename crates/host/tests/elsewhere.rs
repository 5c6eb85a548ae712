//! Secrets that others keep: a Vault server, and the desktop's keyring.
//!
//! A Vault server is not among the tools of the tests, so a small server of ours answers as one does.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use host::secrets::server::{TOKEN_NAME, TOKEN_OWNER};
use host::{CallError, Host, Kind, Settings, Warmth};
use policy::Policy;
use sandbox::Launcher;
use serde_json::{Value, json};
use vault::{Owner, Place, Secret};

/// A server that keeps `s3cret-value` in both versions of the store, and what it was asked: the lines of each head.
fn server() -> (u16, Arc<Mutex<Vec<Vec<String>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::<Mutex<Vec<Vec<String>>>>::default();
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
            let has = |text: &str| head.iter().any(|line| line.eq_ignore_ascii_case(text));
            let path = head[0].split(' ').nth(1).unwrap();
            let secret = json!({ "key": "s3cret-value", "number": 7 });
            let (status, body) = match path {
                _ if !has("x-vault-token: the-token") => {
                    ("403 Forbidden", json!({ "errors": ["permission denied"] }))
                }
                "/v1/kv/data/acme/weather" => {
                    let metadata = json!({ "version": 2, "deletion_time": "", "destroyed": false });
                    ("200 OK", json!({ "data": { "data": secret, "metadata": metadata } }))
                }
                "/v1/old/acme/weather" => ("200 OK", json!({ "data": secret })),
                "/v1/kv/data/moved" => ("307 Temporary Redirect", json!({})),
                _ => ("404 Not Found", json!({ "errors": [] })),
            };
            let body = body.to_string();
            seen.lock().unwrap().push(head);
            let _ = write!(
                &stream,
                "HTTP/1.1 {status}\r\nlocation: /v1/kv/data/acme/weather\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (port, asked)
}

/// A host with this policy, whose own vault has the token.
fn host(policy: &str, token: Option<&str>) -> Host {
    let (home, vault, records) = kit::stores();
    if let Some(token) = token {
        let place = Place::new(Owner::Package(TOKEN_OWNER.to_owned()), TOKEN_NAME).unwrap();
        vault.set(&place, &Secret::new(token.to_owned()).unwrap()).unwrap();
    }
    let settings = Settings {
        policy: Policy::parse(policy).unwrap(),
        user_home: Some(home.clone()),
        home,
        search_path: "/usr/bin:/bin".into(),
        environment: Vec::new(),
    };
    let launcher = Launcher::start(Path::new(env!("CARGO_BIN_EXE_host-launcher"))).unwrap();
    Host::new(settings, launcher, vault, records)
}

/// What a tool says that is given the secret of a reference.
async fn told(host: &Host, reference: &str) -> Result<Value, CallError> {
    let folder = kit::python_tool(
        "import os\ndef run(_):\n    return [os.environ['KEY'], len(os.environ['KEY'])]\n",
    );
    let path = folder.path().join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    manifest["secrets"] = json!([{ "name": "KEY", "ref": reference }]);
    std::fs::write(&path, manifest.to_string()).unwrap();
    let tool = folder.tool("manifest.json");
    let (reply, _) = kit::call(host, &tool, &json!({}), Warmth::Cold).await;
    reply.map(host::Output::into_value)
}

fn policy(port: u16, more: &str) -> String {
    format!(
        r#"
[secrets]
references = ["vault://kv/acme/weather#key", "vault://kv/acme/weather#gone", "vault://kv/acme/weather#number",
    "vault://kv/gone#key", "vault://kv/moved#key", "vault://old/acme/weather#key", "keyring://haft-test/me"]
vault_address = "http://127.0.0.1:{port}"
{more}
"#
    )
}

#[tokio::test]
async fn a_vault_server_is_asked_where_the_policy_names_the_reference() {
    let (port, asked) = server();
    let host = host(&policy(port, "vault_namespace = \"team\""), Some("the-token"));
    let given = told(&host, "vault://kv/acme/weather#key").await.unwrap();
    assert_eq!(given, json!(["[secret KEY]", "s3cret-value".len()]));
    assert!(asked.lock().unwrap()[0].iter().any(|line| line == "x-vault-namespace: team"));
    let before = asked.lock().unwrap().len();
    let error = told(&host, "vault://kv/acme/other#key").await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied);
    assert!(error.message.contains("[secrets] references"), "{error}");
    assert_eq!(asked.lock().unwrap().len(), before, "nobody was asked");
}

#[tokio::test]
async fn the_first_version_of_the_store_is_read_and_the_token_may_be_in_a_file() {
    let (port, _) = server();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "the-token\n").unwrap();
    let more = format!("vault_version = 1\nvault_token_file = \"{}\"", file.path().display());
    let host = host(&policy(port, &more), None);
    let given = told(&host, "vault://old/acme/weather#key").await.unwrap();
    assert_eq!(given[1], "s3cret-value".len());
}

#[tokio::test]
async fn what_a_vault_server_does_not_give_is_told_and_the_tool_does_not_run() {
    let (port, asked) = server();
    let host_with = |token| host(&policy(port, ""), token);
    let known = host_with(Some("the-token"));
    for (reference, kind, words) in [
        ("vault://kv/gone#key", Kind::MissingInput, "has no such entry"),
        ("vault://kv/acme/weather#gone", Kind::MissingInput, "no field `gone`"),
        ("vault://kv/acme/weather#number", Kind::Unavailable, "no text"),
        ("vault://kv/moved#key", Kind::Unavailable, "answered 307"),
    ] {
        let error = told(&known, reference).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(words) && error.message.contains(reference), "{error}");
    }
    assert_eq!(asked.lock().unwrap().len(), 4, "no redirect was followed");
    let reference = "vault://kv/acme/weather#key";
    let stranger = told(&host_with(Some("another")), reference).await.unwrap_err();
    assert!(stranger.message.contains("refused the token"), "{stranger}");
    let nobody = told(&host_with(None), reference).await.unwrap_err();
    assert_eq!(nobody.kind, Kind::MissingInput);
    assert!(nobody.message.contains("no token"), "{nobody}");
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let silent = host(&policy(gone, ""), Some("the-token"));
    assert_eq!(told(&silent, reference).await.unwrap_err().kind, Kind::Unavailable);
    for address in ["http://192.0.2.1", "ftp://127.0.0.1", "nonsense"] {
        let policy =
            format!("[secrets]\nreferences = [\"{reference}\"]\nvault_address = \"{address}\"\n");
        let error = told(&host(&policy, Some("the-token")), reference).await.unwrap_err();
        assert_eq!(error.kind, Kind::Unavailable, "{address}: {error}");
        assert!(error.message.contains(address), "{error}");
    }
    let without = "[secrets]\nreferences = [\"vault://kv/acme/weather#key\"]\n";
    let error = told(&host(without, None), reference).await.unwrap_err();
    assert!(error.message.contains("vault_address"), "{error}");
}

#[tokio::test]
async fn explaining_a_call_asks_nobody() {
    let (port, asked) = server();
    let host = host(&policy(port, ""), Some("the-token"));
    let folder = kit::python_tool("def run(_): return 1\n");
    let path = folder.path().join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    manifest["secrets"] = json!([{ "name": "KEY", "ref": "vault://kv/acme/weather#key" }]);
    std::fs::write(&path, manifest.to_string()).unwrap();
    let tool = folder.tool("manifest.json");
    host.plan(&tool, &kit::call_of(&tool, &json!({}))).await.unwrap();
    assert!(asked.lock().unwrap().is_empty());
}

#[cfg(not(feature = "keyring"))]
#[tokio::test]
async fn a_build_without_a_keyring_says_so() {
    let host = host(&policy(1, ""), None);
    let error = told(&host, "keyring://haft-test/me").await.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.message.contains("knows no keyring"), "{error}");
}

#[cfg(feature = "keyring")]
mod keyring {
    use testkit::desktop::{KEYRING, in_session};

    use super::*;

    #[test]
    fn the_keyring_is_asked_where_the_policy_names_the_reference() {
        let kept =
            "printf s3cret-value | secret-tool store --label=x service haft-test username me;";
        in_session("keyring::a_child_asks", &format!("{KEYRING} {kept}"));
    }

    #[test]
    fn a_session_without_a_keyring_is_an_error() {
        let nowhere = "export DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere;";
        in_session("keyring::a_child_asks_nobody", nowhere);
    }

    #[tokio::test]
    #[ignore = "runs as a child of another test"]
    async fn a_child_asks() {
        let host = host(&policy(1, ""), None);
        let given = told(&host, "keyring://haft-test/me").await.unwrap();
        assert_eq!(given, json!(["[secret KEY]", "s3cret-value".len()]));
        let error = told(&host, "keyring://haft-test/you").await.unwrap_err();
        assert_eq!(error.kind, Kind::Denied);
    }

    #[tokio::test]
    #[ignore = "runs as a child of another test"]
    async fn a_child_asks_nobody() {
        let host = host(&policy(1, ""), None);
        let error = told(&host, "keyring://haft-test/me").await.unwrap_err();
        assert_eq!(error.kind, Kind::Unavailable);
        assert!(error.message.contains("failed to use the desktop's keyring"), "{error}");
    }
}
