//! Commands beside the calls of a package: its smoke test, and its kill switch, inside the walls of the package.
#![cfg(target_os = "linux")]
#![expect(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "a test may panic, and reads better without `&json!`"
)]

mod kit;

use std::time::{Duration, Instant};

use host::smoke::Verdict;
use host::{CallError, CancellationToken, Killed, Kind, Smoked, Tool};
use kit::{Folder, host, host_with};
use serde_json::{Value, json};
use vault::Secret;

const KEY: &str = "s3cret-key-of-the-install";

/// A package whose program is this text, with a smoke test and a kill switch.
fn package(text: &str, smoke: Value, kill_switch: Value) -> (Folder, Tool) {
    let env = |name: &str, secret: bool, required: bool| json!({ "name": name, "secret": secret, "required": required, "prompt": "It." });
    let manifest = json!({
        "manifest_version": "0.4",
        "tool": {
            "id": "beside", "version": "1.0.0", "name": "Beside", "summary": "A test.",
            "homepage": "https://example.com/",
        },
        "runtime": {
            "kind": "python-module",
            "install": { "method": "pip", "package": "beside", "version_spec": "==1.0.0" },
            "entrypoint": { "command": ["python3", "tool.py"], "cwd": "below" },
        },
        "env": [env("KEY", true, true), env("ZONE", false, false), env("GONE", false, false)],
        "actions": [
            {
                "name": "look", "summary": "Looks.", "side_effects": "none",
                "invocation": { "kind": "subcommand", "argv_template": ["look", "${input.at}"] },
                "input": { "type": "object", "properties": { "at": { "type": "string" } } },
                "output": { "format": "json" },
            },
        ],
        "smoke": smoke,
        "kill_switch": kill_switch,
    });
    let files = [("agent.json", manifest.to_string()), ("below/tool.py", text.to_owned())];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let folder = Folder::with(&files);
    let mut tool = folder.tool("agent.json");
    let given = [("KEY", KEY), ("ZONE", "eu")];
    let given =
        given.map(|(name, value)| (name.to_owned(), Secret::new(value.to_owned()).unwrap()));
    tool.given.values = given.into();
    (folder, tool)
}

fn trial(text: &str, arguments: &[&str], success: Value) -> (Folder, Tool) {
    let command: Vec<_> = ["python3", "tool.py"].iter().chain(arguments).collect();
    let smoke =
        json!({ "kind": "shell", "command": command, "timeout_seconds": 20, "success": success });
    package(text, smoke, json!({ "kind": "manual", "instructions": "x" }))
}

async fn smoke(tool: &Tool) -> Result<Smoked, CallError> {
    host().await.smoke(tool, &CancellationToken::new()).await
}

async fn smoked(text: &str, success: Value) -> Smoked {
    let (_folder, tool) = trial(text, &[], success);
    smoke(&tool).await.unwrap()
}

#[tokio::test]
async fn a_command_runs_as_the_tool_would_and_every_condition_counts() {
    let text = r#"
import json, os, sys
print(json.dumps({
    "zone": os.environ["ZONE"], "arguments": sys.argv[1:], "has_key": os.environ["KEY"].startswith("s3cret"),
    "here": os.path.basename(os.getcwd()), "key": os.environ["KEY"], "n": 3,
}))
print("on the way", os.environ["KEY"], file=sys.stderr)
sys.exit(3)
"#;
    let success = json!({
        "exit_code": 3,
        "stdout_regex": "\"zone\": ?\"eu\"",
        "json_pointer_equals": {
            "/zone": "${ZONE}", "/arguments": ["--in=eu"], "/has_key": true, "/here": "below",
            "/key": "${KEY}", "/n": 3.0, "/gone": "${GONE}",
        },
        "json_pointer_in": { "/zone": ["us", "${ZONE}"] },
        "json_pointer_exists": "/n",
        "json_pointer_present": "/zone",
        "no_error_field": true,
    });
    let (_folder, tool) = trial(text, &["--in=${ZONE}", "--of", "${GONE}"], success);
    let smoked = smoke(&tool).await.unwrap();
    assert!(smoked.passed, "{smoked:#?}");
    let skipped = smoked.checks.iter().filter(|one| one.verdict == Verdict::Skipped);
    assert_eq!(skipped.map(|one| &*one.what).collect::<Vec<_>>(), ["json_pointer_equals `/gone`"]);
    assert!(!smoked.to_value().to_string().contains(KEY), "{smoked:?}");
    assert!(smoked.output.contains("on the way [secret KEY]"), "{}", smoked.output);
}

