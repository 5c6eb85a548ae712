//! What is taken back while it runs: it ends soon, whether or not anybody calls it.

use std::time::Duration;

use serde_json::json;

use crate::common::Desk;
use crate::gate::{Gate, OPEN, home, server, sleepers, until};
use crate::leaving::written;

/// Leaves a line in a file again and again, from its first call on.
const TICKS: &str = r#"import threading
def tick():
    while True:
        with open(arguments["file"], "a") as file: file.write("tick\n")
        time.sleep(0.05)
if calls == 1: threading.Thread(target=tick, daemon=True).start()
return "ticking""#;

#[test]
fn a_server_ends_when_what_it_was_given_is_taken_back() {
    let (scripts, room) = (Desk::new(), Desk::new());
    let path = server(scripts.0.path(), "clock", "start", TICKS);
    let desk = home(&[("clock", &path)], OPEN);
    let file = room.0.path().canonicalize().unwrap().join("ticks");
    let folder = file.parent().unwrap().to_str().unwrap().to_owned();
    let gate = Gate::open(&desk, &["--without-token"]);
    let length = || std::fs::metadata(&file).map_or(0, |found| found.len());
    let ticks = || {
        let before = length();
        std::thread::sleep(Duration::from_millis(300));
        length() > before
    };
    let shut = "[package.\"mcpb:clock\"]\nallow = false\n";
    let policy = desk.path("home").join("policy.toml");
    for taking in [
        &["ungrant", "mcpb:clock", "--write", &folder][..],
        &["disable", "mcpb:clock"],
        &[],
        &["revoke", "mcpb:clock", "--yes"],
    ] {
        desk.done(&["grant", "mcpb:clock", "--write", &folder]);
        let said = gate.call("/mcp", "clock_start", json!({ "file": file }));
        assert_eq!(said["content"][0]["text"], "ticking", "{said}");
        until("it runs", ticks);
        match taking {
            [] => std::fs::write(&policy, format!("{OPEN}{shut}")).unwrap(),
            words => drop(desk.done(words)),
        }
        until("it has ended", || !ticks());
        match taking {
            [] => std::fs::write(&policy, OPEN).unwrap(),
            ["disable", ..] => drop(desk.done(&["enable", "mcpb:clock"])),
            _ => {}
        }
    }
}

#[test]
fn calls_end_when_their_package_is_switched_off() {
    let (desk, _scripts) = sleepers();
    let gate = Gate::open(&desk, &["--without-token"]);
    for (id, tool, action) in
        [("mcpb:dozer", "dozer_doze", "doze"), ("install-manifest:sleeper", "sleeper_say", "say")]
    {
        let said = std::thread::scope(|scope| {
            let called = json!({ "name": tool, "arguments": {} });
            let calling = scope.spawn(|| gate.ask("/mcp", "tools/call", called));
            until("it has begun", || !written(&desk, "begin", action).is_empty());
            desk.done(&["disable", id]);
            calling.join().unwrap()
        });
        let words = said["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(
            words.starts_with("its package was switched off, revoked or removed while it ran"),
            "{said}"
        );
        assert!(words.contains("Do not try again unless its owner says so."), "{said}");
    }
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}
