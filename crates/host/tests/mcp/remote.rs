//! Servers on the network: each way of speaking over it, with real ones.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use host::{Era, Kind, Output};
use manifest::document::{Options, read};
use manifest::model::OutputFormat;
use policy::{Grant, GrantKind, Grants};
use serde_json::{Value, json};

use crate::support::{Bench, node_servers, python_library, tool};

/// A server of somebody else's, outside the walls.
pub(crate) struct Site {
    child: Child,
    pub(crate) port: u16,
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Site {
    /// Starts one that takes its port from `PORT`, and waits until somebody listens there.
    pub(crate) fn start(root: &Path, argv: &[&str]) -> Self {
        let port = testkit::ports::unused();
        Self::at(port, root, argv)
    }

    /// The same, on a port.
    pub(crate) fn at(port: u16, root: &Path, argv: &[&str]) -> Self {
        let mut child = Command::new(argv[0])
            .args(&argv[1..])
            .current_dir(root)
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = child.stderr.take().unwrap();
        std::thread::spawn(move || BufReader::new(errors).lines().for_each(drop));
        let until = Instant::now() + Duration::from_mins(1);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "nobody listens");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, port }
    }

    fn everything(way: &str) -> Self {
        let index = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
        Self::start(&node_servers(), &["node", index, way])
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn grants(&self) -> Grants {
        let value = format!("127.0.0.1:{}", self.port);
        Grants::from_iter([Grant { kind: GrantKind::Host, value }])
    }

    pub(crate) fn bench(&self, path: &str) -> Bench {
        let runtime = json!({
            "kind": "mcp-http",
            "install": { "method": "npm", "package": "trial", "version_spec": "1.0.0" },
            "endpoint_url": self.url(path),
        });
        let bench = Bench::of(tool(Path::new("/var/tmp"), &runtime));
        bench.granting(self.grants()).within(Duration::from_mins(1))
    }
}

async fn answers(mut bench: Bench, era: Era) {
    let names = bench.discover().await;
    assert!(names.iter().any(|name| name == "echo"), "{names:?}");
    for turn in 0..3 {
        let echoed = bench.call("echo", json!({ "message": turn.to_string() })).await.unwrap();
        assert_eq!(echoed, Output::Text(format!("Echo: {turn}")));
    }
    let calls = (0..16).map(|number| bench.call("get-sum", json!({ "a": number, "b": 1 })));
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(bench.eras.last(), Some(era));
    let bench = bench.declaring("no-such-tool");
    assert!(bench.call("no-such-tool", json!({})).await.is_err());
}

#[tokio::test]
async fn one_that_answers_requests_is_spoken_with() {
    let site = Site::everything("streamableHttp");
    Box::pin(answers(site.bench("/mcp"), Era::Handshake)).await;
}

#[tokio::test]
async fn one_that_only_knows_the_oldest_way_is_spoken_with() {
    let site = Site::everything("sse");
    Box::pin(answers(site.bench("/sse"), Era::Events)).await;
}

#[tokio::test]
async fn one_of_the_newer_era_is_spoken_with() {
    let text = r#"
import os
from mcp.server import MCPServer
server = MCPServer("trial")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

server.run(transport="streamable-http", host="127.0.0.1", port=int(os.environ["PORT"]))
"#;
    let site = Site::start(&python_library("2"), &["python3", "-c", text]);
    let mut bench = site.bench("/mcp");
    bench.discover().await;
    let sum = bench.call("add", json!({ "a": 2, "b": 40 })).await.unwrap();
    assert_eq!(sum, Output::Json(json!({ "result": 42 })));
    assert_eq!(bench.eras.last(), Some(Era::Stateless));
}

#[tokio::test]
async fn one_that_answers_whatever_it_is_asked_is_greeted() {
    let site = site(
        r#"
    def do_POST(self):
        ask = json.loads(self.rfile.read(int(self.headers["content-length"])))
        greeting = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
        results = {"initialize": greeting, "tools/call": {"content": [{"type": "text", "text": "done"}]}}
        answer = {"jsonrpc": "2.0", "id": ask.get("id"), "result": results.get(ask["method"], {})}
        self.send_response(200 if "id" in ask else 202)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode() if "id" in ask else b"")
    def do_GET(self):
        self.send_error(405)
"#,
    );
    let bench = site.bench("/mcp").declaring("act");
    assert_eq!(bench.call("act", json!({})).await.unwrap(), Output::Text("done".into()));
    assert_eq!(bench.eras.last(), Some(Era::Handshake));
}

#[tokio::test]
async fn a_server_that_was_not_granted_is_not_reached() {
    let site = Site::everything("streamableHttp");
    let mut bench = site.bench("/mcp").declaring("echo");
    bench.grants = Grants::default();
    let (reply, blocked) =
        bench.ask("echo", json!({ "message": "x" }), host::Warmth::Warm, None).await;
    assert_eq!(reply.unwrap_err().kind.code(), "denied");
    assert_eq!(blocked[0].asked, format!("127.0.0.1:{}", site.port));
}

