//! One secret through commands, Python, Node, MCP servers, images, HTTP requests and agents, by tools that say it aloud in every form they
//! can: it is found in no result, error, log, file or command line.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use common::{Ran, repository, run_in};
use serde_json::{Value, json};

/// A value that must be found nowhere. It has letters that each way of writing writes otherwise.
const CANARY: &str = "c4n4ry+7Zq!x/9Kp \"&y";

/// The ways in which programs write it. Of base64 the edges hold bits of what is beside it, so the
/// middle is looked for, at each of the three places it can begin at.
fn forms() -> BTreeSet<Vec<u8>> {
    let bytes = CANARY.as_bytes();
    let hex = |upper: bool| -> String {
        bytes.iter().map(|b| if upper { format!("{b:02X}") } else { format!("{b:02x}") }).collect()
    };
    let percent: String = bytes
        .iter()
        .map(|b| match b {
            b if b.is_ascii_alphanumeric() || b"-._~".contains(b) => char::from(*b).to_string(),
            b => format!("%{b:02X}"),
        })
        .collect();
    let mut forms: BTreeSet<Vec<u8>> = [
        bytes.to_vec(),
        hex(false).into(),
        hex(true).into(),
        percent.replace("%20", "+").into(),
        percent.into(),
        Value::from(CANARY).to_string().trim_matches('"').as_bytes().to_vec(),
        CANARY.replace('&', "&amp;").replace('"', "&quot;").into(),
    ]
    .into();
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        for before in 0..3 {
            let shifted = [vec![b' '; before], bytes.to_vec()].concat();
            let coded = engine.encode(shifted).into_bytes();
            forms.insert(coded[4..coded.len() - 4].to_vec());
        }
    }
    forms
}

fn assert_silent(what: &str, bytes: &[u8], forms: &BTreeSet<Vec<u8>>) {
    for form in forms {
        let found = bytes.windows(form.len()).any(|window| window == form);
        assert!(!found, "{what} says `{}`", String::from_utf8_lossy(form));
    }
}

fn assert_silent_below(folder: &Path, forms: &BTreeSet<Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => assert_silent_below(&entry.path(), forms),
            kind if kind.is_file() => {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                assert_silent(&entry.path().display().to_string(), &bytes, forms);
            }
            _ => {}
        }
    }
}

struct Desk {
    folder: tempfile::TempDir,
    forms: BTreeSet<Vec<u8>>,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("haft-canary-").tempdir_in("/var/tmp");
        Self { folder: folder.unwrap(), forms: forms() }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn write(&self, name: &str, text: &str) -> String {
        common::write_below(self.folder.path(), name, text)
    }

    fn run(&self, arguments: &[&str], stdin: Option<&[u8]>) -> Ran {
        let home = self.home();
        let mut all = vec!["--home", home.to_str().unwrap(), "--non-interactive"];
        all.extend(arguments);
        let ran = run_in(&repository(), &all, stdin);
        assert_silent(&format!("stdout of {arguments:?}"), ran.stdout.as_bytes(), &self.forms);
        assert_silent(&format!("stderr of {arguments:?}"), ran.stderr.as_bytes(), &self.forms);
        ran
    }

    fn keep(&self, package: &str, name: &str) {
        let line = format!("{CANARY}\n");
        let kept = self.run(&["secret", "set", package, name], Some(line.as_bytes()));
        assert_eq!(kept.code, 0, "{}", kept.stderr);
    }

    /// Calls a tool that was given the secret, as a result and as a failure, for people and for programs.
    fn call(&self, from: &str, name: &str) {
        for how in ["say", "fail"] {
            let input = json!({ "how": how }).to_string();
            for json in [false, true] {
                let mut words = vec!["call", "--from", from, name, &input];
                if json {
                    words.insert(0, "--json");
                }
                let ran = self.run(&words, None);
                let shown = format!("{}{}", ran.stdout, ran.stderr);
                assert!(shown.contains("[secret "), "{from} {how}: it was not given it: {shown}");
            }
        }
    }
}

/// What a Python program does with its secret.
const SAY_ALOUD: &str = r#"
import base64, json, os, sys, urllib.parse
def say(secret, how):
    raw = secret.encode()
    said = {"plain": secret, "hex": raw.hex(), "upper": raw.hex().upper(),
        "base64": base64.b64encode(raw).decode(), "url": base64.urlsafe_b64encode(b"a" + raw).decode(),
        "percent": urllib.parse.quote(secret, safe=""), "form": urllib.parse.quote_plus(secret),
        "parts": [secret, {secret: secret}]}
    print(json.dumps(said), file=sys.stderr)
    if how == "fail":
        raise ValueError("with " + json.dumps(said))
    return said
"#;

