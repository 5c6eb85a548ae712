//! A call while it runs: records as they come, failures that pass, calls that are called off.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use host::{Advance, Call, Kind, Output, Progress, Tool, Warmth};
use kit::{Folder, call_of, host, python_tool};
use serde_json::{Value, json};

/// An action of a shell script, with more said about it.
fn script(text: &str, more: Value) -> (Folder, Tool) {
    started_by(&["sh", "run"], text, more)
}

/// The same, started by this command.
fn started_by(command: &[&str], text: &str, more: Value) -> (Folder, Tool) {
    let mut action = json!({
        "name": "do", "summary": "Does it.",
        "invocation": { "kind": "subcommand", "argv_template": ["go"] },
        "input": { "type": "object" },
        "output": { "format": "json" },
        "side_effects": "none",
    });
    if let (Value::Object(members), Value::Object(more)) = (&mut action, more) {
        members.extend(more);
    }
    let manifest = json!({
        "manifest_version": "0.2",
        "tool": {
            "id": "demo-tool", "version": "1.0.0", "name": "Demo Tool", "summary": "A test.",
            "homepage": "https://example.com/",
        },
        "runtime": {
            "kind": "shell-binary",
            "install": {
                "method": "url", "url": "https://example.com/run", "sha256": "5f".repeat(32),
            },
            "entrypoint": { "command": command },
        },
        "env": [
            { "name": "DEMO_KEY", "required": false, "secret": true, "prompt": "The key." },
            { "name": "DEMO_LANG", "required": false, "secret": false, "prompt": "Language.", "default": "en us" },
            { "name": "DEMO_LEVEL", "required": false, "secret": false, "prompt": "Level." },
        ],
        "actions": [action],
        "smoke": { "kind": "http", "url": "https://example.com/", "success": { "http_status": 200 } },
        "kill_switch": { "kind": "manual", "instructions_url": "https://example.com/" },
    });
    let folder = Folder::with(&[("agent.json", &manifest.to_string()), ("run", text)]);
    let tool = folder.tool("agent.json");
    (folder, tool)
}

#[tokio::test]
async fn what_starts_a_tool_is_filled_in_as_its_arguments_are() {
    let command =
        ["sh", "run", "--in=${env.DEMO_LANG}", "--level", "${env.DEMO_LEVEL}", "${DEMO_LANG}"];
    let text = "#!/bin/sh\nprintf '[%s' $#\nprintf ',\"%s\"' \"$@\"\necho ]\n";
    for (invocation, seen) in [
        (json!({ "kind": "stdin-json" }), json!([2, "--in=en us", "en us"])),
        (
            json!({ "kind": "subcommand", "argv_template": ["go"] }),
            json!([3, "--in=en us", "en us", "go"]),
        ),
    ] {
        let (_folder, tool) = started_by(&command, text, json!({ "invocation": invocation }));
        let call = call_of(&tool, &json!({}));
        let reply = host().await.call(&tool, &call, Warmth::Warm).await.reply.unwrap();
        assert_eq!(reply, Output::Json(seen));
    }
}

#[tokio::test]
async fn a_program_that_nobody_named_is_a_missing_variable() {
    let (_folder, tool) = started_by(&["${env.DEMO_LEVEL}", "run"], "", json!({}));
    let made = host().await.call(&tool, &call_of(&tool, &json!({})), Warmth::Warm).await;
    let error = made.reply.unwrap_err();
    assert_eq!((error.kind, &*error.message), (Kind::MissingInput, "missing variable: DEMO_LEVEL"));
}

/// Remembers what it is told, and when.
#[derive(Debug)]
struct Heard {
    began: Instant,
    records: Mutex<Vec<(Duration, Value)>>,
}

impl Heard {
    fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), records: Mutex::default() })
    }

    fn values(&self) -> Vec<Value> {
        self.records.lock().unwrap().iter().map(|(_, value)| value.clone()).collect()
    }
}

impl Progress for Heard {
    fn advanced(&self, advance: &Advance) {
        panic!("a command does not say how far it is: {advance:?}");
    }

    fn recorded(&self, record: &Value) {
        self.records.lock().unwrap().push((self.began.elapsed(), record.clone()));
    }
}

fn listening(tool: &Tool, heard: &Arc<Heard>) -> Call {
    let progress: Arc<dyn Progress> = Arc::<Heard>::clone(heard);
    Call { progress: Some(progress), ..call_of(tool, &json!({})) }
}

