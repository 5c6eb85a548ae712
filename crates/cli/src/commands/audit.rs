//! `haft audit`: what was called, and whether the log of it is whole.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use ledger::AuditError;
use ledger::audit::{Fault, Filter, Follow, Kind, Page, Record, Report, page, verify};
use prove::watch;
use serde_json::json;

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::names::{self, Typed};
use crate::owner;
use crate::printer::{Printer, line};
use crate::seen::Seen;

use super::audit_shared::{self, Wanted};

/// How often to look for more.
const PAUSE: Duration = Duration::from_millis(250);

/// What is said of a record that is no call; `verify` and the record itself have all of it.
const TORN: &str =
    "(no call) a line that was left half written was put aside; `haft audit verify` says where";
const MENDED: &str = "(no call) the log did not end as it was signed, so records before this one may be missing or changed; `haft audit verify` says how";

/// What a record may say of a call: how it went, or what was decided about it.
const OUTCOMES: [&str; 25] = [
    "ok",
    "allowed",
    "denied",
    "needs_approval",
    "needs_login",
    "unfinished",
    "bad_input",
    "bad_chain",
    "missing_input",
    "unknown_tool",
    "unavailable",
    "tool_failed",
    "timed_out",
    "bad_output",
    "too_much_output",
    "cancelled",
    "invalid_policy",
    "invalid_manifest",
    "not_found",
    "conflict",
    "bad_usage",
    "unconfirmed",
    "bug",
    watch::SLOWER,
    watch::FAILING,
];

#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "With --json each record is one document on a line of its own, as in the log; a call that ran has two, its beginning and its end.\n\nExamples:\n  haft audit --outcome denied\n  haft audit --package mcpkg:acme.weather --limit 5\n  haft audit --follow --json\n  haft audit verify\n\nWith --state, the logs of all replicas that share that state are shown and verified."
)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Go on showing records as they are written
    #[arg(long, short)]
    follow: bool,
    /// Only calls of this package, with its dialect: mcpkg:acme.weather
    #[arg(long, value_name = "PACKAGE", value_parser = names::package)]
    package: Option<Typed>,
    /// Only a chain and its steps, by the trace that their records have
    #[arg(long, value_name = "TRACE")]
    trace: Option<String>,
    /// Only calls that went so, by what was decided or how they ended
    #[arg(long, value_name = "OUTCOME", value_parser = PossibleValuesParser::new(OUTCOMES))]
    outcome: Option<String>,
    /// At most so many calls, the last ones; from 1 on
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit)]
    limit: usize,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Find every record that was changed, removed, moved, added or cut off
    Verify,
}

/// How many calls are shown.
fn limit(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "write a whole number from 1 on".to_owned())
}

pub(crate) fn run(args: &AuditArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    owner::check_home(home)?;
    let folder = home.path().join("audit");
    let failed = |error: AuditError| Failure::of(Exit::Unavailable, &error);
    let is_shared = home.database().is_some();
    if let Some(What::Verify) = args.what {
        return if is_shared {
            audit_shared::check(home, json_wanted, printer)
        } else {
            check(&folder, json_wanted, printer)
        };
    }
    let filter = Filter {
        package: args.package.as_ref().map(|package| package.whole(home)).transpose()?,
        outcome: args.outcome.clone(),
        trace: args.trace.clone(),
        ..Filter::default()
    };
    if is_shared {
        let wanted = Wanted { filter, limit: args.limit, follow: args.follow };
        return audit_shared::show(&wanted, home, json_wanted, printer);
    }
    let mut follow = None;
    if args.follow {
        follow = Some(Follow::from_end(&folder).map_err(failed)?);
    }
    let mut page = last_calls(&folder, &filter, args.limit).map_err(failed)?;
    if json_wanted {
        add_beginnings(&mut page, &folder, &filter).map_err(failed)?;
    }
    for record in page.records.iter().rev() {
        show(record, json_wanted, printer)?;
    }
    if page.unreadable > 0 {
        let words = match page.unreadable {
            1 => "1 line is not as it was written; `haft audit verify` names it".to_owned(),
            more => {
                format!("{more} lines are not as they were written; `haft audit verify` names them")
            }
        };
        printer.warn(&words);
    }
    if page.records.is_empty() && follow.is_none() {
        let is_filtered =
            filter.package.is_some() || filter.outcome.is_some() || filter.trace.is_some();
        printer.note(if is_filtered { "no record fits" } else { "there are no records" });
        if let Some(package) = &filter.package
            && let Some(doubt) = Seen::at(home, &owner::runtime()?)?.doubt(package)
        {
            printer.warn(&doubt);
        }
    }
    while let Some(follow) = &mut follow {
        match follow.poll().map_err(failed)? {
            Some(record) if !json_wanted && record.kind == Kind::Begin => {}
            Some(record) if filter.wants(&record) => show(&record, json_wanted, printer)?,
            Some(_) => {}
            None => std::thread::sleep(PAUSE),
        }
    }
    Ok(Exit::Done)
}

