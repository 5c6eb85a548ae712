//! Many clients, and a server that is killed again and again: every call is answered exactly once, and nothing is left behind.

use std::collections::HashMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::Desk;
use crate::gate::{Gate, Joined, OPEN, home, server, until};

const CLIENTS: usize = 64;

/// How many calls each of them makes before it looks at the answers.
const BATCH: i64 = 8;

/// How many calls there are before what all of it takes is looked at for the first time, and between two looks.
const WARM: usize = 6_000;
const APART: usize = 10_000;

/// How much memory may be kept of each call since, and how much it goes up and down by, in bytes: in half a million calls it was
/// between 28 and 51 MB, now more and now less.
const KEPT: usize = 512;
const SWAY: usize = 16 << 20;

/// For how long, at least.
fn extent() -> Duration {
    match std::env::var_os("HAFT_LONG") {
        Some(_) => Duration::from_mins(5),
        None => Duration::from_secs(30),
    }
}

fn below(process: u32) -> Vec<u32> {
    let found = Command::new("pgrep").args(["-P", &process.to_string()]).output().unwrap();
    let children = String::from_utf8_lossy(&found.stdout);
    let children: Vec<u32> = children.lines().filter_map(|line| line.parse().ok()).collect();
    let further: Vec<_> = children.iter().flat_map(|child| below(*child)).collect();
    [children, further].concat()
}

/// What the host takes after so many calls.
#[derive(Debug)]
struct Taken {
    calls: usize,
    /// Its own memory in bytes, without files that are mapped.
    memory: usize,
    descriptors: usize,
    processes: usize,
}

impl Taken {
    fn by(host: u32, calls: usize) -> Self {
        let text = std::fs::read_to_string(format!("/proc/{host}/status")).unwrap();
        let line = text.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        let descriptors = std::fs::read_dir(format!("/proc/{host}/fd")).unwrap().count();
        Self { calls, memory: kilobytes << 10, descriptors, processes: below(host).len() }
    }

    /// Refuses what grew with the calls since.
    fn check_since(&self, before: &Self) {
        let calls = self.calls - before.calls;
        assert!(self.memory < before.memory + SWAY + calls * KEPT, "{before:?} {self:?}");
        // A server that was killed is on its way out while the next one is there.
        assert!(self.descriptors < before.descriptors + CLIENTS, "{before:?} {self:?}");
        assert!(self.processes < before.processes + 12, "{before:?} {self:?}");
    }
}

/// A client, by the way it asks.
enum Client<'g> {
    /// Over `haft mcp`, several calls at a time, so that some are always under way when a server is killed.
    Joined(Joined),
    /// Over HTTP, in a session.
    Session(&'g Gate, String),
    /// Over HTTP, each request by itself.
    Alone(&'g Gate),
}

impl<'g> Client<'g> {
    fn new(number: usize, desk: &Desk, gate: &'g Gate) -> Self {
        match number % 4 {
            0 => Self::Alone(gate),
            1 => {
                let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
                let greeted = gate.post("/mcp", &[], &message(0, "initialize", &hello));
                let session = greeted.headers["mcp-session-id"].clone();
                let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
                let headers = [("mcp-session-id", &*session)];
                assert_eq!(gate.post("/mcp", &headers, &begun).status, 202);
                Self::Session(gate, session)
            }
            _ => Self::Joined(Joined::greeted(desk, &[], &json!({}))),
        }
    }

    /// Makes these calls, and says what each was answered.
    fn ask(&mut self, ids: &[i64]) -> HashMap<i64, Value> {
        let called = |id: &i64| json!({ "name": "mortal_say", "arguments": { "n": id } });
        // Whatever has no id is no answer.
        let only = |messages: Vec<Value>| {
            let mut answers = messages.into_iter().filter(|one| one.get("id").is_some());
            let answer = answers.next().unwrap();
            assert!(answers.next().is_none(), "{answer} was not the only one");
            answer
        };
        match self {
            Self::Alone(gate) => ids
                .iter()
                .map(|id| {
                    let answer =
                        gate.ask_as("/mcp", &[], &json!({}), "tools/call", called(id)).messages();
                    (*id, only(answer))
                })
                .collect(),
            Self::Session(gate, session) => ids
                .iter()
                .map(|id| {
                    let headers = [("mcp-session-id", &**session)];
                    let answer =
                        gate.post("/mcp", &headers, &message(*id, "tools/call", &called(id)));
                    let answer = only(answer.messages());
                    assert_eq!(answer["id"], *id, "{answer}");
                    (*id, answer)
                })
                .collect(),
            Self::Joined(joined) => {
                for id in ids {
                    joined.send(&message(*id, "tools/call", &called(id)));
                }
                let mut answers = HashMap::new();
                while answers.len() < ids.len() {
                    let message = joined.next();
                    let Some(id) = message["id"].as_i64() else { continue };
                    assert!(ids.contains(&id), "{message}");
                    assert!(answers.insert(id, message).is_none(), "{id} was answered twice");
                }
                answers
            }
        }
    }

    /// Leaves as such clients do, with no answer that it had not had.
    fn leave(self) {
        match self {
            Self::Alone(_) => {}
            Self::Session(gate, session) => {
                let left = gate.send("DELETE", "/mcp", &[("mcp-session-id", &session)], "");
                assert!(left.status < 300, "{left:?}");
            }
            Self::Joined(joined) => {
                assert!(joined.end().iter().all(|rest| rest.get("id").is_none()));
            }
        }
    }
}

fn message(id: i64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Says that all is over when this is dropped, so that nobody goes on where a look has failed.
pub(crate) struct Over<'o>(pub(crate) &'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Kills the server every other second until all is over, and says how often.
fn kill_again_and_again(host: u32, is_over: &AtomicBool) -> usize {
    let mut kills = 0;
    while !is_over.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_secs(2));
        for process in below(host) {
            let command = std::fs::read_to_string(format!("/proc/{process}/cmdline"));
            if command.is_ok_and(|line| line.contains("mortal.py")) {
                let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
                kills += 1;
            }
        }
    }
    kills
}

