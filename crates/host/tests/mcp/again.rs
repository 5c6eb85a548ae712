//! Calls that are made again and again: what was decided of the last is taken for the next, and whatever would change it does at
//! once.

use std::time::Duration;

use host::{Call, CallError, Kind, Output, Settings, Warmth};
use manifest::model::Trust;
use policy::{Consent, Grants, Policy, Surface, Who};
use serde_json::{Value, json};

use crate::hostile::BEGIN;
use crate::kit;
use crate::support::Bench;

const SERVER: &str = r#"
def act(id, arguments, request):
    say(id, json.dumps(arguments))
serve(act, schema={"type": "object", "properties": {"n": {"type": "integer"}}})
"#;

/// A server that was installed, and is given nothing.
async fn installed() -> Bench {
    let mut bench = Bench::script(&format!("{BEGIN}{SERVER}")).within(Duration::from_secs(20));
    bench.tool.package.inputs.clear();
    bench.tool.consent = Consent::ByCard { admitted: Trust::Community };
    bench.tool.digest = Some("of these files".into());
    let off = host::CancellationToken::new();
    let found = bench.host.discover(&bench.tool, &Surface::Terminal, None, &off).await.unwrap();
    bench.tool.package.actions = found.actions;
    bench.tool.surface = found.surface;
    bench
}

async fn call(bench: &Bench, input: Value, surface: Surface) -> Result<Output, CallError> {
    let call = Call { surface, ..kit::call_of(&bench.tool, &input) };
    bench.host.call(&bench.tool, &call, Warmth::Warm).await.reply
}

/// Calls it until a call is like the one before.
async fn settle(bench: &Bench) {
    for n in 0..10 {
        let said = call(bench, json!({ "n": n }), Surface::Terminal).await.unwrap();
        assert_eq!(said.into_value(), json!({ "n": n }), "every call has its own arguments");
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}

fn settings(bench: &Bench, policy: &str) -> Settings {
    Settings {
        policy: Policy::parse(policy).unwrap(),
        home: bench.home.clone(),
        user_home: None,
        search_path: std::env::var_os("PATH").unwrap(),
        environment: Vec::new(),
    }
}

#[tokio::test]
async fn what_the_owner_says_counts_for_the_very_next_call() {
    let mut bench = installed().await;
    settle(&bench).await;
    // Who else calls it is asked about.
    let agent = Surface::Agent { name: "mcp".into(), session: "one".into(), who: Who::default() };
    let asked = call(&bench, json!({}), agent).await.unwrap_err();
    assert!(matches!(asked.kind, Kind::NeedsApproval(_)), "{asked}");
    settle(&bench).await;
    let wrong = call(&bench, json!({ "n": "one" }), Surface::Terminal).await.unwrap_err();
    assert_eq!(wrong.kind, Kind::BadInput, "{wrong}");
    // A grant leads to walls of another kind.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().display().to_string();
    let grant = policy::Grant { kind: policy::GrantKind::Read, value: path };
    let grants: Grants = [grant].into_iter().collect();
    kit::set_grants(&bench.records, &bench.tool.package.canonical_id(), &grants).await;
    settle(&bench).await;
    // A folder that is granted and has become a link is nobody's.
    let (path, aside) = (folder.path().to_owned(), folder.path().with_extension("aside"));
    std::fs::rename(&path, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &path).unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    let moved = call(&bench, json!({}), Surface::Terminal).await.unwrap_err();
    assert_eq!(moved.kind, Kind::Denied, "{moved}");
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&aside, &path).unwrap();
    settle(&bench).await;
    let host = bench.host.clone();
    let refusing = "[package.\"trial\"]\nallow = false\n";
    bench.host = host.clone().with_settings(settings(&bench, refusing));
    let refused = call(&bench, json!({}), Surface::Terminal).await.unwrap_err();
    assert_eq!(refused.kind, Kind::Denied, "{refused}");
    bench.host = host;
    settle(&bench).await;
    bench.tool.package.enabled = false;
    let off = call(&bench, json!({}), Surface::Terminal).await.unwrap_err();
    assert_eq!(off.kind, Kind::Denied, "{off}");
}

#[tokio::test]
async fn the_log_tells_the_same_of_every_call() {
    let bench = installed().await;
    settle(&bench).await;
    let log = bench.records.log();
    let lines: Vec<Value> = std::fs::read_dir(log)
        .unwrap()
        .filter_map(|one| std::fs::read_to_string(one.ok()?.path()).ok())
        .flat_map(|text| {
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>()
        })
        .filter(|line: &Value| line["kind"] == "end" && line["action"] == "act")
        .collect();
    assert_eq!(lines.len(), 10);
    for line in &lines {
        for member in
            ["argv", "cwd", "envKeys", "sandbox", "decision", "implementation", "arguments"]
        {
            assert_eq!(line[member], lines[0][member], "{member}");
        }
    }
    assert_eq!(lines[0]["decision"], "allowed");
}
