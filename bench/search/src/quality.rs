//! How good the first ten are.

use std::path::Path;

use crate::data::{Question, SETS, questions, tools};
use crate::engines::{Engine, haft, rivals};

/// The mean over all sets, per engine, in the order haft, FTS5, tantivy.
pub fn measure(folder: &Path) -> [f64; 3] {
    println!("\nnDCG@10 on the dev halves");
    println!("{:<14}{:>10}{:>10}{:>10}", "set", "haft", "FTS5", "tantivy");
    let mut sums = [0.0; 3];
    for set in SETS {
        let tools = tools(&folder.join(set).join("tools.jsonl"));
        let questions = questions(&folder.join(set).join("queries.dev.jsonl"));
        let mut means = [mean(&haft(&tools), &questions), 0.0, 0.0];
        for (place, rival) in means[1..].iter_mut().zip(rivals(&tools)) {
            *place = mean(rival.as_ref(), &questions);
        }
        let [haft, fts5, tantivy] = means;
        println!("{set:<14}{haft:>10.2}{fts5:>10.2}{tantivy:>10.2}");
        for (sum, one) in sums.iter_mut().zip(means) {
            *sum += one / SETS.len() as f64;
        }
    }
    println!("{:<14}{:>10.2}{:>10.2}{:>10.2}", "mean", sums[0], sums[1], sums[2]);
    sums
}

fn mean(engine: &dyn Engine, questions: &[Question]) -> f64 {
    let sum: f64 =
        questions.iter().map(|question| gain(&engine.best(&question.text), &question.gold)).sum();
    100.0 * sum / questions.len() as f64
}

fn gain(found: &[String], gold: &[String]) -> f64 {
    let discount = |at: usize| 1.0 / ((at + 2) as f64).log2();
    let gained: f64 = found
        .iter()
        .take(10)
        .enumerate()
        .filter(|(_, id)| gold.contains(id))
        .map(|(at, _)| discount(at))
        .sum();
    let ideal: f64 = (0..gold.len().min(10)).map(discount).sum();
    if ideal > 0.0 { gained / ideal } else { 0.0 }
}
