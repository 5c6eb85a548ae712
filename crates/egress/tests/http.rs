//! Requests of our own stay within the rules, whoever answers and wherever names lead.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod desk;
mod site;

use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use desk::{Names, all_here, canned, read_head, server};
use egress::http::{
    Client, HeaderName, HeaderValue, Method, Request, Response, SendError, Settings, StatusCode,
    Url,
};
use egress::{Attempt, Outcome, Refusal, Rule, Rules, Stage};

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

/// Rules that the owner typed.
fn typed(texts: &[&str]) -> Rules {
    texts.iter().map(|text| Rule::parse(text).unwrap().as_typed()).collect()
}

/// A client, and what it reported.
struct Desk {
    client: Client,
    told: Arc<Mutex<Vec<Attempt>>>,
    runtime: tokio::runtime::Runtime,
}

impl Desk {
    /// Allows `*.ok.test` at any port, wherever it leads.
    fn open() -> Self {
        let rule = Rule::parse("*.ok.test:*").unwrap().reaching_private();
        Self::with([rule].into_iter().collect(), all_here, Vec::new())
    }

    fn ruled(rules: &[&str]) -> Self {
        Self::with(typed(rules), all_here, Vec::new())
    }

    fn with(
        rules: Rules,
        names: impl Fn(&str) -> Option<Vec<IpAddr>> + Send + Sync + 'static,
        extra_roots: Vec<u8>,
    ) -> Self {
        let told: Arc<Mutex<Vec<Attempt>>> = Arc::default();
        let report = Arc::clone(&told);
        let settings = Settings {
            extra_roots,
            report: Arc::new(move |attempt| report.lock().unwrap().push(attempt)),
            ..Settings::default()
        };
        let client = Client::with(rules, Arc::new(Names(names)), settings).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        Self { client, told, runtime }
    }

    fn get(&self, url: &str) -> Result<Response, SendError> {
        self.send(get(url))
    }

    fn send(&self, request: Request) -> Result<Response, SendError> {
        self.runtime.block_on(self.client.send(request))
    }

    /// What was reported, in short.
    fn told(&self) -> Vec<String> {
        let told = self.told.lock().unwrap();
        let short = told.iter().map(|attempt| match &attempt.stage {
            Stage::Opened(reached) => format!("{} opened by {}", attempt.asked, reached.rule),
            Stage::Ended { outcome, .. } => format!("{} {outcome}", attempt.asked),
        });
        short.collect()
    }
}

fn get(url: &str) -> Request {
    Request::new(Method::GET, Url::parse(url).unwrap())
}

fn refused(sent: Result<Response, SendError>) -> Refusal {
    match sent {
        Err(SendError::Refused { refusal, .. }) => refusal,
        other => panic!("{other:?}"),
    }
}

/// A server that redirects to wherever its function says, and the heads it has read.
fn redirecting(to: impl Fn() -> String + Send + Sync + 'static) -> u16 {
    server(move |mut client| {
        read_head(&mut client);
        let to = to();
        let head = format!(
            "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        client.write_all(head.as_bytes()).unwrap();
    })
}

#[test]
fn an_allowed_request_is_answered_and_reported() {
    let desk = Desk::open();
    let (port, heads) = canned(HELLO);
    let response = desk.get(&format!("http://a.ok.test:{port}/x?y=z")).unwrap();
    assert_eq!((response.status, &*response.body), (StatusCode::OK, &b"hello"[..]));
    let head = heads.recv().unwrap().to_lowercase();
    assert!(head.starts_with("get /x?y=z http/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: a.ok.test:{port}\r\n")), "{head}");
    assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
    let asked = format!("a.ok.test:{port}");
    assert_eq!(
        desk.told(),
        [format!("{asked} opened by *.ok.test:*"), format!("{asked} completed")]
    );
    let told = desk.told.lock().unwrap();
    assert!(matches!(told[1].stage, Stage::Ended { down: 5, up: 0, .. }), "{told:?}");
}