#[tokio::test]
async fn one_condition_that_does_not_hold_is_enough_to_fail() {
    let text = "print('{\"error\": \"no\", \"blank\": \" \"}')";
    for success in [
        json!({ "exit_code": 1 }),
        json!({ "http_status": 200 }),
        json!({ "stdout_regex": "^yes" }),
        json!({ "body_regex": "^yes" }),
        json!({ "json_pointer_equals": { "/error": "yes" } }),
        json!({ "json_pointer_in": { "/error": ["yes", "maybe"] } }),
        json!({ "json_pointer_exists": "/ready" }),
        json!({ "json_pointer_present": "/blank" }),
        json!({ "no_error_field": true }),
    ] {
        let smoked = smoked(text, success.clone()).await;
        assert!(!smoked.passed, "{success}: {smoked:?}");
        let failed = smoked.checks.iter().filter(|one| one.verdict == Verdict::Failed).count();
        assert_eq!(failed, 1, "{success}: {smoked:?}");
    }
}

#[tokio::test]
async fn a_failure_shows_what_the_tool_printed() {
    let text = "import sys\nprint('before')\nsys.exit('no module named beside')";
    let smoked = smoked(text, json!({})).await;
    assert!(!smoked.passed);
    assert_eq!((&*smoked.checks[0].expected, &*smoked.checks[0].found), ("0", "1"));
    assert_eq!(smoked.output, "before\nno module named beside");
}

#[tokio::test]
async fn what_takes_too_long_is_ended_and_told() {
    let text = "import time\nprint('waiting', flush=True)\ntime.sleep(600)";
    let (_folder, mut tool) = trial(text, &[], json!({}));
    let text = tool.package.smoke.as_ref().unwrap().text().replace(":20", ":1");
    let parsed = manifest::json::parse(&text);
    tool.package.smoke = Some(manifest::model::Json::of(&parsed.root.unwrap(), &text));
    let began = Instant::now();
    let smoked = smoke(&tool).await.unwrap();
    assert!(!smoked.passed && began.elapsed() < Duration::from_secs(10), "{smoked:?}");
    assert!(smoked.checks[0].found.contains("deadline"), "{smoked:?}");
    assert_eq!(smoked.output, "waiting");
}

#[tokio::test]
async fn a_command_has_the_walls_of_the_tool() {
    let outside = Folder::with(&[("file", "owner's own")]);
    let text = format!(
        r#"
import os, urllib.request
def kept(what, act):
    try:
        act()
        print(what, "was reached")
    except Exception as error:
        print(what, "was not reached")
kept("file", lambda: open("{path}/file").read())
kept("own", lambda: open("tool.py", "a").write("x"))
kept("host", lambda: urllib.request.urlopen("http://example.com", timeout=5))
"#,
        path = outside.path().display()
    );
    let smoked = smoked(&text, json!({})).await;
    assert_eq!(smoked.output, "file was not reached\nown was not reached\nhost was not reached");
    assert!(smoked.blocked.iter().any(|one| one.asked.starts_with("example.com")), "{smoked:?}");
}

#[tokio::test]
async fn what_is_missing_or_refused_is_no_failed_smoke_test() {
    let (_folder, mut tool) = trial("", &[], json!({}));
    tool.given.values.clear();
    let error = smoke(&tool).await.unwrap_err();
    assert_eq!((error.kind, &*error.message), (Kind::MissingInput, "Missing required secret: KEY"));
    let (_folder, tool) = trial("", &[], json!({}));
    let policy = "[package.\"install-manifest:beside\"]\nallow = false\n";
    let denied = host_with(policy).await.smoke(&tool, &CancellationToken::new()).await;
    assert_eq!(denied.unwrap_err().kind, Kind::Denied);
    let off = CancellationToken::new();
    off.cancel();
    assert_eq!(host().await.smoke(&tool, &off).await.unwrap_err().kind, Kind::Cancelled);
    let none = json!({ "kind": "shell", "command": ["no-such-program-here"], "success": {} });
    let (_folder, tool) = package("", none, json!({ "kind": "manual", "instructions": "x" }));
    assert_eq!(smoke(&tool).await.unwrap_err().kind, Kind::Unavailable);
}

