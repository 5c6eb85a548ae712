//! An issuer of identities for a test, with keys of its own, in a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::{bucket, ports};

/// An issuer that runs until this is dropped.
#[derive(Debug)]
pub struct Issuer {
    server: Child,
    port: u16,
}

impl Issuer {
    /// Starts an issuer; none where the library it signs with is not installed.
    pub fn start() -> Option<Self> {
        let asked = bucket::python().args(["-c", "import joserfc"]).output();
        if !asked.is_ok_and(|found| found.status.success()) {
            return None;
        }
        let port = ports::unused();
        let mut command: Command = bucket::python();
        let mut server = command
            .args(["-W", "ignore", "-c", include_str!("issuer.py"), &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut said = String::new();
        BufReader::new(server.stdout.take()?).read_line(&mut said).ok()?;
        assert_eq!(said.trim(), "ready", "the issuer does not start");
        Some(Self { server, port })
    }

    /// The issuer of this name; those of other names than `good` lie in the way that they are called.
    pub fn named(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// An identity, signed, as is wished: `how`, `claims` (`null` leaves one out, moments are from now), `header`,
    /// `issuer`, `kid`, `changed`.
    pub fn identity(&self, wish: &Value) -> String {
        let said = self.ask("POST", "/sign", &wish.to_string());
        said["identity"].as_str().expect("the issuer signs").to_owned()
    }

    /// Takes other keys from now on.
    pub fn rotate(&self) {
        self.ask("POST", "/rotate", "{}");
    }

    /// How often it was asked for its keys.
    pub fn asked(&self) -> u64 {
        self.ask("GET", "/asked", "")["asked"].as_u64().expect("the issuer counts")
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the issuer listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket can wait");
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .expect("the issuer reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the issuer answers");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).unwrap_or_else(|_| panic!("the issuer says {answer}"))
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        let _ended_already = self.server.kill();
        let _ended_already = self.server.wait();
    }
}
