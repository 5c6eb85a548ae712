//! Many clients, and a server that is killed again and again: every call is answered exactly once, and nothing is left behind.

use std::collections::HashMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::Desk;
use crate::gate::{Gate, Joined, home, server, until};

const CLIENTS: usize = 64;

/// How long, and how many calls at least.
fn extent() -> (Duration, usize) {
    match std::env::var_os("HAFT_LONG") {
        Some(_) => (Duration::from_mins(5), 10_000),
        None => (Duration::from_secs(30), 10_000),
    }
}

fn below(process: u32) -> Vec<u32> {
    let found = Command::new("pgrep").args(["-P", &process.to_string()]).output().unwrap();
    let children = String::from_utf8_lossy(&found.stdout);
    let children: Vec<u32> = children.lines().filter_map(|line| line.parse().ok()).collect();
    let further: Vec<_> = children.iter().flat_map(|child| below(*child)).collect();
    [children, further].concat()
}

fn status(process: u32, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn descriptors(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

#[test]
fn every_call_is_answered_once_while_a_server_is_killed_again_and_again() {
    let scripts = Desk::new();
    let path = server(scripts.0.path(), "mortal", "say", "return arguments.get('n')");
    let policy = "[agents]\ninstall = \"never\"\n[approval]\nundeclared = \"allow\"\n";
    let desk = home(&[("mortal", &path)], policy);
    let gate = Gate::open(&desk, &["--without-token"]);
    let host = gate.process.id();
    gate.call("/mcp", "mortal_say", json!({ "n": 0 }));
    let (time, least) = extent();
    let is_over = AtomicBool::new(false);
    let (made, well) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let kills = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
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
        });
        let began = Instant::now();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (made, well, desk) = (&made, &well, &desk);
                scope.spawn(move || {
                    let mut client = Joined::greeted(desk, &[], &json!({}));
                    let mut number = 0_i64;
                    while began.elapsed() < time || made.load(Ordering::Acquire) < least {
                        // Several at a time, so that some are always under way when it is killed.
                        let ids: Vec<_> = (0..8).map(|at| number * 8 + at).collect();
                        number += 1;
                        for id in &ids {
                            client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "mortal_say", "arguments": { "n": id } } }));
                        }
                        let mut answers: HashMap<i64, Value> = HashMap::new();
                        while answers.len() < ids.len() {
                            let message = client.next();
                            let Some(id) = message["id"].as_i64() else { continue };
                            assert!(ids.contains(&id), "{message}");
                            assert!(answers.insert(id, message).is_none(), "{id} was answered twice");
                        }
                        for (id, answer) in answers {
                            made.fetch_add(1, Ordering::AcqRel);
                            let result = &answer["result"];
                            if result["content"][0]["text"].as_str() == Some(&id.to_string()) {
                                well.fetch_add(1, Ordering::AcqRel);
                            } else {
                                assert_eq!(result["isError"], true, "{answer}");
                            }
                        }
                    }
                    assert!(client.end().iter().all(|rest| rest.get("id").is_none()));
                })
            })
            .collect();
        for client in clients {
            client.join().unwrap();
        }
        is_over.store(true, Ordering::Release);
        killer.join().unwrap()
    });
    let (made, well) = (made.into_inner(), well.into_inner());
    assert!(made >= least && kills >= 3, "{made} calls, {kills} kills");
    // Those that were under way in a server that was killed may have done something, so they are not made again.
    assert!(well * 2 > made, "only {well} of {made} went well");
    // What is left is what was there before anybody came: one server, no clients.
    until("the end of the clients", || descriptors(host) < 60);
    assert!(below(host).len() < 12, "{:?}", below(host));
    assert!(status(host, "VmRSS:") < 400_000, "{} kB", status(host, "VmRSS:"));
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}
