//! Results of tests, as people and programs are told them.

use std::time::Duration;

use host::Tool;
use prove::{Ended, Fault, Outcome, Promise};
use serde_json::{Value, json};

use super::round::{Round, Tested, needs_word};
use crate::commands::call::failure;
use crate::commands::count;
use crate::exit::Failure;
use crate::printer::{Printer, Style, line};

/// Where the column of names begins.
const INDENT: &str = "                 ";

/// What stands above the results of a package.
pub(super) fn head(tool: &Tool, is_one_of_several: bool, by: Option<&str>) -> String {
    let names = "OUTCOME      MS  TEST\n";
    let by = by.map(|by| format!("by `{by}`"));
    let package = is_one_of_several.then(|| tool.package.canonical_id());
    let words: Vec<_> = package.into_iter().chain(by).collect();
    if words.is_empty() { names.to_owned() } else { format!("{}\n{names}", line(&words.join(" "))) }
}

/// A row of a test, and beneath it why it did not pass.
pub(super) fn row(ended: &Ended, tool: &Tool, printer: Printer) -> String {
    let (name, is_passed) = (ended.outcome.name(), ended.outcome.is_passed());
    let word = if is_passed { name.to_owned() } else { name.to_uppercase() };
    let style = if is_passed { Style::Good } else { Style::Error };
    let word = printer.paint(style, &format!("{word:<8}"));
    let mut text = format!("{word}{:>7}  {}\n", milliseconds(ended.took), line(&ended.name));
    for reason in reasons(&ended.outcome, tool) {
        text += &format!("{INDENT}{}\n", line(&reason));
    }
    text
}

/// Why a test did not pass, in lines.
pub(in crate::commands) fn reasons(outcome: &Outcome, tool: &Tool) -> Vec<String> {
    match outcome {
        Outcome::Passed => Vec::new(),
        Outcome::Failed(faults) => faults.iter().map(Fault::to_string).collect(),
        Outcome::NoTest(why) => vec![format!("it is no test: {why}")],
        Outcome::NoAnswer(error) => {
            let Failure { message, details, mut hints, .. } = failure(error, &error.blocked, tool);
            if needs_word(outcome) {
                // The one of a call speaks of one call.
                hints.retain(|hint| !hint.starts_with("--approve"));
                hints.push("--approve approves the calls of this run".to_owned());
            }
            if error.details["unrecorded"] == true {
                hints.push("--record FILE asks the server, and records what it answers".to_owned());
            }
            let hints = hints.into_iter().map(|hint| format!("hint: {hint}"));
            std::iter::once(message).chain(details).chain(hints).collect()
        }
        Outcome::Flaky { passed, calls, other } => {
            let first =
                format!("it passed {passed} of {calls} times; when it did not ({}):", other.name());
            std::iter::once(first).chain(reasons(other, tool)).collect()
        }
    }
}

/// What stands beneath all results.
pub(super) fn totals(round: &Round, printer: Printer) -> String {
    let mut text = String::new();
    for promise in round.tested.iter().flat_map(|one| &one.promises) {
        let Promise { name, expected, found, is_kept } = promise;
        let (word, style) = if *is_kept { ("kept", Style::Good) } else { ("BROKEN", Style::Error) };
        let word = printer.paint(style, &format!("{word:<8}"));
        text += &format!("{word}         {name} is {found}, promised {expected}\n");
    }
    let (total, passed) = (total(round), passed(round));
    let failed = total - passed;
    let seconds = round.took.as_secs_f64();
    text += &format!("{}: {passed} passed, {failed} failed", count(total, "test"));
    let flaky = all(round).filter(|(_, one)| one.outcome.name() == "flaky").count();
    if flaky > 0 {
        text += &format!(", {flaky} of them flaky");
    }
    if failed > 0 && round.is_good() {
        text += ", within what its author promises";
    }
    text + &format!("  ({seconds:.1} s)\n")
}

impl Round {
    /// How it went, for programs.
    pub(super) fn json(&self) -> Value {
        let (total, passed) = (total(self), passed(self));
        let tests: Vec<_> = all(self)
            .map(|(tested, ended)| {
                let mut document = json_of(ended);
                document["package"] = json!(tested.tool.package.canonical_id());
                if let Some(by) = &tested.by {
                    document["implementation"] = json!(by);
                }
                document
            })
            .collect();
        let promise = |tested: &Tested, one: &Promise| {
            let Promise { name, expected, found, is_kept } = one;
            let package = tested.tool.package.canonical_id();
            json!({"package": package, "name": name, "expected": expected, "found": found, "kept": is_kept})
        };
        let promises: Vec<_> = self
            .tested
            .iter()
            .flat_map(|tested| tested.promises.iter().map(move |one| promise(tested, one)))
            .collect();
        let fallen: Vec<_> = self
            .tested
            .iter()
            .flat_map(|tested| tested.report.fallen.iter())
            .map(|one| json!({"implementation": one.implementation, "why": one.why}))
            .collect();
        json!({
            "ok": self.is_good(), "fallen": fallen, "total": total, "passed": passed, "failed": total - passed,
            "ms": milliseconds(self.took), "tests": tests, "promises": promises,
        })
    }
}

/// How one test ended, for programs.
pub(in crate::commands) fn json_of(ended: &Ended) -> Value {
    let mut document = json!({
        "name": ended.name, "path": ended.path, "outcome": ended.outcome.name(),
        "passed": ended.outcome.is_passed(), "ms": milliseconds(ended.took),
    });
    put_reasons(&mut document, &ended.outcome);
    document
}

fn put_reasons(document: &mut Value, outcome: &Outcome) {
    let fault =
        |one: &Fault| json!({"path": one.path, "expected": one.expected, "found": one.found});
    match outcome {
        Outcome::Passed => {}
        Outcome::Failed(faults) => document["faults"] = faults.iter().map(fault).collect(),
        Outcome::NoAnswer(error) => document["error"] = error.to_value(),
        Outcome::NoTest(why) => {
            document["error"] = json!({"code": "bad_test", "message": why, "details": {}});
        }
        Outcome::Flaky { passed, calls, other } => {
            document["calls"] = json!({"total": calls, "passed": passed});
            put_reasons(document, other);
        }
    }
}

/// Every test with its package.
pub(super) fn all(round: &Round) -> impl Iterator<Item = (&Tested, &Ended)> {
    round.tested.iter().flat_map(|one| one.report.ended.iter().map(move |ended| (one, ended)))
}

fn total(round: &Round) -> usize {
    round.tested.iter().map(|one| one.report.total()).sum()
}

fn passed(round: &Round) -> usize {
    round.tested.iter().map(|one| one.report.passed()).sum()
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
