//! Python functions and Node tools: warm, walled, and ended by anything that is not an answer.

mod kit;

use std::time::{Duration, Instant};

use host::{Kind, Warmth};
use kit::{call, error, host, node_module, node_tool, python_tool, result};
use manifest::model::Entry;
use serde_json::json;

#[tokio::test]
async fn a_python_function_answers_and_stays_warm() {
    let folder = python_tool(
        "import os\ncount = 0\ndef run(input):\n    global count\n    count += 1\n    print('noise')\n    return {'count': count, 'pid': os.getpid(), 'got': input}\n",
    );
    let (host, tool) = (host().await, folder.tool("manifest.json"));
    let first = result(&host, &tool, json!({"a": "ü"})).await;
    assert_eq!(first["got"], json!({"a": "ü"}));
    let second = result(&host, &tool, json!({})).await;
    assert_eq!((&first["count"], &second["count"]), (&json!(1), &json!(2)));
    let (cold, _) = call(&host, &tool, &json!({}), Warmth::Cold).await;
    assert_eq!(cold.unwrap().into_value()["count"], 1);
    assert_eq!(result(&host, &tool, json!({})).await["count"], 3);
}

#[tokio::test]
async fn a_coroutine_is_awaited_and_an_exception_is_told() {
    let folder = python_tool(
        "import asyncio\nasync def run(input):\n    await asyncio.sleep(0.01)\n    if input.get('bad'):\n        raise ValueError('no such colour')\n    return input\n",
    );
    let (host, tool) = (host().await, folder.tool("manifest.json"));
    assert_eq!(result(&host, &tool, json!({"x": 1})).await, json!({"x": 1}));
    let failed = error(&host, &tool, json!({"bad": true})).await;
    assert_eq!(
        (failed.kind, &*failed.message),
        (Kind::Failed, "ValueError: no such colour (demo.py:5)")
    );
    // Its own failure is no reason to start it anew.
    assert_eq!(result(&host, &tool, json!({"x": 2})).await, json!({"x": 2}));
}

#[tokio::test]
async fn what_a_tool_says_to_a_call_that_fails_is_told_and_to_no_other() {
    // Neither ends its line: what is said is said all the same.
    let python = python_tool(
        "import sys\ndef run(input):\n    sys.stderr.write('to ' + input['word'])\n    if input['fails']:\n        raise ValueError('no')\n",
    );
    let node = node_tool(
        "{ execute({ word, fails }) { process.stderr.write('to ' + word); if (fails) throw new Error('no'); } }",
    );
    let host = host().await;
    for tool in [python.tool("manifest.json"), node.tool("tool.json")] {
        result(&host, &tool, json!({"word": "one", "fails": false})).await;
        for word in ["two", "three"] {
            let failed = error(&host, &tool, json!({"word": word, "fails": true})).await;
            assert_eq!(failed.details["stderr"], format!("to {word}"), "{failed:?}");
        }
    }
    let broken =
        python_tool("import sys\nsys.stderr.write('while it loads')\nimport no_such_module\n");
    let failed = error(&host, &broken.tool("manifest.json"), json!({})).await;
    assert_eq!(failed.details["stderr"], "while it loads");
}

#[tokio::test]
async fn what_cannot_be_json_or_cannot_be_loaded_is_an_error() {
    let (host, odd) = (host().await, python_tool("def run(input):\n    return float('nan')\n"));
    let failed = error(&host, &odd.tool("manifest.json"), json!({})).await;
    assert_eq!(failed.kind, Kind::Failed, "{failed}");
    let broken = python_tool("import no_such_module_at_all\n");
    let failed = error(&host, &broken.tool("manifest.json"), json!({})).await;
    assert!(failed.message.starts_with("it cannot be loaded: ModuleNotFoundError"), "{failed}");
    let missing = python_tool("def other(input):\n    return 1\n");
    let failed = error(&host, &missing.tool("manifest.json"), json!({})).await;
    assert!(failed.message.contains("AttributeError"), "{failed}");
}

