//! Measures calls: warm workers against starting the interpreter, a command through the host against
//! the bare walls, and the whole of `haft call` against a plain spawn; all in one run, taking turns.
//! Prints ratios; a goal that is missed makes it fail.
//!
//! `measure-calls LAUNCHER HAFT TRIVIAL`: our launcher, the command line, and a static program that ends at once.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints and may panic")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use host::{Call, Host, Records, Settings, Tool, Warmth};
use manifest::document::{Options, read};
use manifest::model::Trust;
use policy::{Consent, Policy, Surface};
use sandbox::{Confinement, Launcher, Stream};

const WARM_ROUNDS: usize = 1000;
const START_ROUNDS: usize = 15;
const PROCESS_ROUNDS: usize = 400;
const CLI_ROUNDS: usize = 100;
const CALLERS: usize = 64;
const CALLS_EACH: usize = 50;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let mut next = || PathBuf::from(arguments.next().expect("LAUNCHER HAFT TRIVIAL"));
    let (launcher_program, haft, trivial) = (next(), next(), next());
    let folder = tempfile::Builder::new().prefix("haft-bench-").tempdir_in("/var/tmp").unwrap();
    let launcher = Launcher::start(&launcher_program).unwrap();
    let settings = Settings {
        policy: Policy::default(),
        home: folder.path().join("home"),
        user_home: None,
        search_path: "/usr/local/bin:/usr/bin:/bin".into(),
        environment: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::fs::create_dir(&settings.home).unwrap();
    let records = runtime.block_on(Records::open(&settings.home)).unwrap();
    let vault = vault::FileVault::open(settings.home.join("vault"), || None).unwrap();
    let host = Host::new(settings, launcher.clone(), vault.into(), records.into());
    let call = |tool: &Tool| {
        let made = runtime.block_on(host.call(tool, &call_of(tool), Warmth::Warm));
        made.reply.unwrap_or_else(|error| panic!("{error} {}", error.details));
    };
    let mut missed = 0;
    let mut goal = |name: &str, value: f64, holds: bool| {
        println!("{:<6} {name}: {value:.2}", if holds { "ok" } else { "MISSED" });
        missed += i32::from(!holds);
    };

    let files = Files(folder.path());
    for (name, tool, start) in [
        (
            "Python",
            files.python(),
            vec!["python3", "-c", "import json; print(json.dumps({'n': 2}))"],
        ),
        ("Node", files.node(), vec!["node", "-e", "console.log(JSON.stringify({n: 2}))"]),
    ] {
        call(&tool);
        let warm = median((0..WARM_ROUNDS).map(|_| time(|| call(&tool))));
        let started = median((0..START_ROUNDS).map(|_| time(|| plain(&start))));
        println!("{name}: warm p50 {warm:.3} ms, an interpreter for each call {started:.1} ms");
        goal(&format!("{name}, warm p50 in ms, under 1"), warm, warm < 1.0);
        let ratio = started / warm;
        goal(&format!("{name}, started / warm, at least 50"), ratio, ratio >= 50.0);
    }

    // Calls are counted a moment later by the runtime that they were made on, which would not go on with that meanwhile.
    runtime.block_on(host.records().settle()).unwrap();
    runtime.block_on(host.records().state.check()).unwrap();
    let server = files.server();
    let (slowest, fastest, grown) = crowd(&host, &server);
    println!(
        "{CALLERS} callers of one MCP server, {CALLS_EACH} calls each: {fastest:.0} to {slowest:.0} ms, {grown} MiB more"
    );
    goal("slowest / fastest caller, at most 2", slowest / fastest, slowest / fastest <= 2.0);
    goal("memory more than before, MiB, at most 64", f64::from(grown), grown <= 64);

    let tool = files.command(&trivial);
    let program = tool.root.join("tools/bin/trivial");
    // The same walls, with nothing around them; and beside them the least there can be.
    let plan = runtime.block_on(host.plan(&tool, &call_of(&tool))).unwrap();
    let same = plan.confinement().unwrap();
    let least = Confinement {
        readable: vec![program.clone()],
        stdin: Stream::Pipe,
        ..Confinement::default()
    };
    let bare = |confinement: &Confinement| {
        let child = launcher.spawn(confinement, &[program.clone().into()]).unwrap();
        child.finish(b"{}").unwrap();
    };
    (0..20).for_each(|_| (bare(&least), bare(same), call(&tool)).0);
    let (mut least_times, mut bare_times, mut host_times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PROCESS_ROUNDS {
        least_times.push(time(|| bare(&least)));
        bare_times.push(time(|| bare(same)));
        host_times.push(time(|| call(&tool)));
    }
    let (least_p50, bare_p50) = (median(least_times), median(bare_times));
    let host_p50 = median(host_times);
    println!(
        "one process: bare walls p50 {bare_p50:.3} ms (the least there can be {least_p50:.3}), through the host {host_p50:.3} ms"
    );
    let ratio = host_p50 / bare_p50;
    goal("host / the same walls bare, p50, at most 1.3", ratio, ratio <= 1.3);

    let manifest = tool.root.join("tools.json");
    let home = folder.path().join("cli-home");
    let whole = || {
        let mut command = Command::new(&haft);
        command.arg("--home").arg(&home).args(["call", "--from"]).arg(&manifest).arg("trivial");
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
    };
    let trivial = trivial.to_str().unwrap().to_owned();
    whole();
    let (mut plain_times, mut cli_times) = (Vec::new(), Vec::new());
    for _ in 0..CLI_ROUNDS {
        plain_times.push(time(|| plain(&[&*trivial])));
        cli_times.push(time(whole));
    }
    let (plain_p50, cli_p50) = (median(plain_times), median(cli_times));
    println!("whole process: plain p50 {plain_p50:.3} ms, haft call {cli_p50:.3} ms");
    let over = cli_p50 - plain_p50;
    goal("haft call - plain in ms, p50, at most 10", over, over <= 10.0);
    drop(host);
    std::process::exit(i32::from(missed > 0));
}

/// Many callers of one tool at a time: what the slowest and the fastest took for all their calls, in ms, and
/// how much memory this process took for it, in MiB. A call that fails ends the run.
fn crowd(host: &Host, tool: &Tool) -> (f64, f64, u32) {
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u32>().unwrap() / 1024
    };
    // A server is spoken with on the runtime that it was first called on.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(host.call(tool, &call_of(tool), Warmth::Warm)).reply.unwrap();
    let before = resident();
    let times = runtime.block_on(async {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                let (host, tool) = (host.clone(), tool.clone());
                tokio::spawn(async move {
                    let began = Instant::now();
                    for _ in 0..CALLS_EACH {
                        let made = host.call(&tool, &call_of(&tool), Warmth::Warm).await;
                        made.reply.unwrap_or_else(|error| panic!("{error} {}", error.details));
                    }
                    began.elapsed().as_secs_f64() * 1000.0
                })
            })
            .collect();
        let mut times = Vec::new();
        for caller in callers {
            times.push(caller.await.unwrap());
        }
        times
    });
    let grown = resident().saturating_sub(before);
    let (slowest, fastest) = times
        .iter()
        .fold((0.0, f64::MAX), |(most, least): (f64, f64), one| (most.max(*one), least.min(*one)));
    (slowest, fastest, grown)
}

