//! A Vault server, played by a few lines that answer as its documented API does.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use common::secret;
use vault::kv::{Answer, Fetch, KvError, MAX_ANSWER, Settings, VaultKv, Version};
use zeroize::Zeroizing;

/// One GET over a plain connection.
struct Plain;

impl Fetch for Plain {
    type Error = io::Error;

    async fn get(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        limit: usize,
    ) -> Result<Answer, io::Error> {
        let rest = url.strip_prefix("http://").unwrap();
        let (authority, path) = rest.split_once('/').unwrap();
        let mut stream = TcpStream::connect(authority)?;
        let mut request =
            format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{request}\r\n").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
        let body = answer.split_off(end + 4);
        if body.len() > limit {
            return Err(io::Error::other("the answer is too long"));
        }
        Ok(Answer { status, body: Zeroizing::new(body) })
    }
}

/// A server that knows a few entries, and notes what it was asked.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &notes);
            }
        });
        Self { address, asked }
    }

    fn store(&self, token: &str, version: Version) -> VaultKv<Plain> {
        let settings = Settings {
            address: self.address.clone(),
            token: secret(token),
            namespace: Some("team".to_owned()),
            version,
        };
        VaultKv::new(settings, Plain).unwrap()
    }
}

fn serve(mut stream: TcpStream, notes: &Mutex<Vec<String>>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        request.extend(byte);
    }
    let request = String::from_utf8(request).unwrap();
    let path = request.split(' ').nth(1).unwrap().to_owned();
    let (status, body) = if request.contains("X-Vault-Token: s.good\r\n") {
        answer(&path)
    } else {
        ("403 Forbidden", r#"{"errors":["permission denied"]}"#.to_owned())
    };
    notes.lock().unwrap().push(request);
    let answer = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n\r\n{body}");
    // A client that has read enough may be gone.
    let _ = stream.write_all(answer.as_bytes());
}

fn answer(path: &str) -> (&'static str, String) {
    let around = |data: &str| {
        format!(
            r#"{{"request_id":"1","lease_id":"","renewable":false,"lease_duration":0,"data":{data},
            "wrap_info":null,"warnings":null,"auth":null,"mount_type":"kv"}}"#
        )
    };
    let metadata = r#""metadata":{"created_time":"2026-01-01T00:00:00Z","custom_metadata":null,"deletion_time":"","destroyed":false,"version":3}"#;
    match path {
        "/v1/kv/data/team/github" => {
            ("200 OK", around(&format!(r#"{{"data":{{"token":"v2 value","n":1}},{metadata}}}"#)))
        }
        "/v1/kv/team/github" => ("200 OK", around(r#"{"token":"v1 value"}"#)),
        // A version that was deleted: there is still something to say about it.
        "/v1/kv/data/deleted" => {
            ("404 Not Found", around(&format!(r#"{{"data":null,{metadata}}}"#)))
        }
        "/v1/kv/data/elsewhere" => ("307 Temporary Redirect", String::new()),
        "/v1/kv/data/sealed" => {
            ("503 Service Unavailable", r#"{"errors":["Vault is sealed"]}"#.into())
        }
        "/v1/kv/data/long" => ("200 OK", " ".repeat(MAX_ANSWER + 1)),
        "/v1/kv/data/odd%20name" => {
            ("200 OK", around(&format!(r#"{{"data":{{"a":"odd"}},{metadata}}}"#)))
        }
        _ => ("404 Not Found", r#"{"errors":[]}"#.to_owned()),
    }
}

#[tokio::test]
async fn a_field_is_read_from_either_version() {
    let server = Server::start();
    let v2 = server.store("s.good", Version::V2);
    assert_eq!(v2.get("kv", "team/github", "token").await.unwrap().expose(), "v2 value");
    assert_eq!(v2.get("kv", "odd name", "a").await.unwrap().expose(), "odd");
    let v1 = server.store("s.good", Version::V1);
    assert_eq!(v1.get("kv", "team/github", "token").await.unwrap().expose(), "v1 value");
    let asked = server.asked.lock().unwrap();
    for request in asked.iter() {
        assert!(request.contains("X-Vault-Namespace: team\r\n"), "{request}");
        assert!(request.contains("X-Vault-Request: true\r\n"), "{request}");
        assert!(!request.lines().next().unwrap().contains("s.good"), "{request}");
    }
}

#[tokio::test]
async fn every_refusal_says_what_it_is_and_none_shows_the_token() {
    let server = Server::start();
    let store = server.store("s.good", Version::V2);
    let refused = async |path: &str, field: &str| store.get("kv", path, field).await.unwrap_err();
    assert!(matches!(refused("team/github", "other").await, KvError::NoField(_)));
    assert!(matches!(refused("team/github", "n").await, KvError::NotText(_)));
    assert!(matches!(refused("missing", "token").await, KvError::Missing));
    assert!(matches!(refused("deleted", "token").await, KvError::Missing));
    assert!(matches!(refused("elsewhere", "token").await, KvError::Status(307)));
    assert!(matches!(refused("sealed", "token").await, KvError::Status(503)));
    assert!(matches!(refused("long", "token").await, KvError::Fetch(_)));
    let stranger = server.store("s.stolen", Version::V2);
    let denied = stranger.get("kv", "team/github", "token").await.unwrap_err();
    assert!(matches!(denied, KvError::Denied));
    assert!(
        !format!(
            "{denied} {denied:?} {:?}",
            server.store("s.good", Version::V2).get("kv", "x", "y").await
        )
        .contains("s.")
    );
}

#[test]
fn what_cannot_be_sent_safely_is_refused_at_once() {
    let new = |address: &str, token: &str, namespace: Option<&str>| {
        let settings = Settings {
            address: address.to_owned(),
            token: secret(token),
            namespace: namespace.map(str::to_owned),
            version: Version::default(),
        };
        VaultKv::new(settings, Plain).map(drop)
    };
    assert!(new("https://vault.example.com", "token", None).is_ok());
    assert!(matches!(new("http://vault.example.com", "token", None), Err(KvError::Address(_))));
    assert!(matches!(new("https://a", "to\r\nken", None), Err(KvError::Header("token"))));
    assert!(matches!(new("https://a", "token", Some("a b")), Err(KvError::Header("namespace"))));
}