#[tokio::test]
async fn a_registry_leads_to_the_server_that_has_the_tool() {
    let site = Site::everything("streamableHttp");
    let server = json!({ "server": {
        "name": "example/everything",
        "remotes": [{ "type": "streamable-http", "url": site.url("/mcp") }],
    } });
    let registry = registry(&json!({ "servers": [server], "metadata": {} }), &server);
    let port = registry.port;
    let url = registry.url("");
    for (registry_url, server_id) in [
        (url.clone(), Some("example/everything")),
        (url, None),
        // A registry that is no registry but a server.
        (site.url("/mcp"), None),
    ] {
        let bench = of_registry(&registry_url, server_id, &[site.port, port]);
        let echoed = bench.call("trial.echo", json!({ "message": "x" })).await;
        assert_eq!(echoed.unwrap(), Output::Text("Echo: x".into()), "{registry_url} {server_id:?}");
    }
    // Of a capability the schema alone says what comes.
    let object = json!({ "type": "object" });
    let bench = of_registry(&site.url("/mcp"), None, &[site.port]);
    let bench = bench.promising(Some(OutputFormat::Json), Some(&object));
    let error = bench.call("trial.echo", json!({ "message": "x" })).await.unwrap_err();
    assert_eq!(error.kind, Kind::BadOutput);
    assert!(error.message.starts_with("the answer is a text, which does not fit"), "{error}");
    let away = self::site("    def do_GET(self):\n        self.send_error(503)\n");
    let bench = of_registry(&away.url(""), None, &[away.port]);
    let error = bench.call("trial.echo", json!({ "message": "x" })).await.unwrap_err();
    assert_eq!(error.details["status"], 503, "{error:?}");
    let bench = of_registry(&registry.url(""), Some("example/other"), &[port]);
    let error = bench.call("trial.echo", json!({ "message": "x" })).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unknown, "{error:?}");
}

/// A site that answers as the text of its handler says.
fn site(handler: &str) -> Site {
    let text = format!(
        "import http.server, json, os\nclass Handler(http.server.BaseHTTPRequestHandler):\n{handler}\nhttp.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()\n"
    );
    Site::start(Path::new("/var/tmp"), &["python3", "-c", &text])
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    for kind in ["application/json", "text/event-stream"] {
        let site = site(&format!(
            r#"
    def do_POST(self):
        self.send_response(200)
        self.send_header("content-type", "{kind}")
        self.end_headers()
        while True:
            self.wfile.write(b"data: " + b"x" * 1000000)
"#
        ));
        let bench = site.bench("/mcp").declaring("act").within(Duration::from_secs(20));
        let error = bench.call("act", json!({})).await.unwrap_err();
        assert_ne!(error.kind, Kind::TimedOut, "{kind}: {error:?}");
        assert_ne!(error.kind, Kind::Denied, "{kind}: {error:?}");
    }
}

