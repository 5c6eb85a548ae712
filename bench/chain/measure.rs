//! Measures chains: three warm steps against the same calls one by one, eight steps that wait side by side against one after
//! the other, and a chain whose steps are all known from before; all in one run, taking turns. Prints ratios; a goal that
//! is missed makes it fail.
//!
//! `measure-chain LAUNCHER`: our launcher.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints and may panic")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use host::chain::link;
use host::{Call, Host, Records, Settings, Tool, Warmth};
use manifest::document::{Options, read};
use manifest::model::{SideEffects, Trust};
use policy::{Consent, Policy, Surface};
use sandbox::Launcher;
use serde_json::{Value, json};

const ROUNDS: usize = 1_000;
const WAITING_ROUNDS: usize = 20;

fn main() {
    let launcher = PathBuf::from(std::env::args_os().nth(1).expect("LAUNCHER"));
    let folder = tempfile::Builder::new().prefix("haft-bench-").tempdir_in("/var/tmp").unwrap();
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
    let launcher = Launcher::start(&launcher).unwrap();
    let host = Host::new(settings, launcher, vault.into(), records.into());
    let call = |tool: &Tool, input: &Value| {
        let made = runtime.block_on(host.call(tool, &call_of(tool, input), Warmth::Warm));
        made.reply.unwrap_or_else(|error| panic!("{error} {}", error.details)).into_value()
    };
    let mut missed = 0;
    let mut goal = |name: &str, value: f64, holds: bool| {
        println!("{:<6} {name}: {value:.3}", if holds { "ok" } else { "MISSED" });
        missed += i32::from(!holds);
    };

    let step = python(folder.path(), "step", "def run(given):\n    return {'n': given['n'] + 1}\n");
    let three = chain(folder.path(), "three", &step, &in_a_row(3));
    let input = json!({"n": 1});
    let alone = || {
        let one = call(&step, &input);
        let two = call(&step, &one);
        assert_eq!(call(&step, &two), json!({"n": 4}));
    };
    let together = || assert_eq!(call(&three, &input), json!({"n": 4}));
    (0..20).for_each(|_| (alone(), together()).0);
    let (mut one_by_one, mut chained) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        one_by_one.push(time(alone));
        chained.push(time(together));
    }
    let (one_by_one, chained) = (median(one_by_one), median(chained));
    println!("three warm steps: one by one p50 {one_by_one:.3} ms, as a chain {chained:.3} ms");
    let more = (chained - one_by_one) / 3.0;
    goal("more for each step than one by one, in ms, under 0.3", more, more < 0.3);
    println!("       as a chain / one by one: {:.2}", chained / one_by_one);

    let nap = "import time\ndef run(given):\n    time.sleep(0.1)\n    return {'n': given['n']}\n";
    let nap = python(folder.path(), "nap", nap);
    let eight = chain(folder.path(), "eight", &nap, &side_by_side(8));
    call(&eight, &input);
    let side_by_side = median((0..WAITING_ROUNDS).map(|_| time(|| drop(call(&eight, &input)))));
    let one = median((0..WAITING_ROUNDS).map(|_| time(|| drop(call(&nap, &input)))));
    println!("eight steps of 100 ms: side by side p50 {side_by_side:.1} ms, one alone {one:.1} ms");
    goal(
        "eight steps of 100 ms side by side, in ms, under 150",
        side_by_side,
        side_by_side < 150.0,
    );
    println!("       one after the other / side by side: {:.1}", 8.0 * one / side_by_side);

    let pure = Tool { digest: Some("all its files".to_owned()), ..step };
    let known = chain(folder.path(), "known", &pure, &in_a_row(3));
    let known_from_before = || assert_eq!(call(&known, &input), json!({"n": 4}));
    known_from_before();
    let cached = median((0..ROUNDS).map(|_| time(known_from_before)));
    println!("three steps that are known from before: p50 {cached:.3} ms");
    goal("a chain that is known from before, in ms, under 1", cached, cached < 1.0);
    println!("       made / known from before: {:.1}", chained / cached);
    runtime.block_on(host.records().settle()).unwrap();
    std::process::exit(missed);
}

/// Steps that each read what the one before answered.
fn in_a_row(count: usize) -> Value {
    let step = |number: usize| {
        let from = match number {
            0 => "$.input.n".to_owned(),
            _ => format!("$.k{}.n", number - 1),
        };
        json!({"step": format!("s{number}"), "tool": "demo.step", "inputMapping": {"n": from}, "outputKey": format!("k{number}")})
    };
    (0..count).map(step).collect()
}

/// Steps that read nothing from each other.
fn side_by_side(count: usize) -> Value {
    let step = |number: usize| json!({"step": format!("s{number}"), "tool": "demo.step", "inputMapping": {"n": "$.input.n"}, "outputKey": format!("k{number}")});
    (0..count).map(step).collect()
}

fn chain(folder: &Path, name: &str, step: &Tool, steps: &Value) -> Tool {
    let manifest = json!({
        "toolId": format!("demo.bench.{name}"), "name": name, "version": "1.0.0", "description": "A measurement.",
        "capabilities": ["test"], "chain": steps, "input_schema": {"type": "object"}, "output_schema": {},
    });
    let mut chain = tool(folder, name, &manifest, &[]);
    chain.links = link(&chain, &mut |_| Ok(step.clone()));
    chain
}

/// A Python function that says of itself that it is pure.
fn python(folder: &Path, name: &str, text: &str) -> Tool {
    let manifest = json!({
        "id": format!("demo.{name}"), "type": "tool", "version": "1.0.0", "description": "A measurement.",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
        "permissions": {"network": "deny", "filesystem": "none", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "2", "memory": "512Mi"}, "timeout_seconds": 20},
        "trust_level": "local",
        "implementation": {"kind": "python", "python": {"callable": "demo:run"}},
    });
    let mut tool = tool(folder, name, &manifest, &[("demo.py", text)]);
    tool.package.actions[0].side_effects = Some(SideEffects::None);
    tool.package.actions[0].idempotent = Some(true);
    tool
}

fn tool(folder: &Path, name: &str, manifest: &Value, files: &[(&str, &str)]) -> Tool {
    let root = folder.join(name);
    std::fs::create_dir(&root).unwrap();
    for (name, text) in files {
        std::fs::write(root.join(name), text).unwrap();
    }
    let (_, mut packages) = read(manifest.to_string().as_bytes(), &Options::default()).unwrap();
    Tool {
        package: packages.remove(0),
        place: root.clone(),
        root,
        consent: Consent::ByPath,
        source_trust: Trust::Local,
        given: host::Given::default(),
        surface: None,
        brought: host::Brought::default(),
        links: None,
        digest: None,
    }
}

fn call_of(tool: &Tool, input: &Value) -> Call {
    Call {
        action: tool.package.actions[0].name.clone(),
        input: input.to_string(),
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

/// How long something took, in milliseconds.
fn time(run: impl FnOnce()) -> f64 {
    let began = Instant::now();
    run();
    began.elapsed().as_secs_f64() * 1000.0
}

fn median(times: impl IntoIterator<Item = f64>) -> f64 {
    let mut times: Vec<f64> = times.into_iter().collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
