//! A home with tools in it, and the gateway before it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

use crate::common::{Desk, greeting, repository, write_below};

/// How long an answer over HTTP may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// The newer era's revision.
pub(crate) const NEWER: &str = "2026-07-28";

/// A home with these servers, written in Python, and a policy.
pub(crate) fn home(servers: &[(&str, &str)], policy: &str) -> Desk {
    let desk = Desk::new();
    let file = settings(&desk, servers);
    write_below(&desk.path("home"), "policy.toml", policy);
    Command::new("chmod").args(["-R", "go-w"]).arg(desk.path("home")).status().unwrap();
    if !servers.is_empty() {
        desk.done(&["import", &file, "--yes"]);
    }
    desk
}

/// The settings of a client that has these servers, as a file.
pub(crate) fn settings(desk: &Desk, servers: &[(&str, &str)]) -> String {
    let all: serde_json::Map<_, _> = servers
        .iter()
        .map(|(name, path)| {
            let arguments: Vec<_> = path.split(' ').collect();
            ((*name).to_owned(), json!({ "command": "python3", "args": arguments }))
        })
        .collect();
    write_below(desk.0.path(), "servers.json", &json!({ "mcpServers": all }).to_string())
}

/// A home with two tools that take a minute, `dozer_doze` of a server and `sleeper_say` of a command; and the scripts of the first.
pub(crate) fn sleepers() -> (Desk, Desk) {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "dozer", "doze", "time.sleep(60); return 'late'");
    let desk = home(&[("dozer", &path)], OPEN);
    let mut manifest = greeting("sleeper");
    manifest["runtime"]["install"]["locator"]["binary"] = "sleep".into();
    manifest["runtime"]["entrypoint"]["command"] = json!(["sleep"]);
    manifest["actions"][0]["invocation"]["argv_template"] = json!(["60"]);
    let file = write_below(desk.0.path(), "manifest.json", &manifest.to_string());
    desk.done(&["install", &file, "--yes"]);
    (desk, scripts)
}

/// A server for the conformance suite.
pub(crate) fn conformance() -> String {
    let path = repository().join("crates/gateway/tests/servers/conformance.py");
    path.to_str().unwrap().to_owned()
}

/// A server with one tool of this body, which gets `arguments` and gives back a text.
pub(crate) fn server(folder: &Path, name: &str, tool: &str, body: &str) -> String {
    let body = body.replace('\n', "\n    ");
    let before = format!(
        "calls = 0\ndef {tool}(arguments):\n    global calls\n    calls += 1\n    {body}\n"
    );
    let tools = format!(
        r#"[{{"name": "{tool}", "description": "{tool} of {name}", "inputSchema": {{"type": "object"}}}}]"#
    );
    let called = format!("_words({tool}(arguments))");
    speaking(folder, name, &before, &tools, &called)
}

/// A server of the older era in Python: what is defined first, its tools, and the result of a call, which has `params`, their `arguments`
/// and `_words` for a text.
pub(crate) fn speaking(
    folder: &Path,
    name: &str,
    before: &str,
    tools: &str,
    called: &str,
) -> String {
    let text = format!(
        r#"import json, os, sys, time
def _words(said): return {{"content": [{{"type": "text", "text": str(said)}}]}}
def _say(message): print(json.dumps({{"jsonrpc": "2.0", **message}}), flush=True)
{before}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params") or {{}}
    arguments = params.get("arguments") or {{}}
    if method == "initialize":
        result = {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{"listChanged": True}}}}, "serverInfo": {{"name": "{name}", "version": "1"}}}}
    elif method == "tools/list":
        result = {{"tools": {tools}}}
    elif method == "tools/call":
        result = {called}
    else:
        _say({{"id": message["id"], "error": {{"code": -32601, "message": "no"}}}})
        continue
    _say({{"id": message["id"], "result": result}})
"#
    );
    write_below(folder, &format!("{name}.py"), &text)
}

