//! How long a record and an opened database take: run with `--release -- --ignored --nocapture`.

use std::path::Path;
use std::time::{Duration, Instant};

use ledger::audit::{Audit, Call, Durability, Ending};
use ledger::state::metrics::Went;
use ledger::{State, Time};

const ROUNDS: u32 = 2_000;

/// The median of many rounds.
fn median(round: impl FnMut()) -> Duration {
    median_of(ROUNDS, round)
}

fn median_of(rounds: u32, mut round: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            round();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn call() -> Call {
    Call {
        tool: "remove".into(),
        package: "demo.files".into(),
        package_digest: "sha256:".to_owned() + &"ab".repeat(32),
        action: "remove".into(),
        surface: "terminal".into(),
        argv: ["node", "./run.mjs", "--flag", "[redacted]"].map(str::to_owned).to_vec(),
        cwd: "/home/demo/project".into(),
        env_keys: ["PATH", "HOME"].map(str::to_owned).to_vec(),
        sandbox: "L3".into(),
        arguments: serde_json::json!({"path": "string(12)"}),
        ..Call::default()
    }
}

#[test]
#[ignore = "measures time"]
fn a_record_is_written_quickly() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("audit");
    let now = Time::from_unix_millis(1_763_164_800_000);
    let append = |audit: &Audit| {
        audit.record(&call(), &Ending::default(), now).unwrap();
    };
    let audit = Audit::new(&folder, Durability::Process);
    append(&audit);
    println!("a record of a process that wrote before: {:?}", median(|| append(&audit)));
    let first = median(|| append(&Audit::new(&folder, Durability::Process)));
    println!("the first record of a process: {first:?}");
    let begun = Instant::now();
    let report = ledger::audit::verify(&folder).unwrap();
    println!("verifying {} records: {:?}", report.lines, begun.elapsed());
    assert!(first < Duration::from_millis(10), "{first:?}");
}

#[test]
#[ignore = "measures time"]
fn a_database_is_opened_quickly() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let open = |path: &Path| runtime.block_on(State::open(path)).unwrap();
    let now = Time::from_unix_millis(1);
    let count = |state: &State| {
        let went =
            state.count_call("demo.files", "remove", Went::Well, Duration::from_millis(3), now);
        runtime.block_on(went).unwrap();
    };
    let begun = Instant::now();
    let first = open(&path);
    println!("making a database: {:?}", begun.elapsed());
    println!("counting a call: {:?}", median(|| count(&first)));
    println!(
        "opening while another has it open: {:?}",
        median_of(100, || std::mem::forget(open(&path)))
    );
    runtime.block_on(first.close()).unwrap();
}

#[test]
#[ignore = "measures time"]
fn a_lone_process_opens_and_counts_quickly() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { State::open(&path).await.unwrap().close().await.unwrap() });
    let mut opened = Vec::new();
    let mut closed = Vec::new();
    for round in 0..200 {
        let begun = Instant::now();
        let state = runtime.block_on(State::open(&path)).unwrap();
        opened.push(begun.elapsed());
        let now = Time::from_unix_millis(round);
        let went = state.count_call("demo.files", "remove", Went::Well, Duration::ZERO, now);
        runtime.block_on(went).unwrap();
        let begun = Instant::now();
        runtime.block_on(state.close()).unwrap();
        closed.push(begun.elapsed());
    }
    opened.sort_unstable();
    closed.sort_unstable();
    println!("opening a database alone: {:?}, closing it: {:?}", opened[100], closed[100]);
}