#[test]
fn every_call_is_answered_once_while_a_server_is_killed_again_and_again() {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "mortal", "say", "return arguments.get('n')");
    let desk = home(&[("mortal", &path)], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    let host = gate.process.id();
    gate.call("/mcp", "mortal_say", json!({ "n": 0 }));
    let alone = Taken::by(host, 1);
    let is_over = AtomicBool::new(false);
    let (made, well) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let began = Instant::now();
    let kills = std::thread::scope(|scope| {
        let over = Over(&is_over);
        let killer = scope.spawn(|| kill_again_and_again(host, &is_over));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (made, well, is_over, desk, gate) = (&made, &well, &is_over, &desk, &gate);
                scope.spawn(move || {
                    let mut client = Client::new(number, desk, gate);
                    let mut batch = 0;
                    while !is_over.load(Ordering::Acquire) {
                        let ids: Vec<_> = (0..BATCH).map(|at| batch * BATCH + at).collect();
                        batch += 1;
                        for (id, answer) in client.ask(&ids) {
                            made.fetch_add(1, Ordering::AcqRel);
                            let result = &answer["result"];
                            if result["content"][0]["text"].as_str() == Some(&id.to_string()) {
                                well.fetch_add(1, Ordering::AcqRel);
                            } else {
                                assert_eq!(result["isError"], true, "{answer}");
                            }
                        }
                    }
                    client.leave();
                })
            })
            .collect();
        // Once everything is as it stays, nothing grows with the calls.
        let look = |after: usize| {
            while made.load(Ordering::Acquire) < after {
                assert!(clients.iter().all(|one| !one.is_finished()), "a client has given up");
                std::thread::sleep(Duration::from_millis(20));
            }
            Taken::by(host, made.load(Ordering::Acquire))
        };
        let warm = look(WARM);
        let mut looked = look(warm.calls + APART);
        while began.elapsed() < extent() {
            looked.check_since(&warm);
            looked = look(looked.calls + APART);
        }
        looked.check_since(&warm);
        drop(over);
        for client in clients {
            client.join().unwrap();
        }
        killer.join().unwrap()
    });
    let (made, well) = (made.into_inner(), well.into_inner());
    assert!(kills >= 3, "{kills} kills");
    // Those that were under way in a server that was killed may have done something, so they are not made again.
    assert!(well * 2 > made, "only {well} of {made} went well");
    // What is left is what was there before anybody came: one server, no clients.
    until("the end of the clients", || {
        let left = Taken::by(host, made);
        left.descriptors < alone.descriptors + 8 && left.processes <= alone.processes + 2
    });
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}
