//! Results of tests as JUnit XML, which systems that build programs read.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use prove::{Ended, Origin, Outcome, Promise};

use super::round::{Round, Tested};
use super::told::reasons;
use crate::exit::{Exit, Failure};
use crate::output::Beside;
use crate::xml::escaped;

/// Writes the results of a round, over what is there.
pub(super) fn write(path: &Path, round: &Round) -> Result<(), Failure> {
    let mut beside = Beside::new(path)?;
    let written = {
        let mut file = beside.file();
        put(&mut file, round).and_then(|()| file.flush())
    };
    written.map_err(|error| {
        Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
            .cause(error)
    })?;
    beside.replace()
}

fn put(out: &mut dyn Write, round: &Round) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"haft test\" time=\"{}\">", seconds(round.took))?;
    for tested in &round.tested {
        put_suite(out, tested)?;
    }
    writeln!(out, "</testsuites>")
}

fn put_suite(out: &mut dyn Write, tested: &Tested) -> io::Result<()> {
    let ended = &tested.report.ended;
    let count = |verdict| ended.iter().filter(|one| Verdict::of(one, tested) == verdict).count();
    let broken = tested.promises.iter().filter(|one| !one.is_kept).count();
    let package = tested.tool.package.canonical_id();
    let package = match &tested.by {
        Some(by) => escaped(&format!("{package} by {by}")),
        None => escaped(&package),
    };
    writeln!(
        out,
        "  <testsuite name=\"{package}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">",
        ended.len() + tested.promises.len(),
        count(Verdict::Failed) + broken,
        count(Verdict::Error),
        count(Verdict::Skipped),
        seconds(ended.iter().map(|one| one.took).sum()),
    )?;
    for one in ended {
        put_case(out, &package, one, tested)?;
    }
    for Promise { name, expected, found, is_kept } in &tested.promises {
        write!(
            out,
            "    <testcase classname=\"{package}\" name=\"verify {}\" time=\"0\"",
            escaped(name)
        )?;
        if *is_kept {
            writeln!(out, "/>")?;
        } else {
            let words = escaped(&format!("it is {found}, promised {expected}"));
            writeln!(out, "><failure message=\"{words}\" type=\"promise\"/></testcase>")?;
        }
    }
    writeln!(out, "  </testsuite>")
}

fn put_case(out: &mut dyn Write, package: &str, one: &Ended, tested: &Tested) -> io::Result<()> {
    write!(
        out,
        "    <testcase classname=\"{package}\" name=\"{}\" file=\"{}\" time=\"{}\"",
        escaped(&one.name),
        escaped(&one.path),
        seconds(one.took)
    )?;
    let element = match Verdict::of(one, tested) {
        Verdict::Passed => return writeln!(out, "/>"),
        Verdict::Failed => "failure",
        Verdict::Error => "error",
        Verdict::Skipped => {
            let words = "it failed, within what its author promises";
            return writeln!(out, "><skipped message=\"{words}\"/></testcase>");
        }
    };
    let reasons = reasons(&one.outcome, &tested.tool);
    let first = reasons.first().map(|reason| escaped(reason)).unwrap_or_default();
    writeln!(
        out,
        "><{element} message=\"{first}\" type=\"{}\">{}</{element}></testcase>",
        one.outcome.name(),
        escaped(&reasons.join("\n"))
    )
}

/// What such a system is told of a test.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Passed,
    Failed,
    Error,
    Skipped,
}

impl Verdict {
    fn of(ended: &Ended, tested: &Tested) -> Self {
        match &ended.outcome {
            Outcome::Passed => Self::Passed,
            // A case that may fail does not fail what it is a case of.
            _ if ended.origin == Origin::Promised && tested.is_good() => Self::Skipped,
            Outcome::Failed(_) | Outcome::Flaky { .. } => Self::Failed,
            Outcome::NoAnswer(_) | Outcome::NoTest(_) => Self::Error,
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}
