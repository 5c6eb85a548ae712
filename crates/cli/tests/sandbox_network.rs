//! `haft sandbox --allow-host`: real clients inside the walls reach what is granted, and nothing
//! reaches anything else. Everything is done by the user who runs the tests, and, where that is root,
//! by an ordinary user.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[macro_use]
mod walls;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::repository;
use serde_json::{Value, json};
use testkit::hosts::SPELLINGS;
use walls::{Desk, PATIENCE, PYTHON, ended, eventually};

for_everybody![
    curl_fetches_and_posts,
    python_fetches,
    node_fetches,
    git_clones,
    pip_downloads,
    npm_installs,
    an_address_is_reached_where_it_is_granted,
    a_name_leads_to_a_private_address_only_where_that_is_granted,
    what_is_not_granted_is_refused_told_once_and_reported_each_time,
    a_redirect_leads_nowhere_that_is_not_granted,
    no_spelling_leads_to_what_is_not_granted,
    nothing_leads_around_the_proxy,
    without_a_grant_there_is_no_proxy,
    the_proxy_of_one_is_not_another_s,
    a_rule_that_cannot_be_read_is_refused,
];

/// What the walled call this machine.
const HOST: &str = "host.haft.internal";

/// A site on this machine's loopback, with HTTP and HTTPS.
struct Site<'d> {
    desk: &'d Desk,
    _folder: tempfile::TempDir,
    server: Child,
    plain_port: u16,
    secure_port: u16,
}

impl<'d> Site<'d> {
    fn open(desk: &'d Desk) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        let made = Command::new("openssl")
            .args(["req", "-x509", "-days", "2", "-subj", "/CN=test"])
            .args(curve)
            .args(["-keyout", "key.pem", "-out", "cert.pem"])
            .args(["-addext", &format!("subjectAltName=DNS:{HOST},IP:127.0.0.1")])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        desk.write("cert.pem", fs::read(folder.path().join("cert.pem")).unwrap());
        let mut server = Command::new(PYTHON)
            .arg(repository().join("crates/egress/tests/site/server.py"))
            .args([folder.path().as_os_str(), HOST.as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ports = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut ports).unwrap();
        let mut ports = ports.split_whitespace().map(|port| port.parse().unwrap());
        let (plain_port, secure_port) = (ports.next().unwrap(), ports.next().unwrap());
        Self { desk, _folder: folder, server, plain_port, secure_port }
    }

    fn plain(&self, path: &str) -> String {
        format!("http://{HOST}:{}{path}", self.plain_port)
    }

    fn secure(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.secure_port)
    }

    /// Both ports are granted, and the site's certificate with the variable that names it.
    fn grants(&self, variable: &str) -> Vec<String> {
        let certificate = self.desk.text("cert.pem");
        let mut grants = vec!["--read".into(), certificate.clone()];
        for port in [self.plain_port, self.secure_port] {
            grants.extend(["--allow-host".into(), format!("localhost:{port}")]);
        }
        grants.extend(["--env".into(), format!("{variable}={certificate}")]);
        grants
    }

    /// Runs a client that succeeds and is told nothing; what it printed, and what it tried to reach.
    fn reaches(&self, variable: &str, arguments: &[&str]) -> (String, Vec<Value>) {
        let grants = self.grants(variable);
        let grants: Vec<&str> = grants.iter().map(String::as_str).collect();
        let (ran, report) = self.desk.reported(&[&grants[..], arguments].concat());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, 0, "{arguments:?}: {said}");
        assert!(!ran.stderr.contains("haft: "), "{arguments:?}: {said}");
        let tried = report["network"].as_array().unwrap().clone();
        for attempt in &tried {
            assert_eq!(attempt["allowed"], true, "{attempt}");
            let own = [self.plain_port, self.secure_port].map(|port| format!("{HOST}:{port}"));
            assert!(own.iter().any(|own| attempt["asked"] == **own), "{attempt}");
            assert!(attempt["rule"].as_str().unwrap().starts_with("localhost:"), "{attempt}");
            assert!(attempt["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{attempt}");
            assert!(attempt["up"].as_u64() > Some(0) && attempt["down"].as_u64() > Some(0));
        }
        (ran.stdout, tried)
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = ended(&mut self.server, PATIENCE);
    }
}

