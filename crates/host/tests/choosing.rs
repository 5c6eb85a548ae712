//! Which implementation of a tool makes its calls, and which one does when that breaks. The runtimes are real, but for those
//! that are not on every machine.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use host::{Call, Host, Kind, Tool, Warmth, Way};
use kit::{Folder, call_of, host_with};
use ledger::{Time, audit};
use manifest::model::Trust;
use policy::{Consent, Surface};
use serde_json::{Value, json};

/// Answers with who it is and what it was given.
const PYTHON: &str =
    "import json, sys\nprint(json.dumps({'by': 'python', 'n': json.load(sys.stdin).get('n')}))\n";
const NODE: &str = "console.log(JSON.stringify({by: 'node', n: JSON.parse(process.argv[2]).n}));\n";

fn local(id: &str, command: &str, more: &Value) -> Value {
    let mut one = json!({"id": id, "endpoint": {"type": "local", "command": command}});
    one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    one
}

fn node(more: &Value) -> Value {
    local("node", "node ./tool.js", more)
}

fn python(more: &Value) -> Value {
    local("python", "python ./tool.py", more)
}

fn manifest(implementations: &[Value], more: &Value) -> String {
    let mut manifest = json!({
        "toolId": "demo.two.ways", "name": "Two ways", "version": "1.0.0", "description": "A test",
        "capabilities": ["demo"], "implementations": implementations,
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
    });
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    manifest.to_string()
}

/// A package with these implementations, and the files that most of them run.
fn package(implementations: &[Value], more: &Value, files: &[(&str, &str)]) -> (Folder, Tool) {
    let manifest = manifest(implementations, more);
    let mut all = vec![("manifest.json", manifest.as_str())];
    for own in [("tool.py", PYTHON), ("tool.js", NODE)] {
        if files.iter().all(|(name, _)| *name != own.0) {
            all.push(own);
        }
    }
    all.extend(files);
    let folder = Folder::with(&all);
    let mut tool = folder.tool("manifest.json");
    // Of what is called from a path nothing is remembered.
    tool.consent = Consent::ByCard { admitted: Trust::Local };
    (folder, tool)
}

async fn by(host: &Host, tool: &Tool) -> String {
    let made = host.call(tool, &call_of(tool, &json!({"n": 1})), Warmth::Cold).await;
    let answer = made.reply.unwrap_or_else(|error| panic!("{error}: {}", error.details));
    let answer = answer.into_value();
    assert_eq!((answer["by"].as_str(), &answer["n"]), (Some(&*made.implementation), &json!(1)));
    made.implementation
}

async fn ways(host: &Host, tool: &Tool) -> Vec<(String, Option<usize>, String)> {
    let ways = host.ways(tool).await.unwrap();
    let told = |one: Way| (one.implementation, one.place, one.why.unwrap_or_default());
    ways.into_iter().map(told).collect()
}