#[tokio::test]
async fn records_are_told_as_they_come() {
    let stream = json!({ "output": { "format": "ndjson-stream" } });
    let text = "#!/bin/sh\necho '{\"n\":1}'\nsleep 1\nprintf '{\"n\":2}\\n\\n{\"n\"'\nsleep 0.2\nprintf ':3}'\n";
    let (_folder, tool) = script(text, stream);
    let (host, heard) = (host().await, Heard::new());
    let reply = host.call(&tool, &listening(&tool, &heard), Warmth::Warm).await.reply.unwrap();
    let all = vec![json!({"n": 1}), json!({"n": 2}), json!({"n": 3})];
    assert_eq!((heard.values(), reply), (all.clone(), Output::Records(all)));
    let records = heard.records.lock().unwrap();
    assert!(records[1].0 > records[0].0 + Duration::from_millis(500), "{records:?}");
}

#[tokio::test]
async fn what_is_no_record_ends_the_stream_and_the_call_fails() {
    let schema = json!({ "type": "object", "required": ["n"] });
    for (bad, promise) in [("nonsense", json!({})), ("{\"m\":1}", schema)] {
        let output = json!({ "output": { "format": "ndjson-stream", "schema": promise } });
        let text = format!("#!/bin/sh\necho '{{\"n\":1}}'\necho '{bad}'\necho '{{\"n\":2}}'\n");
        let (_folder, tool) = script(&text, output);
        let (host, heard) = (host().await, Heard::new());
        let made = host.call(&tool, &listening(&tool, &heard), Warmth::Warm).await;
        assert_eq!(made.reply.unwrap_err().kind, Kind::BadOutput);
        assert_eq!(heard.values(), [json!({"n": 1})]);
    }
}

/// A script that fails with this code until it has run so often; it counts in a folder it may write.
fn flaky(code: i32, times: u32, more: Value) -> (Folder, Tool, tempfile::TempDir) {
    let counts = tempfile::Builder::new().prefix("haft-count-").tempdir_in("/var/tmp").unwrap();
    let path = counts.path().display();
    let text = format!(
        "#!/bin/sh\necho x >> {path}/count\n[ $(wc -l < {path}/count) -gt {times} ] || exit {code}\necho '{{\"n\":1}}'\n"
    );
    let (folder, tool) = script(&text, more);
    (folder, tool, counts)
}

#[tokio::test]
async fn a_command_that_says_try_again_is_run_again_where_that_is_safe() {
    for (code, times, idempotent, succeeds, runs) in [
        (75, 2, true, true, 3),
        (75, 9, true, false, 3),
        (75, 1, false, false, 1),
        (1, 1, true, false, 1),
    ] {
        let (_folder, tool, counts) = flaky(code, times, json!({ "idempotent": idempotent }));
        let (home, _, records) = kit::stores();
        let value = counts.path().to_str().unwrap().to_owned();
        let grants =
            [policy::Grant { kind: policy::GrantKind::Write, value }].into_iter().collect();
        kit::set_grants(&records, &tool.package.canonical_id(), &grants).await;
        let host = kit::host_in(&home, "").await;
        let made = host.call(&tool, &call_of(&tool, &json!({})), Warmth::Warm).await;
        let count = std::fs::read_to_string(counts.path().join("count")).unwrap().lines().count();
        let seen = (made.reply.is_ok(), made.attempts, count);
        assert_eq!(seen, (succeeds, runs, runs as usize), "{code} {idempotent}: {made:?}");
    }
}

