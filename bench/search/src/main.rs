//! Measures the search crate against SQLite FTS5 and tantivy, all in one run on one thread. Prints
//! ratios; a goal that is missed makes it fail.
//!
//! `bench-search [FOLDER]`: a folder of tools and questions. Without one, tools are made up from a seed:
//! speed and memory are measured then, quality is not.

mod data;
mod engines;
mod growth;
mod quality;
mod speed;

use std::path::{Path, PathBuf};

use data::{Question, SETS, Tool};
use engines::{haft, rivals};
use speed::{Load, ask, variants};

/// So many questions for an engine that takes long.
const SLOW: usize = 60;
const QUICK: usize = 1_000;

fn main() {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let mut goals = Goals::default();
    let (small, all, questions) = match &folder {
        Some(folder) => {
            let means = quality::measure(folder);
            goals.hold(
                "nDCG@10, haft - FTS5, at least 0",
                means[0] - means[1],
                means[0] >= means[1],
            );
            goals.hold(
                "nDCG@10, haft - tantivy, at least 0",
                means[0] - means[2],
                means[0] >= means[2],
            );
            real(folder)
        }
        None => {
            println!("no folder of data was given: tools are made up, and quality is not measured");
            (data::made_up(11_000, 1), data::made_up(69_000, 2), data::made_up_questions(2_000, 3))
        }
    };
    let load = Load::new(&all, &questions, QUICK);
    against(&small, &load, 150.0, &mut goals);
    against(&all, &load, 400.0, &mut goals);
    growth::head();
    let sizes: &[usize] = if std::env::var_os("HAFT_BENCH_MILLION").is_some() {
        &[1_000, 10_000, 100_000, 1_000_000]
    } else {
        &[1_000, 10_000, 100_000]
    };
    for size in sizes {
        let row = growth::measure(&all, *size, &load);
        if row.tools == 100_000 {
            goals.hold(
                "100k tools, a question, p50 in µs, below 1000",
                row.question_p50,
                row.question_p50 < 1_000.0,
            );
            goals.hold("100k tools, memory in MB, below 300", row.megabytes, row.megabytes < 300.0);
            goals.hold("100k tools, load in s, below 2", row.load_seconds, row.load_seconds < 2.0);
            goals.hold(
                "100k tools, build in s, below 3",
                row.build_seconds,
                row.build_seconds < 3.0,
            );
        }
    }
    std::process::exit(i32::from(goals.missed > 0));
}

/// All engines with the same tools and the same questions.
fn against(tools: &[Tool], load: &Load, most: f64, goals: &mut Goals) {
    let count = tools.len();
    println!(
        "\n{:<39}{:>9}{:>10}{:>12}",
        format!("{count} tools"),
        "p50 µs",
        "p99 µs",
        "queries/s"
    );
    let index = haft(tools);
    let rivals = rivals(tools);
    let show = |name: &str, what: &str, times: speed::Times| {
        println!(
            "{name:<9}{what:<30}{:>9.0}{:>10.0}{:>12.0}",
            times.p50, times.p99, times.per_second
        );
    };
    for (what, queries) in [("one word", &load.single), ("a question", &load.questions)] {
        let ours = ask(&index, queries);
        show("haft", what, ours);
        let few = &queries[..SLOW];
        let same = ask(&index, few);
        for rival in &rivals {
            let times = ask(rival.as_ref(), few);
            show(rival.name(), what, times);
            let ratio = same.per_second / times.per_second;
            let name = format!("{count} tools, {what}, queries/s, haft / {}", rival.name());
            match (rival.name(), what) {
                ("FTS5", "one word") => {
                    goals.hold(&format!("{name}, at least 5"), ratio, ratio >= 5.0);
                }
                ("FTS5", _) => goals.hold(&format!("{name}, at least 100"), ratio, ratio >= 100.0),
                _ => println!("       {name}: {ratio:.2}"),
            }
        }
        if what == "a question" {
            goals.hold(
                &format!("{count} tools, {what}, p50 in µs, at most {most}"),
                ours.p50,
                ours.p50 <= most,
            );
        }
    }
    for (what, times) in variants(&index, load) {
        show("haft", what, times);
    }
}

/// The small catalog, everything together, and the questions of all sets.
fn real(folder: &Path) -> (Vec<Tool>, Vec<Tool>, Vec<Question>) {
    let small = data::tools(&folder.join("catalog.jsonl"));
    let mut all = small.clone();
    all.extend(data::tools(&folder.join("openapi_operations.jsonl")));
    let mut questions = Vec::new();
    for set in SETS {
        let mut some = data::questions(&folder.join(set).join("queries.dev.jsonl"));
        some.truncate(600);
        questions.extend(some);
        // The servers of this set are those of the catalog.
        if set != "mcp_xsource" {
            let named = |tool: Tool| Tool { id: format!("{set}/{}", tool.id), ..tool };
            all.extend(data::tools(&folder.join(set).join("tools.jsonl")).into_iter().map(named));
        }
    }
    (small, all, questions)
}

#[derive(Default)]
struct Goals {
    missed: usize,
}

impl Goals {
    fn hold(&mut self, name: &str, figure: f64, holds: bool) {
        println!("{:<6} {name}: {figure:.2}", if holds { "ok" } else { "MISSED" });
        self.missed += usize::from(!holds);
    }
}
