//! `haft audit`: what was called, and whether the log of it is whole.

use std::collections::HashSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use ledger::audit::{Filter, Follow, Kind, Record, page, verify};
use serde_json::json;

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};

/// How often to look for more.
const PAUSE: Duration = Duration::from_millis(250);

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
    /// Only calls of this package
    #[arg(long, value_name = "PACKAGE")]
    package: Option<String>,
    /// Only calls that went so: ok, denied, or the code of an error
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,
    /// At most so many, the last ones
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Find every record that was changed, removed, moved, added or cut off
    Verify,
}

pub(crate) fn run(args: &AuditArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let folder = home.path().join("audit");
    let failed = |error: ledger::AuditError| Failure::of(Exit::Unavailable, &error);
    if let Some(What::Verify) = args.what {
        let report = verify(&folder).map_err(failed)?;
        if json_wanted {
            let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
            printer.json(&json!({
                "sound": report.is_sound(), "records": report.lines, "findings": found,
            }))?;
        } else {
            for finding in &report.findings {
                printer.result(&format!("{}\n", line(&finding.to_string())))?;
            }
            printer.note(&format!(
                "{}, {}",
                super::count(usize::try_from(report.lines).unwrap_or(usize::MAX), "record"),
                if report.is_sound() { "unbroken" } else { "not as they were written" }
            ));
        }
        return Ok(if report.is_sound() { Exit::Done } else { Exit::Failed });
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
