//! Calls of agents that are broken off.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::{repository, run_in};
use serde_json::{Value, json};

/// An agent that is never done, and the methods it is asked for.
fn agent() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (said, asked) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let request = request(&stream);
            let method = request["method"].as_str().unwrap_or("card").to_owned();
            let task = json!({ "id": "t", "status": { "state": "TASK_STATE_WORKING" } });
            let result = if method == "SendMessage" { json!({ "task": task }) } else { task };
            let body =
                json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string();
            let status = if request.is_null() { "404 Not Found" } else { "200 OK" };
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close");
            let _ = write!(&stream, "{head}\r\n\r\n{body}");
            let _ = said.send(method);
        }
    });
    (port, asked)
}

/// The body of a request; null where there is none.
fn request(stream: &TcpStream) -> Value {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    for line in reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let line = line.to_ascii_lowercase();
        length = line.strip_prefix("content-length: ").map_or(length, |text| text.parse().unwrap());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap_or_default()
}

#[test]
fn a_task_is_called_off_when_the_call_is_told_to_stop() {
    let folder = tempfile::Builder::new().prefix("haft-agents-").tempdir_in("/var/tmp").unwrap();
    let home = folder.path().join("home").to_str().unwrap().to_owned();
    let (port, asked) = agent();
    let example = repository().join("examples/capability/ask-agent/manifest.json");
    let text = std::fs::read_to_string(example).unwrap();
    let manifest = folder.path().join("manifest.json").to_str().unwrap().to_owned();
    std::fs::write(&manifest, text.replace("8731", &port.to_string())).unwrap();
    let host = format!("127.0.0.1:{port}");
    let grant = ["--home", &*home, "grant", "capability:demo.ask-agent", "--host", &*host];
    assert_eq!(run_in(&repository(), &grant, None).code, 0);
    let mut call = Command::new(assert_cmd::cargo::cargo_bin("haft"))
        .args(["--home", &*home, "call", "--from", &*manifest, "demo.ask-agent", r#"{"text":"x"}"#])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let next = || asked.recv_timeout(Duration::from_mins(1)).expect("the agent is asked");
    while next() != "GetTask" {}
    let id = rustix::process::Pid::from_raw(i32::try_from(call.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    while next() != "CancelTask" {}
    assert_eq!(call.wait().unwrap().code(), Some(130));
}
