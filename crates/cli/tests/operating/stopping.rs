//! Being told to stop, and what is written of each request.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::collector::Collector;

use super::process::{Served, ask, demanded, done, get, haft, package, read_answer};

fn token(home: &std::path::Path) -> String {
    let made = done(haft(home).args(["registry", "token", "new", "--namespace", "acme"]));
    made["token"].as_str().unwrap().to_owned()
}

fn tell_to_stop(served: &Served) {
    let told = Command::new("kill").arg(served.process.id().to_string()).status().unwrap();
    assert!(told.success());
}

#[test]
fn whoever_is_being_answered_is_answered_and_it_says_that_it_is_not_ready() {
    let home = tempfile::tempdir().unwrap();
    let token = token(home.path());
    let mut command = haft(home.path());
    command.args(["registry", "serve", "--listen", "127.0.0.1:0", "--json", "--drain", "1s"]);
    let mut served = Served::start(command);
    let (bytes, _) = package("acme.slow", "1.0.0", "");
    let mut slow = TcpStream::connect(&served.address).unwrap();
    write!(
        slow,
        "POST /v1/tools HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {}\r\n\r\n",
        bytes.len()
    )
    .unwrap();
    slow.write_all(&bytes[..10]).unwrap();
    assert_eq!(get(&served.address, "/readyz").unwrap().status, 200);
    tell_to_stop(&served);
    let started = Instant::now();
    loop {
        let answer = get(&served.address, "/readyz").unwrap();
        if answer.status == 503 {
            answer.is_in_the_model();
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(1), "it is still ready");
    }
    // Nobody new is let in after a while, and the one who is inside finishes.
    while get(&served.address, "/healthz").is_ok() {
        assert!(started.elapsed() < Duration::from_secs(10), "it still answers");
        std::thread::sleep(Duration::from_millis(50));
    }
    slow.write_all(&bytes[10..]).unwrap();
    assert_eq!(read_answer(&mut slow).unwrap().status, 201);
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
}

#[test]
fn each_request_is_a_line_of_json_without_secrets() {
    let home = tempfile::tempdir().unwrap();
    let token = token(home.path());
    let mut command = haft(home.path());
    command.args(["registry", "serve", "--listen", "127.0.0.1:0", "--json", "--log", "json"]);
    command.stderr(Stdio::piped());
    let mut served = Served::start(command);
    let (bytes, _) = package("acme.logged", "1.0.0", "");
    assert_eq!(ask(&served.address, "POST", "/v1/tools", &token, &bytes).unwrap().status, 201);
    get(&served.address, "/v1/tools/search?q=hidden&token=hunter2").unwrap();
    get(&served.address, "/v1/%0A%1B[31m").unwrap();
    tell_to_stop(&served);
    let stderr = served.process.stderr.take().unwrap();
    let lines: Vec<String> = BufReader::new(stderr).lines().map(Result::unwrap).collect();
    served.process.wait().unwrap();
    let told: Vec<Value> =
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let [publish, search, unknown] = told.as_slice() else { panic!("{lines:#?}") };
    assert_eq!((&publish["route"], &publish["status"]), (&"/v1/tools".into(), &201.into()));
    assert!(publish["token"].is_string() && publish["ms"].is_number() && publish["id"].is_string());
    assert_eq!(search["route"], "/v1/tools/search");
    assert_eq!(unknown["status"], 404);
    let all = lines.join("\n");
    for secret in [token.as_str(), "hunter2", "hidden", "\u{1b}"] {
        assert!(!all.contains(secret), "{all}");
    }
}

#[test]
fn a_collector_has_every_span_before_the_registry_ends() {
    let Some(peer) = demanded("opentelemetry-proto", Collector::start()) else { return };
    let home = tempfile::tempdir().unwrap();
    let mut command = haft(home.path());
    command.args(["registry", "serve", "--listen", "127.0.0.1:0", "--json", "--log", "json"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", peer.url());
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-the-collector");
    command.env("OTEL_SERVICE_NAME", "tools");
    command.stderr(Stdio::piped());
    let mut served = Served::start(command);
    get(&served.address, "/v1/tools").unwrap();
    tell_to_stop(&served);
    let stderr = std::io::read_to_string(served.process.stderr.take().unwrap()).unwrap();
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
    let seen = peer.seen();
    let [span] = seen["spans"].as_array().unwrap().as_slice() else { panic!("{seen}") };
    assert_eq!((&span["name"], &seen["refused"]), (&"GET /v1/tools".into(), &Value::Array(vec![])));
    assert_eq!(seen["headers"]["authorization"], "Bearer of-the-collector");
    let resource = span["resource"].to_string();
    assert!(resource.contains("service.name") && resource.contains("tools"), "{resource}");
    // The line of the log leads to the span.
    let line: Value = serde_json::from_str(stderr.trim()).unwrap();
    assert_eq!((&line["traceId"], &line["spanId"]), (&span["traceId"], &span["spanId"]));
}

#[test]
fn a_collector_that_is_not_there_is_told_of_and_keeps_nobody() {
    let home = tempfile::tempdir().unwrap();
    let mut command = haft(home.path());
    command.args(["registry", "serve", "--listen", "127.0.0.1:0", "--json"]);
    let nobody = format!("http://127.0.0.1:{}", testkit::ports::unused());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", nobody).stderr(Stdio::piped());
    let mut served = Served::start(command);
    for _ in 0..3 {
        assert_eq!(get(&served.address, "/v1/tools").unwrap().status, 200);
    }
    let started = Instant::now();
    tell_to_stop(&served);
    let stderr = std::io::read_to_string(served.process.stderr.take().unwrap()).unwrap();
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(15));
    assert_eq!(stderr.matches("warning:").count(), 1, "{stderr}");
    assert!(stderr.contains("the collector takes no traces"), "{stderr}");
}
