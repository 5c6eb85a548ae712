//! The tests of a package, run inside the walls, and what is told of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use host::{Host, Said, Tool};
use package::digest::Digest;
use prove::{Case, Ended, How, Report};
use registry::{TestReport, TestedCase};
use serde_json::{Value, json};

use crate::approver::Owner;
use crate::ask::Ask;
use crate::commands::call::{failure, settings};
use crate::container;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::load::Loading;
use crate::printer::{Printer, line};
use crate::{interrupt, owner, tools, walls};

/// How the tests of a package went.
pub(super) struct Tested {
    pub(super) report: Report,
    tool: Option<Tool>,
    /// When they began, in milliseconds since 1970.
    ran_at: u64,
}

/// Runs the tests of a package file that was made of a folder. One that has none is told of.
pub(super) fn run(
    file: &Path,
    folder: &Path,
    id: &str,
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
    let cases = cases(file, &tool, printer)?;
    if cases.is_empty() {
        printer.warn(if tool.package.verify.is_some() {
            "its `verify.suite` is not run yet, and it has no other tests"
        } else {
            "it has no tests, so nothing shows that it works"
        });
        return Ok(Tested::nothing());
    }
    if tool.package.chain.is_some() {
        printer.warn("chains cannot be called yet, so its tests are not run");
        return Ok(Tested::nothing());
    }
    let runtime = owner::runtime()?;
    let records = owner::records(home, &runtime)?;
    let vault = owner::vault(home, ask)?;
    let host = Host::new(settings(home)?, walls::launcher()?, vault, records);
    let called_off = interrupt::calling_off();
    let here = std::env::current_dir().map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to find this folder").cause(error)
    })?;
    let approver = Arc::new(Owner::new(home, ask, given));
    let how = How { folder: here, approver: Some(approver), called_off };
    let mut tell = |ended: &Ended| printer.note(&told(ended, &tool));
    let ran_at = server::service::now();
    let report = runtime.block_on(prove::run(&host, &tool, &cases, &how, &mut tell));
    runtime.block_on(host.settle());
    interrupt::nothing_runs();
    let unwritten = runtime.block_on(host.records().settle());
    if let Err(error) = unwritten {
        printer.warn(&format!("the calls could not be written down: {}", line(&error.to_string())));
    }
    if interrupt::was_told_to_stop() {
        return Err(Failure::new(Exit::Of(interrupt::CODE), "cancelled"));
    }
    let count = crate::commands::count(cases.len(), "test");
    printer.note(&format!("{count}: {} passed, {} failed", report.passed(), report.failed()));
    Ok(Tested { report, tool: Some(tool), ran_at })
}

/// The tests that the manifest lists, each once.
fn cases(file: &Path, tool: &Tool, printer: Printer) -> Result<Vec<Case>, Failure> {
    let container = container::open(file, printer)?;
    let mut paths: Vec<&str> = Vec::new();
    for path in &tool.package.tests {
        let plain = path.strip_prefix("./").unwrap_or(path);
        if !paths.contains(&plain) {
            paths.push(plain);
        }
    }
    let read = |path: &&str| {
        let size = container.contents().size(path);
        size.ok_or_else(|| Failure::invalid(format!("the test `{path}` is not in the package")))?;
        let case = Case::read(path, &container.read(path)?);
        case.map_err(|error| Failure::of(Exit::Invalid, &error))
    };
    paths.iter().map(read).collect()
}

/// A line on a test, and why it failed beneath it.
fn told(ended: &Ended, tool: &Tool) -> String {
    let name = line(&ended.name);
    let took = ended.took.as_millis();
    match &ended.outcome {
        prove::Outcome::Passed => format!("  passed  {name}  ({took} ms)"),
        prove::Outcome::Failed(faults) => {
            let faults = faults.iter().map(|fault| format!("\n          {}", line(fault)));
            format!("  FAILED  {name}  ({took} ms){}", faults.collect::<String>())
        }
        prove::Outcome::NoAnswer(error) => {
            let Failure { message, details, hints, .. } = failure(error, &error.blocked, tool);
            let details = details.iter().map(|detail| format!("\n          {}", line(detail)));
            let hints = hints.iter().map(|hint| format!("\n          hint: {}", line(hint)));
            let rest: String = details.chain(hints).collect();
            format!("  FAILED  {name}  ({took} ms)\n          {}{rest}", line(&message))
        }
    }
}

impl Tested {
    /// There was nothing to run.
    fn nothing() -> Self {
        Self { report: Report::default(), tool: None, ran_at: 0 }
    }

    /// What the registry is told: how it went, of the package file of this digest; nothing where nothing was run.
    pub(super) fn to_report(&self, digest: Digest) -> Option<TestReport> {
        let ended = &self.report.ended;
        let case = |ended: &Ended| TestedCase {
            path: ended.path.clone(),
            name: clipped(if ended.name.trim().is_empty() { &ended.path } else { &ended.name }),
            passed: ended.outcome == prove::Outcome::Passed,
            took_ms: milliseconds(ended.took),
        };
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (!ended.is_empty()).then(|| TestReport {
            sha256: digest.to_string(),
            passed: count(self.report.passed()),
            failed: count(self.report.failed()),
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
        let one = |ended: &Ended| {
            let took = milliseconds(ended.took);
            let mut document = json!({"path": ended.path, "name": ended.name, "ms": took});
            match &ended.outcome {
                prove::Outcome::Passed => document["passed"] = true.into(),
                prove::Outcome::Failed(faults) => {
                    document["passed"] = false.into();
                    document["faults"] = faults.clone().into();
                }
                prove::Outcome::NoAnswer(error) => {
                    document["passed"] = false.into();
                    document["error"] = error.to_value();
                }
            }
            document
        };
        let cases: Vec<_> = self.report.ended.iter().map(one).collect();
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
        let message = format!("{failed} of `{id}` failed, so it is not published");
        Err(Failure::new(Exit::Failed, message).hint("--no-test publishes it all the same"))
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
