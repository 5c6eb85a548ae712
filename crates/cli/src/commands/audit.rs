//! `haft audit`: what was called, and whether the log of it is whole.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use ledger::audit::{Fault, Filter, Follow, Kind, Record, Report, page, verify};
use serde_json::json;

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::names;
use crate::owner;
use crate::printer::{Printer, line};

/// How often to look for more.
const PAUSE: Duration = Duration::from_millis(250);

/// What a record may say of a call: how it went, or what was decided about it.
const OUTCOMES: [&str; 14] = [
    "ok",
    "allowed",
    "denied",
    "needs_approval",
    "needs_login",
    "bad_input",
    "missing_input",
    "unknown_tool",
    "unavailable",
    "tool_failed",
    "timed_out",
    "bad_output",
    "too_much_output",
    "cancelled",
];

#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "With --json each record is one document on a line of its own, as in the log. See docs/audit.md.\n\nExamples:\n  haft audit --outcome denied\n  haft audit --package mcpkg:acme.weather --limit 5\n  haft audit --follow --json\n  haft audit verify"
)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Go on showing records as they are written
    #[arg(long, short)]
    follow: bool,
    /// Only calls of this package, with its dialect: mcpkg:acme.weather
    #[arg(long, value_name = "PACKAGE", value_parser = names::package)]
    package: Option<String>,
    /// Only calls that went so, by what was decided or how they ended
    #[arg(long, value_name = "OUTCOME", value_parser = PossibleValuesParser::new(OUTCOMES))]
    outcome: Option<String>,
    /// At most so many, the last ones; from 1 on
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit)]
    limit: usize,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Find every record that was changed, removed, moved, added or cut off
    Verify,
}

/// How many records are shown.
fn limit(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "write a whole number from 1 on".to_owned())
}

pub(crate) fn run(args: &AuditArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    owner::check_home(home)?;
    let folder = home.path().join("audit");
    let failed = |error: ledger::AuditError| Failure::of(Exit::Unavailable, &error);
    if let Some(What::Verify) = args.what {
        return check(&folder, json_wanted, printer);
    }
    let filter = Filter {
        package: args.package.clone(),
        outcome: args.outcome.clone(),
        ..Filter::default()
    };
    let mut follow = None;
    if args.follow {
        follow = Some(Follow::from_end(&folder).map_err(failed)?);
    }
    // For people a call is one line: the end of it tells all, and its beginning is shown where there is no end.
    let most = if json_wanted { args.limit } else { args.limit.saturating_mul(2) };
    let mut page = page(&folder, &filter, None, most).map_err(failed)?;
    if !json_wanted {
        let ended: HashSet<u64> = page.records.iter().filter_map(|one| one.begin).collect();
        page.records.retain(|one| one.kind != Kind::Begin || !ended.contains(&one.seq));
        page.records.truncate(args.limit);
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
        let is_filtered = filter.package.is_some() || filter.outcome.is_some();
        printer.note(if is_filtered { "no record fits" } else { "there are no records" });
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

/// Says whether the log is whole, and if it is not, what that means.
fn check(folder: &Path, json_wanted: bool, printer: Printer) -> Outcome {
    let report = verify(folder).map_err(|error| Failure::of(Exit::Unavailable, &error))?;
    let exit = if report.is_sound() { Exit::Done } else { Exit::Failed };
    if json_wanted {
        let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        printer.json(&json!({
            "path": folder.to_string_lossy(), "sound": report.is_sound(),
            "records": report.lines, "findings": found, "more": report.more,
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
        printer.note(&format!("hint: {}", remedy(&report)));
    } else if report.lines == 0 && report.head.is_none() {
        printer.note(&format!(
            "there is no log in `{shown}`: nothing was called with this home yet, or the whole folder was taken away"
        ));
    } else {
        printer.result(&format!("{records} in `{shown}`, unbroken\n"))?;
    }
    Ok(exit)
}

/// What can be done about a log that is not whole.
fn remedy(report: &Report) -> &'static str {
    let has = |wanted: &Fault| report.findings.iter().any(|finding| finding.fault == *wanted);
    if has(&Fault::KeyMissing) || has(&Fault::KeyUnreadable) {
        "put `key.pub` back from a copy; where `key` is still there, the next call writes it anew"
    } else {
        "put back what is gone or changed from a copy of the folder; without one it is lost, and the next call notes that and goes on"
    }
}

fn show(record: &Record, json_wanted: bool, printer: Printer) -> Result<(), Failure> {
    if json_wanted {
        let document = serde_json::to_string(record).unwrap_or_default();
        return printer.result(&(document + "\n"));
    }
    let Record { seq, ts, surface, package, action, .. } = record;
    let words = match record.kind {
        Kind::Call | Kind::Begin | Kind::End => {
            format!("{seq} {ts} {surface} {package} {action} {}", went(record))
        }
        Kind::Torn | Kind::Mended => {
            format!("{seq} {ts} {}", record.note.as_deref().unwrap_or_default())
        }
    };
    printer.result(&(line(&words) + "\n"))
}

/// How a call went: refused before anything ran, or made, and then well or not.
fn went(record: &Record) -> String {
    let Some(outcome) = &record.outcome else { return "began".to_owned() };
    let ms = record.ms.unwrap_or_default();
    match (record.decision.as_deref(), outcome.as_str()) {
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
    fn every_code_of_a_failure_can_be_asked_for() {
        for kind in [
            Kind::Failed,
            Kind::TimedOut,
            Kind::TooMuchOutput,
            Kind::BadOutput,
            Kind::BadInput,
            Kind::MissingInput,
            Kind::Unknown,
            Kind::Denied,
            Kind::Distrusted,
            Kind::NeedsLogin,
            Kind::Unavailable,
            Kind::Cancelled,
        ] {
            assert!(OUTCOMES.contains(&kind.code()), "{kind:?}");
        }
    }
}