/// A server of the newer era in Python, with a tool `work`: what is defined first, and the result of any request that it does not answer
/// itself. That has `method`, `params`, their `arguments`, and `Refused` to raise with a code, a message and data; where it is nothing,
/// the request waits for `answer_all`.
pub(crate) fn newer(folder: &Path, name: &str, before: &str, result: &str) -> String {
    let text = format!(
        r#"import json, sys, time
class Refused(Exception): pass
waiting = []
def say(message): print(json.dumps({{"jsonrpc": "2.0", **message}}), flush=True)
def words(said): return {{"content": [{{"type": "text", "text": str(said)}}]}}
def done(number, result):
    server = {{"io.modelcontextprotocol/serverInfo": {{"name": "{name}", "version": "1"}}}}
    say({{"id": number, "result": {{"resultType": "complete", "_meta": server, **result}}}})
def answer_all(result):
    for number in waiting: done(number, result)
    return result
{before}
def answer(method, params):
    arguments = params.get("arguments") or {{}}
    if method == "server/discover":
        capabilities = {{"tools": {{}}, "resources": {{}}, "extensions": {{"io.modelcontextprotocol/tasks": {{}}}}}}
        return {{"supportedVersions": ["{NEWER}"], "capabilities": capabilities, "ttlMs": 1000, "cacheScope": "public"}}
    if method == "tools/list":
        return {{"tools": [{{"name": "work", "description": "Works", "inputSchema": {{"type": "object"}}}}], "ttlMs": 1000, "cacheScope": "public"}}
    return ({result})
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message: continue
    try:
        result = answer(message["method"], message.get("params") or {{}})
        if result is None: waiting.append(message["id"])
        else: done(message["id"], result)
    except Refused as refused:
        code, said, data = refused.args
        say({{"id": message["id"], "error": {{"code": code, "message": said, "data": data}}}})
"#
    );
    write_below(folder, &format!("{name}.py"), &text)
}

/// The gateway over HTTP, until this is dropped.
pub(crate) struct Gate {
    pub(crate) process: Child,
    /// Its host and port.
    pub(crate) address: String,
    /// Where its console lets the owner in.
    pub(crate) console: Option<String>,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    /// The messages in it, of a stream or alone.
    pub(crate) fn messages(&self) -> Vec<Value> {
        if self.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream") {
            let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
            return data.map(|text| serde_json::from_str(text).unwrap()).collect();
        }
        vec![serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))]
    }

    /// The last of them.
    pub(crate) fn last(&self) -> Value {
        self.messages().pop().unwrap()
    }
}

impl Gate {
    pub(crate) fn open(desk: &Desk, more: &[&str]) -> Self {
        Self::open_with(desk, more, &[])
    }

    /// The same, with variables.
    pub(crate) fn open_with(desk: &Desk, more: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::open_saying(desk, more, variables, Stdio::inherit())
    }

    /// The same, and where what it says beside its result goes.
    pub(crate) fn open_saying(
        desk: &Desk,
        more: &[&str],
        variables: &[(&str, &str)],
        stderr: Stdio,
    ) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command.arg("--home").arg(desk.path("home"));
        command.args(["serve", "--json"]).args(more);
        if !more.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.envs(variables.iter().copied());
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(stderr)
            .current_dir(desk.0.path())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        while !said.contains('}') {
            assert!(out.read_line(&mut said).unwrap() > 0, "the gateway ended: {said}");
        }
        let said: Value = serde_json::from_str(&said).unwrap();
        let url = said["mcp"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        let console = said["console"].as_str().map(str::to_owned);
        Self { process, address: address.to_owned(), console }
    }

    /// Makes a request.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        send_to(&self.address, method, path, headers, body)
    }

    /// Posts a message.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> Answer {
        let usual = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        self.send("POST", path, &[&usual, headers].concat(), &message.to_string())
    }

    /// Asks as a client of the newer era does, which can do this.
    pub(crate) fn ask_as(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        capabilities: &Value,
        method: &str,
        mut params: Value,
    ) -> Answer {
        let name = params.get("name").or(params.get("uri")).or(params.get("taskId")).cloned();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": NEWER,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut all = vec![("mcp-protocol-version", NEWER), ("mcp-method", method)];
        let name = name.as_ref().and_then(Value::as_str);
        all.extend(name.map(|name| ("mcp-name", name)));
        all.extend(headers);
        self.post(path, &all, &message)
    }

    /// The same for a client that can do nothing.
    pub(crate) fn ask(&self, path: &str, method: &str, params: Value) -> Value {
        self.ask_as(path, &[], &json!({}), method, params).last()
    }

    /// Calls a tool, and says what came of it.
    pub(crate) fn call(&self, path: &str, tool: &str, arguments: Value) -> Value {
        self.ask(path, "tools/call", called(tool, arguments))["result"].clone()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _ended_already = self.process.wait();
    }
}

