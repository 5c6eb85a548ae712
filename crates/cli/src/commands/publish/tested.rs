//! The tests of a package, run inside the walls, and what is told of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use host::{CallError, Host, Said, Tool};
use package::digest::Digest;
use prove::{Ended, How, Origin, Promise, Report, Suite};
use registry::{TestReport, TestedCase};
use serde_json::{Value, json};

use crate::approver::Owner;
use crate::ask::Ask;
use crate::commands::call::{failure, fallen_words, settings};
use crate::commands::test::{discover, json_of, reasons};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::load::Loading;
use crate::printer::{Printer, line};
use crate::{interrupt, owner, steps, tools, walls};

/// How the tests of a package went.
pub(super) struct Tested {
    report: Report,
    /// What its author promises, and whether it was kept.
    promises: Vec<Promise>,
    tool: Option<Tool>,
    /// When they began, in milliseconds since 1970.
    ran_at: u64,
}

/// Runs the tests of a package file that was made of a folder. One that has none is told of.
pub(super) fn run(
    (file, folder): (&Path, &Path),
    id: &str,
    with: &[PathBuf],
    given: Option<Said>,
    home: &Home,
    ask: Ask,
    printer: Printer,
) -> Result<Tested, Failure> {
    let loading = Loading { dialect: None, id: Some(id) };
    let mut found = tools::at(file, loading, home, printer)?;
    let (Some(mut tool), true) = (found.tools.pop(), found.tools.is_empty()) else {
        return Ok(Tested::nothing());
    };
    // Grants are for the folder that the owner has, not for where it happens to be packed.
    tool.place = folder.canonicalize().map_err(|error| {
        Failure::new(Exit::Unavailable, format!("failed to find `{}`", folder.display()))
            .cause(error)
    })?;
    let suite = Suite::of(&tool.package, &tool.root);
    if suite.is_empty() {
        printer.warn("it has no tests, so nothing shows that it works");
        return Ok(Tested::nothing());
    }
    let with = steps::with(with, home, printer)?;
    let beside: Vec<Tool> = with.iter().flat_map(|one| &one.tools).cloned().collect();
    steps::link_one(&mut tool, &beside, home, printer);
    let runtime = owner::runtime()?;
    let records = owner::records(home, &runtime)?;
    let vault = owner::vault(home, ask)?;
    let host = Host::new(settings(home)?, walls::launcher()?, vault, records);
    let called_off = interrupt::calling_off();
    let here = std::env::current_dir().map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to find this folder").cause(error)
    })?;
    let approver = Arc::new(Owner::new(home, ask, given));
    let how = How::one_by_one(here, Some(approver), called_off);
    let ran_at = server::service::now();
    let ran = runtime.block_on(async {
        discover(&mut tool, &host, &how.called_off).await?;
        let mut tell = |ended: &Ended| printer.note(&told(ended, &tool));
        Ok(prove::run(&host, &tool, suite.cases(), &how, &mut tell).await)
    });
    runtime.block_on(host.settle());
    interrupt::nothing_runs();
    let unwritten = runtime.block_on(host.records().settle());
    if let Err(error) = unwritten {
        printer.warn(&format!("the calls could not be written down: {}", line(&error.to_string())));
    }
    if interrupt::was_told_to_stop() {
        return Err(interrupt::cancelled());
    }
    let report = ran.map_err(|error: CallError| failure(&error, &error.blocked, &tool))?;
    for fallen in &report.fallen {
        printer.warn(&fallen_words(fallen));
    }
    let count = crate::commands::count(report.total(), "test");
    printer.note(&format!("{count}: {} passed, {} failed", report.passed(), report.failed()));
    let promises = suite.verify.map(|verify| verify.promises(&report.promised));
    Ok(Tested { report, promises: promises.unwrap_or_default(), tool: Some(tool), ran_at })
}

/// A line on a test, and why it failed beneath it.
fn told(ended: &Ended, tool: &Tool) -> String {
    let (name, took) = (line(&ended.name), ended.took.as_millis());
    let word = if ended.outcome.is_passed() { "passed" } else { "FAILED" };
    let reasons = reasons(&ended.outcome, tool);
    let reasons = reasons.iter().map(|reason| format!("\n          {}", line(reason)));
    format!("  {word}  {name}  ({took} ms){}", reasons.collect::<String>())
}

impl Tested {
    /// There was nothing to run.
    fn nothing() -> Self {
        Self { report: Report::default(), promises: Vec::new(), tool: None, ran_at: 0 }
    }

    /// Whether every test passed that has to.
    pub(super) fn is_good(&self) -> bool {
        self.report.is_good_but_for_promises() && self.promises.iter().all(|one| one.is_kept)
    }

    /// What the registry is told: how it went, of the package file of this digest; nothing where nothing was run that
    /// its manifest lists.
    pub(super) fn to_report(&self, digest: Digest) -> Option<TestReport> {
        self.tool.as_ref().filter(|tool| !tool.package.tests.is_empty())?;
        let ended: Vec<&Ended> =
            self.report.ended.iter().filter(|one| one.origin == Origin::File).collect();
        let passed = ended.iter().filter(|one| one.outcome.is_passed()).count();
        let case = |ended: &&Ended| TestedCase {
            path: ended.path.clone(),
            name: clipped(if ended.name.trim().is_empty() { &ended.path } else { &ended.name }),
            passed: ended.outcome.is_passed(),
            took_ms: milliseconds(ended.took),
        };
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (!ended.is_empty()).then(|| TestReport {
            sha256: digest.to_string(),
            passed: count(passed),
            failed: count(ended.len() - passed),
            cases: ended.iter().take(TestReport::MOST_CASES).map(case).collect(),
            ran_at: self.ran_at,
            took_ms: milliseconds(ended.iter().map(|one| one.took).sum()),
            // Of a tool that is only asked over the network, nothing was run here.
            sandbox: self.report.level().map(|level| level.to_string()),
            ran_by: concat!("haft ", env!("CARGO_PKG_VERSION")).to_owned(),
        })
    }

    /// How it went, for programs.
    pub(super) fn json(&self) -> Value {
        let cases: Vec<_> = self.report.ended.iter().map(json_of).collect();
        let (passed, failed) = (self.report.passed(), self.report.failed());
        json!({"passed": passed, "failed": failed, "cases": cases})
    }

    /// Ends the command: a package whose tests fail is not published.
    pub(super) fn refuse(&self, json_wanted: bool, printer: Printer) -> Outcome {
        if json_wanted {
            printer.json(&json!({"outcome": "refused", "tests": self.json()}))?;
        }
        let failed = crate::commands::count(self.report.failed(), "test");
        let id = self.tool.as_ref().map(|tool| tool.package.id.clone()).unwrap_or_default();
        let message = if self.report.failed() > 0 {
            format!("{failed} of `{id}` failed, so it is not published")
        } else {
            format!("`{id}` does not keep what its author promises, so it is not published")
        };
        let broken = self
            .promises
            .iter()
            .filter(|one| !one.is_kept)
            .map(|one| format!("{} is {}, promised {}", one.name, one.found, one.expected));
        Err(Failure::new(Exit::Failed, message)
            .details(broken)
            .hint("--no-test publishes it all the same"))
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A name no longer than a report takes it.
fn clipped(name: &str) -> String {
    let mut end = name.len().min(TestReport::LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}
