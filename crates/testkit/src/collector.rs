//! A collector of OpenTelemetry for a test, in a process of its own. It reads what it is sent with the definitions that
//! OpenTelemetry itself publishes, and strictly: a field that they do not have is refused.

use std::process::Command;

use serde_json::Value;

use crate::peer::Peer;

/// A collector that runs until this is dropped.
#[derive(Debug)]
pub struct Collector(Peer);

impl Collector {
    /// Starts a collector; none where the definitions are not installed.
    pub fn start() -> Option<Self> {
        let library = "opentelemetry.proto.collector.trace.v1.trace_service_pb2";
        Peer::start(python, library, include_str!("collector.py")).map(Self)
    }

    /// Where it is sent spans.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.0.port)
    }

    /// Answers with this status from now on, and takes nothing unless it is 200.
    pub fn answer(&self, status: u16) {
        self.0.ask("POST", "/answer", &status.to_string());
    }

    /// What it has seen: `spans` it has taken, each with its `resource` and ids in hexadecimal; the `headers` of what
    /// came last; `refused`, why it could not be read; and how often something was `sent`.
    pub fn seen(&self) -> Value {
        self.0.ask("GET", "/seen", "")
    }
}

/// Python, with the folder that `./test` puts the definitions into.
fn python() -> Command {
    let mut command = Command::new("python3");
    if let Some(folder) = std::env::var_os("HAFT_COLLECTOR") {
        command.env("PYTHONPATH", folder);
    }
    command
}
