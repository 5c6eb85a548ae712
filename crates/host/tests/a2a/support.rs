//! Agents for tests, and calls of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::{Blocked, CallError, Host, Output, Records, Settings, Tool, Warmth};
use manifest::document::{Options, read};
use manifest::model::Trust;
use policy::{Consent, Grant, GrantKind, Grants, Policy};
use sandbox::Launcher;
use serde_json::{Value, json};

use crate::kit;

/// An agent, and a host that may reach it.
pub(crate) struct Site {
    server: Server,
    pub(crate) port: u16,
    pub(crate) host: Host,
    pub(crate) records: Arc<Records>,
}

enum Server {
    Process(Child),
    Ours(Arc<Mutex<Vec<Value>>>),
    Silent(#[expect(dead_code, reason = "it only has to be there")] TcpListener),
}

const POLICY: &str = r#"
[secrets]
environment = ["AGENT_TOKEN", "OTHER"]
[sandbox]
output = "1M"
"#;

/// The versions of the library, as their folders are called.
pub(crate) const VERSIONS: [&str; 2] = ["1", "0.3"];

impl Site {
    /// An agent made of the library, which `./test` installs, or a variable names.
    pub(crate) fn of_library(version: &str, card: &str) -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/a2a");
        let installed = std::env::var_os("HAFT_A2A_PEERS").map_or(here, PathBuf::from);
        let library = installed.join(version);
        assert!(library.is_dir(), "run `./test` once: nothing is at `{}`", library.display());
        Self::of_script("tests/a2a/agent.py", card, &library)
    }

    /// An agent that is a Python program, which prints its port first.
    pub(crate) fn of_script(script: &str, argument: &str, library: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let mut child = Command::new("python3")
            .arg(script)
            .arg(argument)
            .env("PYTHONPATH", library)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self::new(Server::Process(child), port.trim().parse().unwrap())
    }

    /// An agent that answers each request as a function says: a whole response, from the status line on.
    /// There is no card.
    pub(crate) fn answering(answer: impl Fn(&Value) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let response = match request(&stream) {
                    Some(body) => {
                        seen.lock().unwrap().push(body.clone());
                        answer(&body)
                    }
                    None => response("404 Not Found", "text/plain", "no card"),
                };
                let _ = (&stream).write_all(response.as_bytes());
            }
        });
        Self::new(Server::Ours(asked), port)
    }

    /// An agent that is reached and never says anything.
    pub(crate) fn silent() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        Self::new(Server::Silent(listener), port)
    }

    fn new(server: Server, port: u16) -> Self {
        let (home, vault, records) = kit::stores();
        let launcher = Launcher::start(Path::new(env!("CARGO_BIN_EXE_host-launcher"))).unwrap();
        let settings = Settings {
            policy: Policy::parse(POLICY).unwrap(),
            home,
            user_home: None,
            search_path: "/usr/bin:/bin".into(),
            environment: ["AGENT_TOKEN", "OTHER"]
                .map(|name| (name.to_owned(), format!("s3cret of {name}")))
                .into(),
        };
        let host = Host::new(settings, launcher, vault, Arc::clone(&records));
        Self { server, port, host, records }
    }

    /// The methods that were asked for, with their parameters.
    pub(crate) fn asked(&self) -> Vec<Value> {
        match &self.server {
            Server::Process(_) | Server::Silent(_) => Vec::new(),
            Server::Ours(asked) => asked.lock().unwrap().clone(),
        }
    }

    /// A package that speaks of this agent.
    pub(crate) fn tool(&self, more: Value) -> Tool {
        let endpoint = format!("http://127.0.0.1:{}/rpc", self.port);
        let mut manifest = json!({
            "id": "trial.agent",
            "type": "a2a_peer",
            "version": "1.0.0",
            "description": "Asks an agent.",
            "origin": { "source": "local", "digest": "0".repeat(64) },
            "interfaces": { "inputs": { "type": "object" }, "outputs": {} },
            "permissions": {
                "network": "allowlist",
                "network_allowlist": ["agent.example.com"],
                "filesystem": "none",
                "devices": [],
            },
            "runtime": {
                "sandbox": "process",
                "resources": { "cpu": "1", "memory": "256Mi" },
                "timeout_seconds": 30,
            },
            "trust_level": "local",
            "implementation": { "kind": "a2a_rpc", "a2a": { "endpoint": endpoint } },
        });
        if let (Value::Object(members), Value::Object(more)) = (&mut manifest, more) {
            members.extend(more);
        }
        tool_of(&manifest)
    }

    fn grants(&self) -> Grants {
        let value = format!("127.0.0.1:{}", self.port);
        Grants::from_iter([Grant { kind: GrantKind::Host, value }])
    }

    /// Calls with the agent's host granted.
    pub(crate) async fn call(&self, tool: &Tool, input: &Value) -> Result<Output, CallError> {
        self.call_granting(tool, input, &self.grants()).await.0
    }

    /// Calls, and calls off after a while.
    pub(crate) async fn calling_off(&self, after: Duration) -> Result<Output, CallError> {
        let tool = self.tool(json!({}));
        kit::set_grants(&self.records, &tool.package.canonical_id(), &self.grants()).await;
        let call = kit::call_of(&tool, &json!({}));
        let stopping = async {
            tokio::time::sleep(after).await;
            call.called_off.cancel();
        };
        tokio::join!(self.host.call(&tool, &call, Warmth::Cold), stopping).0.reply
    }

    pub(crate) async fn call_granting(
        &self,
        tool: &Tool,
        input: &Value,
        grants: &Grants,
    ) -> (Result<Output, CallError>, Vec<Blocked>) {
        kit::set_grants(&self.records, &tool.package.canonical_id(), grants).await;
        kit::call(&self.host, tool, input, Warmth::Cold).await
    }

    /// The result of a call that must succeed.
    pub(crate) async fn json(&self, input: Value) -> Value {
        let reply = self.call(&self.tool(json!({})), &input).await;
        reply.unwrap_or_else(|error| panic!("{error}: {}", error.details)).into_value()
    }

    /// The error of a call that must fail.
    pub(crate) async fn error(&self, input: Value) -> CallError {
        self.call(&self.tool(json!({})), &input).await.expect_err("the call must fail")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Server::Process(child) = &mut self.server {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The tool that a manifest describes.
pub(crate) fn tool_of(manifest: &Value) -> Tool {
    let text = manifest.to_string();
    let (_, mut packages) =
        read(text.as_bytes(), &Options::default()).unwrap_or_else(|report| panic!("{report:?}"));
    Tool {
        package: packages.remove(0),
        root: "/usr/share".into(),
        place: "/usr/share".into(),
        consent: Consent::ByPath,
        source_trust: Trust::Local,
        given: host::Given::default(),
        surface: None,
        brought: host::Brought::default(),
        links: None,
        digest: None,
    }
}

/// A response with a body.
pub(crate) fn response(status: &str, media_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// A response of the protocol.
pub(crate) fn result(request: &Value, result: &Value) -> String {
    let body = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
    response("200 OK", "application/json", &body.to_string())
}

/// The body of a request, where it has one.
fn request(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
