//! Measures a registry: reading over HTTP against nginx with the same bytes, publishing against what the disk
//! allows, start, memory, and what grows with the number of tools. Prints ratios; a goal that is missed makes it fail.
//!
//! `measure-registry HAFT FOLDER`: the command line, and a folder for what is made here.
//!
//! - `fill`: a store with many made-up tools
//! - `served`: a registry, or nginx, as a process of its own
//! - `load`: many who read
//! - `publishers`: several who publish
//! - `plot`: the growth as a picture

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints and may panic")]
#![expect(clippy::cast_precision_loss, reason = "figures have three digits")]

#[path = "../search/src/data.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    clippy::pedantic,
    reason = "what the benchmark of the search crate makes up"
)]
mod data;
mod fill;
mod load;
mod plot;
mod publishers;
mod served;

use std::path::{Path, PathBuf};
use std::time::Instant;

use load::Asking;
use served::{Nginx, Served};

/// How many tools the goals are for.
const MANY: usize = 100_000;
/// Questions that nobody asked before, to draw from.
const QUESTIONS: usize = 400_000;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let mut next = || PathBuf::from(arguments.next().expect("HAFT FOLDER"));
    let (haft, folder) = (next(), next());
    let _nothing_there = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut goals = Goals::default();
    let mut sizes = vec![1_000, 10_000, MANY];
    if std::env::var_os("HAFT_BENCH_MILLION").is_some() {
        sizes.push(1_000_000);
    }
    let mut rows = Vec::new();
    for tools in sizes {
        let home = folder.join(tools.to_string());
        println!("{tools} tools: filling a store …");
        fill::fill(&home, tools);
        rows.push(at_size(&haft, &home, tools, &mut goals));
        if tools == MANY {
            in_process(&home, &mut goals);
            reading(&haft, &home, &folder, &mut goals);
            publishing(&haft, &folder, &mut goals);
        }
        std::fs::remove_dir_all(&home).unwrap();
    }
    println!(
        "\n| tools | database | first start | start | memory | peak of memory | search p50 over HTTP | publishes a second |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for row in &rows {
        println!("{row}");
    }
    let picture = folder.join("growth.svg");
    std::fs::write(&picture, plot::picture(&rows)).unwrap();
    println!("the picture is in {}", picture.display());
    std::process::exit(i32::from(goals.missed > 0));
}

/// What was to be reached.
#[derive(Default)]
struct Goals {
    missed: usize,
}

impl Goals {
    fn note(&mut self, name: &str, value: f64, holds: bool) {
        println!("{:<6} {name}: {value:.2}", if holds { "ok" } else { "MISSED" });
        self.missed += usize::from(!holds);
    }
}

/// What a registry of some size costs.
struct Row {
    tools: usize,
    database: u64,
    first: f64,
    start: f64,
    memory: f64,
    peak: f64,
    search: f64,
    publishes: f64,
}

impl std::fmt::Display for Row {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "| {} | {} MB | {:.2} s | {:.2} s | {:.0} MB | {:.0} MB | {:.2} ms | {:.0} |",
            self.tools,
            self.database / 1_000_000,
            self.first,
            self.start,
            self.memory,
            self.peak,
            self.search,
            self.publishes
        )
    }
}

/// Start, memory, a search after the other, and publishing, with so many tools.
fn at_size(haft: &Path, home: &Path, tools: usize, goals: &mut Goals) -> Row {
    let database = std::fs::metadata(fill::database(home)).unwrap().len();
    // The first start makes the index and saves it; every other one reads it.
    let (server, first) = Served::start(haft, home);
    if tools >= 1_000 {
        fill::wait_for_index(home);
    }
    drop(server);
    let (server, start) = Served::start(haft, home);
    let asked = load::questions(2_000, tools as u64);
    let times = load::one_after_another(server.port, &asked);
    let search = median(times) * 1e3;
    let memory = server.memory("VmRSS");
    let peak = server.memory("VmHWM");
    if tools == MANY {
        goals.note("start with 100,000 tools, s, under 3", start, start < 3.0);
        goals.note("memory with 100,000 tools, MB, under 400", memory, memory < 400.0);
    }
    let publishes = publishers::rate(&server, home, 10_000, 2_000);
    Row { tools, database, first, start, memory, peak, search, publishes }
}

