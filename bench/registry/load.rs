//! Many who read: wrk, and questions for it.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::data;
use crate::served::Connection;

/// How many connections there are at once, and for how long they ask.
const CONNECTIONS: &str = "16";
const SECONDS: &str = "3";

/// What is asked.
#[derive(Clone, Copy)]
pub(crate) enum Asking<'a> {
    /// Each once.
    Each(&'a [String]),
    /// The same again and again.
    Again(&'a [String]),
}

impl<'a> Asking<'a> {
    /// Some of it.
    pub(crate) fn some(self) -> &'a [String] {
        let (Asking::Each(all) | Asking::Again(all)) = self;
        &all[..all.len().min(200)]
    }
}

/// Searches for questions of several words.
pub(crate) fn questions(count: usize, seed: u64) -> Vec<String> {
    let made = data::made_up_questions(count, seed);
    made.iter().map(|question| search(&question.text)).collect()
}

/// Searches for the first words of questions, in turn so many; a number that changes nothing makes each a new search.
pub(crate) fn words(count: usize, seed: u64, many: &[usize]) -> Vec<String> {
    let made = data::made_up_questions(count, seed);
    let some = made.iter().zip(many.iter().cycle()).enumerate();
    let path = |(at, (question, many)): (usize, (&data::Question, &usize))| {
        let words: Vec<_> = question.text.split(' ').take(*many).collect();
        format!("{}&fresh={at}", search(&words.join(" ")))
    };
    some.map(path).collect()
}

/// Searches of several kinds, in turn.
pub(crate) fn mixed(kinds: [Vec<String>; 3]) -> Vec<String> {
    let [first, second, third] = kinds;
    first.into_iter().zip(second).zip(third).flat_map(|((a, b), c)| [a, b, c]).collect()
}

fn search(text: &str) -> String {
    format!("/v1/tools/search?q={}", text.replace(' ', "+"))
}

/// How many seconds each takes, one after the other on one connection.
pub(crate) fn one_after_another(port: u16, asked: &[String]) -> Vec<f64> {
    let mut connection = Connection::to(port);
    let ask = |path: &String| {
        let started = Instant::now();
        let (status, _) = connection.send("GET", path, "", &[]);
        assert_eq!(status, 200, "{path}");
        started.elapsed().as_secs_f64()
    };
    asked.iter().map(ask).collect()
}

/// How many bytes an answer has, on average.
pub(crate) fn mean_size(port: u16, asked: &[String]) -> usize {
    let mut connection = Connection::to(port);
    let sizes = asked.iter().map(|path| connection.send("GET", path, "", &[]).1.len());
    sizes.sum::<usize>() / asked.len()
}

/// Answers a second. Each of three turns asks questions of its own.
pub(crate) fn wrk(folder: &Path, port: u16, asked: Asking<'_>, turn: usize) -> f64 {
    let paths = match asked {
        Asking::Again(paths) => paths,
        // The first of them were asked already, to see how large the answers are.
        Asking::Each(all) => {
            let each = (all.len() - 200) / 3;
            &all[200 + turn * each..][..each]
        }
    };
    let list = folder.join("paths.txt");
    std::fs::write(&list, paths.join("\n")).unwrap();
    let script = folder.join("ask.lua");
    std::fs::write(&script, SCRIPT).unwrap();
    let done = Command::new("wrk")
        .args(["-t", "1", "-c", CONNECTIONS, "-d", SECONDS, "-s"])
        .arg(&script)
        .arg(format!("http://127.0.0.1:{port}"))
        .arg("--")
        .arg(&list)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{told}");
    assert!(!told.contains("Non-2xx") && !told.contains("Socket errors"), "{told}");
    let count: usize = figure(&told, "requests in");
    if let Asking::Each(_) = asked {
        assert!(count <= paths.len(), "there were too few questions: {count}");
    }
    let rate = told.lines().find_map(|line| line.strip_prefix("Requests/sec:")).unwrap();
    rate.trim().parse().unwrap()
}

/// The number before some words.
fn figure(told: &str, words: &str) -> usize {
    let line = told.lines().find(|line| line.contains(words)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Asks for the paths of a file, in order, and then again from the beginning.
const SCRIPT: &str = r#"
function init(args)
  requests, at = {}, 0
  for path in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("GET", path)
  end
end
function request()
  at = at % #requests + 1
  return requests[at]
end
"#;