#[tokio::test]
async fn a_result_that_is_no_unicode_is_told_as_that() {
    let python = python_tool(
        r"
def run(input):
    if input['how'] == 'raise':
        raise OSError('\udcff')
    return {'half': '\ud800', 'key': {'\ud800': 1}, 'whole': ['\\ud800', '\U0001f600', '\u2028']}[input['how']]
",
    );
    let node = node_tool(
        r"{ async execute({ how }) {
    if (how === 'raise') throw new Error('\udcff');
    return { half: '\ud800', key: { '\ud800': 1 }, whole: ['\\ud800', '\ud83d\ude00', '\u2028'] }[how];
} }",
    );
    let host = host().await;
    for (tool, kind, raised) in [
        (python.tool("manifest.json"), "ValueError", "OSError: ? (demo.py:4)"),
        (node.tool("tool.json"), "TypeError", "\u{fffd} (index.mjs:2)"),
    ] {
        for how in ["half", "key"] {
            let failed = error(&host, &tool, json!({ "how": how })).await;
            assert_eq!(failed.kind, Kind::Failed, "{failed}");
            let words = "the result holds half a surrogate, which is no character of Unicode";
            assert_eq!(failed.message, format!("{kind}: {words}"));
        }
        assert_eq!(error(&host, &tool, json!({"how": "raise"})).await.message, raised);
        // What only looks like one is let through.
        let whole = result(&host, &tool, json!({"how": "whole"})).await;
        assert_eq!(whole, json!(["\\ud800", "\u{1f600}", "\u{2028}"]));
    }
}

#[tokio::test]
async fn a_worker_that_hangs_dies_floods_or_babbles_is_ended_in_time_and_replaced() {
    let folder = python_tool(
        r"
import os, signal, sys, time
def run(input):
    how = input.get('how')
    if how == 'hang':
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True: time.sleep(60)
    if how == 'die': os._exit(3)
    if how == 'killed': os.kill(os.getpid(), 9)
    if how == 'flood': return 'x' * (40 << 20)
    if how == 'noise':
        while True: os.write(2, b'y' * 65536)
    fds = [fd for fd in range(3, 32) if os.path.exists(f'/proc/self/fd/{fd}')]
    pipes = [fd for fd in fds if 'pipe' in os.readlink(f'/proc/self/fd/{fd}')]
    if how == 'garbage':
        for fd in pipes:
            try: os.write(fd, b'this is no answer\n')
            except OSError: pass
    return {'pid': os.getpid(), 'how': how}
",
    );
    let (host, tool) = (host().await, folder.tool("manifest.json"));
    for (how, kind) in [
        ("hang", Kind::TimedOut),
        ("die", Kind::Failed),
        ("killed", Kind::Failed),
        ("flood", Kind::TooMuchOutput),
        ("noise", Kind::TooMuchOutput),
        ("garbage", Kind::BadOutput),
    ] {
        let began = Instant::now();
        let failed = error(&host, &tool, json!({ "how": how })).await;
        assert_eq!(failed.kind, kind, "{how}: {failed}");
        assert!(began.elapsed() < Duration::from_secs(30), "{how}: {:?}", began.elapsed());
        assert_eq!(result(&host, &tool, json!({"how": "well"})).await["how"], "well", "{how}");
    }
}