#[tokio::test]
async fn what_is_run_again_has_only_the_time_that_is_left() {
    let counts = tempfile::Builder::new().prefix("haft-count-").tempdir_in("/var/tmp").unwrap();
    let path = counts.path().display();
    let text = format!(
        "#!/bin/sh\n[ -e {path}/count ] && exec sleep 60\necho x > {path}/count\nsleep 2\nexit 75\n"
    );
    let (_folder, tool) = script(&text, json!({ "idempotent": true }));
    let policy = format!("[sandbox]\ntimeout = \"4s\"\n[folders]\nwrite = [\"{path}\"]");
    let host = kit::host_with(&policy).await;
    let began = Instant::now();
    let made = host.call(&tool, &call_of(&tool, &json!({})), Warmth::Warm).await;
    assert_eq!((made.reply.unwrap_err().kind, made.attempts), (Kind::TimedOut, 2));
    assert!(began.elapsed() < Duration::from_millis(5_500), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_take_long_to_look_at_take_no_longer_than_the_call() {
    // Each goes back and forth for a while, and fits; there are far too many of them.
    let pattern = "^(?:(?!(?:(a)\\1?)+c)a+|b)$";
    let names = json!({ "type": "array", "items": { "type": "string", "pattern": pattern } });
    let schema = json!({ "type": "object", "properties": { "names": names } });
    let record = json!({ "names": vec!["a".repeat(20); 20] }).to_string();
    let text =
        format!("#!/bin/sh\nn=0\nwhile [ $n -lt 3000 ]; do echo '{record}'; n=$((n+1)); done\n");
    let output = json!({ "output": { "format": "ndjson-stream", "schema": schema } });
    let (_folder, tool) = script(&text, output);
    let host = kit::host_with("[sandbox]\ntimeout = \"2s\"").await;
    let heard = Heard::new();
    for call in [listening(&tool, &heard), call_of(&tool, &json!({}))] {
        let began = Instant::now();
        let made = host.call(&tool, &call, Warmth::Warm).await;
        assert!(began.elapsed() < Duration::from_secs(7), "{:?}: {made:?}", began.elapsed());
        // It is told by whoever notices first: the judge, or the walls around a program that nobody reads from.
        let kind = made.reply.unwrap_err().kind;
        assert!(matches!(kind, Kind::BadOutput | Kind::TimedOut), "{kind:?}");
    }
    assert!(!heard.values().is_empty());
}

#[tokio::test]
async fn a_command_that_has_told_records_is_not_run_again() {
    let more = json!({ "idempotent": true, "output": { "format": "ndjson-stream" } });
    let (_folder, tool) = script("#!/bin/sh\necho '{\"n\":1}'\nexit 75\n", more);
    let (host, heard) = (host().await, Heard::new());
    let made = host.call(&tool, &listening(&tool, &heard), Warmth::Warm).await;
    assert_eq!(made.reply.unwrap_err().kind, Kind::Failed);
    assert_eq!(heard.values(), [json!({"n": 1})]);
}

#[tokio::test]
async fn a_worker_that_died_is_asked_anew_where_that_is_safe() {
    let text = "import os\ncount = 0\ndef run(input):\n    global count\n    count += 1\n    if count > 1: os._exit(3)\n    return {'count': count}\n";
    for (idempotent, second) in [(Some(true), (true, 2)), (None, (false, 1))] {
        let folder = python_tool(text);
        let mut tool = folder.tool("manifest.json");
        tool.package.actions[0].idempotent = idempotent;
        let host = host().await;
        let ask = || async {
            let call = call_of(&tool, &json!({}));
            let made = host.call(&tool, &call, Warmth::Warm).await;
            (made.reply.is_ok(), made.attempts)
        };
        assert_eq!((ask().await, ask().await), ((true, 1), second));
    }
}

/// Also though a room is made ready for it meanwhile.
#[tokio::test]
async fn a_call_that_cannot_be_written_down_does_not_run() {
    // It would say that it ran.
    let (_folder, tool, counts) = flaky(0, 0, json!({}));
    let home = kit::home();
    let policy = format!("[folders]\nwrite = [\"{}\"]", counts.path().display());
    let host = kit::host_in(home.path(), &policy).await;
    // Nobody can make a folder where a file is.
    std::fs::write(home.path().join("audit"), "").unwrap();
    for _ in 0..5 {
        let made = host.call(&tool, &call_of(&tool, &json!({})), Warmth::Warm).await;
        let error = made.reply.unwrap_err();
        assert_eq!(error.kind, Kind::Unavailable, "{error}");
        assert!(error.message.starts_with("the call cannot be written down"), "{error}");
        assert!(error.message.contains("(os error "), "it says why: {error}");
        assert_eq!(made.attempts, 0);
    }
    assert_eq!(std::fs::read_dir(counts.path()).unwrap().count(), 0, "it ran");
    std::fs::remove_file(home.path().join("audit")).unwrap();
    host.call(&tool, &call_of(&tool, &json!({})), Warmth::Warm).await.reply.unwrap();
    assert_eq!(std::fs::read_dir(counts.path()).unwrap().count(), 1, "now it runs");
}

/// So many seconds nobody else sleeps.
const MARK: &str = "61.734";

/// The words of all processes.
fn processes() -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| {
        let words = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&words).replace('\0', " "))
    })
}

/// All that was written down in a home.
fn log_of(home: &std::path::Path) -> String {
    let files = std::fs::read_dir(home.join("audit")).unwrap().flatten();
    files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect()
}

