//! Measures ranking: 10,000 tools with metrics, from the state of a home to an order, against a plain script on the same
//! database. Prints ratios; a goal that is missed makes it fail.
//!
//! `measure-rank BASELINE FOLDER`: the script, and where the database is made.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints and may panic")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use host::Level;
use ledger::state::counting::Counted;
use ledger::state::metrics::Series;
use ledger::state::tested::Tested;
use ledger::{State, Time};
use manifest::model::Trust;
use policy::policy::Weights;
use prove::rank::{Facts, Score, Walls, correctness, measured, safety, score};

const TOOLS: u64 = 10_000;
const CALLS: u64 = 20;
const ROUNDS: usize = 15;
/// The goals: milliseconds for all of it, and how much faster than the script.
const MOST_MS: f64 = 50.0;
const LEAST_RATIO: f64 = 5.0;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let mut next = || PathBuf::from(arguments.next().expect("BASELINE FOLDER"));
    let (baseline, folder) = (next(), next());
    let folder = tempfile::Builder::new().prefix("rank-").tempdir_in(folder).unwrap();
    let path = folder.path().join("state.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fill(&path));
    let mut missed = 0;
    let mut goal = |name: &str, value: f64, holds: bool| {
        println!("{:<6} {name}: {value:.2}", if holds { "ok" } else { "MISSED" });
        missed += i32::from(!holds);
    };

    let mut whole = Vec::new();
    let mut best = String::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        // As a process has it that was just started: nothing is open yet.
        let ranked = runtime.block_on(async {
            let state = State::look(&path).await.unwrap();
            order(read(&state).await)
        });
        whole.push(began.elapsed());
        assert_eq!(ranked.len() as u64, TOOLS);
        best.clone_from(&ranked[0].0);
    }
    let facts = runtime.block_on(async { read(&State::look(&path).await.unwrap()).await });
    let mut pure = Vec::new();
    for _ in 0..ROUNDS {
        let facts = facts.clone();
        let began = Instant::now();
        assert!(!order(facts).is_empty());
        pure.push(began.elapsed());
    }
    let script = script(&baseline, &path, &best);
    let (whole, pure) = (median(whole), median(pure));
    goal("10,000 tools from state.db to an order, ms", whole, whole < MOST_MS);
    println!("       scoring and sorting alone, ms: {pure:.2}");
    println!("       the script on the same database, ms: {script:.2}");
    goal("times as fast as the script", script / whole, script / whole >= LEAST_RATIO);
    std::process::exit(i32::from(missed > 0));
}

/// A database in which every tool was called and every second one tested.
async fn fill(path: &Path) {
    let state = State::open(path).await.unwrap();
    let now = now();
    for tool in 0..TOOLS {
        let (package, version) = (format!("mcpkg:bench.tool{tool:05}"), "1.0.0".to_owned());
        let call = |number: u64| Counted {
            series: Series {
                package: package.clone(),
                version: version.clone(),
                action: "run".into(),
                implementation: "endpoint".into(),
            }
            .into(),
            failure: if (tool + number).is_multiple_of(17) { "timed_out" } else { "" }.into(),
            latency: Duration::from_micros(500 + (tool * 7_919 + number * 104_729) % 900_000),
            at: now.minus(Duration::from_mins(number * 97)),
            place: None,
            flow: None,
        };
        let calls: Vec<_> = (0..CALLS).map(call).collect();
        state.count_calls(&calls).await.unwrap();
        if tool.is_multiple_of(2) {
            let (total, passed) = (8, 8 - tool % 3);
            let tested =
                Tested { package, version, total, passed, flaky: 0, latency: None, at: now };
            state.note_tests(&tested).await.unwrap();
        }
    }
    state.close().await.unwrap();
}

async fn read(state: &State) -> Vec<(String, Facts)> {
    let now = now();
    let tested = state.tested(None).await.unwrap();
    let tested: HashMap<(String, String), Tested> =
        tested.into_iter().map(|one| ((one.package.clone(), one.version.clone()), one)).collect();
    let standings = state.standings(now).await.unwrap();
    let facts = standings.into_iter().map(|standing| {
        let (latency_ms, resilience) = measured(&standing);
        let key = (standing.package, standing.version);
        let facts = Facts {
            correctness: tested.get(&key).and_then(|one| correctness(one, now)),
            latency_ms,
            resilience,
            safety: Some(safety(Trust::Local, Walls::Here(Level::L2))),
            ..Facts::default()
        };
        (key.0, facts)
    });
    facts.collect()
}

fn order(facts: Vec<(String, Facts)>) -> Vec<(String, Score)> {
    let weights = Weights::default();
    let mut ranked: Vec<_> =
        facts.into_iter().map(|(id, facts)| (id, score(&facts, &weights))).collect();
    ranked.sort_by(|one, other| {
        other.1.total.total_cmp(&one.1.total).then_with(|| one.0.cmp(&other.0))
    });
    ranked
}

/// How long the script takes, which must have ranked as many.
fn script(baseline: &Path, state: &Path, best: &str) -> f64 {
    let mut command = Command::new("python3");
    command.arg(baseline).arg(state).arg("5");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut words = text.split_whitespace();
    let millis = words.next().unwrap().parse().unwrap();
    assert_eq!(words.next().unwrap().parse(), Ok(TOOLS));
    // It knows latencies by their buckets alone, so it may find another one best, but never a slow one.
    let other = words.next().unwrap();
    println!("       best: {best}, by the script: {other}");
    millis
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Time::from_unix_millis(i64::try_from(since.as_millis()).unwrap())
}