fn curl_fetches_and_posts(desk: &Desk) {
    let site = Site::open(desk);
    desk.write("body", vec![b'x'; 3_000_000]);
    for url in [site.plain(""), site.secure("")] {
        let fetch = format!("{url}/hello.txt");
        let (said, tried) = site.reaches("CURL_CA_BUNDLE", &["--", "curl", "-sSf", &fetch]);
        assert_eq!((&*said, tried.len()), ("hello\n", 1));
        let (body, post) = (desk.text("body"), format!("{url}/post"));
        let data = format!("@{body}");
        let client = ["--read", &body, "--", "curl", "-sSf", "--data-binary", &data, &post];
        let (said, tried) = site.reaches("CURL_CA_BUNDLE", &client);
        assert!(said.starts_with("3000000 "), "{said}");
        assert!(tried[0]["up"].as_u64() > Some(3_000_000), "{tried:?}");
    }
    // Its certificate is not trusted where it is not granted.
    let port = format!("localhost:{}", site.secure_port);
    let url = site.secure("/hello.txt");
    let (ran, report) = desk.reported(&["--allow-host", &port, "--", "curl", "-sSf", &url]);
    assert_eq!((ran.code, report["network"].as_array().unwrap().len()), (60, 1), "{}", ran.stderr);
}

fn python_fetches(desk: &Desk) {
    let site = Site::open(desk);
    let urllib = "
import sys, urllib.request
for url in sys.argv[1:]: print(urllib.request.urlopen(url, timeout=20).read().decode(), end='')
";
    let requests = "
import sys
from pip._vendor import requests
for url in sys.argv[1:]: print(requests.get(url, timeout=20).text, end='')
";
    let (plain, secure) = (site.plain("/hello.txt"), site.secure("/hello.txt"));
    for (script, variable) in [(urllib, "SSL_CERT_FILE"), (requests, "REQUESTS_CA_BUNDLE")] {
        let (said, tried) = site.reaches(variable, &["--", PYTHON, "-c", script, &plain, &secure]);
        assert_eq!((&*said, tried.len()), ("hello\nhello\n", 2));
    }
}

const NODE: &str = "
(async () => {
  for (const url of process.argv.slice(1)) process.stdout.write(await (await fetch(url)).text());
})().catch((error) => { console.error(String(error.cause ?? error)); process.exit(9); });
";

/// A Node that reads the variables itself: `./test` installs one.
fn newer_node() -> PathBuf {
    let kind = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let package = format!("node-linux-{kind}");
    let folder = repository().join("target/tools/node22/node_modules").join(&package);
    let installed = folder.join("bin/node");
    let path = std::env::var_os("HAFT_NODE22").map_or(installed, PathBuf::from);
    assert!(
        path.is_file(),
        "Node 22 is not at `{}`: run `./test`, or \
         `npm install --prefix target/tools/node22 {package}@22`, or name it in HAFT_NODE22",
        path.display()
    );
    path
}

