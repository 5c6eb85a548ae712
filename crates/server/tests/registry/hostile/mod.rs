//! Requests over a bare socket that nobody well-meaning sends: each is refused in the error model or cut off, and
//! the registry goes on.
//!
//! | module | who asks |
//! |---|---|
//! | `heads` | whose request line or head cannot be read, or leads elsewhere |
//! | `bodies` | who sends what is no package |
//! | `slow` | who sends or takes nothing for a while |
//! | `often` | who asks or guesses without end |
//! | `claimed` | who says in a header what only a trusted proxy says |

mod bodies;
mod claimed;
mod heads;
mod often;
mod slow;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::suite::world::World;
use serde_json::Value;
use server::web::{Patience, router, serve_with};
use server::{Blobs, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A registry on a socket, with little patience.
struct Served {
    world: World,
    address: SocketAddr,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// An answer as it came.
#[derive(Debug)]
struct Raw {
    status: u16,
    head: String,
    body: String,
}

impl Raw {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Checks that it is this refusal, in the error model.
    fn refuses(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        let body: Value = serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"));
        let error = &body["error"];
        assert!(error["code"].is_string() && error["message"].is_string(), "{self:?}");
        assert!(error["details"].is_object(), "{self:?}");
        assert!(self.head.to_lowercase().contains("content-type: application/json"), "{self:?}");
    }
}

async fn served(change: impl FnOnce(&mut Settings)) -> Served {
    served_at("127.0.0.1:0", change).await
}

async fn served_at(place: &str, change: impl FnOnce(&mut Settings)) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("registry.db").display().to_string();
    let blobs = Blobs::folder(&folder.path().join("blobs")).unwrap();
    let mut world = World::new(database, blobs, folder).await;
    world.set(change).await;
    let listener = TcpListener::bind(place).await.unwrap();
    let address = ([127, 0, 0, 1], listener.local_addr().unwrap().port()).into();
    let patience = Patience {
        head: Duration::from_millis(400),
        stalled: Duration::from_millis(400),
        idle: Duration::from_millis(400),
        ..Patience::default()
    };
    let app = router(Arc::clone(&world.registry));
    let proxies = world.registry.settings.proxies.clone();
    let serving = tokio::spawn(async move {
        serve_with(listener, app, std::future::pending(), patience, &proxies).await;
    });
    Served { world, address, serving }
}

impl Served {
    async fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // Whoever is refused half-way may find the door closed.
        let _may_be_closed = stream.write_all(bytes).await;
        read_all(&mut stream).await
    }

    async fn ask(&self, bytes: impl AsRef<[u8]>) -> Raw {
        Raw::read(&self.send(bytes.as_ref()).await)
    }

    async fn still_answers(&self) {
        let answer = self.ask(get("/v1/tools", "")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    fn post(&self, fields: &str, body: &[u8]) -> Vec<u8> {
        let token = &self.world.token;
        let head = format!(
            "POST /v1/tools HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{fields}\r\n"
        );
        [head.as_bytes(), body].concat()
    }
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let read = tokio::time::timeout(Duration::from_secs(10), reading).await;
    // A connection that is reset has said all it had to say.
    let _reset = read.expect("it is answered or closed");
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n")
}
