//! What it costs as it grows.

use std::time::Instant;

use search::{Change, Index};

use crate::data::Tool;
use crate::engines::{entry, haft};
use crate::speed::{Load, ask};

/// One row of the table.
pub struct Row {
    pub tools: usize,
    pub megabytes: f64,
    pub load_seconds: f64,
    pub build_seconds: f64,
    pub question_p50: f64,
}

pub fn measure(tools: &[Tool], count: usize, load: &Load) -> Row {
    let tools: Vec<Tool> = grown(tools, count);
    let before = resident();
    let start = Instant::now();
    let index = haft(&tools);
    let build_seconds = start.elapsed().as_secs_f64();
    let memory = index.memory();
    let grown = (resident() - before) / 1e6;
    let bytes = index.to_bytes();
    let start = Instant::now();
    let read = Index::from_bytes(&bytes).expect("what was written is read");
    let load_seconds = start.elapsed().as_secs_f64();
    assert_eq!(read.memory().documents, count);
    drop(index);
    let question = ask(&read, &load.questions);
    let single = ask(&read, &load.single);
    let (publish, slowest) = publish(&read, &tools[0]);
    let megabytes = memory.total as f64 / 1e6;
    println!(
        "{count:>9}{megabytes:>9.1}{grown:>9.1}{:>9.1}{build_seconds:>9.2}{load_seconds:>9.2}{:>10.0}{:>10.0}{:>10.0}{publish:>10.0}{slowest:>10.0}",
        bytes.len() as f64 / 1e6,
        single.p50,
        question.p50,
        question.p99,
    );
    Row { tools: count, megabytes, load_seconds, build_seconds, question_p50: question.p50 }
}

pub fn head() {
    println!("\nas it grows (MB reported, MB resident more, MB as bytes; seconds; microseconds)");
    println!(
        "{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "tools",
        "memory",
        "rss",
        "bytes",
        "build",
        "load",
        "word p50",
        "quest p50",
        "quest p99",
        "put p50",
        "put worst"
    );
}

/// As many tools as wanted: these, and then these again under other names.
pub fn grown(tools: &[Tool], count: usize) -> Vec<Tool> {
    let copy = |(at, tool): (usize, &Tool)| match at / tools.len() {
        0 => tool.clone(),
        round => Tool { id: format!("{round}:{}", tool.id), ..tool.clone() },
    };
    tools.iter().cycle().take(count).enumerate().map(copy).collect()
}

/// Putting one tool after the other: the median and the slowest, in microseconds.
fn publish(index: &Index, tool: &Tool) -> (f64, f64) {
    let mut times = Vec::new();
    for at in 0..2_000 {
        let tool = Tool { id: format!("new:{at}"), ..tool.clone() };
        let start = Instant::now();
        index.apply([Change::Put(entry(&tool))]).expect("there is room");
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() - 1])
}

fn resident() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}
