//! The owner is asked once for a chain, and sees what they say yes to.

use serde_json::json;

use super::common::Desk;
use super::{ECHO, chain, tool};

/// A desk with a chain of two destructive steps; the folder of all.
fn destructive() -> (Desk, String) {
    let desk = Desk::new();
    tool(&desk, "all/look", "look", ECHO, "read");
    tool(&desk, "all/send", "send", ECHO, "destructive");
    tool(&desk, "all/wipe", "wipe", ECHO, "destructive");
    let steps = json!([
        {"step": "look", "tool": "look", "outputKey": "seen"},
        {"step": "send", "tool": "send", "inputMapping": {"to": "$.input.to"}},
        {"step": "wipe", "tool": "wipe", "inputMapping": {"what": "$.seen.got"}},
    ]);
    chain(&desk, "all/chain", "demo.test.clear", "1.0.0", &steps);
    let all = desk.path("all").to_str().unwrap().to_owned();
    (desk, all)
}

#[test]
fn a_chain_asks_once_and_shows_every_destructive_step() {
    let (desk, all) = destructive();
    let call = ["call", "--from", &all, "demo.test.clear", r#"{"to":"ann"}"#];
    let (code, screen) = desk.at_terminal(&["y"], &call);
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(screen.matches("Allow it?").count(), 1, "{screen}");
    for words in [
        "A yes is for these steps of it too:",
        "send: `run` of install-manifest:send with to from $.input.to, because the action is destructive",
        "wipe: `run` of install-manifest:wipe with what from $.seen.got, because the action is destructive",
        "because some of its steps need your word",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(!screen.contains("look: `run`"), "{screen}");
    let (code, screen) = desk.at_terminal(&["n"], &call);
    assert_eq!(code, Some(4), "{screen}");
}

#[test]
fn approve_on_the_command_line_is_for_the_whole_chain_and_without_it_nothing_runs() {
    let (desk, all) = destructive();
    let call = ["call", "--from", &all, "demo.test.clear", r#"{"to":"ann"}"#, "--non-interactive"];
    desk.refused(&call, 4, "some of its steps need your word");
    let log = desk.done(&["audit", "--json"]).stdout;
    assert!(!log.contains("\"step\""), "{log}");
    desk.done(&[&call[..], &["--approve"]].concat());
    let plan = desk.done(&[&call[..], &["--explain", "--json"]].concat()).json();
    assert_eq!(plan["decision"], "ask");
    let decisions: Vec<_> =
        plan["steps"].as_array().unwrap().iter().map(|one| one["decision"].clone()).collect();
    assert_eq!(decisions, ["allowed", "ask", "ask"]);
}