fn capability(implementation: &Value) -> String {
    json!({
        "id": "demo.canary", "type": "tool", "version": "1.0.0", "description": "A test",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
        "permissions": {"network": "deny", "filesystem": "none", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "2", "memory": "512Mi"},
            "timeout_seconds": 20},
        "trust_level": "local",
        "secrets": [{"name": "TOKEN", "ref": "secret://TOKEN"}],
        "implementation": implementation
    })
    .to_string()
}

#[test]
fn commands_and_python_functions() {
    let desk = Desk::new();
    desk.keep("capability:demo.canary", "TOKEN");
    let script = format!(
        "{SAY_ALOUD}\nprint(json.dumps(say(os.environ['TOKEN'], json.load(sys.stdin)['how'])))\n"
    );
    desk.write("command/run.py", &script);
    let command = json!({"kind": "command", "command": {"argv": ["python3", "run.py"]}});
    let from = desk.write("command/manifest.json", &capability(&command));
    desk.call(&from, "demo.canary");
    let module = format!(
        "{SAY_ALOUD}\ndef run(input):\n    return say(os.environ['TOKEN'], input['how'])\n"
    );
    desk.write("command/demo.py", &module);
    let python = json!({"kind": "python", "python": {"callable": "demo:run"}});
    let from = desk.write("command/manifest.json", &capability(&python));
    desk.call(&from, "demo.canary");
    assert_silent_below(&desk.home(), &desk.forms);
}

/// Asserts that no part of it is shown that a cut may leave.
fn assert_no_part(what: &str, shown: &str) {
    for part in CANARY.as_bytes().windows(6) {
        let part = std::str::from_utf8(part).unwrap();
        assert!(!shown.contains(part), "{what} says `{part}`");
    }
}

#[test]
fn what_is_cut_off() {
    let desk = Desk::new();
    desk.keep("capability:demo.canary", "TOKEN");
    let script = "import json, os, sys\nhow, secret = json.load(sys.stdin), os.environ['TOKEN']
text = 'log\\n' + secret + 'y' * (how['size'] - len(secret) + 1 + how['more'])
if how['to'] == 'stderr':
    print(text, file=sys.stderr, end='')
    sys.exit(3)
print(json.dumps({'n': text[4:] if how['to'] == 'start' else 'y' * how['more'] + secret}))\n";
    desk.write("cut/run.py", script);
    let command = json!({"kind": "command", "command": {"argv": ["python3", "run.py"]}});
    let promise = r#""outputs":{"properties":{"n":{"type":"integer"}}}"#;
    let manifest = capability(&command).replace(r#""outputs":{}"#, promise);
    let from = desk.write("cut/manifest.json", &manifest);
    let hows = [("stderr", 4096, 0), ("stderr", 16384, 0), ("stderr", 16384, 8)];
    for (to, size, more) in hows.into_iter().chain([("end", 0, 385), ("end", 0, 390)]) {
        let input = json!({ "to": to, "size": size, "more": more }).to_string();
        let ran = desk.run(&["--json", "call", "--from", &from, "demo.canary", &input], None);
        assert_ne!(ran.code, 0, "{}", ran.stdout);
        assert_no_part(&input, &format!("{}{}", ran.stdout, ran.stderr));
    }
}

#[test]
fn node_tools() {
    let desk = Desk::new();
    let manifest = json!({
        "id": "tool:demo.node", "name": "demo.node", "version": "1.0.0", "summary": "A test",
        "description": "A test", "tags": [], "provider": "tests",
        "entry": { "runtime": "node", "main": "dist/index.mjs" }
    });
    let from = desk.write("node/tool.json", &manifest.to_string());
    desk.write(
        "node/dist/index.mjs",
        "export const tool = { requiredSecrets: () => ['token'], async execute({ how }, context) {
            const env = context?.env ?? context;
            const secret = env['demo.node-token'] ?? env.token;
            const raw = Buffer.from(secret);
            const said = { plain: secret, hex: raw.toString('hex'), base64: raw.toString('base64'),
                url: raw.toString('base64url'), percent: encodeURIComponent(secret), parts: [secret] };
            console.error(JSON.stringify(said));
            if (how === 'fail') throw new Error(JSON.stringify(said));
            return said;
        } };\n",
    );
    desk.keep("jumith:tool:demo.node", "token");
    desk.call(&from, "demo.node");
    assert_silent_below(&desk.home(), &desk.forms);
}

