//! A small site with HTTP and HTTPS, served by Python.
#![allow(
    clippy::allow_attributes,
    dead_code,
    unreachable_pub,
    reason = "each test file is a crate of its own and uses a part of this"
)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A site that is open. It closes when its input does.
pub struct Open {
    /// Who vouches for it is `root.pem` in there.
    pub folder: TempDir,
    pub server: Child,
    /// The port of HTTP.
    pub plain: String,
    /// The port of HTTPS.
    pub secure: String,
}

/// Opens the site; its certificate is of that host.
pub fn open(host: &str) -> Open {
    let folder = tempfile::tempdir().unwrap();
    let make = |arguments: &[&str]| {
        let made = Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"])
            .args(["-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    make(&["-keyout", "root.key", "-out", "root.pem", "-subj", "/CN=root"]);
    let names = format!("subjectAltName=DNS:{host}");
    let signed = ["-CA", "root.pem", "-CAkey", "root.key", "-addext", "basicConstraints=CA:FALSE"];
    let named = ["-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=test", "-addext", &names];
    make(&[&signed[..], &named[..]].concat());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/site/server.py");
    let mut server = Command::new(python())
        .arg(script)
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ports = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut ports).unwrap();
    let (plain, secure) = ports.trim().split_once(' ').expect("the site has two ports");
    let (plain, secure) = (plain.to_owned(), secure.to_owned());
    Open { folder, server, plain, secure }
}

/// The system's own Python: one behind a shim needs its own variables.
pub fn python() -> &'static str {
    if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" }
}
