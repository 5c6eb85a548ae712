//! A running proxy, a server behind it, and what was reported.
//!
//! Everything has a time limit, so a test that should fail does not hang.
#![allow(
    clippy::allow_attributes,
    dead_code,
    unreachable_pub,
    reason = "each test file is a crate of its own and uses a part of this"
)]

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use egress::attempt::Reached;
use egress::resolve::{Lookup, Resolve, ResolveError};
use egress::{Attempt, Ends, Limits, Name, Outcome, Rule, Rules, Running, Stage};

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A resolver made of a function.
pub struct Names<F>(pub F);

impl<F: Fn(&str) -> Option<Vec<IpAddr>> + Send + Sync> Resolve for Names<F> {
    fn resolve<'a>(&'a self, name: &'a Name) -> Lookup<'a> {
        let found = (self.0)(name.as_str());
        let missing = || ResolveError::Failed(io::ErrorKind::NotFound.into());
        Box::pin(async move { found.ok_or_else(missing) })
    }
}

/// Everything in `.test` is this machine, but for `missing.test`.
pub fn all_here(name: &str) -> Option<Vec<IpAddr>> {
    (name.rsplit('.').next() == Some("test") && name != "missing.test")
        .then(|| vec![Ipv4Addr::LOCALHOST.into()])
}

/// A running proxy.
pub struct Desk {
    pub proxy: Running,
    reports: Receiver<Attempt>,
}

/// The end of an attempt.
#[derive(Debug)]
pub struct End {
    pub id: u64,
    pub asked: String,
    pub outcome: Outcome,
    pub reached: Option<Reached>,
    pub up: u64,
    pub down: u64,
}

impl Desk {
    /// A proxy that allows `*.ok.test` and `ok.test` at any port, wherever they lead.
    pub fn open() -> Self {
        Self::with_limits(Limits::DEFAULT)
    }

    pub fn with_limits(limits: Limits) -> Self {
        let rules = ["ok.test:*", "*.ok.test:*", "missing.test:*"];
        let rules = rules.map(|text| Rule::parse(text).unwrap().reaching_private());
        Self::with(rules.into_iter().collect(), Names(all_here), limits)
    }

    pub fn with(rules: Rules, resolver: impl Resolve + 'static, limits: Limits) -> Self {
        Self::with_ends(TcpListener::bind("127.0.0.1:0").unwrap(), rules, resolver, limits)
    }

    pub fn with_ends(
        ends: impl Into<Ends>,
        rules: Rules,
        resolver: impl Resolve + 'static,
        limits: Limits,
    ) -> Self {
        let (sender, reports) = channel();
        let report = move |attempt| sender.send(attempt).unwrap_or_default();
        let proxy = Running::in_background(ends, rules, resolver, limits, report).unwrap();
        Self { proxy, reports }
    }

    pub fn connect(&self) -> TcpStream {
        patient(TcpStream::connect(self.proxy.address()).unwrap())
    }

    /// Sends bytes and reads the answer to its end.
    pub fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = self.connect();
        client.write_all(bytes.as_ref()).unwrap();
        read_all(&mut client)
    }

    /// A tunnel that stands.
    pub fn tunnel(&self, target: &str) -> TcpStream {
        let mut client = self.connect();
        write!(client, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").unwrap();
        let head = read_head(&mut client);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        client
    }

    pub fn next(&self) -> Attempt {
        self.reports.recv_timeout(PATIENCE).expect("an attempt is reported")
    }

    /// The next report, which opens an attempt.
    pub fn opened(&self) -> Reached {
        match self.next().stage {
            Stage::Opened(reached) => reached,
            other @ Stage::Ended { .. } => panic!("{other:?}"),
        }
    }

    /// The next report, which ends an attempt.
    pub fn ended(&self) -> End {
        let Attempt { id, asked, stage, .. } = self.next();
        match stage {
            Stage::Ended { outcome, reached, up, down, .. } => {
                End { id, asked, outcome, reached, up, down }
            }
            other @ Stage::Opened(_) => panic!("{other:?}"),
        }
    }

    /// Stops the proxy; returns what was reported and not yet looked at.
    pub fn finish(self) -> Vec<Attempt> {
        drop(self.proxy);
        self.reports.iter().collect()
    }
}

/// A server on this machine that does the same for each client; its port.
pub fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = std::sync::Arc::new(serve);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, serve) = (patient(client.unwrap()), std::sync::Arc::clone(&serve));
            thread::spawn(move || serve(client));
        }
    });
    port
}

/// A server that reads a head and sends this, and the heads it has read.
pub fn canned(answer: &'static [u8]) -> (u16, Receiver<String>) {
    let (sender, heads) = channel();
    let port = server(move |mut client| {
        let head = read_head(&mut client);
        sender.send(head).unwrap_or_default();
        client.write_all(answer).unwrap_or_default();
        let _ = client.shutdown(std::net::Shutdown::Write);
        let _ = io::copy(&mut client, &mut io::sink());
    });
    (port, heads)
}

pub fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reads up to and with an empty line.
pub fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

pub fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