/// Answers in either way of speaking, and to a call asks and asks without hearing what it is told.
const ASKS: &str = r#"
    protocol_version = "HTTP/1.1"
    stream = None

    def begin(self, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()

    def do_GET(self):
        if self.path != "/sse":
            return self.send_error(405)
        self.begin("text/event-stream")
        Handler.stream = self.wfile
        self.wfile.write(b"event: endpoint\ndata: /messages\n\n")
        self.wfile.flush()
        __import__("time").sleep(600)

    def do_POST(self):
        ask = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, number = ask.get("method"), 0
        if method is None:
            __import__("time").sleep(600)
        if self.path == "/sse" or method == "server/discover":
            return self.send_error(404)
        greeting = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
        answer = json.dumps({"jsonrpc": "2.0", "id": ask.get("id"), "result": greeting}).encode()
        if self.path == "/messages" or "id" not in ask:
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
            if method == "initialize":
                Handler.stream.write(b"data: " + answer + b"\n\n")
        elif method == "initialize":
            self.begin("application/json")
            self.wfile.write(answer)
            self.close_connection = True
        else:
            self.begin("text/event-stream")
            Handler.stream = self.wfile
        while method == "tools/call":
            number += 1
            Handler.stream.write(b'data: {"jsonrpc":"2.0","id":%d,"method":"ping"}\n\n' % number)
"#;

#[tokio::test]
async fn one_that_asks_without_end_is_not_answered_without_end() {
    for path in ["/mcp", "/sse"] {
        let site = site(ASKS);
        let bench = site.bench(path).declaring("act").within(Duration::from_secs(20));
        let error = bench.call("act", json!({})).await.unwrap_err();
        assert_eq!(error.kind, Kind::BadOutput, "{path}: {error:?}");
    }
}

#[tokio::test]
async fn a_server_cannot_send_our_messages_to_somebody_else() {
    let site = site(
        r#"
    def do_POST(self):
        self.send_error(404)
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: http://127.0.0.1:1/elsewhere\n\n")
"#,
    );
    let bench = site.bench("/sse").declaring("act").within(Duration::from_secs(20));
    let error = bench.call("act", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::BadOutput, "{error:?}");
    assert!(error.message.ends_with("is of another origin"), "{error}");
}

/// What is told of a server at a port that does not answer as it should.
async fn told(port: u16, address: &str) -> host::CallError {
    let runtime = json!({
        "kind": "mcp-http",
        "install": { "method": "npm", "package": "trial", "version_spec": "1.0.0" },
        "endpoint_url": address,
    });
    let value = format!("127.0.0.1:{port}");
    let bench = Bench::of(tool(Path::new("/var/tmp"), &runtime)).declaring("act");
    let bench = bench.granting(Grants::from_iter([Grant { kind: GrantKind::Host, value }]));
    bench.within(Duration::from_secs(20)).call("act", json!({})).await.unwrap_err()
}

#[tokio::test]
async fn a_server_that_is_not_reached_is_told_with_where_and_why() {
    let port = testkit::ports::unused();
    let error = told(port, &format!("http://127.0.0.1:{port}/mcp?key=hidden")).await;
    assert_eq!(error.kind, Kind::Unavailable);
    let begins = format!("the request to `127.0.0.1:{port}` failed: no connection was made: ");
    assert!(error.message.starts_with(&begins), "{error}");
    assert!(error.message.to_lowercase().contains("refused"), "{error}");
    let plain = site("    pass");
    let error = told(plain.port, &format!("https://127.0.0.1:{}/mcp", plain.port)).await;
    assert!(error.message.contains("` failed: no secure connection (TLS) was made: "), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_no_message_is_told_as_what_it_is() {
    let site = site(
        r#"
    def do_POST(self):
        body = b"<p>hello</p>"
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(int(self.path[1:]))
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST
"#,
    );
    for (status, words) in
        [(404, "404 Not Found"), (418, "418 I'm a teapot"), (500, "500 Internal Server Error")]
    {
        let error = told(site.port, &site.url(&format!("/{status}"))).await;
        assert_eq!(error.kind, Kind::Failed, "{error:?}");
        assert_eq!(error.message, format!("the server answered {words}"));
        assert_eq!(error.details["body"], "<p>hello</p>");
        assert_eq!(error.passes_after, None);
    }
    let error = told(site.port, &site.url("/503")).await;
    assert_eq!((error.passes_after, &error.details["status"]), (Some(0), &json!(503)), "{error}");
    let error = told(site.port, &site.url("/200")).await;
    assert_eq!(error.kind, Kind::BadOutput, "{error:?}");
    assert_eq!(
        error.message,
        "the server answered 200 OK with `text/html`, and no message of MCP; it begins with \"<p>hello</p>\""
    );
}

/// A registry that knows one server.
fn registry(list: &Value, one: &Value) -> Site {
    site(&format!(
        r#"
    def do_GET(self):
        path = self.path.split("?")[0]
        body = {{
            "/v0.1/servers": {list:?},
            "/v0.1/servers/example%2Feverything/versions/latest": {one:?},
        }}.get(path)
        self.send_response(200 if body else 404)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write((body or "{{}}").encode())
"#,
        list = list.to_string(),
        one = one.to_string(),
    ))
}

fn of_registry(url: &str, server: Option<&str>, ports: &[u16]) -> Bench {
    let mut mcp = json!({ "registry_url": url, "tool_name": "echo" });
    if let Some(server) = server {
        mcp["server_id"] = server.into();
    }
    let capability = json!({
        "id": "trial.echo",
        "type": "tool",
        "version": "1.0.0",
        "description": "Says it again.",
        "origin": { "source": "local", "digest": "0".repeat(64) },
        "interfaces": { "inputs": { "type": "object" }, "outputs": {} },
        "permissions": {
            "network": "allowlist",
            "network_allowlist": ["registry.example.com"],
            "filesystem": "none",
            "devices": [],
        },
        "runtime": {
            "sandbox": "process",
            "resources": { "cpu": "1", "memory": "256Mi" },
            "timeout_seconds": 60,
        },
        "trust_level": "local",
        "implementation": { "kind": "mcp_tool", "mcp": mcp },
    });
    let text = capability.to_string();
    let (checked, mut packages) = read(text.as_bytes(), &Options::default()).unwrap();
    assert!(!packages.is_empty(), "{checked:?}");
    let grants = ports
        .iter()
        .map(|port| Grant { kind: GrantKind::Host, value: format!("127.0.0.1:{port}") });
    let mut bench = Bench::script("");
    bench.tool.package = packages.remove(0);
    bench.granting(grants.collect()).within(Duration::from_mins(1))
}
