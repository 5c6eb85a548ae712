//! A server of a few lines of Python, in a process of its own, that is asked in JSON what it has seen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::ports;

/// A server that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Peer {
    server: Child,
    pub(crate) port: u16,
}

impl Peer {
    /// Starts a script, which is told its port and says `ready`; none where the library it needs is not installed.
    pub(crate) fn start(python: impl Fn() -> Command, library: &str, script: &str) -> Option<Self> {
        let asked = python().args(["-c", &format!("import {library}")]).output();
        if !asked.is_ok_and(|found| found.status.success()) {
            return None;
        }
        let port = ports::unused();
        let mut server = python()
            .args(["-W", "ignore", "-c", script, &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut said = String::new();
        BufReader::new(server.stdout.take()?).read_line(&mut said).ok()?;
        assert_eq!(said.trim(), "ready", "the server does not start");
        Some(Self { server, port })
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket can wait");
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the server answers");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).unwrap_or_else(|_| panic!("the server says {answer}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ended_already = self.server.kill();
        let _ended_already = self.server.wait();
    }
}