#[test]
fn servers_in_a_process() {
    let desk = Desk::new();
    let server = format!(
        "{SAY_ALOUD}
for line in sys.stdin:
    ask = json.loads(line)
    if 'id' not in ask: continue
    method, answer = ask['method'], {{}}
    if method == 'initialize':
        answer = {{'protocolVersion': '2025-06-18', 'capabilities': {{'tools': {{}}}}, 'serverInfo': {{'name': 'x', 'version': '1'}}}}
    elif method == 'tools/list':
        answer = {{'tools': [{{'name': 'say', 'inputSchema': {{'type': 'object'}}}}]}}
    elif method == 'tools/call':
        try:
            said, failed = json.dumps(say(os.environ['TOKEN'], ask['params']['arguments']['how'])), False
        except ValueError as error:
            said, failed = str(error), True
        answer = {{'content': [{{'type': 'text', 'text': said}}], 'isError': failed}}
        if ask['params']['arguments']['how'] == 'type':
            kind = 'image/' + os.environ['TOKEN'].encode().hex()
            answer = {{'content': [{{'type': 'image', 'data': 'aGk=', 'mimeType': kind}}]}}
    else:
        print(json.dumps({{'jsonrpc': '2.0', 'id': ask['id'], 'error': {{'code': -32601, 'message': 'no'}}}}), flush=True)
        continue
    print(json.dumps({{'jsonrpc': '2.0', 'id': ask['id'], 'result': answer}}), flush=True)
"
    );
    desk.write("server/server.py", &server);
    let manifest = json!({
        "manifest_version": "0.2",
        "tool": { "id": "canary", "version": "1.0.0", "name": "Canary", "summary": "A test.",
            "homepage": "https://example.com/" },
        "runtime": { "kind": "mcp-stdio",
            "install": { "method": "url", "url": "https://example.com/x", "sha256": "5f".repeat(32) },
            "entrypoint": { "command": ["python3", "server.py"] } },
        "env": [{ "name": "TOKEN", "required": true, "secret": true, "prompt": "The key." }],
        "smoke": { "kind": "http", "url": "https://example.com/", "success": { "http_status": 200 } },
        "kill_switch": { "kind": "manual", "instructions_url": "https://example.com/" },
    });
    let from = desk.write("server/agent.json", &manifest.to_string());
    desk.keep("install-manifest:canary", "TOKEN");
    desk.call(&from, "say");
    let input = json!({ "how": "type" }).to_string();
    let typed = desk.run(&["--json", "call", "--from", &from, "say", &input], None);
    assert!(typed.stdout.contains("application/octet-stream"), "{}", typed.stdout);
    // One that says it where it is only asked for its tools: as it dies, and as the name of a tool.
    let dies = "print(os.environ['TOKEN'], file=sys.stderr, flush=True)\nsys.exit(3)\n";
    let names = server.replace("'name': 'say'", "'name': 'use-' + os.environ['TOKEN']");
    for text in [format!("{SAY_ALOUD}{dies}"), names] {
        desk.write("server/server.py", &text);
        for json in [&[][..], &["--json"]] {
            let words = [json, &["call", "--from", &from, "undeclared", "{}"]].concat();
            let ran = desk.run(&words, None);
            assert_ne!(ran.code, 0, "{}", ran.stdout);
        }
    }
    assert_silent_below(&desk.home(), &desk.forms);
}

/// A server that answers with whatever it was told; its port.
fn parrot() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut buffer = vec![0; 64 << 10];
            let count = stream.read(&mut buffer).unwrap_or(0);
            let heard = String::from_utf8_lossy(&buffer[..count]).into_owned();
            let status = if heard.contains("fail") { "500 No" } else { "200 OK" };
            let body = said_again(&heard).to_string();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-heard: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                heard.lines().find(|line| line.contains("c4n4ry")).unwrap_or_default(),
                body.len()
            );
        }
    });
    port
}

/// All that was heard, as the answer of a program or, where an agent was asked, of an agent.
fn said_again(heard: &str) -> Value {
    let asked = heard.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let asked: Value = serde_json::from_str(asked).unwrap_or_default();
    if asked["jsonrpc"] != "2.0" {
        return json!({ "heard": heard });
    }
    let parts = json!([{ "data": { "heard": heard } }, { "text": heard }]);
    let message = json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": parts });
    if heard.contains("fail") {
        let error = json!({ "code": -32603, "message": heard, "data": { "heard": heard } });
        return json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error });
    }
    json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "message": message } })
}

