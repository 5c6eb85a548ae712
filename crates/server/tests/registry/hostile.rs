//! Requests over a bare socket that nobody well-meaning sends: each is refused in the error model or cut off, and
//! the registry goes on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::suite::packages::{bundle, mcpkg};
use crate::suite::world::World;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use server::settings::{Limits, Reading};
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

#[tokio::test(flavor = "multi_thread")]
async fn broken_heads_are_refused_in_the_error_model() {
    let served = served(|_| {}).await;
    let long = "a".repeat(100_000);
    for (request, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET\r\n\r\n".to_owned(), 400),
        ("GET /v1/tools HTTP/9.9\r\n\r\n".to_owned(), 400),
        ("GET /v1/tools HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n".to_owned(), 400),
        ("GET /v1/tools HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n".to_owned(), 400),
        ("GET /v1/to\0ols HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        (
            "GET /v1/tools HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"
                .to_owned(),
            400,
        ),
        ("GET /v1/tools HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".to_owned(), 400),
        ("POST /v1/tools HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(), 400),
        ("POST /v1/tools HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), 400),
        (get("/v1/tools", &format!("X: {long}\r\n")), 431),
        (get(&format!("/{long}"), ""), 414),
        (get("/v1/tools", &"X: y\r\n".repeat(2_000)), 431),
        ("GET /v1/tools HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(), 400),
        (
            "GET /v1/tools HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n".to_owned(),
            400,
        ),
    ] {
        let answer = served.ask(&request).await;
        // A head that is too long may be told as either.
        let status = if answer.status == 431 && status == 414 { 431 } else { status };
        answer.refuses(status);
        assert_eq!(answer.head.matches("HTTP/1.").count(), 1, "{answer:?}");
    }
    served.still_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_and_absolute_forms_are_answered() {
    let served = served(|_| {}).await;
    for request in [
        "GET /v1/tools HTTP/1.0\r\n\r\n",
        "GET http://registry.example/v1/tools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /v1/tools HTTP/1.1\r\nhost:x\r\nconnection:close\r\n\r\n",
        "HEAD /v1/tools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ] {
        assert_eq!(served.ask(request).await.status, 200, "{request}");
    }
    for (request, status) in [
        ("OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
        ("CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
        ("BREW /v1/tools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405),
    ] {
        let answer = served.ask(request).await;
        answer.refuses(status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_smuggled_behind_a_body() {
    let served = served(|_| {}).await;
    let hidden = "GET /v1/tags HTTP/1.1\r\nHost: x\r\n\r\n";
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 100\r\n",
        "Transfer-Encoding: chunked\r\n",
    ] {
        let request =
            format!("POST /v1/tools HTTP/1.1\r\nHost: x\r\n{fields}\r\n0\r\n\r\n{hidden}");
        let answer = served.send(request.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "one answer and no second: {answer}");
        assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    }
    for fields in [
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: identity\r\n",
    ] {
        let request =
            format!("POST /v1/tools HTTP/1.1\r\nHost: x\r\n{fields}\r\n0\r\n\r\n{hidden}");
        let answer = served.send(request.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{fields}: {answer}");
        Raw::read(&answer).refuses(400);
    }
    served.still_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_bodies_are_refused() {
    let served = served(|settings| settings.patience = Duration::from_secs(1)).await;
    for chunks in
        ["zz\r\nabc\r\n", "5\r\nab\r\n0\r\n\r\n", "-1\r\n", "fffffffffffffffff\r\n", "5;\x01\0\r\n"]
    {
        let answer =
            served.ask(served.post("Transfer-Encoding: chunked\r\n", chunks.as_bytes())).await;
        assert!([400, 408].contains(&answer.status), "{chunks:?}: {answer:?}");
        answer.refuses(answer.status);
    }
    let large = served.post("Content-Length: 99999999999\r\n", b"");
    served.ask(large).await.refuses(413);
    let endless = "10000\r\n".to_owned() + &"a".repeat(0x10000) + "\r\n";
    let request = served.post("Transfer-Encoding: chunked\r\n", endless.repeat(40).as_bytes());
    let answer = served.ask(request).await;
    assert!([0, 413].contains(&answer.status), "{answer:?}");
    let form = "Content-Type: multipart/form-data; boundary=x\r\n";
    let many = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n".repeat(10_000);
    let headers = format!("--x\r\n{}\r\n\r\nb\r\n--x--\r\n", "A: b\r\n".repeat(10_000));
    for body in [
        "--x",
        "--x\r\n",
        "--y\r\n\r\nabc\r\n--y--\r\n",
        "--x\r\nContent-Disposition: form-data; name=\"package\"\r\n\r\nPK",
        "--x\r\nContent-Disposition: \0\r\n\r\nb\r\n--x--\r\n",
        "--x\r\nContent-Disposition: form-data; name=\"package\"; filename=\"../../etc/passwd\"\r\n\r\nb\r\n--x--\r\n",
        &many,
        &headers,
    ] {
        let fields = format!("{form}Content-Length: {}\r\n", body.len());
        served.ask(served.post(&fields, body.as_bytes())).await.refuses(400);
    }
    for kind in
        ["multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=x"]
    {
        let fields = format!("Content-Type: {kind}\r\nContent-Length: 5\r\n");
        served.ask(served.post(&fields, b"--x--")).await.refuses(400);
    }
    served.still_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_lead_nowhere_else() {
    let served = served(|_| {}).await;
    for (path, status) in [
        ("/v1/tools/../../etc/passwd", 404),
        ("/v1/tools/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        ("/v1/tools/a/versions/..%2f..%2fx/package", 404),
        ("/v1/tools/a%00b", 400),
        ("/v1/tools/%ff", 400),
        ("/v1/tools/%zz", 400),
        ("/v1/tools/%", 400),
        ("/v1/tools/search?q=%00", 400),
        ("/v1/tools/search?q=%ff", 400),
        ("/v1/tools/search?q=a&channel=%ff", 400),
        ("//v1/tools", 404),
        ("/v1//tools", 404),
        ("/v1/tools/a//b", 404),
        ("/.well-known/../v1/nothing", 404),
    ] {
        served.ask(get(path, "")).await.refuses(status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_and_traversals_in_packages_cost_little() {
    let served = served(|_| {}).await;
    for hostile in testkit::archives::hostile::hostile() {
        let start = Instant::now();
        let fields = format!("Content-Length: {}\r\n", hostile.bytes.len());
        let answer = served.ask(served.post(&fields, &hostile.bytes)).await;
        // Whoever sends on after the answer may not get to read it.
        let is_large = hostile.bytes.len() > 1 << 20;
        if !(is_large && answer.status == 0) {
            answer.refuses(if is_large { 413 } else { 400 });
        }
        let took = start.elapsed();
        assert!(took < Duration::from_secs(10), "{} took {took:?}", hostile.name);
    }
    served.still_answers().await;
    assert_eq!(served.world.get("/v1/tools").await.json()["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_slow_or_silent_is_cut_off() {
    let served = served(|settings| settings.patience = Duration::from_millis(600)).await;
    let head = served.post("Content-Length: 1000\r\n", b"PK");
    let beginnings: [&[u8]; 6] = [
        b"",
        b"G",
        b"PRI * HTTP/2.0\r\n",
        b"GET /v1/tools HTTP/1.1\r\nHost: x\r\n",
        b"GET /v1/tools HTTP/1.1\r\nHost: x\r\n\r\n",
        &head,
    ];
    for beginning in beginnings {
        let start = Instant::now();
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(beginning).await.unwrap();
        let answer = read_all(&mut stream).await;
        let took = start.elapsed();
        let begins = String::from_utf8_lossy(beginning).into_owned();
        assert!(took < Duration::from_secs(3), "{begins:?} was kept for {took:?}");
        match beginning {
            text if text == head => Raw::read(&answer).refuses(408),
            text if text.ends_with(b"\r\n\r\n") => {
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            }
            _ => assert!(answer.is_empty() || answer.contains(" 408 "), "{begins:?}: {answer}"),
        }
    }
    // A head that comes byte by byte is cut off too.
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let start = Instant::now();
    let trickle = async {
        for byte in b"GET /v1/tools HTTP/1.1\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        {
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        read_all(&mut stream).await;
    };
    trickle.await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    served.still_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_slowly_keeps_nobody_from_publishing() {
    let served = served(|settings| {
        settings.uploads = 2;
        settings.patience = Duration::from_mins(1);
    })
    .await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(&served.post("Content-Length: 400000\r\n", b"PK")).await.unwrap();
        slow.push(stream);
    }
    let package = mcpkg("acme.pdf.read", "1.0.0", "");
    let start = Instant::now();
    let fields = format!("Content-Length: {}\r\n", package.len());
    let answer = served.ask(served.post(&fields, &package)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    // They are not cut off for it either.
    let mut first = slow.swap_remove(0);
    first.write_all(&vec![0; 400_000 - 2]).await.unwrap();
    Raw::read(&read_all(&mut first).await).refuses(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_nothing_of_an_answer_is_cut_off() {
    let served = served(|settings| settings.upload_bytes = 64 << 20).await;
    // It does not compress, so the answer is larger than what the system takes in by itself.
    let mut state = 1_u64;
    let noise: String = (0..24 << 20)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(b' ' + u8::try_from(state >> 58).unwrap())
        })
        .collect();
    let answer = served.world.publish(mcpkg("acme.pdf.read", "1.0.0", &noise)).await;
    assert_eq!(answer.status, 201);
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream
        .write_all(get("/v1/tools/acme.pdf.read/versions/1.0.0/package", "").as_bytes())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut taken = Vec::new();
    let _reset = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut taken))
        .await
        .expect("it is closed");
    assert!(taken.len() < 16 << 20, "all {} bytes were sent", taken.len());
    served.still_answers().await;
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// What a client of HTTP/2 begins with: how much of each answer it takes, and one request.
fn http2(window: u32, path: &str) -> Vec<u8> {
    let settings = [&[0, 4][..], &window.to_be_bytes()].concat();
    let length = u8::try_from(path.len()).unwrap();
    // GET, http, the path, the host.
    let head = [&[0x82, 0x86, 0x04, length], path.as_bytes(), &[0x01, 1, b'x']].concat();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    [preface, frame(4, 0, 0, &settings), frame(1, 0x5, 1, &head)].concat()
}

/// Answers pings, and nothing else, until it is cut off; what kinds of frames came on the first stream.
async fn stay(stream: &mut TcpStream) -> Vec<u8> {
    let mut kinds = Vec::new();
    let staying = async {
        let mut head = [0; 9];
        while stream.read_exact(&mut head).await.is_ok() {
            let length = usize::from(head[1]) << 8 | usize::from(head[2]);
            let mut payload = vec![0; length];
            if stream.read_exact(&mut payload).await.is_err() {
                return;
            }
            if (head[3], head[4]) == (6, 0)
                && stream.write_all(&frame(6, 1, 0, &payload)).await.is_err()
            {
                return;
            }
            if head[8] == 1 {
                kinds.push(head[3]);
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(8), staying).await.expect("it is cut off");
    kinds
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_nothing_over_http_2_or_asks_nothing_more_is_cut_off() {
    const HEADERS: u8 = 1;
    const DATA: u8 = 0;
    let served = served(|_| {}).await;
    for (window, expected) in [(0, &[HEADERS][..]), (65_535, &[HEADERS, DATA])] {
        let start = Instant::now();
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(&http2(window, "/v1/tools")).await.unwrap();
        let mut kinds = stay(&mut stream).await;
        kinds.dedup();
        assert_eq!(kinds, expected, "a window of {window}");
        let took = start.elapsed();
        assert!(took > Duration::from_millis(400), "{took:?} is too short for anybody");
    }
    served.still_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_too_often_waits() {
    let served = served(|settings| {
        settings.rates = Limits { reads: 5, changes: 3, failures: 2 };
        settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let from = |address: &str| format!("X-Forwarded-For: 198.51.100.99, {address}\r\n");
    for _ in 0..5 {
        assert_eq!(served.ask(get("/v1/tools", &from("192.0.2.1"))).await.status, 200);
    }
    let refused = served.ask(get("/v1/tools", &from("192.0.2.1"))).await;
    refused.refuses(429);
    assert!(refused.head.to_lowercase().contains("retry-after: 1"), "{refused:?}");
    assert!(refused.body.contains("TOO_MANY_REQUESTS"));
    assert_eq!(served.ask(get("/v1/tools", &from("192.0.2.2"))).await.status, 200, "others go on");
    assert_eq!(served.ask(get("/healthz", &from("192.0.2.1"))).await.status, 200);
    for _ in 0..20 {
        assert_eq!(
            served.ask(get("/v1/tools", "")).await.status,
            200,
            "this machine is not counted"
        );
    }
    // A token is counted by itself, wherever it is shown.
    let token = format!("Authorization: Bearer {}\r\n", served.world.token);
    for number in 0..5 {
        let fields = token.clone() + &from(&format!("192.0.2.{number}"));
        assert_eq!(served.ask(get("/v1/tools", &fields)).await.status, 200);
    }
    served.ask(get("/v1/tools", &(token + &from("192.0.2.77")))).await.refuses(429);
    for number in 0..4 {
        let package = bundle("tool:a.b", "a.b", &format!("1.0.{number}")).to_string();
        let fields = format!("Content-Length: {}\r\n{}", package.len(), from("192.0.2.5"));
        let answer = served.ask(served.post(&fields, package.as_bytes())).await;
        assert_eq!(answer.status, if number < 3 { 201 } else { 429 }, "{answer:?}");
    }
    // Guessing is over soon; others at that address go on.
    let wrong = "Authorization: Bearer haft_guess\r\n".to_owned() + &from("192.0.2.9");
    for status in [401, 401, 429, 429] {
        served.ask(get("/v1/tools", &wrong)).await.refuses(status);
    }
    assert_eq!(served.ask(get("/v1/tools", &from("192.0.2.9"))).await.status, 200);
    let identity = r#"{"identity":"a.b.c"}"#;
    let exchange = |address: &str| {
        format!(
            "POST /v1/tokens/exchange HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n{}\r\n{identity}",
            identity.len(),
            from(address)
        )
    };
    for status in [401, 401, 429] {
        served.ask(exchange("192.0.2.10")).await.refuses(status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_guesses_the_password_of_a_browser_waits() {
    let served = served(|settings| {
        settings.rates = Limits { failures: 2, ..Limits::default() };
        settings.reading = Reading::Tokens;
        settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let shown = |password: &str| {
        let password = STANDARD.encode(format!("ann:{password}"));
        format!(
            "Accept: text/html\r\nX-Forwarded-For: 192.0.2.1\r\nAuthorization: Basic {password}\r\n"
        )
    };
    // Every browser comes without one first, which is no guess.
    for _ in 0..5 {
        let stranger = served.ask(get("/", "X-Forwarded-For: 192.0.2.1\r\n")).await;
        assert_eq!(stranger.status, 401);
    }
    for status in [401, 401, 429, 429] {
        assert_eq!(served.ask(get("/", &shown("haft_guess"))).await.status, status);
    }
    assert_eq!(served.ask(get("/", &shown(&served.world.token))).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_says_nothing_about_its_address_that_is_believed() {
    let served = served(|settings| {
        settings.rates = Limits { reads: 2, changes: 1, failures: 1 };
        settings.reading = Reading::Tokens;
    })
    .await;
    // It comes from this machine and no proxy is trusted, so it is not taken for anybody else.
    for _ in 0..5 {
        let fields = "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n";
        served.ask(get("/v1/tools", fields)).await.refuses(401);
    }
}

/// Whoever is on this machine is not counted, so nobody comes to be there by saying so.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_on_this_machine_because_a_header_says_so() {
    let served = served(|settings| {
        settings.rates = Limits { reads: 3, changes: 3, failures: 3 };
        settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    for claim in [
        "X-Forwarded-For: ::1",
        "X-Forwarded-For: ::ffff:127.0.0.1",
        "X-Forwarded-For: localhost",
        "Forwarded: for=127.0.0.1",
        "X-Forwarded-For: ",
        // The trusted proxy has written the last one, whatever stands before it.
        "X-Forwarded-For: 127.0.0.1, 192.0.2.50",
        "X-Forwarded-For: 192.0.2.60\r\nX-Forwarded-For: 127.0.0.1, 192.0.2.50",
    ] {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(served.ask(get("/v1/tools", &format!("{claim}\r\n"))).await.status);
        }
        assert_eq!(statuses.last(), Some(&429), "{claim}: {statuses:?}");
    }
    assert_eq!(served.ask(get("/v1/tools", "")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_on_this_machine_that_nobody_named_opens_no_door() {
    let served = served(|settings| {
        settings.rates = Limits { reads: 3, changes: 3, failures: 2 };
    })
    .await;
    for (number, name) in
        ["X-Forwarded-For: ", "Forwarded: for="].into_iter().cycle().take(3).enumerate()
    {
        let told = format!("{name}192.0.2.{number}\r\n");
        assert_eq!(served.ask(get("/v1/tools", &told)).await.status, 200);
    }
    served.ask(get("/v1/tools", "X-Forwarded-For: 192.0.2.9\r\n")).await.refuses(429);
    assert_eq!(served.ask(get("/v1/tools", "")).await.status, 200, "this machine is not counted");
}

/// The tokens are away: whoever is not refused by then has asked the database.
#[tokio::test(flavor = "multi_thread")]
async fn guessing_costs_the_database_no_more_than_reading() {
    let served = served(|settings| {
        settings.rates = Limits { reads: 2, changes: 3, failures: 1 };
        settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let guess = |token: &str, from: &str| {
        format!("Authorization: Bearer {token}\r\nX-Forwarded-For: {from}\r\n")
    };
    let likely = format!("haft_{}", "0".repeat(64));
    for status in [401, 429, 429] {
        served.ask(get("/v1/tools", &guess(&likely, "192.0.2.1"))).await.refuses(status);
    }
    served.world.sql("ALTER TABLE tokens RENAME TO away").await;
    served.ask(get("/v1/tools", &guess(&likely, "192.0.2.1"))).await.refuses(429);
    served.ask(get("/v1/tools", &guess(&likely, "192.0.2.2"))).await.refuses(503);
    for unlikely in ["x", "haft_", &likely[1..], &format!("{likely}0"), &likely.to_uppercase()] {
        let fields = format!("Authorization: Bearer {unlikely}\r\n");
        served.ask(get("/v1/tools", &fields)).await.refuses(401);
    }
}

/// A socket of IPv6 sees those of IPv4 by another spelling of their address.
#[tokio::test(flavor = "multi_thread")]
async fn this_machine_is_not_counted_however_its_address_is_written() {
    let settings = |settings: &mut Settings| {
        settings.rates = Limits { reads: 1, changes: 1, failures: 1 };
    };
    let served = served_at("[::]:0", settings).await;
    for _ in 0..3 {
        assert_eq!(served.ask(get("/v1/tools", "")).await.status, 200);
    }
}
