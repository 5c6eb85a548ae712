//! How quick an answer is.

use std::time::{Duration, Instant};

use search::{Facet, Index, LastWord, Query};

use crate::data::{Draws, Question, Tool, words};
use crate::engines::Engine;

/// What people ask: one word, a question, and other ways of asking.
pub struct Load {
    pub single: Vec<String>,
    pub questions: Vec<String>,
}

impl Load {
    pub fn new(tools: &[Tool], questions: &[Question], count: usize) -> Self {
        let mut draws = Draws::new(11);
        let mut single = Vec::new();
        while single.len() < count {
            let tool = &tools[draws.below(tools.len())];
            let known: Vec<String> = words(&tool.description)
                .into_iter()
                .filter(|word| word.len() > 3 && word.is_ascii())
                .collect();
            if !known.is_empty() {
                single.push(known[draws.below(known.len())].clone());
            }
        }
        let questions =
            (0..count).map(|_| questions[draws.below(questions.len())].text.clone()).collect();
        Self { single, questions }
    }
}

/// The median and the 99th of a hundred, in microseconds, and queries a second.
#[derive(Clone, Copy)]
pub struct Times {
    pub p50: f64,
    pub p99: f64,
    pub per_second: f64,
}

pub fn time(queries: &[String], mut ask: impl FnMut(&str)) -> Times {
    queries.iter().take(queries.len() / 10).for_each(|query| ask(query));
    let mut times: Vec<Duration> = Vec::new();
    for query in queries {
        let start = Instant::now();
        ask(query);
        times.push(start.elapsed());
    }
    let all: Duration = times.iter().sum();
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
    Times { p50: at(0.5), p99: at(0.99), per_second: times.len() as f64 / all.as_secs_f64() }
}

pub fn ask(engine: &dyn Engine, queries: &[String]) -> Times {
    time(queries, |query| drop(std::hint::black_box(engine.best(query))))
}

/// Other ways of asking, ours only.
pub fn variants(index: &Index, load: &Load) -> Vec<(&'static str, Times)> {
    let filtered =
        |query: &str| Query::new(query).filter(Facet::Language, "rust").expect("it is sound");
    let search = |query: Query| drop(std::hint::black_box(index.search(&query)));
    let misspelt: Vec<String> = load.single.iter().map(|word| swapped(word)).collect();
    let begun: Vec<String> =
        load.single.iter().map(|word| word[..word.len() - 1].to_owned()).collect();
    let long = vec![load.questions.join(" "); 20];
    let empty = vec![String::new(); 50];
    vec![
        ("a question, one language only", time(&load.questions, |query| search(filtered(query)))),
        ("a misspelt word", time(&misspelt, |query| search(Query::new(query)))),
        (
            "a word half typed",
            time(&begun, |query| search(Query::new(query).last_word(LastWord::Begun))),
        ),
        ("thousands of words", time(&long, |query| search(Query::new(query)))),
        ("no word: everything", time(&empty, |query| search(Query::new(query)))),
        (
            "the 100th page of a question",
            time(&load.questions, |query| search(Query::new(query).page(1_000, 10))),
        ),
    ]
}

fn swapped(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let middle = letters.len() / 2;
    letters.swap(middle - 1, middle);
    letters.into_iter().collect()
}