#[test]
fn what_no_rule_names_is_refused_and_not_looked_up() {
    let looked_up = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looked_up);
    let names = move |name: &str| {
        count.fetch_add(1, Ordering::Relaxed);
        all_here(name)
    };
    let rules = Rules::parse(["ok.test"]).unwrap();
    let desk = Desk::with(rules, names, Vec::new());
    assert_eq!(refused(desk.get("http://evil.test/")), Refusal::Host);
    assert_eq!(refused(desk.get("http://ok.test:8080/")), Refusal::Port);
    assert_eq!(refused(desk.get("ftp://ok.test/")), Refusal::Scheme);
    assert_eq!(refused(desk.get("file:///etc/passwd")), Refusal::Scheme);
    for odd in ["http://user@ok.test/", "http://user:pass@ok.test/", "http://ok.test./"] {
        assert!(matches!(refused(desk.get(odd)), Refusal::Spelling(_)), "{odd}");
    }
    assert_eq!(looked_up.load(Ordering::Relaxed), 0);
    let told = desk.told();
    assert_eq!(told.len(), 7);
    assert_eq!(told[0], "evil.test:80 no grant names this host");
    assert!(!told.join(" ").contains("pass@"), "{told:?}");
}

#[test]
fn a_name_that_leads_to_a_private_address_is_refused_unless_a_rule_says_so() {
    let (port, _heads) = canned(HELLO);
    let url = format!("http://a.ok.test:{port}/");
    let desk = Desk::ruled(&["*.ok.test:*"]);
    assert!(matches!(refused(desk.get(&url)), Refusal::Address { .. }));
    assert!(desk.told()[0].contains("the name points to `127.0.0.1`"), "{:?}", desk.told());
    let by_address = Desk::ruled(&["*.ok.test:*", &format!("127.0.0.1:{port}")]);
    assert!(by_address.get(&url).is_ok());
    let at_another_port = Desk::ruled(&["*.ok.test:*", "127.0.0.1:1"]);
    assert!(matches!(refused(at_another_port.get(&url)), Refusal::Address { .. }));
}

#[test]
fn addresses_are_checked_in_any_spelling() {
    let (port, _heads) = canned(HELLO);
    let desk = Desk::ruled(&["*.ok.test:*", "8.8.8.8:*"]);
    for host in ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "[::1]", "[::ffff:127.0.0.1]"] {
        assert_eq!(refused(desk.get(&format!("http://{host}:{port}/"))), Refusal::Host, "{host}");
    }
    let granted = Desk::ruled(&[&format!("127.0.0.1:{port}")]);
    assert!(granted.get(&format!("http://127.0.0.1:{port}/")).is_ok());
    assert!(granted.get(&format!("http://127.1:{port}/")).is_ok(), "one spelling, one address");
    let machine = Desk::ruled(&[&format!("localhost:{port}")]);
    assert!(machine.get(&format!("http://localhost:{port}/")).is_ok());
}

#[test]
fn the_client_that_is_lent_to_libraries_stays_within_the_rules_by_itself() {
    let (port, heads) = canned(HELLO);
    let desk = Desk::ruled(&["*.ok.test:*", "[fd00::/8]:*"]);
    let inner = desk.client.inner().clone();
    let ask = |url: String| desk.runtime.block_on(inner.get(url).send());
    for host in ["127.0.0.1", "[::1]", "a.ok.test", "evil.test", "localhost"] {
        assert!(ask(format!("http://{host}:{port}/")).is_err(), "{host}");
        assert!(ask(format!("https://{host}:{port}/")).is_err(), "{host}");
    }
    assert!(heads.try_recv().is_err(), "nobody was reached");
    let told = desk.told();
    let of = |asked: &str| told.iter().filter(|line| line.starts_with(asked)).count();
    assert_eq!(of(&format!("127.0.0.1:{port} no grant")), 1, "{told:?}");
    let granted = Desk::open();
    let inner = granted.client.inner().clone();
    let sent = granted.runtime.block_on(inner.get(format!("http://a.ok.test:{port}/")).send());
    assert_eq!(sent.unwrap().status(), StatusCode::OK);
    assert!(granted.client.check(&Url::parse("http://a.ok.test/").unwrap()).is_ok());
    assert!(granted.client.check(&Url::parse("http://b.test/").unwrap()).is_err());
}