fn node_fetches(desk: &Desk) {
    let site = Site::open(desk);
    let (plain, secure) = (site.plain("/hello.txt"), site.secure("/hello.txt"));
    let node = desk.write_program("node22", fs::read(newer_node()).unwrap());
    let node = node.to_str().unwrap();
    let (said, tried) =
        site.reaches("NODE_EXTRA_CA_CERTS", &["--", node, "-e", NODE, &plain, &secure]);
    assert_eq!((&*said, tried.len()), ("hello\nhello\n", 2));
    // One that does not read the variables finds an address that stands for the name, and no other name.
    let grant = format!("localhost:{}", site.plain_port);
    let straight = ["env", "-u", "NODE_USE_ENV_PROXY", "node", "-e", NODE, &plain];
    let (ran, report) = desk.reported(&[&["--allow-host", &grant, "--"], &straight[..]].concat());
    assert_eq!((ran.code, &*ran.stdout), (0, "hello\n"), "{}", ran.stderr);
    assert_eq!(report["network"][0]["asked"], format!("{HOST}:{}", site.plain_port), "{report}");
    let other = ["node", "-e", NODE, "http://other.example/hello.txt"];
    let (ran, report) = desk.reported(&[&["--allow-host", &grant, "--"], &other[..]].concat());
    assert_eq!((ran.code, &*ran.stdout), (9, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: --allow-host other.example"), "{}", ran.stderr);
    assert_eq!(report["network"].as_array().unwrap().len(), 1, "{report}");
}

fn git_clones(desk: &Desk) {
    let site = Site::open(desk);
    desk.make_folder("clones");
    let folder = desk.text("clones");
    for (number, origin) in [site.plain(""), site.secure("")].iter().enumerate() {
        for way in ["", "/smart"] {
            let name = format!("clone{number}{}", way.replace('/', "-"));
            let url = format!("{origin}{way}/repo.git");
            let client = ["--write", &folder, "--folder", &folder, "--", "git", "clone", "-q"];
            let (_, tried) =
                site.reaches("GIT_SSL_CAINFO", &[&client[..], &[&url, &name]].concat());
            assert!(!tried.is_empty());
            assert_eq!(desk.read(&format!("clones/{name}/README")), "cloned\n");
        }
    }
}

fn pip_downloads(desk: &Desk) {
    let site = Site::open(desk);
    desk.make_folder("got");
    let (folder, index) = (desk.text("got"), site.secure("/simple"));
    let quiet = ["-q", "--no-deps", "--no-cache-dir", "--disable-pip-version-check"];
    let client = ["--write", &folder, "--", PYTHON, "-m", "pip", "download", "-d", &folder];
    let (_, tried) =
        site.reaches("PIP_CERT", &[&client[..], &quiet, &["-i", &index, "demo-tool"]].concat());
    assert!(!tried.is_empty());
    assert!(desk.path("got/demo_tool-1.0-py3-none-any.whl").exists());
}

fn npm_installs(desk: &Desk) {
    let site = Site::open(desk);
    desk.make_folder("project");
    desk.write("project/package.json", "{}");
    let (folder, registry) = (desk.text("project"), format!("--registry={}", site.secure("/npm/")));
    let client = ["--write", &folder, "--folder", &folder, "--", "npm", "install", &registry];
    let quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "demo-tool"];
    let (_, tried) = site.reaches("npm_config_cafile", &[&client[..], &quiet].concat());
    assert!(!tried.is_empty());
    assert!(desk.path("project/node_modules/demo-tool/index.js").exists());
}

fn an_address_is_reached_where_it_is_granted(desk: &Desk) {
    let site = Site::open(desk);
    let (port, other) = (site.plain_port, site.secure_port);
    let (by_address, by_name) =
        (format!("http://127.0.0.1:{port}/hello.txt"), site.plain("/hello.txt"));
    for flag in ["--allow-host", "--allow-private-host"] {
        let grant = format!("127.0.0.1:{port}");
        for url in [&by_address, &by_name] {
            // By the proxy, as the variables say, and without one.
            for way in [&["--noproxy", ""][..], &[], &["--noproxy", "*"]] {
                let client = [&[flag, &grant, "--", "curl", "-sSf", url], way].concat();
                let (ran, report) = desk.reported(&client);
                assert_eq!((ran.code, &*ran.stdout), (0, "hello\n"), "{way:?}: {}", ran.stderr);
                assert_eq!(report["network"][0]["rule"], *grant);
            }
        }
        let url = format!("http://127.0.0.1:{other}/");
        let ran = desk.sandbox(&[flag, &grant, "--", "curl", "-sS", "--noproxy", "", &url]);
        assert!(ran.stdout.contains("no grant for this host names this port"), "{}", ran.stdout);
    }
    // The name of this machine does not grant its address, nor another name of it.
    let grant = format!("localhost:{port}");
    let ran =
        desk.sandbox(&["--allow-host", &grant, "--", "curl", "-sS", "--noproxy", "", &by_address]);
    assert!(ran.stdout.contains("is refused"), "{}", ran.stdout);
}

fn a_name_leads_to_a_private_address_only_where_that_is_granted(desk: &Desk) {
    // The one name that a machine without a network may know beside `localhost` is its own.
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let addresses = (&*name, 0).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    let Some(address) = addresses.ok().and_then(|found| found.into_iter().next()) else { return };
    let is_private = match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    };
    if !is_private {
        return;
    }
    let listener = TcpListener::bind((address.ip(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let answer =
                b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";
            let _ = client.and_then(|mut client| {
                let read = client.read(&mut [0; 4096]);
                read.and_then(|_| client.write_all(answer))
            });
        }
    });
    let (grant, url) = (format!("{name}:{port}"), format!("http://{name}:{port}/"));
    let (ran, report) = desk.reported(&["--allow-host", &grant, "--", "curl", "-sS", &url]);
    let words = format!("haft: {grant}: the name points to `{}`, ", address.ip());
    assert!(ran.stderr.starts_with(&words), "{}", ran.stderr);
    let hint = format!("hint: --allow-private-host {grant}, if that address is meant\n");
    assert!(ran.stderr.ends_with(&hint), "{}", ran.stderr);
    assert_eq!((ran.stderr.lines().count(), &report["network"][0]["allowed"]), (2, &json!(false)));
    let (ran, report) = desk.reported(&["--allow-private-host", &grant, "--", "curl", "-sS", &url]);
    assert_eq!((&*ran.stdout, &*ran.stderr), ("hello\n", ""));
    assert_eq!(report["network"][0]["rule"], *grant);
}