/// Programs of this folder, before those of the system.
async fn host_with_programs(programs: &[(&str, &str)]) -> (Folder, Host) {
    let folder = Folder::with(programs);
    for (name, _) in programs {
        let path = folder.path().join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let system = [Path::new("/usr/local/bin"), Path::new("/usr/bin")];
    let host = kit::host_searching(&[&[folder.path()], &system[..]].concat()).await;
    (folder, host)
}

#[tokio::test]
async fn the_first_that_runs_here_makes_the_call_and_the_others_say_why_not() {
    let host = host_with("").await;
    let all = [
        local("windows", "./tool.exe", &json!({"platforms": ["win-x64"]})),
        local("page", "./tool.html", &json!({"runtime": "browser"})),
        local("dotnet", "no-such-dotnet ./Tool.dll", &json!({"runtime": "native"})),
        node(&json!({"runtime": "node", "requirements": {"minNodeVersion": "999.0.0"}})),
        python(&json!({"runtime": "python3.2", "platforms": ["linux-x64", "linux-arm64"]})),
        local("other", "python3 ./tool.py", &json!({})),
    ];
    let (_folder, tool) = package(&all, &json!({}), &[]);
    assert_eq!(by(&host, &tool).await, "python");
    let ways = ways(&host, &tool).await;
    let ids: Vec<_> = ways.iter().map(|(id, place, _)| (id.as_str(), *place)).collect();
    assert_eq!(
        ids,
        [
            ("python", Some(0)),
            ("other", Some(1)),
            ("windows", None),
            ("page", None),
            ("dotnet", None),
            ("node", None)
        ]
    );
    let why = |id: &str| ways.iter().find(|(one, ..)| one == id).unwrap().2.clone();
    assert!(why("windows").starts_with("is for win-x64, this is linux-"), "{}", why("windows"));
    assert_eq!(why("page"), "runs in a browser");
    assert_eq!(why("dotnet"), "needs `no-such-dotnet`, which is not here");
    let node = why("node");
    assert!(node.starts_with("needs Node >=999.0.0, and `node` is "), "{node}");
}

#[tokio::test]
async fn where_nothing_runs_here_every_reason_is_told_and_one_may_be_named_all_the_same() {
    let host = host_with("").await;
    let all = [
        node(&json!({"requirements": {"minNodeVersion": "999"}})),
        python(&json!({"requirements": {"packages": ["no-such-package>=2"]}})),
    ];
    let (_folder, tool) = package(&all, &json!({}), &[]);
    let error = kit::error(&host, &tool, json!({})).await;
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.message.contains("`node` needs Node >=999.0.0, and `node` is"), "{error}");
    assert!(
        error.message.contains("`python` needs `no-such-package`, which is not installed"),
        "{error}"
    );
    let named = |name: &str| {
        let implementation = Some(name.to_owned());
        Call { implementation, ..call_of(&tool, &json!({"n": 2})) }
    };
    let made = host.call(&tool, &named("python"), Warmth::Cold).await;
    assert_eq!(made.reply.unwrap().into_value(), json!({"by": "python", "n": 2}));
    let made = host.call(&tool, &named("ruby"), Warmth::Cold).await;
    let error = made.reply.unwrap_err();
    assert_eq!(error.kind, Kind::BadInput);
    assert_eq!(error.details["implementations"], json!(["node", "python"]));
    // The owner may say so once for all, whoever calls.
    let host = host_with("[package.\"demo.two.ways\"]\nimplementation = \"python\"\n").await;
    assert_eq!(by(&host, &tool).await, "python");
    let ways = ways(&host, &tool).await;
    assert_eq!((&*ways[0].0, ways[0].1), ("python", Some(0)));
    let words = "your policy names it, though it needs `no-such-package`, which is not installed";
    assert_eq!((ways[0].2.as_str(), ways.len()), (words, 2));
    let host = host_with("[package.\"demo.two.ways\"]\nimplementation = \"ruby\"\n").await;
    let error = kit::error(&host, &tool, json!({})).await;
    assert!(error.message.contains("`ruby`, which your policy names"), "{error}");
    assert_eq!(host.ways(&tool).await.unwrap()[0].implementation, "ruby");
}

#[tokio::test]
async fn a_runtime_is_looked_for_by_its_other_names_and_in_the_version_that_does() {
    let old = "#!/bin/sh\necho 'Python 3.4.1'\n";
    let new = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'Python 3.98.0' || exec python3 \"$@\"\n";
    let programs = [("python", old), ("python3.98", new)];
    let (_programs, host) = host_with_programs(&programs).await;
    let (_folder, tool) = package(&[python(&json!({"runtime": "python3.98"}))], &json!({}), &[]);
    assert_eq!(by(&host, &tool).await, "python");
    let plan = host.plan(&tool, &call_of(&tool, &json!({}))).await.unwrap().to_value();
    assert!(plan.to_string().contains("python3.98"), "{plan}");
    let (_folder, tool) = package(&[python(&json!({"runtime": "python3.99"}))], &json!({}), &[]);
    let error = kit::error(&host, &tool, json!({})).await;
    assert!(error.message.contains("needs Python >=3.99.0, <4, and `python` is 3.4.1"), "{error}");
}

#[tokio::test]
async fn what_a_program_said_is_believed_until_its_file_is_another() {
    let asked = "#!/bin/sh\necho 'Kit 7.1'\n";
    let (programs, host) = host_with_programs(&[("kit", asked)]).await;
    let wanting =
        |least: &str| local("kit", "./run", &json!({"requirements": {"minKitVersion": least}}));
    let (_folder, tool) = package(&[wanting("8.0"), python(&json!({}))], &json!({}), &[]);
    assert_eq!(ways(&host, &tool).await[1].2, "needs kit >=8.0.0, and `kit` is 7.1.0");
    let program = programs.path().join("kit");
    std::fs::write(&program, "#!/bin/sh\necho 'Kit 8.0.3 (new)'\n").unwrap();
    assert_eq!(ways(&host, &tool).await[0].0, "kit");
    // One that does not say its version is taken at its name, after those that do.
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    let silent = ways(&host, &tool).await;
    assert_eq!(silent[1].0, "kit");
    assert_eq!(silent[1].2, "nobody here can tell whether it has kit >=8.0.0");
    // What only leads to a program that is not there is none.
    std::fs::write(&program, "#!/bin/sh\nexit 127\n").unwrap();
    let gone = ways(&host, &tool).await;
    assert_eq!((gone[1].1, &*gone[1].2), (None, "needs kit >=8.0.0, and `kit` does not run"));
}