#[tokio::test]
async fn a_worker_that_does_not_read_is_ended_in_time() {
    // It makes its pipes small, says itself that it is ready, and sleeps.
    let folder = python_tool(
        r#"
import fcntl, os, time
fds = [int(fd) for fd in os.listdir('/proc/self/fd') if int(fd) > 2]
for how in [lambda fd: fcntl.fcntl(fd, 1031, 4096), lambda fd: os.write(fd, b'{"ready":true}\n')]:
    for fd in fds:
        try: how(fd)
        except OSError: pass
while True: time.sleep(60)
"#,
    );
    let (host, tool) = (host().await, folder.tool("manifest.json"));
    for length in [20_000, 200_000] {
        let began = Instant::now();
        let failed = error(&host, &tool, json!({ "long": "y".repeat(length) })).await;
        assert_eq!(failed.kind, Kind::TimedOut, "{failed}");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_long_request_is_read_piece_by_piece() {
    let folder = python_tool("def run(input):\n    return len(input['long'])\n");
    let (host, tool) = (host().await, folder.tool("manifest.json"));
    for length in [1, 100_000, 3_000_000] {
        assert_eq!(result(&host, &tool, json!({ "long": "y".repeat(length) })).await, length);
    }
}

#[tokio::test]
async fn an_answer_that_comes_twice_is_never_anothers() {
    let folder = python_tool(
        "import os\ndef run(input):\n    if input.get('twice'):\n        for fd in range(3, 32):\n            try: os.write(fd, b'{\"id\":1,\"result\":\"early\"}\\n')\n            except OSError: pass\n    return input\n",
    );
    let (host, tool) = (host().await, folder.tool("manifest.json"));
    for round in 0..10 {
        // The first answer may be taken for the answer: it is the tool's own. What comes after it is an
        // error of the tool, and never the answer to another call.
        let _ = call(&host, &tool, &json!({"twice": true}), Warmth::Warm).await;
        match call(&host, &tool, &json!({"round": round}), Warmth::Warm).await.0 {
            Ok(reply) => assert_eq!(reply.into_value(), json!({"round": round})),
            Err(error) => assert_eq!(error.kind, Kind::BadOutput, "{error}"),
        }
        let (cold, _) = call(&host, &tool, &json!({"round": round}), Warmth::Cold).await;
        assert_eq!(cold.unwrap().into_value(), json!({"round": round}));
    }
}

#[tokio::test]
async fn node_tools_load_as_es_modules_and_as_commonjs() {
    let host = host().await;
    let body = "{ name: 'demo.node', description: 'x', async execute(input, context) { console.log('noise'); return { input, name: context.toolName }; } }";
    for (main, text) in [
        ("dist/index.mjs", format!("export const tool = {body};")),
        ("dist/index.mjs", format!("export default {body};")),
        ("dist/index.cjs", format!("module.exports = {body};")),
        ("dist/index.cjs", format!("exports.tool = {body};")),
        ("dist/index.cjs", format!("module.exports.default = {body};")),
    ] {
        let folder = node_module(main, &text);
        let got = result(&host, &folder.tool("tool.json"), json!({"a": 1})).await;
        assert_eq!(got, json!({"input": {"a": 1}, "name": "demo.node"}), "{main}: {text}");
    }
    let none = node_module("dist/index.mjs", "export const other = 1;");
    let failed = error(&host, &none.tool("tool.json"), json!({})).await;
    let words = "it cannot be loaded: `dist/index.mjs` has no export `tool` or `default` that is a tool with `execute`";
    assert_eq!(failed.message, words);
}

#[tokio::test]
async fn the_export_that_is_named_is_run_or_none() {
    let host = host().await;
    let says = |name: &str| format!("{{ execute: () => '{name}' }}");
    let (tool, send, whole) = (says("tool"), says("send"), says("default"));
    let both = format!("export const tool = {tool}; export default {whole};");
    let all = format!("export const send = {send}; {both}");
    let plain = format!("exports.tool = {tool}; exports.default = {whole};");
    // Nobody can tell the names of this one before it is run.
    let hidden = format!("module.exports = Object.assign({whole}, {{ ['to' + 'ol']: {tool} }});");
    for (main, text, export, ran) in [
        ("index.mjs", &all, Some("send"), Some("send")),
        ("index.mjs", &all, Some("default"), Some("default")),
        ("index.mjs", &all, None, Some("tool")),
        ("index.mjs", &both, Some("send"), None),
        ("index.cjs", &plain, Some("send"), None),
        ("index.cjs", &plain, Some("default"), Some("default")),
        ("index.cjs", &hidden, Some("send"), None),
        ("index.cjs", &hidden, Some("tool"), Some("tool")),
        ("index.cjs", &hidden, Some("default"), Some("default")),
        ("index.cjs", &hidden, None, Some("tool")),
    ] {
        let folder = node_module(main, text);
        let mut loaded = folder.tool("tool.json");
        let entry = &mut loaded.package.implementations[0].entry;
        let Entry::NodeModule { export: named, .. } = entry else { panic!("{entry:?}") };
        *named = export.map(str::to_owned);
        match ran {
            Some(ran) => assert_eq!(result(&host, &loaded, json!({})).await, json!(ran), "{text}"),
            None => {
                let failed = error(&host, &loaded, json!({})).await;
                let words = format!("`{main}` has no export `send` that is a tool with `execute`");
                assert_eq!(failed.message, format!("it cannot be loaded: {words}"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_file_that_is_no_javascript_is_told_with_its_line() {
    let host = host().await;
    let asks = "import { x } from './parts/x.mjs';\nexport const tool = { execute: () => x };\n";
    for (main, text, part, at) in [
        (
            "dist/index.mjs",
            "export const tool = {\n  execute() { return ( }\n};\n",
            "",
            "index.mjs:2",
        ),
        ("dist/index.cjs", "exports.tool = {\n\n execute() { return ( }\n};\n", "", "index.cjs:3"),
        ("dist/index.mjs", asks, "// one\nexport const x = ;\n", "parts/x.mjs:2"),
    ] {
        let folder = node_module(main, text);
        std::fs::create_dir(folder.path().join("dist/parts")).unwrap();
        std::fs::write(folder.path().join("dist/parts/x.mjs"), part).unwrap();
        let failed = error(&host, &folder.tool("tool.json"), json!({})).await;
        assert!(failed.message.contains("SyntaxError: Unexpected token"), "{failed}");
        assert_eq!(failed.details["at"], at, "{failed}");
    }
}

#[tokio::test]
async fn node_tools_fail_in_their_own_words() {
    let host = host().await;
    let folder = node_tool(
        "{ async execute({ how }) { if (how === 'throw') throw new RangeError('too far'); if (how === 'number') throw 1; if (how === 'big') return 1n; if (how === 'exit') process.exit(4); if (how === 'spin') for (;;); return null; } }",
    );
    let tool = folder.tool("tool.json");
    assert_eq!(result(&host, &tool, json!({})).await, json!(null));
    let thrown = error(&host, &tool, json!({"how": "throw"})).await;
    assert_eq!(thrown.message, "RangeError: too far (index.mjs:1)");
    assert_eq!(thrown.details["at"], "index.mjs:1");
    assert_eq!(error(&host, &tool, json!({"how": "number"})).await.message, "thrown: 1");
    let big = error(&host, &tool, json!({"how": "big"})).await;
    assert_eq!(big.message, "TypeError: Do not know how to serialize a BigInt");
    assert_eq!(big.kind, Kind::Failed);
    let exited = error(&host, &tool, json!({"how": "exit"})).await;
    assert_eq!(exited.details["exit"], 4, "{exited}");
    assert_eq!(result(&host, &tool, json!({})).await, json!(null));
}

#[tokio::test]
async fn a_worker_is_inside_the_walls() {
    let folder = python_tool(
        "import os, socket\ndef run(input):\n    found = {}\n    for path in ['/etc/shadow', '/root', '/var/tmp', '/home']:\n        try: found[path] = os.listdir(path) if os.path.isdir(path) else open(path).read()\n        except OSError as e: found[path] = e.errno\n    try: open('/var/x', 'w'); found['write'] = True\n    except OSError as e: found['write'] = e.errno\n    try: socket.create_connection(('192.0.2.1', 80), 1); found['net'] = True\n    except OSError as e: found['net'] = False\n    found['uid'] = os.getuid()\n    return found\n",
    );
    let (host, tool) = (host().await, folder.tool("manifest.json"));
    let found = result(&host, &tool, json!({})).await;
    assert!(found["/etc/shadow"].is_number() && found["/root"].is_number(), "{found}");
    assert!(found["write"].is_number() && found["net"] == false, "{found}");
    let seen = found["/var/tmp"].as_array().unwrap();
    assert_eq!(seen.len(), 1, "only the package itself: {found}");
    assert_eq!(found["uid"], 1000);
}

#[tokio::test]
async fn tools_do_not_share_a_worker_and_one_that_hangs_does_not_slow_another() {
    let slow = python_tool("import time\ndef run(input):\n    time.sleep(3)\n    return 'slow'\n");
    let quick = python_tool("import os\ndef run(input):\n    return os.getpid()\n");
    let host = host().await;
    let (slow, quick) = (slow.tool("manifest.json"), (quick.tool("manifest.json"), quick));
    result(&host, &quick.0, json!({})).await;
    let other = host.clone();
    let waiting = tokio::spawn(async move { result(&other, &slow, json!({})).await });
    tokio::task::yield_now().await;
    let began = Instant::now();
    for _ in 0..20 {
        result(&host, &quick.0, json!({})).await;
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(waiting.await.unwrap(), json!("slow"));
}

/// A function that counts its calls, and says which version it is.
fn counting(version: u32) -> String {
    format!(
        "count = 0\ndef run(input):\n    global count\n    count += 1\n    return [{version}, count]\n"
    )
}

#[tokio::test]
async fn a_file_that_was_changed_is_loaded_anew() {
    let folder = python_tool(&counting(1));
    let (host, tool) = (host().await, folder.tool("manifest.json"));
    assert_eq!(result(&host, &tool, json!({})).await, json!([1, 1]));
    assert_eq!(result(&host, &tool, json!({})).await, json!([1, 2]));
    std::fs::write(folder.path().join("demo.py"), counting(20)).unwrap();
    assert_eq!(result(&host, &tool, json!({})).await, json!([20, 1]));
    let node = "{ execute: async () => ++count }; let count = 0";
    let folder = node_tool(node);
    let tool = folder.tool("tool.json");
    assert_eq!(result(&host, &tool, json!({})).await, json!(1));
    let text = format!("export const tool = {node} + 10;\n");
    std::fs::write(folder.path().join("dist/index.mjs"), text).unwrap();
    assert_eq!(result(&host, &tool, json!({})).await, json!(11));
}

#[tokio::test]
async fn packages_with_the_same_function_have_workers_of_their_own() {
    let folder = python_tool(&counting(1));
    let (host, tool) = (host().await, folder.tool("manifest.json"));
    assert_eq!(result(&host, &tool, json!({})).await, json!([1, 1]));
    let mut other = tool.clone();
    other.package.id = "demo.other".into();
    assert_eq!(result(&host, &other, json!({})).await, json!([1, 1]));
    assert_eq!(result(&host, &tool, json!({})).await, json!([1, 2]));
}

#[tokio::test]
async fn a_worker_ends_when_what_it_was_granted_is_taken_back() {
    let (folder, granted) = (python_tool(&counting(1)), kit::home());
    let path = folder.path().join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(r#""filesystem":"none""#, r#""filesystem":"read""#))
        .unwrap();
    let tool = folder.tool("manifest.json");
    let (home, _, records) = kit::stores();
    let id = tool.package.canonical_id();
    let value = granted.path().to_str().unwrap().to_owned();
    let grant = policy::Grant { kind: policy::GrantKind::Read, value: value.clone() };
    let host = kit::host_in(&home, "").await;
    kit::set_grants(&records, &id, &[grant].into_iter().collect()).await;
    assert_eq!(result(&host, &tool, json!({})).await, json!([1, 1]));
    let workers = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.map(|one| std::fs::read(one.path().join("mountinfo")));
        lines.flatten().filter(|text| String::from_utf8_lossy(text).contains(&value)).count()
    };
    assert_ne!(workers(), 0);
    kit::set_grants(&records, &id, &policy::Grants::default()).await;
    assert_eq!(result(&host, &tool, json!({})).await, json!([1, 1]));
    let until = Instant::now() + Duration::from_secs(5);
    while workers() != 0 {
        assert!(Instant::now() < until, "the one with the grant still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_a_program_of_a_node_tool_prints_or_reads_is_no_word_between_us() {
    let host = host().await;
    let folder = node_module(
        "dist/index.mjs",
        "import { execSync } from 'node:child_process'; import fs from 'node:fs';
         export const tool = { async execute(input) {
             execSync('echo hello; cat', { stdio: 'inherit' });
             fs.writeSync(1, '{\"id\":1,\"result\":\"early\"}\\n');
             console.log('hello'); process.stdout.write('hello\\n');
             return input;
         } };\n",
    );
    let tool = folder.tool("tool.json");
    // To some versions of Node these end a line.
    for text in ["plain", "\u{2028}\u{2029}\u{85}", "\r", "\n\r\n"] {
        let input = json!({ "text": text });
        assert_eq!(result(&host, &tool, input.clone()).await, input);
    }
}