#[tokio::test]
async fn a_command_of_node_is_tried_like_any_other() {
    let command = ["node", "-e", "console.log(JSON.stringify({ zone: process.env.ZONE }))"];
    let success = json!({ "json_pointer_equals": { "/zone": "${ZONE}" } });
    let smoke_test = json!({ "kind": "shell", "command": command, "success": success });
    let (_folder, tool) = package("", smoke_test, json!({ "kind": "manual", "instructions": "x" }));
    let smoked = smoke(&tool).await.unwrap();
    assert!(smoked.passed, "{smoked:?}");
}

#[tokio::test]
async fn a_secret_becomes_no_argument_whatever_the_model_says() {
    let (_folder, mut tool) = trial("print(1)", &["${ZONE}"], json!({}));
    let input = tool.package.inputs.iter_mut().find(|input| input.name == "ZONE").unwrap();
    input.secret = true;
    assert_eq!(smoke(&tool).await.unwrap_err().kind, Kind::Denied);
}

#[tokio::test]
async fn an_action_is_called_with_its_arguments() {
    let text = r#"
import json, sys
if sys.argv[1:] == ["look", "here"]:
    print(json.dumps({"seen": sys.argv[2], "error": None}))
else:
    sys.exit("nothing at " + " ".join(sys.argv[1:]))
"#;
    let call = |at: &str, success: Value| {
        let smoke = json!({ "kind": "action-call", "action": "look", "arguments": { "at": at }, "success": success });
        package(text, smoke, json!({ "kind": "manual", "instructions": "x" }))
    };
    let (_folder, tool) =
        call("here", json!({ "json_pointer_equals": { "/seen": "here" }, "exit_code": 0 }));
    let seen = smoke(&tool).await.unwrap();
    assert!(seen.passed, "{seen:?}");
    let (_folder, tool) = call("here", json!({ "no_error_field": true }));
    assert!(!smoke(&tool).await.unwrap().passed);
    let (_folder, tool) = call("there", json!({}));
    let failed = smoke(&tool).await.unwrap();
    assert!(
        !failed.passed && failed.checks[0].found.contains("nothing at look there"),
        "{failed:?}"
    );
    assert_eq!(failed.output.trim(), "nothing at look there");
}

fn switch(text: &str) -> (Folder, Tool) {
    let smoke = json!({ "kind": "shell", "command": ["true"], "success": {} });
    package(text, smoke, json!({ "kind": "shell", "command": ["python3", "tool.py", "stop"] }))
}

async fn kill(tool: &Tool) -> Result<Killed, CallError> {
    host().await.kill(tool, None, &CancellationToken::new()).await
}

#[tokio::test]
async fn a_command_that_ends_well_confirms_also_of_a_tool_that_is_switched_off() {
    let text = format!(
        "import os, sys\nsys.exit(0 if os.environ['KEY'] == '{KEY}' and sys.argv[1] == 'stop' else 1)"
    );
    let (_folder, mut tool) = switch(&text);
    tool.package.enabled = false;
    assert_eq!(kill(&tool).await, Ok(Killed::Confirmed));
    assert_eq!(smoke(&tool).await.unwrap_err().kind, Kind::Denied);
}

#[tokio::test]
async fn any_other_end_does_not_confirm() {
    let (_folder, tool) = switch("import os, sys\nsys.exit('no ' + os.environ['KEY'])");
    let Ok(Killed::Unconfirmed { why, by_hand }) = kill(&tool).await else { panic!() };
    assert_eq!((&*why, by_hand), ("the command ended with code 1: no [secret KEY]", None));
    let (_folder, tool) = switch("import os\nos.kill(os.getpid(), 9)");
    assert!(matches!(kill(&tool).await, Ok(Killed::Unconfirmed { .. })));
    // What is gone already does not keep it from being revoked.
    let (_folder, mut tool) = switch("import os, sys\nsys.exit('KEY' in os.environ)");
    tool.given.values.clear();
    assert_eq!(kill(&tool).await, Ok(Killed::Confirmed));
    let off = CancellationToken::new();
    off.cancel();
    let called_off = host().await.kill(&tool, None, &off).await;
    assert_eq!(called_off.unwrap_err().kind, Kind::Cancelled);
}