#[test]
fn a_name_that_leads_elsewhere_the_second_time_is_checked_again() {
    let (port, _heads) = canned(HELLO);
    let asked = AtomicUsize::new(0);
    let names = move |_: &str| {
        let is_first = asked.fetch_add(1, Ordering::Relaxed) == 0;
        let address = if is_first { "127.0.0.1" } else { "127.0.0.2" };
        Some(vec![address.parse().unwrap()])
    };
    let rules = typed(&["a.ok.test:*", "127.0.0.1:*"]);
    let desk = Desk::with(rules, names, Vec::new());
    let url = format!("http://a.ok.test:{port}/");
    assert!(desk.get(&url).is_ok());
    // The first server closes each connection, so the name is looked up again.
    assert!(matches!(refused(desk.get(&url)), Refusal::Address { .. }));
}

#[test]
fn only_checked_addresses_of_a_name_are_dialled() {
    let (port, _heads) = canned(HELLO);
    let names = |_: &str| Some(vec!["10.0.0.1".parse().unwrap(), "127.0.0.1".parse().unwrap()]);
    let rules = typed(&["a.ok.test:*", "127.0.0.1:*"]);
    let desk = Desk::with(rules, names, Vec::new());
    assert!(desk.get(&format!("http://a.ok.test:{port}/")).is_ok());
}

#[test]
fn a_redirect_is_followed_only_to_where_the_rules_allow() {
    let (port, heads) = canned(HELLO);
    let desk = Desk::open();
    let follow = |to: String| {
        let gate = redirecting(move || to.clone());
        desk.get(&format!("http://a.ok.test:{gate}/"))
    };
    let response = follow(format!("http://b.ok.test:{port}/there")).unwrap();
    assert_eq!((response.redirects, response.url.path()), (1, "/there"));
    heads.recv().unwrap();
    for to in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://evil.test:{port}/"),
        format!("http://user@b.ok.test:{port}/"),
        "file:///etc/passwd".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        refused(follow(to));
    }
    assert!(heads.try_recv().is_err(), "nobody was reached");
    let port = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&port);
    let gate =
        redirecting(move || format!("http://a.ok.test:{}/again", own.load(Ordering::Relaxed)));
    port.store(usize::from(gate), Ordering::Relaxed);
    let round = desk.get(&format!("http://a.ok.test:{gate}/"));
    assert!(matches!(round, Err(SendError::TooManyRedirects { most: 5 })), "{round:?}");
    let mut once = get(&format!("http://a.ok.test:{gate}/"));
    once.redirects = 0;
    assert_eq!(desk.send(once).unwrap().status, StatusCode::FOUND);
}

#[test]
fn credentials_stay_with_their_origin() {
    let (port, heads) = canned(HELLO);
    let to = format!("http://b.ok.test:{port}/");
    let gate = redirecting(move || to.clone());
    let desk = Desk::open();
    let mut request = get(&format!("http://a.ok.test:{gate}/"));
    let mut secret = HeaderValue::from_static("s3cret");
    secret.set_sensitive(true);
    for (name, value) in [
        ("authorization", HeaderValue::from_static("Bearer s3cret")),
        ("x-api-key", HeaderValue::from_static("s3cret")),
        ("x-vendor-token", secret),
        ("x-plain", HeaderValue::from_static("plain")),
    ] {
        request.headers.insert(HeaderName::from_static(name), value);
    }
    assert!(desk.send(request.clone()).is_ok());
    let head = heads.recv().unwrap();
    assert!(head.contains("x-plain: plain") && !head.contains("s3cret"), "{head}");
    request.url = Url::parse(&format!("http://b.ok.test:{port}/")).unwrap();
    assert!(desk.send(request.clone()).is_ok());
    assert_eq!(heads.recv().unwrap().matches("s3cret").count(), 3);
    assert!(!format!("{request:?}").contains("x-vendor-token: s3cret"));
}