#[tokio::test]
async fn packages_of_a_language_are_looked_for_where_the_tool_would_find_them() {
    let host = host_with("").await;
    let kit = |versions: &str| {
        node(&json!({
            "language": "javascript", "requirements": {"packages": [format!("kit{versions}")]},
        }))
    };
    let files = [("node_modules/kit/package.json", r#"{"name": "kit", "version": "2.1.0"}"#)];
    for (versions, runs) in [("@^2", true), ("", true), ("@^3", false)] {
        let (_folder, tool) = package(&[kit(versions), python(&json!({}))], &json!({}), &files);
        assert_eq!(ways(&host, &tool).await[0].0 == "node", runs, "{versions}");
    }
    let wheel = |versions: &str| {
        local(
            "python",
            "python3 ./tool.py",
            &json!({
                "runtime": "python3", "requirements": {"packages": [format!("haft-demo{versions}")]},
            }),
        )
    };
    let described = "Metadata-Version: 2.1\nName: haft_demo\nVersion: 1.10\n";
    let library = Folder::with(&[("haft_demo-1.10.dist-info/METADATA", described)]);
    for (versions, lacks) in
        [(">=1.9", None), ("~=1.9,<2", None), ("<1.10", Some("`haft-demo` <1.10, which is 1.10"))]
    {
        let (_folder, mut tool) = package(&[wheel(versions), node(&json!({}))], &json!({}), &[]);
        tool.brought.python = Some(library.path().canonicalize().unwrap());
        let ways = ways(&host, &tool).await;
        let why = ways.iter().find(|(id, ..)| id == "python").unwrap().2.clone();
        assert_eq!(
            why,
            lacks.map(|lacks| format!("needs {lacks}")).unwrap_or_default(),
            "{versions}"
        );
    }
}

#[tokio::test]
async fn what_nobody_here_can_look_at_comes_later_and_says_so() {
    let host = host_with("").await;
    let all = [
        node(&json!({"requirements": {"minFluxCapacity": 3}})),
        python(&json!({"requirements": {"commands": ["sh"], "minCores": 1, "minMemoryMb": 1}})),
    ];
    let (_folder, tool) = package(&all, &json!({}), &[]);
    assert_eq!(by(&host, &tool).await, "python");
    assert_eq!(by(&host, &Tool { consent: Consent::ByPath, ..tool.clone() }).await, "python");
    let ways = ways(&host, &tool).await;
    assert_eq!(ways[1].2, "nobody here can tell whether it has minFluxCapacity");
    let all = [
        local("hungry", "./run", &json!({"requirements": {"minMemoryMb": 1_u64 << 40}})),
        local("wide", "./run", &json!({"requirements": {"minCores": 1_000_000}})),
        local("armed", "./run", &json!({"requirements": {"programs": ["no-such-program"]}})),
    ];
    let (_folder, tool) = package(&all, &json!({}), &[]);
    let error = kit::error(&host, &tool, json!({})).await;
    for words in
        ["MiB of memory, this machine has", "processors, this machine has", "`no-such-program`"]
    {
        assert!(error.message.contains(words), "{error}");
    }
}

#[tokio::test]
async fn those_that_were_measured_to_do_better_come_first() {
    let host = host_with("").await;
    let slow = "import time; time.sleep(0.3)\n".to_owned() + PYTHON;
    let all = [python(&json!({})), node(&json!({}))];
    let (_folder, tool) = package(&all, &json!({}), &[("tool.py", &slow)]);
    assert_eq!(by(&host, &tool).await, "python");
    for name in ["python", "node"] {
        for _ in 0..11 {
            let implementation = Some(name.to_owned());
            let call = Call { implementation, ..call_of(&tool, &json!({"n": 1})) };
            host.call(&tool, &call, Warmth::Cold).await.reply.unwrap();
        }
    }
    host.records().settle().await.unwrap();
    assert_eq!(by(&host, &tool).await, "node");
    let ways = host.ways(&tool).await.unwrap();
    assert!(ways.iter().all(|one| one.measured.is_some()), "{ways:?}");
    assert!(ways[0].words().starts_with("chosen: "), "{}", ways[0].words());
}

/// Ends by a signal.
const CRASHING: &str = "process.kill(process.pid, 'SIGKILL');\n";

/// The implementations in the log, one for each call, the oldest first.
fn logged(home: &Path) -> Vec<String> {
    let page = audit::page(&home.join("audit"), &audit::Filter::default(), None, 1_000);
    let records = page.unwrap().records.into_iter().rev();
    let ended = records.filter(|one| one.kind != audit::Kind::Begin);
    ended.map(|one| one.implementation).collect()
}

#[tokio::test]
async fn one_that_breaks_is_followed_by_the_next_where_that_is_harmless() {
    let host = host_with("").await;
    let all = [node(&json!({})), python(&json!({}))];
    for harmless in [
        json!({"sideEffects": "none"}),
        json!({"sideEffects": "read"}),
        json!({"idempotent": true}),
    ] {
        let (_folder, tool) = package(&all, &harmless, &[("tool.js", CRASHING)]);
        let made = host.call(&tool, &call_of(&tool, &json!({"n": 1})), Warmth::Cold).await;
        assert_eq!(made.reply.unwrap().into_value()["by"], "python", "{harmless}");
        assert_eq!(made.fallen.len(), 1);
        assert_eq!(made.fallen[0].implementation, "node");
    }
}

#[tokio::test]
async fn a_call_is_not_made_twice_where_that_could_do_harm_and_the_next_call_goes_elsewhere() {
    let host = host_with("").await;
    let all = [node(&json!({})), python(&json!({}))];
    // It left something behind before it could not be loaded any further.
    let broken = "console.error('half done'); require('no-such-module');\n";
    let (_folder, tool) = package(&all, &json!({}), &[("tool.js", broken)]);
    let made = host.call(&tool, &call_of(&tool, &json!({"n": 1})), Warmth::Cold).await;
    assert!(made.reply.is_err() && made.fallen.is_empty());
    assert_eq!(made.implementation, "node");
    assert_eq!(by(&host, &tool).await, "python");
    let ways = ways(&host, &tool).await;
    assert_eq!((ways[1].0.as_str(), ways[1].1), ("node", Some(1)));
    assert!(ways[1].2.starts_with("it broke once, last at 20"), "{}", ways[1].2);
    // What is called from a path is what it is now.
    let path = Tool { consent: Consent::ByPath, ..tool.clone() };
    let made = host.call(&path, &call_of(&path, &json!({"n": 1})), Warmth::Cold).await;
    let error = made.reply.unwrap_err();
    assert_eq!(
        (&*made.implementation, &error.details["next"]["implementation"]),
        ("node", &json!("python"))
    );
    // A tool that says no has not broken.
    let no = "console.error('no such city'); process.exit(1);\n";
    let (_folder, tool) = package(&all, &json!({"toolId": "demo.says.no"}), &[("tool.js", no)]);
    for _ in 0..4 {
        let made = host.call(&tool, &call_of(&tool, &json!({})), Warmth::Cold).await;
        assert_eq!(made.implementation, "node");
        assert!(made.reply.unwrap_err().message.contains("no such city"));
    }
}

#[tokio::test]
async fn one_that_crashed_thrice_in_a_row_stands_back_and_is_whole_again_when_it_answers() {
    let host = host_with("").await;
    let all = [node(&json!({})), python(&json!({}))];
    let (folder, tool) = package(&all, &json!({}), &[("tool.js", CRASHING)]);
    for _ in 0..3 {
        let made = host.call(&tool, &call_of(&tool, &json!({"n": 1})), Warmth::Cold).await;
        assert_eq!((made.reply.is_err(), &*made.implementation), (true, "node"));
    }
    assert_eq!(by(&host, &tool).await, "python");
    std::fs::write(folder.path().join("tool.js"), NODE).unwrap();
    let state = &host.records().state;
    let long_ago = Time::from_unix_millis(1_700_000_000_000);
    let series = ("mcpkg:demo.two.ways", "1.0.0", "node");
    state.note_broken(series, ("it crashed", true), long_ago).await.unwrap();
    assert_eq!(by(&host, &tool).await, "node");
    let pasts = state.pasts(series.0, series.1, host::records::now()).await.unwrap();
    assert!(pasts.values().all(|past| past.broken.is_none()), "{pasts:?}");
}

#[tokio::test]
async fn what_could_not_even_be_started_is_followed_by_the_next_whatever_the_tool_does() {
    let home = kit::home();
    let host = kit::host_in(home.path(), "").await;
    let all = [local("gone", "./no-such-file", &json!({})), python(&json!({}))];
    let (_folder, tool) = package(&all, &json!({"sideEffects": "write"}), &[]);
    let made = host.call(&tool, &call_of(&tool, &json!({"n": 1})), Warmth::Cold).await;
    assert_eq!(made.reply.unwrap().into_value()["by"], "python");
    assert_eq!(made.fallen[0].implementation, "gone");
    assert_eq!(logged(home.path()), ["gone", "python"]);
    // From then on it is not tried first.
    let made = host.call(&tool, &call_of(&tool, &json!({"n": 1})), Warmth::Cold).await;
    assert_eq!((made.fallen.len(), &*made.implementation), (0, "python"));
}

#[tokio::test]
async fn a_test_is_made_by_the_next_and_says_so_and_one_that_is_named_stands_alone() {
    let host = host_with("").await;
    let all = [node(&json!({})), python(&json!({}))];
    let (_folder, tool) = package(&all, &json!({}), &[("tool.js", CRASHING)]);
    let test = Call { surface: Surface::Test, ..call_of(&tool, &json!({"n": 1})) };
    let made = host.call(&tool, &test, Warmth::Cold).await;
    assert!(made.reply.is_ok());
    assert_eq!(made.fallen[0].implementation, "node");
    let named = Call { implementation: Some("node".into()), ..test };
    let made = host.call(&tool, &named, Warmth::Cold).await;
    assert!(made.reply.is_err() && made.fallen.is_empty());
}

#[tokio::test]
async fn the_endpoint_beside_the_implementations_is_the_last_to_be_asked() {
    let host = host_with("").await;
    let endpoint = json!({"endpoint": {"type": "local", "command": "node ./tool.js"}});
    let (_folder, tool) = package(&[python(&json!({}))], &endpoint, &[]);
    let series = |implementation: &str| ledger::state::metrics::Series {
        package: "mcpkg:demo.two.ways".into(),
        version: "1.0.0".into(),
        action: "demo.two.ways".into(),
        implementation: implementation.into(),
    };
    let counted = |implementation: &str, ms| ledger::state::counting::Counted {
        series: series(implementation).into(),
        failure: String::new(),
        latency: std::time::Duration::from_millis(ms),
        at: host::records::now(),
        place: None,
        flow: None,
    };
    let calls: Vec<_> =
        (0..20).flat_map(|_| [counted("endpoint", 1), counted("python", 900)]).collect();
    host.records().state.count_calls(&calls).await.unwrap();
    let ways = host.ways(&tool).await.unwrap();
    let ids: Vec<_> = ways.iter().map(|one| one.implementation.as_str()).collect();
    assert_eq!(ids, ["python", "endpoint"]);
}

#[tokio::test]
async fn what_the_one_before_reached_for_and_took_is_not_forgotten() {
    let host = host_with("[sandbox]\non_violation = \"disable\"\n").await;
    let prying = "require('net').connect(443, 'example.com').on('error', () => process.kill(process.pid, 'SIGKILL'));\n";
    let all = [node(&json!({})), python(&json!({}))];
    let harmless = json!({"sideEffects": "none"});
    let (_folder, tool) = package(&all, &harmless, &[("tool.js", prying)]);
    let made = host.call(&tool, &call_of(&tool, &json!({"n": 1})), Warmth::Cold).await;
    assert_eq!((made.fallen.len(), made.attempts), (1, 2), "{:?}", made.reply);
    assert!(made.reply.is_ok());
    assert_eq!(made.blocked.len(), 1, "{:?}", made.blocked);
    assert!(made.violation.is_some());
}

#[tokio::test]
async fn whatever_cannot_be_started_or_loaded_is_followed_by_the_next() {
    let harmless = json!({"sideEffects": "none"});
    let crlf = ("tools/bin/crlf.sh", "#!/bin/sh\r\necho hi\r\n");
    for command in [
        "sh ./gone.sh",
        "bash ./gone.sh",
        "perl ./gone.pl",
        "./tools/bin/crlf.sh",
        "python3 ./gone.py",
        "node ./gone.js",
    ] {
        let host = host_with("").await;
        let all = [local("first", command, &json!({})), python(&json!({}))];
        let (_folder, tool) = package(&all, &harmless, &[crlf]);
        let made = host.call(&tool, &call_of(&tool, &json!({"n": 1})), Warmth::Cold).await;
        assert_eq!(made.implementation, "python", "{command}: {:?}", made.reply);
        assert_eq!(made.fallen.len(), 1, "{command}");
    }
}