#[test]
fn agents_that_are_told_a_key() {
    let desk = Desk::new();
    let port = parrot();
    let package = "capability:demo.canary";
    desk.keep(package, "TOKEN");
    let granted = desk.run(&["grant", package, "--host", &format!("127.0.0.1:{port}")], None);
    assert_eq!(granted.code, 0, "{}", granted.stderr);
    let endpoint = format!("http://127.0.0.1:{port}/");
    let agent = json!({ "kind": "a2a_rpc", "a2a": { "endpoint": endpoint } });
    let open = r#""network":"allowlist","network_allowlist":["agent.example"]"#;
    let manifest = capability(&agent).replace(r#""network":"deny""#, open);
    let from = desk.write("agent/manifest.json", &manifest);
    desk.call(&from, "demo.canary");
    assert_silent_below(&desk.home(), &desk.forms);
}

#[test]
fn programs_of_an_image() {
    let desk = Desk::new();
    let root = desk.folder.path().join("root");
    let script = "#!/bin/sh\nread -r how\necho \"$TOKEN\" | tee /dev/stderr\nprintf %s \"$TOKEN\" | base64\n\
        printf %s \"$TOKEN\" | xxd -p\ncase \"$how\" in *fail*) exit 3 ;; esac\n";
    desk.write("root/opt/say", script);
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
    for name in ["sh", "tee", "base64", "xxd"] {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    let layout = desk.folder.path().join("tool/layout").display().to_string();
    std::fs::create_dir(desk.folder.path().join("tool")).unwrap();
    let image = format!("{layout}:tool");
    for words in [
        &["init", "--layout", &layout] as &[&str],
        &["new", "--image", &image],
        &["insert", "--rootless", "--image", &image, root.to_str().unwrap(), "/"],
    ] {
        let made = std::process::Command::new("umoci").args(words).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let index = std::fs::read_to_string(format!("{layout}/index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let image = format!("localhost/tool@{}", index["manifests"][0]["digest"].as_str().unwrap());
    let manifest = json!({
        "manifest_version": "0.3",
        "tool": { "id": "canary", "version": "1.0.0", "name": "Canary", "summary": "A test.",
            "tags": [], "license": "MIT", "author": { "name": "Ann" }, "description": "A test.",
            "homepage": "https://example.com/" },
        "runtime": { "kind": "container", "install": { "method": "container", "image": image },
            "entrypoint": { "command": ["/bin/sh", "/opt/say"] } },
        "env": [{ "name": "TOKEN", "required": true, "secret": true, "prompt": "The key." }],
        "actions": [{ "name": "say", "summary": "Says it.", "side_effects": "none",
            "invocation": { "kind": "stdin-json" }, "input": { "type": "object" },
            "output": { "format": "text" } }],
        "smoke": { "kind": "http", "url": "https://example.com/", "success": { "http_status": 200 } },
        "kill_switch": { "kind": "manual", "instructions_url": "https://example.com/" },
    });
    let from = desk.write("tool/manifest.json", &manifest.to_string());
    desk.keep("install-manifest:canary", "TOKEN");
    desk.call(&from, "say");
    assert_silent_below(&desk.home(), &desk.forms);
}

#[test]
fn requests_with_keys() {
    let desk = Desk::new();
    let port = parrot();
    let package = "mcpkg:demo.canary";
    desk.keep(package, "TOKEN");
    let granted = desk.run(&["grant", package, "--host", &format!("127.0.0.1:{port}")], None);
    assert_eq!(granted.code, 0, "{}", granted.stderr);
    for kind in ["bearer", "api_key"] {
        let manifest = json!({
            "toolId": "demo.canary", "name": "Canary", "version": "0.1.0", "description": "A test.",
            "capabilities": ["test"],
            "endpoint": { "type": "http", "method": "POST", "url": format!("http://127.0.0.1:{port}/x") },
            "input_schema": { "type": "object" },
            "output_schema": { "type": "object" },
            "auth": { "type": kind, "configHints": { "env": ["TOKEN"] } },
        });
        let from = desk.write("request/manifest.json", &manifest.to_string());
        desk.call(&from, "demo.canary");
    }
    assert_silent_below(&desk.home(), &desk.forms);
}

#[test]
fn no_command_line_holds_it_while_a_tool_runs() {
    let desk = Desk::new();
    desk.keep("capability:demo.canary", "TOKEN");
    desk.write(
        "slow/run.py",
        "import os, time\nassert os.environ['TOKEN']\nprint('{}', flush=True)\ntime.sleep(2)\n",
    );
    let command = json!({"kind": "command", "command": {"argv": ["python3", "run.py"]}});
    let from = desk.write("slow/manifest.json", &capability(&command));
    let mut haft = std::process::Command::new(assert_cmd::cargo::cargo_bin("haft"));
    haft.arg("--home").arg(desk.home()).args(["call", "--from", &from, "demo.canary", "{}"]);
    let mut child = haft.stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut looks = 0;
    while child.try_wait().unwrap().is_none() {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            assert_silent(&entry.path().display().to_string(), &words, &desk.forms);
        }
        // Who runs it holds it in memory, and in no environment.
        let environment = std::fs::read(format!("/proc/{}/environ", child.id()));
        assert_silent("our environment", &environment.unwrap_or_default(), &desk.forms);
        looks += 1;
    }
    assert!(looks > 3 && child.wait().unwrap().success());
}
