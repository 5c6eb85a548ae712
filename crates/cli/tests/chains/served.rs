//! A chain that an agent calls, over MCP.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value, json};

use super::common::Desk;
use super::with;

/// A client of `haft mcp`.
struct Client {
    server: Child,
    to: ChildStdin,
    from: BufReader<std::process::ChildStdout>,
}

impl Client {
    fn start(desk: &Desk, only: &str) -> Self {
        let mut server = Command::new(assert_cmd::cargo::cargo_bin("haft"))
            .arg("--home")
            .arg(desk.path("home"))
            .args(["mcp", "--only", only])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        let mut client = Self { server, to, from: BufReader::new(from) };
        let about = json!({"name": "test", "version": "1"});
        client.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}),
        );
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the server ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer.get("id").is_some() {
                return answer["result"].clone();
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn an_agent_calls_a_chain_once_its_owner_has_said_yes_to_all_of_it() {
    let desk = with(&["mcpkg/text-clean", "mcpkg/text-stats", "mcpkg/pipeline"]);
    let mut client = Client::start(&desk, "demo.text.report");
    let tools = client.ask("tools/list", &json!({}));
    let name = tools["tools"][0]["name"].as_str().unwrap().to_owned();
    let call = json!({"name": name, "arguments": {"draft": " one  two "}});
    let refused = client.ask("tools/call", &call);
    assert_eq!(refused["isError"], true, "{refused}");
    let waiting = desk.done(&["approve", "waiting"]).stdout;
    let step =
        "step measure: `demo.text.stats` of mcpkg:demo.text.stats with text from $.cleaned.text";
    assert!(waiting.contains(step), "{waiting}");
    // What changes nothing needs nobody's word.
    assert!(!waiting.contains("step clean"), "{waiting}");
    let tickets = desk.done(&["approve", "waiting", "--json"]).json();
    assert_eq!(tickets.as_array().unwrap().len(), 1, "{tickets}");
    desk.done(&["approve", "allow", tickets[0]["ticket"].as_str().unwrap()]);
    let answered = client.ask("tools/call", &call);
    assert_eq!(answered["structuredContent"]["words"], 2, "{answered}");
    // It was asked about for the first time only, and so were its steps.
    let other = json!({"name": name, "arguments": {"draft": "three more words"}});
    let answered = client.ask("tools/call", &other);
    assert_eq!(answered["structuredContent"]["words"], 3, "{answered}");
}