#[test]
fn nobody_sets_the_headers_that_run_a_connection() {
    let desk = Desk::open();
    for name in ["host", "connection", "content-length", "transfer-encoding", "upgrade", "te"] {
        let mut request = get("http://a.ok.test:1/");
        request.headers.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
        assert!(matches!(desk.send(request), Err(SendError::Header(_))), "{name}");
    }
    assert!(desk.told().is_empty());
}

#[test]
fn a_body_is_read_up_to_its_limit_however_it_is_framed() {
    let desk = Desk::open();
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
        5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: x\r\n\r\n";
    for answer in [
        &chunked[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nhello world",
        b"HTTP/1.0 200 OK\r\n\r\nhello world",
    ] {
        let answer: &'static [u8] = answer.to_vec().leak();
        let (port, _heads) = canned(answer);
        let sent = |most| {
            let mut request = get(&format!("http://a.ok.test:{port}/"));
            request.most = most;
            desk.send(request)
        };
        assert_eq!(sent(11).unwrap().body, b"hello world");
        assert!(matches!(sent(10), Err(SendError::TooLarge { most: 10 })));
    }
    let endless = server(|mut client| {
        read_head(&mut client);
        let _ = client.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let piece = [b"10000\r\n".as_slice(), &vec![b'x'; 0x10000], b"\r\n"].concat();
        while client.write_all(&piece).is_ok() {}
    });
    let sent = desk.get(&format!("http://a.ok.test:{endless}/"));
    assert!(matches!(sent, Err(SendError::TooLarge { .. })), "{sent:?}");
    let packed =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00";
    let (port, _heads) = canned(packed);
    let response = desk.get(&format!("http://a.ok.test:{port}/")).unwrap();
    assert_eq!(response.body, b"\x1f\x8b\x08\x00", "nothing is unpacked");
}

#[test]
fn a_server_that_is_slow_is_left_at_the_deadline() {
    let desk = Desk::open();
    let silent = server(|mut client| {
        read_head(&mut client);
        let _ = std::io::copy(&mut client, &mut std::io::sink());
    });
    let dripping = server(|mut client| {
        read_head(&mut client);
        let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while client.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    for port in [silent, dripping] {
        let mut request = get(&format!("http://a.ok.test:{port}/"));
        request.within = Duration::from_millis(300);
        let began = Instant::now();
        let sent = desk.send(request);
        assert!(matches!(sent, Err(SendError::TimedOut)), "{sent:?}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }
    let ended = desk.told().into_iter().filter(|line| line.ends_with("it took too long")).count();
    assert_eq!(ended, 2);
}

#[test]
fn what_breaks_is_told_apart() {
    let desk = Desk::open();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let sent = desk.get(&format!("http://a.ok.test:{nobody}/"));
    assert!(matches!(&sent, Err(error @ SendError::NotConnected(_)) if error.is_transient()));
    let (port, _heads) = canned(b"");
    let sent = desk.get(&format!("http://a.ok.test:{port}/?key=s3cret"));
    assert!(matches!(&sent, Err(error @ SendError::Lost(_)) if error.is_transient()), "{sent:?}");
    assert!(!format!("{sent:?}").contains("s3cret"), "a URL may hold a secret");
    let (port, _heads) = canned(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf");
    let sent = desk.get(&format!("http://a.ok.test:{port}/"));
    assert!(matches!(&sent, Err(error @ SendError::Interrupted(_)) if !error.is_transient()));
    let missing = Desk::ruled(&["missing.test"]);
    let sent = missing.get("http://missing.test/");
    assert!(matches!(sent, Err(SendError::Unresolved(_))), "{sent:?}");
    let told = missing.told.lock().unwrap();
    let Stage::Ended { outcome: Outcome::Unresolved(_), .. } = &told[0].stage else {
        panic!("{told:?}")
    };
}

#[test]
fn https_is_spoken_with_whom_the_roots_vouch_for() {
    let mut site = site::open("index.ok.test");
    let root = std::fs::read(site.folder.path().join("root.pem")).unwrap();
    let rule = || Rule::parse("*.ok.test:*").unwrap().reaching_private();
    let trusting = Desk::with([rule()].into_iter().collect(), all_here, root);
    let url = format!("https://index.ok.test:{}/hello.txt", site.secure);
    assert_eq!(trusting.get(&url).unwrap().body, b"hello\n");
    let mut post = get(&format!("https://index.ok.test:{}/post", site.secure));
    (post.method, post.body) = (Method::POST, Some(vec![b'x'; 100_000]));
    assert!(trusting.send(post).unwrap().body.starts_with(b"100000 "));
    let other_name = format!("https://other.ok.test:{}/hello.txt", site.secure);
    let sent = trusting.get(&other_name);
    assert!(matches!(&sent, Err(error @ SendError::NotConnected(_)) if !error.is_transient()));
    let sent = Desk::open().get(&url);
    assert!(matches!(&sent, Err(SendError::NotConnected(_))), "{sent:?}");
    assert_eq!(sent.unwrap_err().to_string(), "no secure connection (TLS) was made");
    let plain = format!("http://index.ok.test:{}/hello.txt", site.plain);
    let down = format!("https://index.ok.test:{}/redirect/{plain}", site.secure);
    assert!(matches!(trusting.get(&down), Err(SendError::Downgrade)));
    let up = format!("http://index.ok.test:{}/redirect/{url}", site.plain);
    assert_eq!(trusting.get(&up).unwrap().body, b"hello\n");
    assert!(
        Client::with(
            Rules::default(),
            Arc::new(Names(all_here)),
            Settings {
                extra_roots: b"-----BEGIN CERTIFICATE-----\nx".to_vec(),
                ..Settings::default()
            }
        )
        .is_err()
    );
    drop(site.server.stdin.take());
    site.server.wait().unwrap();
}

/// A server that speaks nothing but HTTP/2, and says what it was asked.
const HTTP2: &str = r"
const fs = require('fs'), http2 = require('http2');
const folder = process.argv[1];
const server = http2.createSecureServer({
  key: fs.readFileSync(folder + '/key.pem'), cert: fs.readFileSync(folder + '/cert.pem') });
server.on('stream', (stream, headers) => {
  let body = '';
  stream.on('data', (part) => body += part).on('end', () => {
    stream.respond({ ':status': 200 });
    stream.end(`${headers[':method']} ${headers[':path']} ${headers['x-plain']} ${body.length}`);
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
";

#[test]
fn http2_is_spoken_where_a_server_offers_it() {
    let mut site = site::open("index.ok.test");
    let folder = site.folder.path();
    let mut node = Command::new("node");
    node.args(["-e", HTTP2]).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(node.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let rule = Rule::parse("*.ok.test:*").unwrap().reaching_private();
    let root = std::fs::read(folder.join("root.pem")).unwrap();
    let desk = Desk::with([rule].into_iter().collect(), all_here, root);
    let mut request = get(&format!("https://index.ok.test:{}/x?y=z", port.trim()));
    request.headers.insert(HeaderName::from_static("x-plain"), HeaderValue::from_static("plain"));
    (request.method, request.body) = (Method::POST, Some(vec![b'x'; 200_000]));
    for _ in 0..2 {
        let response = desk.send(request.clone()).unwrap();
        assert_eq!(String::from_utf8(response.body).unwrap(), "POST /x?y=z plain 200000");
    }
    request.most = 5;
    assert!(matches!(desk.send(request), Err(SendError::TooLarge { most: 5 })));
    for child in [&mut node, &mut site.server] {
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
