//! An S3 server of its own for a test: `moto`, on a port of its own, ended with the test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Bucket {
    server: Child,
    port: u16,
}

impl Bucket {
    /// The name of the one bucket there is.
    pub const NAME: &'static str = "haft-test";

    /// Starts a server; none where it is not installed.
    pub fn start() -> Option<Self> {
        let asked = python().args(["-c", "import moto.server"]).output();
        if !asked.is_ok_and(|found| found.status.success()) {
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).ok()?.port();
        let server = python()
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let bucket = Self { server, port };
        let deadline = Instant::now() + Duration::from_mins(1);
        while !bucket.is_made() {
            assert!(Instant::now() < deadline, "the S3 server does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(bucket)
    }

    /// The port it listens at.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What a client must know to reach it.
    pub fn settings(&self) -> Vec<(String, String)> {
        Self::settings_at(self.port)
    }

    /// What a client must know to reach it by way of another port.
    pub fn settings_at(port: u16) -> Vec<(String, String)> {
        [
            ("aws_endpoint", format!("http://127.0.0.1:{port}")),
            ("aws_region", "us-east-1".to_owned()),
            ("aws_access_key_id", "test".to_owned()),
            ("aws_secret_access_key", "test".to_owned()),
            ("aws_allow_http", "true".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Makes the bucket; says whether it is there.
    fn is_made(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            let name = Self::NAME;
            write!(
                stream,
                "PUT /{name} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\
                 Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
                 SignedHeaders=host, Signature=0\r\n\r\n"
            )?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }
}

/// Python, with the folder that `./test` puts the server into.
pub(crate) fn python() -> Command {
    let mut command = Command::new("python3");
    if let Some(folder) = std::env::var_os("HAFT_MOTO") {
        command.env("PYTHONPATH", folder);
    }
    command
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ended_already = self.server.kill();
        let _ended_already = self.server.wait();
    }
}