/// The last calls, each as one record: the end of it tells all, and its beginning is there where there is no end.
fn last_calls(folder: &Path, filter: &Filter, most: usize) -> Result<Page, AuditError> {
    let mut page = page(folder, filter, None, most.saturating_mul(2))?;
    let ended: HashSet<u64> = page.records.iter().filter_map(|one| one.begin).collect();
    page.records.retain(|one| one.kind != Kind::Begin || !ended.contains(&one.seq));
    page.records.truncate(most);
    Ok(page)
}

/// Adds the beginnings of those that ended, as far as they are wanted. Calls run at once, so some may lie far back.
fn add_beginnings(calls: &mut Page, folder: &Path, filter: &Filter) -> Result<(), AuditError> {
    /// How many records are looked at in one go.
    const STEP: usize = 256;
    let begun: BTreeSet<u64> = calls.records.iter().filter_map(|one| one.begin).collect();
    let mut place = None;
    while let Some(first) = begun.first() {
        let found = page(folder, filter, place, STEP)?;
        let is_enough = found.records.last().is_none_or(|one| one.seq <= *first);
        calls.records.extend(found.records.into_iter().filter(|one| begun.contains(&one.seq)));
        place = found.next;
        if is_enough || place.is_none() {
            break;
        }
    }
    calls.records.sort_by_key(|one| std::cmp::Reverse(one.seq));
    Ok(())
}

/// Says whether the log is whole, and if it is not, what that means.
fn check(folder: &Path, json_wanted: bool, printer: Printer) -> Outcome {
    let report = verify(folder).map_err(|error| Failure::of(Exit::Unavailable, &error))?;
    let exit = if report.is_sound() { Exit::Done } else { Exit::Failed };
    let remedies = remedies(&report);
    // Nothing that was there can be told from nothing that ever was.
    let exists = report.lines > 0 || report.head.is_some() || !report.is_sound();
    if json_wanted {
        let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        printer.json(&json!({
            "path": folder.to_string_lossy(), "exists": exists, "sound": report.is_sound(),
            "records": report.lines, "findings": found, "more": report.more, "hints": remedies,
        }))?;
        return Ok(exit);
    }
    for finding in &report.findings {
        printer.result(&format!("{}\n", line(&finding.to_string())))?;
    }
    if report.more > 0 {
        printer.note(&format!("and {} more", report.more));
    }
    let shown = folder.display();
    let records = super::count(report.lines, "record");
    if !report.is_sound() {
        printer.result(&format!("{records} in `{shown}`, not as they were written\n"))?;
        for remedy in &remedies {
            printer.note(&format!("hint: {remedy}"));
        }
    } else if !exists {
        printer.note(&format!(
            "there is no log in `{shown}`: nothing was called with this home yet, or the whole folder was taken away"
        ));
    } else {
        printer.result(&format!("{records} in `{shown}`, unbroken\n"))?;
    }
    Ok(exit)
}

/// What can be done about a log that is not whole, each thing once.
pub(super) fn remedies(report: &Report) -> BTreeSet<&'static str> {
    report.findings.iter().filter_map(|finding| remedy(&finding.fault)).collect()
}

/// What can be done about something that is wrong. Whoever writes next looks at the end of the log alone, so only what
/// is wrong there is noted by the next call.
fn remedy(fault: &Fault) -> Option<&'static str> {
    match fault {
        Fault::Unreadable(_)
        | Fault::Edited
        | Fault::Missing { .. }
        | Fault::Misplaced { .. }
        | Fault::Repeated { .. }
        | Fault::Unlinked { .. }
        | Fault::Unended
        | Fault::Mended(_) => Some(
            "put the lines that are named back from a copy of the folder; without one, what they said is lost: calls go on all the same, and every check names them",
        ),
        Fault::HeadMissing
        | Fault::HeadUnsigned
        | Fault::HeadDiffers { .. }
        | Fault::Cut { .. }
        | Fault::Unsigned { .. } => Some(
            "put back what is gone or changed at the end, from a copy of the folder; without one it is lost, and the next call notes that and goes on",
        ),
        Fault::HeadSealed => Some("verify where `key` is, or let the next call sign there"),
        Fault::KeyMissing | Fault::KeyUnreadable => Some(
            "put `key.pub` back from a copy; where `key` is still there, the next call writes it anew",
        ),
        Fault::PutAside(_) | Fault::Torn | Fault::HeadBehind { .. } | Fault::Unfinished { .. } => {
            None
        }
    }
}

