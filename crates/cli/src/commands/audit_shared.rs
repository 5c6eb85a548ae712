//! `haft audit --state`: the logs of all replicas, as they were sent to the state that these share.

use std::collections::HashSet;
use std::time::Duration;

use host::Records;
use host::fleet::{self, Following, Places, Told};
use ledger::StateError;
use ledger::audit::{Filter, Kind, Report};
use ledger::state::shared::{Replica, Shared};
use serde_json::json;

use super::audit::{remedies, said};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::owner;
use crate::printer::{Printer, line};

/// How often to look for more.
const PAUSE: Duration = Duration::from_millis(500);

/// What is shown.
pub(super) struct Wanted {
    pub(super) filter: Filter,
    pub(super) limit: usize,
    pub(super) follow: bool,
}

/// What the replicas share.
fn shared(records: &Records) -> Shared<'_> {
    records.state.shared().expect("it is asked for where a database is named")
}

/// Shows the last calls of all replicas.
pub(super) fn show(wanted: &Wanted, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let runtime = owner::runtime()?;
    let Wanted { filter, limit, follow } = wanted;
    let records = owner::records(home, &runtime)?;
    let shared = shared(&records);
    let failed = |error: StateError| owner::of_state(&error);
    let mut following = runtime.block_on(Following::from_end(shared)).map_err(failed)?;
    let last = runtime.block_on(last(shared, filter, limit.saturating_mul(2)));
    let (mut told, unreadable) = last.map_err(failed)?;
    keep_last(&mut told, *limit, json_wanted);
    for one in told.iter().rev() {
        print(one, json_wanted, printer)?;
    }
    if unreadable > 0 {
        let lines = super::count(unreadable, "line");
        printer.warn(&format!("{lines} not as written; `haft audit verify` says which"));
    }
    if !follow {
        if told.is_empty() {
            printer.note("there are no such records in the shared state");
        }
        return Ok(Exit::Done);
    }
    loop {
        std::thread::sleep(PAUSE);
        let come = runtime.block_on(following.next(shared)).map_err(failed)?;
        for one in come.iter().filter(|one| filter.wants(&one.record)) {
            if json_wanted || one.record.kind != Kind::Begin {
                print(one, json_wanted, printer)?;
            }
        }
    }
}

/// So many records, the last one first, and how many lines are none.
async fn last(
    shared: Shared<'_>,
    filter: &Filter,
    most: usize,
) -> Result<(Vec<Told>, u64), StateError> {
    let (mut told, mut unreadable, mut before) = (Vec::new(), 0, Some(Places::default()));
    while told.len() < most
        && let Some(place) = &before
    {
        let page = fleet::page(shared, filter, place, most - told.len()).await?;
        told.extend(page.told);
        unreadable += page.unreadable;
        before = page.next;
    }
    Ok((told, unreadable))
}

/// Leaves the last calls: the end of each tells all, and its beginning is shown where there is no end, or to programs.
fn keep_last(told: &mut Vec<Told>, limit: usize, json_wanted: bool) {
    let begun = |one: &Told| Some((one.replica.clone(), one.record.begin?));
    let ended: HashSet<_> = told.iter().filter_map(begun).collect();
    let is_ended = |one: &Told| {
        one.record.kind == Kind::Begin && ended.contains(&(one.replica.clone(), one.record.seq))
    };
    let shown: HashSet<_> = {
        let calls = told.iter().filter(|one| !is_ended(one)).take(limit);
        calls.flat_map(|one| [Some((one.replica.clone(), one.record.seq)), begun(one)]).collect()
    };
    told.retain(|one| {
        let is_shown = shown.contains(&Some((one.replica.clone(), one.record.seq)));
        is_shown && (json_wanted || !is_ended(one))
    });
}

fn print(told: &Told, json_wanted: bool, printer: Printer) -> Result<(), Failure> {
    if json_wanted {
        let mut document = serde_json::to_value(&told.record).unwrap_or_default();
        document["replica"] = told.replica.as_str().into();
        return printer.result(&format!("{document}\n"));
    }
    let words = format!("{} {}", fleet::short(&told.replica), said(&told.record));
    printer.result(&(line(&words) + "\n"))
}

/// Says whether the log of each replica is whole, and if one is not, what that means.
pub(super) fn check(home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let runtime = owner::runtime()?;
    let records = owner::records(home, &runtime)?;
    let all = runtime.block_on(fleet::verify(shared(&records)));
    let all = all.map_err(|error| owner::of_state(&error))?;
    let is_sound = all.iter().all(|(_, report)| report.is_sound());
    let exit = if is_sound { Exit::Done } else { Exit::Failed };
    let hints: std::collections::BTreeSet<_> =
        all.iter().flat_map(|(_, report)| remedies(report)).collect();
    if json_wanted {
        let replicas: Vec<_> = all
            .iter()
            .map(|(Replica { key, .. }, report)| {
                let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
                json!({
                    "replica": key, "sound": report.is_sound(), "records": report.lines,
                    "findings": found, "more": report.more,
                })
            })
            .collect();
        printer.json(&json!({ "sound": is_sound, "replicas": replicas, "hints": hints }))?;
        return Ok(exit);
    }
    for (Replica { key, .. }, report) in &all {
        let Report { findings, lines, more, .. } = report;
        for finding in findings {
            printer.result(&format!("{}\n", line(&finding.to_string())))?;
        }
        if *more > 0 {
            printer.note(&format!("and {more} more"));
        }
        let records = super::count(*lines, "record");
        let how = if report.is_sound() { "unbroken" } else { "not as they were written" };
        printer.result(&format!("{records} of replica {}, {how}\n", line(key)))?;
    }
    if all.is_empty() {
        printer.note("no replica has sent anything to the shared state yet");
    }
    for hint in hints {
        printer.note(&format!("hint: {hint}"));
    }
    Ok(exit)
}