/// What a search takes on the server, without the network.
fn in_process(home: &Path, goals: &mut Goals) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let registry = runtime.block_on(fill::open(home));
    let router = server::web::router(registry.into());
    for (name, asked) in
        [("a question", load::questions(3_000, 3)), ("one word", load::words(3_000, 3, &[1]))]
    {
        let ask = |path: &str| {
            let request = axum::http::Request::get(path).body(axum::body::Body::empty()).unwrap();
            let started = Instant::now();
            let answered = runtime.block_on(tower::ServiceExt::oneshot(router.clone(), request));
            let response = answered.unwrap();
            assert_eq!(response.status(), 200, "{path}");
            let body = axum::body::to_bytes(response.into_body(), usize::MAX);
            runtime.block_on(body).unwrap();
            started.elapsed().as_secs_f64()
        };
        let p50 = median(asked.iter().map(|path| ask(path)).collect()) * 1e3;
        goals.note(&format!("search for {name} on the server, p50 in ms, under 1"), p50, p50 < 1.0);
    }
}

/// Reading over HTTP, each against nginx with a file of the same size.
fn reading(haft: &Path, home: &Path, folder: &Path, goals: &mut Goals) {
    let (server, _) = Served::start(haft, home);
    let known = publishers::publish_one(&server, home, "bench.read-small", 10_000);
    let large = publishers::publish_one(&server, home, "bench.read-large", 1_000_000);
    let nginx = Nginx::start(folder);
    let fresh = load::questions(QUESTIONS, 4);
    let words = load::words(QUESTIONS, 5, &[1]);
    let phrases = load::words(QUESTIONS, 6, &[2, 3, 4, 5]);
    let repeated: Vec<String> = fresh[QUESTIONS - 100..].to_vec();
    let fresh = &fresh[..QUESTIONS - 100];
    let mixed = load::mixed([
        load::questions(QUESTIONS / 3, 7),
        load::words(QUESTIONS / 3, 8, &[1]),
        load::words(QUESTIONS / 3, 9, &[2, 3, 4, 5]),
    ]);
    let describe = vec![format!("/v1/tools/{known}")];
    let exactly = vec![format!("/v1/tools/{known}/versions/1.0.0")];
    let package = |id: &str| vec![format!("/v1/tools/{id}/versions/1.0.0/package")];
    for (name, asked, least) in [
        ("search, fresh, a third each of the next three", Asking::Each(&mixed), Some(0.10)),
        ("search, fresh words", Asking::Each(&words), None),
        ("search, fresh phrases", Asking::Each(&phrases), None),
        ("search, fresh questions of a dozen words", Asking::Each(fresh), None),
        ("search, repeated questions", Asking::Again(&repeated), Some(0.40)),
        ("describe", Asking::Again(&describe), Some(0.50)),
        ("describe a version", Asking::Again(&exactly), Some(0.50)),
        ("download of 10 KB", Asking::Again(&package(&known)), Some(0.50)),
        ("download of 1 MB", Asking::Again(&package(&large)), Some(0.50)),
    ] {
        let size = load::mean_size(server.port, asked.some());
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // They take turns, so that a busy machine slows both; each question is asked in one turn alone.
        for turn in 0..3 {
            ours.push(load::wrk(folder, server.port, asked, turn));
            let file = nginx.file(size);
            theirs.push(load::wrk(folder, nginx.port, Asking::Again(&[file]), turn));
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let ratio = ours / theirs;
        println!(
            "{name}: {ours:.0} a second, {size} bytes each; nginx {theirs:.0}; {ratio:.3} of it"
        );
        if let Some(least) = least {
            goals.note(&format!("{name} / nginx, at least {least}"), ratio, ratio >= least);
        }
    }
    println!("memory after it: {:.0} MB", server.memory("VmRSS"));
}

/// Publishing into an empty embedded store, and what the disk allows.
fn publishing(haft: &Path, folder: &Path, goals: &mut Goals) {
    for (name, size, count, least) in
        [("10 KB", 10_000, 4_000, 300.0), ("1 MB", 1_000_000, 600, 50.0)]
    {
        let home = folder.join(format!("publish-{size}"));
        fill::fill(&home, 0);
        let (server, start) = Served::start(haft, &home);
        goals.note("start of an empty registry, s, under 1", start, start < 1.0);
        let rate = publishers::rate(&server, &home, size, count);
        let disk = publishers::disk(&home, size, count);
        println!("{name}: {rate:.0} publishes a second; files made durable {disk:.0} a second");
        goals.note(&format!("publishes of {name} a second, at least {least}"), rate, rate >= least);
        drop(server);
        std::fs::remove_dir_all(&home).unwrap();
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