fn what_is_not_granted_is_refused_told_once_and_reported_each_time(desk: &Desk) {
    let script = "
for url in http://evil.test/ http://evil.test/ https://evil.test/ http://host.haft.internal:2/ \
    http://169.254.169.254/latest/meta-data
do curl -sS -o /dev/null $url 2>/dev/null; done
";
    let (ran, report) = desk.reported(&["--allow-host", "localhost:1", "--", "sh", "-c", script]);
    assert_said!(ran.stderr, @r"
    haft: evil.test:80: no grant names this host
    haft: evil.test:443: no grant names this host
    haft: host.haft.internal:2: no grant for this host names this port
    haft: 169.254.169.254:80: no grant names this host
    hint: --allow-host 169.254.169.254:80
    hint: --allow-host evil.test:443
    hint: --allow-host evil.test:80
    hint: --allow-host host.haft.internal:2
    ");
    let tried = report["network"].as_array().unwrap();
    let asked: Vec<_> = tried.iter().map(|attempt| attempt["asked"].as_str().unwrap()).collect();
    assert_eq!(
        asked,
        [
            "evil.test:80",
            "evil.test:80",
            "evil.test:443",
            "host.haft.internal:2",
            "169.254.169.254:80",
        ]
    );
    let refused = json!({
        "asked": "evil.test:80", "allowed": false, "outcome": "no grant names this host",
        "rule": null, "address": null, "up": 0, "down": 0, "milliseconds": 0,
    });
    let mut first = tried[0].clone();
    first["milliseconds"] = json!(0);
    assert_eq!(first, refused);
    // What the hint says is what lets it through: nobody is there, but that is another thing.
    let client =
        ["--allow-host", "localhost:1", "--", "curl", "-sS", "http://host.haft.internal:1/"];
    let (ran, report) = desk.reported(&client);
    assert!(ran.stderr.contains("cannot be reached"), "{}", ran.stderr);
    assert_eq!(
        (report["network"].as_array().unwrap().len(), &report["network"][0]["allowed"]),
        (1, &json!(true))
    );
    let quiet = [
        "--quiet",
        "sandbox",
        "--allow-host",
        "localhost:1",
        "--",
        "curl",
        "-s",
        "http://evil.test/",
    ];
    assert_eq!(desk.haft(&quiet).stderr, "");
}

fn a_redirect_leads_nowhere_that_is_not_granted(desk: &Desk) {
    let site = Site::open(desk);
    let (count, other) = counting();
    let grant = format!("localhost:{}", site.plain_port);
    for target in [
        format!("http://{HOST}:{other}/"),
        "http://169.254.169.254/".into(),
        "https://evil.test/".into(),
    ] {
        let url = site.plain(&format!("/redirect/{target}"));
        let (_, report) = desk.reported(&["--allow-host", &grant, "--", "curl", "-sS", "-L", &url]);
        let allowed: Vec<_> = report["network"]
            .as_array()
            .unwrap()
            .iter()
            .map(|attempt| &attempt["allowed"])
            .collect();
        assert_eq!(allowed, [true, false], "{target}");
    }
    let url = site.plain("/redirect//hello.txt");
    assert_eq!(desk.says(&["--allow-host", &grant, "--", "curl", "-sS", "-L", &url]), "hello\n");
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

/// A server on this machine that counts who comes; and its port.
fn counting() -> (Arc<AtomicUsize>, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (count, port)
}

/// Asks the proxy for each spelling (a line of hex) both ways, and prints how each answer begins.
const ASK: &str = "
import socket, sys
port = sys.argv[2].encode()
for line in open(sys.argv[1]):
    host = bytes.fromhex(line) + b':' + port
    for request in (b'CONNECT ' + host + b' HTTP/1.1\\r\\n\\r\\n',
                    b'GET http://' + host + b'/ HTTP/1.1\\r\\nHost: ' + host + b'\\r\\n\\r\\n'):
        with socket.create_connection(('127.0.0.1', 3128), 20) as proxy:
            proxy.sendall(request)
            print(proxy.makefile('rb').read(12).decode())
";

fn no_spelling_leads_to_what_is_not_granted(desk: &Desk) {
    let (count, port) = counting();
    let hex = |bytes: &&[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let lines: Vec<_> = SPELLINGS.iter().map(hex).collect();
    desk.write("spellings", lines.join("\n"));
    let (file, port) = (desk.text("spellings"), port.to_string());
    let client =
        ["--allow-host", "ok.test:*", "--read", &file, "--", PYTHON, "-c", ASK, &file, &port];
    let (ran, report) = desk.reported(&client);
    let answers: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(answers, vec!["HTTP/1.1 403"; SPELLINGS.len() * 2], "{}", ran.stderr);
    let tried = report["network"].as_array().unwrap();
    assert_eq!(tried.len(), SPELLINGS.len() * 2, "each attempt is reported once");
    assert!(
        tried.iter().all(|attempt| attempt["allowed"] == false && attempt["address"].is_null())
    );
    let told = ran.stderr.lines().filter(|line| line.starts_with("haft: ")).count();
    let asked: BTreeSet<_> = tried.iter().map(|attempt| attempt["asked"].as_str()).collect();
    assert_eq!(told, asked.len(), "each is told once: {}", ran.stderr);
    assert!(ran.stderr.chars().all(|c| c == '\n' || !c.is_control()), "{}", ran.stderr);
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

/// Tries to leave by every way that is not the proxy; prints what came of each.
const AROUND: &str = "
import socket, sys
tcp, udp = int(sys.argv[1]), int(sys.argv[2])
def attempt(family, kind, address):
    try:
        with socket.socket(family, kind) as way:
            way.settimeout(5)
            way.connect(address)
            way.send(b'out')
            if not way.recv(1): raise OSError(0, 'silence')
        print('out', address)
    except OSError as error: print(error.strerror or 'silence')
for address in (('127.0.0.1', tcp), ('169.254.169.254', 80), ('10.0.0.1', 80), ('1.1.1.1', 443)):
    attempt(socket.AF_INET, socket.SOCK_STREAM, address)
for address in (('127.0.0.1', udp), ('1.1.1.1', 53)):
    attempt(socket.AF_INET, socket.SOCK_DGRAM, address)
attempt(socket.AF_INET6, socket.SOCK_STREAM, ('2606:4700:4700::1111', 443))
attempt(socket.AF_INET, socket.SOCK_RAW, ('1.1.1.1', 0))
";

fn nothing_leads_around_the_proxy(desk: &Desk) {
    let (count, tcp) = counting();
    let (_, granted) = counting();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let udp = datagrams.local_addr().unwrap().port();
    let (grant, tcp, udp) = (format!("localhost:{granted}"), tcp.to_string(), udp.to_string());
    for grants in [&["--allow-host", &grant][..], &[]] {
        let client = [grants, &["--", PYTHON, "-c", AROUND, &tcp, &udp]].concat();
        let (ran, report) = desk.reported(&client);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.stdout);
        assert!(!ran.stdout.contains("out"), "{}", ran.stdout);
        assert_eq!(ran.stdout.lines().count(), 8, "{}", ran.stdout);
        assert_eq!(report["network"], json!([]));
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    assert!(datagrams.recv(&mut [0; 8]).is_err(), "no datagram came");
}

/// Prints the variables of proxies, and whether something listens where the proxy would be.
const LOOK: &str = "
import os, socket
print(sorted(name for name in os.environ if 'proxy' in name.lower()))
for address in ('127.0.0.1', '127.0.0.2'):
    try: socket.create_connection((address, 3128), 5); print('listens')
    except OSError as error: print(error.strerror)
";

fn without_a_grant_there_is_no_proxy(desk: &Desk) {
    let nothing = "[]\nConnection refused\nConnection refused\n";
    assert_eq!(desk.says(&["--", PYTHON, "-c", LOOK]), nothing);
    let granted = desk.says(&["--allow-host", "ok.test", "--", PYTHON, "-c", LOOK]);
    assert!(granted.starts_with("['ALL_PROXY', 'HTTPS_PROXY', 'HTTP_PROXY', 'NODE_USE_ENV_PROXY', 'NO_PROXY', 'all_proxy', 'http_proxy', 'https_proxy', 'no_proxy']\nlistens\n"), "{granted}");
    assert_eq!(desk.says(&["--", PYTHON, "-c", LOOK]), nothing, "also afterwards");
}

fn the_proxy_of_one_is_not_another_s(desk: &Desk) {
    let folder = desk.make_folder("sign");
    let (path, stop) = (desk.text("sign"), folder.join("stop"));
    let wait = "touch $0/here; n=0; until [ -e $0/stop ]; do n=$((n+1)); [ $n -gt 6000 ] && exit 9; sleep 0.01; done";
    let mut one = desk
        .haft_command(&[
            "sandbox",
            "--allow-host",
            "ok.test",
            "--write",
            &path,
            "--",
            "sh",
            "-c",
            wait,
            &path,
        ])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    assert!(eventually(PATIENCE, || folder.join("here").exists()), "the first is inside");
    let seen = desk.says(&["--", PYTHON, "-c", LOOK]);
    fs::write(stop, "").unwrap();
    assert_eq!(ended(&mut one, PATIENCE).unwrap().code(), Some(0));
    assert_eq!(seen, "[]\nConnection refused\nConnection refused\n");
}

fn a_rule_that_cannot_be_read_is_refused(desk: &Desk) {
    for rule in
        ["", "http://ok.test", "ok.test:0", "ok.test:99999", "0x7f.1", "*", "*.*.test", "ok test"]
    {
        for flag in ["--allow-host", "--allow-private-host"] {
            let said = desk.refused(&[flag, rule, "--", "echo", "ran"], 2);
            assert!(said.starts_with("error: "), "{said}");
        }
    }
}
