//! How long one manifest takes, on one thread: its structure, and everything.
//!
//! `bench/validate/run` holds the figures against ajv's in the same run.

use std::hint::black_box;
use std::time::{Duration, Instant};

use manifest::document::{Depth, Options, check};

const MANIFEST: &[u8] = include_bytes!("../../../bench/validate/manifest-18k.json");

fn main() {
    let structure = median_micros(Depth::Structure);
    let everything = median_micros(Depth::Everything);
    let figures = format!(
        "{{\"parse_structure_micros\": {structure:.2}, \"everything_micros\": {everything:.2}, \"bytes\": {}}}",
        MANIFEST.len()
    );
    #[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
    {
        println!("{figures}");
    }
}

/// The median over many short batches, after a warm-up.
fn median_micros(depth: Depth) -> f64 {
    let options = Options { depth, ..Options::default() };
    assert!(check(MANIFEST, &options).findings.is_empty(), "the manifest is valid");
    let mut batches: Vec<f64> = Vec::new();
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(1_200) {
        let batch = Instant::now();
        let mut runs = 0u32;
        while batch.elapsed() < Duration::from_millis(20) {
            black_box(check(black_box(MANIFEST), &options));
            runs += 1;
        }
        batches.push(batch.elapsed().as_secs_f64() * 1e6 / f64::from(runs));
    }
    batches.drain(..batches.len() / 4);
    batches.sort_by(f64::total_cmp);
    batches[batches.len() / 2]
}
