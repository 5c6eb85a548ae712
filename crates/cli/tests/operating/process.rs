//! A registry that is a process, and somebody who asks it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use package::digest::Digest;
use package::write::{Packed, Writer};
use serde_json::{Value, json};

pub(crate) use super::common::served::Served;

/// Set where `PostgreSQL`, the S3 server and nginx must be there.
const DEMANDED: &str = "HAFT_TEST_SERVERS";

/// What is needed, or nothing where it is not installed and need not be.
pub(crate) fn demanded<T>(what: &str, found: Option<T>) -> Option<T> {
    assert!(found.is_some() || std::env::var_os(DEMANDED).is_none(), "{what} is not installed");
    found
}

/// `haft`, without what the environment says of databases.
pub(crate) fn haft(home: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
    for name in ["HAFT_DATABASE_URL", "DATABASE_URL", "PGPASSWORD", "HAFT_TOKEN"] {
        command.env_remove(name);
    }
    command.arg("--home").arg(home).stdin(Stdio::null());
    command
}

/// An answer: its status and its body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    /// Checks that what is no success is in the error model.
    pub(crate) fn is_in_the_model(&self) {
        if self.status >= 400 {
            let error = &self.json()["error"];
            assert!(error["code"].is_string() && error["message"].is_string(), "{error}");
        }
    }
}

/// Asks once; whoever is killed meanwhile answers with a failure of the connection.
pub(crate) fn ask(
    address: &str,
    method: &str,
    path: &str,
    token: &str,
    body: &[u8],
) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: registry\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    )?;
    if !token.is_empty() {
        write!(stream, "Authorization: Bearer {token}\r\n")?;
    }
    stream.write_all(b"\r\n")?;
    stream.write_all(body)?;
    read_answer(&mut stream)
}

pub(crate) fn read_answer(stream: &mut TcpStream) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let cut_off = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(cut_off)?;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(cut_off)?;
    let body = bytes[end + 4..].to_vec();
    let told = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    if told
        .and_then(|told| told.trim().parse::<usize>().ok())
        .is_some_and(|told| told != body.len())
    {
        return Err(cut_off());
    }
    Ok(Answer { status, body })
}

pub(crate) fn get(address: &str, path: &str) -> io::Result<Answer> {
    ask(address, "GET", path, "", b"")
}

/// A package, and what its bytes come to.
pub(crate) fn package(id: &str, version: &str, note: &str) -> (Vec<u8>, String) {
    let manifest = json!({
        "toolId": id, "name": "Reads PDF", "version": version,
        "description": "Reads the text of a PDF file.", "capabilities": ["pdf"],
        "endpoint": {"type": "local", "command": "node ./index.js"},
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"}
    });
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    for (path, content) in [("index.js", note.to_owned()), ("manifest.json", manifest.to_string())]
    {
        writer.add(&Packed::compress(path, content.as_bytes(), false)).unwrap();
    }
    writer.finish().unwrap();
    let digest = Digest::of(&bytes).to_string();
    (bytes, digest)
}

/// Runs a verb to its end: its code and what it said.
pub(crate) fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Runs a verb that must succeed and answers in JSON.
pub(crate) fn done(command: &mut Command) -> Value {
    let (code, stdout, stderr) = run(command.arg("--json"));
    assert_eq!(code, 0, "{stdout}{stderr}");
    serde_json::from_str(&stdout).unwrap()
}