fn show(record: &Record, json_wanted: bool, printer: Printer) -> Result<(), Failure> {
    if json_wanted {
        let document = serde_json::to_string(record).unwrap_or_default();
        return printer.result(&(document + "\n"));
    }
    printer.result(&(line(&said(record)) + "\n"))
}

/// A record, in words.
pub(super) fn said(record: &Record) -> String {
    let Record { seq, ts, surface, package, action, .. } = record;
    match record.kind {
        Kind::Call | Kind::Begin | Kind::End if record.is_change() => {
            let Record { change, version, .. } = record;
            let action = if record.is_answer() { action } else { "" };
            let about: Vec<_> = [package.as_str(), version, action]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect();
            let note = record.note.iter().map(|note| format!(", {note}")).collect::<String>();
            format!("{seq} {ts} {surface} {} {change} {}{note}", about.join(" "), came(record))
        }
        Kind::Call | Kind::Begin | Kind::End => {
            let step = match record.step.as_str() {
                "" => String::new(),
                step => format!("(step {step}) "),
            };
            format!("{seq} {ts} {surface} {package} {action} {step}{}", went(record))
        }
        Kind::Torn => format!("{seq} {ts} {TORN}"),
        Kind::Mended => format!("{seq} {ts} {MENDED}"),
    }
}

/// What came of a change.
fn came(record: &Record) -> String {
    match (record.outcome.as_deref(), &record.reason) {
        (None, _) => "began".to_owned(),
        (Some("ok"), _) => "ok".to_owned(),
        (Some("unconfirmed"), _) => "unconfirmed".to_owned(),
        (Some(found @ (watch::SLOWER | watch::FAILING)), _) => found.to_owned(),
        (Some(code), Some(reason)) => format!("refused: {code}: {reason}"),
        (Some(code), None) => format!("failed: {code}"),
    }
}

/// How a call went: refused before anything ran, or made, and then well or not.
fn went(record: &Record) -> String {
    let Some(outcome) = &record.outcome else { return "began".to_owned() };
    let ms = record.ms.unwrap_or_default();
    match (record.decision.as_deref(), outcome.as_str()) {
        (_, "ok") if record.cached == Some(true) => "ok, known from before".to_owned(),
        (_, "ok") => format!("ok, {ms} ms"),
        (Some("denied"), code) => format!("refused: {code}, {ms} ms"),
        (_, code) => format!("failed: {code}, {ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use host::Kind;

    use super::*;

    #[test]
    fn the_beginning_of_a_call_is_found_however_far_back_it_lies() {
        use ledger::audit::{Call, Durability, Ending};
        let folder = tempfile::tempdir().unwrap();
        let audit = ledger::Audit::new(folder.path(), Durability::Process);
        let (call, ending, now) = (Call::default(), Ending::default(), host::records::now());
        let begun = audit.begin(&call, now).unwrap();
        for _ in 0..300 {
            audit.record(&call, &ending, now).unwrap();
        }
        audit.end(begun, &call, &ending, now).unwrap();
        let mut page = last_calls(folder.path(), &Filter::default(), 2).unwrap();
        add_beginnings(&mut page, folder.path(), &Filter::default()).unwrap();
        let numbers: Vec<_> = page.records.iter().map(|one| one.seq).collect();
        assert_eq!(numbers, [302, 301, 1]);
    }

    #[test]
    fn every_code_of_a_failure_can_be_asked_for() {
        for kind in [
            Kind::Failed,
            Kind::TimedOut,
            Kind::TooMuchOutput,
            Kind::BadOutput,
            Kind::BadInput,
            Kind::MissingInput,
            Kind::BadChain,
            Kind::Unknown,
            Kind::Denied,
            Kind::Distrusted,
            Kind::NeedsLogin,
            Kind::Unfinished,
            Kind::Unavailable,
            Kind::Cancelled,
        ] {
            assert!(OUTCOMES.contains(&kind.code()), "{kind:?}");
        }
    }
}