fn call_of(tool: &Tool) -> Call {
    Call {
        action: tool.package.actions[0].name.clone(),
        input: r#"{"n":1}"#.into(),
        surface: Surface::Terminal,
        approver: None,
        ticket: None,
        within: None,
        folder: "/".into(),
        progress: None,
        implementation: None,
        peer: None,
        resumed: None,
        context: None,
        called_off: host::CancellationToken::new(),
    }
}

/// Packages to call, in folders below one.
struct Files<'f>(&'f Path);

impl Files<'_> {
    fn tool(&self, folder: &str, manifest: &str, files: &[(&str, &str)]) -> Tool {
        let root = self.0.join(folder);
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let bytes = std::fs::read(root.join(manifest)).unwrap();
        let options = Options { fallback_id: Some(folder), ..Options::default() };
        let (_, mut packages) = read(&bytes, &options).unwrap();
        let root = root.canonicalize().unwrap();
        let package = packages.remove(0);
        Tool {
            package,
            place: root.clone(),
            root,
            consent: Consent::ByPath,
            source_trust: Trust::Local,
            given: host::Given::default(),
            brought: host::Brought::default(),
            links: None,
            digest: None,
            surface: None,
        }
    }

    fn python(&self) -> Tool {
        let manifest = serde_json::json!({
            "id": "bench.python", "type": "tool", "version": "1.0.0", "description": "Adds one",
            "origin": {"source": "local", "digest": "0".repeat(64)},
            "interfaces": {"inputs": {"type": "object"}, "outputs": {"type": "object"}},
            "permissions": {"network": "deny", "filesystem": "none", "devices": []},
            "runtime": {"sandbox": "process", "resources": {"cpu": "2", "memory": "512Mi"}},
            "trust_level": "local",
            "implementation": {"kind": "python", "python": {"callable": "add:one"}}
        });
        let code = "def one(input):\n    return {'n': input['n'] + 1}\n";
        let files = [("manifest.json", &*manifest.to_string()), ("add.py", code)];
        self.tool("python", "manifest.json", &files)
    }

    fn node(&self) -> Tool {
        let manifest = serde_json::json!({
            "id": "tool:bench.node", "name": "bench.node", "version": "1.0.0", "summary": "Adds one",
            "description": "Adds one", "tags": [], "provider": "bench",
            "entry": {"runtime": "node", "main": "index.mjs"}
        });
        let code = "export const tool = { execute: async ({ n }) => ({ n: n + 1 }) };\n";
        let files = [("tool.json", &*manifest.to_string()), ("index.mjs", code)];
        self.tool("node", "tool.json", &files)
    }

    fn server(&self) -> Tool {
        let action = serde_json::json!({
            "name": "add", "summary": "Adds one.",
            "invocation": { "kind": "mcp-tool", "tool_name": "add" },
            "input": { "type": "object", "properties": { "n": { "type": "integer" } } },
            "output": { "format": "json" }, "side_effects": "none",
        });
        let manifest = serde_json::json!({
            "manifest_version": "0.2",
            "tool": { "id": "bench-server", "version": "1.0.0", "name": "Bench", "summary": "Adds one.",
                "homepage": "https://example.com/" },
            "runtime": { "kind": "mcp-stdio",
                "install": { "method": "url", "url": "https://example.com/x", "sha256": "5f".repeat(32) },
                "entrypoint": { "command": ["python3", "server.py"] } },
            "actions": [action],
            "smoke": { "kind": "http", "url": "https://example.com/", "success": { "http_status": 200 } },
            "kill_switch": { "kind": "manual", "instructions_url": "https://example.com/" },
        });
        let code = r#"
import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    if "id" not in ask: continue
    reply = {"jsonrpc": "2.0", "id": ask["id"]}
    if ask["method"] == "initialize":
        reply["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    elif ask["method"] == "tools/call":
        n = ask["params"]["arguments"]["n"] + 1
        reply["result"] = {"content": [{"type": "text", "text": json.dumps({"n": n})}]}
    else:
        reply["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(reply), flush=True)
"#;
        self.tool(
            "server",
            "agent.json",
            &[("agent.json", &*manifest.to_string()), ("server.py", code)],
        )
    }

    fn command(&self, trivial: &Path) -> Tool {
        let bin = self.0.join("command/tools/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::copy(trivial, bin.join("trivial")).unwrap();
        let manifest = r#"{"tools":[{"name":"trivial","command":["./tools/bin/trivial"]}]}"#;
        self.tool("command", "tools.json", &[("tools.json", manifest)])
    }
}

fn plain(argv: &[&str]) {
    let mut command = Command::new(argv[0]);
    assert!(command.args(&argv[1..]).stdout(Stdio::null()).status().unwrap().success());
}

fn time(run: impl FnOnce()) -> Duration {
    let began = Instant::now();
    run();
    began.elapsed()
}

fn median(times: impl IntoIterator<Item = Duration>) -> f64 {
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}