/// Makes a request to a host and port.
pub(crate) fn send_to(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += &format!("host: {address}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    read(&mut BufReader::new(stream))
}

fn read(reader: &mut impl BufRead) -> Answer {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut piece = vec![0; size + 2];
            reader.read_exact(&mut piece).unwrap();
            if size == 0 {
                break;
            }
            body.extend_from_slice(&piece[..size]);
        }
    } else {
        reader.read_to_end(&mut body).unwrap();
    }
    Answer { status, headers, body: String::from_utf8(body).unwrap() }
}

/// A client that started `haft mcp`.
pub(crate) struct Joined {
    pub(crate) process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Joined {
    pub(crate) fn new(desk: &Desk, more: &[&str]) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command.arg("--home").arg(desk.path("home")).arg("mcp").args(more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.current_dir(desk.0.path()).spawn().unwrap();
        let to = process.stdin.take();
        let from = BufReader::new(process.stdout.take().unwrap());
        Self { process, to, from }
    }

    /// One that greeted as a client of the older era, which can do this.
    pub(crate) fn greeted(desk: &Desk, more: &[&str], capabilities: &Value) -> Self {
        let mut joined = Self::new(desk, more);
        let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": { "name": "test", "version": "1" } });
        let answer = joined.ask("initialize", &greeting);
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        joined.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        joined
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.to.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Says something beside, so that it can be heard meanwhile; then it ends.
    pub(crate) fn pour(&mut self, texts: Vec<String>) -> std::thread::JoinHandle<()> {
        let mut to = self.to.take().unwrap();
        std::thread::spawn(move || {
            for text in &texts {
                to.write_all(text.as_bytes()).unwrap();
            }
        })
    }

    /// Says something that may be no message.
    pub(crate) fn say(mut self, text: &str) -> Self {
        self.to.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        self
    }

    /// The next message. Nobody is waited for in vain.
    pub(crate) fn next(&mut self) -> Value {
        if self.from.buffer().is_empty() {
            let mut ready = [PollFd::new(self.from.get_ref(), PollFlags::IN)];
            let patience = PATIENCE.try_into().unwrap();
            assert_eq!(poll(&mut ready, Some(&patience)).unwrap(), 1, "it says nothing");
        }
        let mut line = String::new();
        assert!(self.from.read_line(&mut line).unwrap() > 0, "it ended");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    /// Asks, and waits for the answer; whatever else is said meanwhile is passed over.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }));
        loop {
            let message = self.next();
            if message["id"] == 7 && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", &called(tool, arguments));
        answer["result"].clone()
    }

    /// Ends it as clients do, and says what it still had to say.
    pub(crate) fn end(mut self) -> Vec<Value> {
        drop(self.to.take());
        let mut rest = String::new();
        self.from.read_to_string(&mut rest).unwrap();
        self.process.wait().unwrap();
        rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _ended_already = self.process.wait();
    }
}

/// A connection to the host of a home, of a program of this version that wants something; and what it was told.
pub(crate) fn connected(desk: &Desk, version: &str, want: &Value) -> (UnixStream, Value) {
    let mut stream = UnixStream::connect(desk.path("home/host.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    writeln!(stream, "{}", json!({ "version": version, "want": want })).unwrap();
    let mut told = String::new();
    while !told.ends_with('\n') {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        told.push(char::from(byte[0]));
    }
    (stream, serde_json::from_str(&told).unwrap())
}

/// The parameters of a call.
fn called(tool: &str, arguments: Value) -> Value {
    Value::from_iter([("name", tool.into()), ("arguments", arguments)])
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} has not come to be");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The words of a result.
pub(crate) fn words(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// A policy that asks nobody about tools which do not say what they change, and lets agents wish for none.
pub(crate) const OPEN: &str = "[agents]\ninstall = \"never\"\n[approval]\nundeclared = \"allow\"\n";