#[tokio::test]
async fn a_call_that_is_called_off_ends_what_runs_and_is_written_down() {
    let (_script, sleeping) = script(&format!("#!/bin/sh\nsleep {MARK}\n"), json!({}));
    let folder = python_tool(&format!(
        "import subprocess\ndef run(input):\n    subprocess.run(['sleep', '{MARK}'])\n"
    ));
    for tool in [sleeping, folder.tool("manifest.json")] {
        let home = kit::home();
        let host = kit::host_in(home.path(), "").await;
        let call = call_of(&tool, &json!({}));
        let off = call.called_off.clone();
        let began = Instant::now();
        let (made, ()) = tokio::join!(host.call(&tool, &call, Warmth::Warm), async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            off.cancel();
        });
        assert_eq!(made.reply.unwrap_err().kind, Kind::Cancelled);
        assert!(began.elapsed() < Duration::from_secs(4));
        let log = log_of(home.path());
        assert!(log.contains("cancelled"), "{log}");
        let is_gone = || processes().all(|words| !words.contains(MARK));
        let end = Instant::now() + Duration::from_secs(4);
        while !is_gone() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(is_gone(), "it still runs");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tool_has_so_many_workers_at_a_time_and_the_rest_wait() {
    let folder = python_tool(
        "import os, time\ndef run(input):\n    time.sleep(0.4)\n    return {'pid': os.readlink('/proc/self/ns/pid')}\n",
    );
    let mut tool = folder.tool("manifest.json");
    tool.package.timeout_ms = Some(60_000);
    let host = host().await;
    let callers: Vec<_> = (0..24)
        .map(|_| {
            let (host, tool) = (host.clone(), tool.clone());
            tokio::spawn(async move { kit::result(&host, &tool, json!({})).await["pid"].clone() })
        })
        .collect();
    let mut rooms = std::collections::BTreeSet::new();
    for caller in callers {
        rooms.insert(caller.await.unwrap().to_string());
    }
    assert!(rooms.len() <= 8, "{rooms:?}");
}

#[tokio::test]
async fn calls_are_counted_by_action_and_how_they_went() {
    let text = "def run(input):\n    if input.get('bad'): raise ValueError('no')\n    return {}\n";
    let folder = python_tool(text);
    let (host, tool) = (host().await, folder.tool("manifest.json"));
    for input in [json!({}), json!({}), json!({"bad": true})] {
        let _ = host.call(&tool, &call_of(&tool, &input), Warmth::Warm).await;
    }
    host.records().settle().await.unwrap();
    let counted = host.records().state.metrics(None).await.unwrap();
    assert_eq!(counted.len(), 1);
    let series = &counted[0].series;
    assert_eq!((&*series.package, &*series.version), ("capability:demo.python", "1.0.0+path"));
    assert_eq!((counted[0].calls, counted[0].failed), (3, 1));
    assert!(!series.implementation.is_empty(), "{series:?}");
    assert_eq!(counted[0].failures.get("tool_failed"), Some(&1), "{counted:?}");
    // Nobody has to ask for it: a host that goes on counts by itself.
    let _ = host.call(&tool, &call_of(&tool, &json!({})), Warmth::Warm).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(host.records().state.metrics(None).await.unwrap()[0].calls, 4);
}

#[tokio::test]
async fn what_the_owner_takes_back_counts_at_once() {
    /// Calls within a millisecond share one look at what others may have changed.
    const SHARED: Duration = Duration::from_millis(2);
    let home = kit::home();
    let folder = python_tool("import os\ndef run(input):\n    return os.path.exists('/var/tmp')\n");
    let tool = folder.tool("manifest.json");
    let host = kit::host_in(home.path(), "").await;
    let elsewhere = host::Records::open(home.path()).await.unwrap();
    let id = tool.package.canonical_id();
    let rule = ledger::state::rules::Rule {
        package: id.clone(),
        action: tool.package.actions[0].name.clone(),
        arguments: "{}".into(),
        lasts: ledger::state::rules::Lasts::Always,
        by: "test".into(),
    };
    let mut wanting = tool.clone();
    wanting.package.actions[0].requires_approval = Some(true);
    let ask = || async {
        host.call(&wanting, &call_of(&wanting, &json!({})), Warmth::Warm).await.reply.is_ok()
    };
    for round in 0..20 {
        // What was known is kept while nothing changes, so it has to settle first now and then.
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_millis(70)).await;
        }
        assert!(!ask().await && !ask().await, "round {round}");
        let number = elsewhere.state.remember(&rule, host::records::now()).await.unwrap();
        tokio::time::sleep(SHARED).await;
        assert!(ask().await && ask().await, "round {round}");
        elsewhere.state.forget_rule(number).await.unwrap();
        tokio::time::sleep(SHARED).await;
    }
    assert!(!ask().await);
}
