//! A package that is staged is tried: its server says what it offers, and its smoke test is run; its tests too, where its
//! owner or its author wants that. What fails leaves no trace.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use host::records::now;
use host::smoke::Verdict;
use host::surface::Surface as Offered;
use host::{Blocked, CallError, CancellationToken, Given, Host, Kind, Records, Smoked, Tool};
use install::{Ready, Sha256};
use manifest::model::{Action, Entry, Invocation, Package, SideEffects, Trust};
use package::digest::Digest;
use policy::{Consent, OnInstall, Policy, Surface};
use prove::{Case, Ended, How, Origin, Report, Suite};
use tokio::runtime::Runtime;

use super::inputs::Values;
use crate::approver::Owner;
use crate::ask::Ask;
use crate::commands::test::reasons;
use crate::commands::{call, count};
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::installed::{brought, run_from};
use crate::printer::{Printer, line};
use crate::{interrupt, owner, steps, walls};

/// A package that is tried, and with what.
pub(super) struct Trying<'t> {
    pub(super) package: &'t Package,
    pub(super) trust: Trust,
    pub(super) values: &'t Values,
    /// What is granted together with the card.
    pub(super) grants: Vec<policy::Grant>,
    pub(super) policy: &'t Policy,
    pub(super) home: &'t Home,
    pub(super) ask: Ask,
    pub(super) printer: Printer,
}

/// Why a package is not what it should be.
pub(super) enum Untried {
    /// Its server, its smoke test or another test failed: whoever wants to find out why may keep it.
    Smoke(Failure),
    /// It could not be tried.
    Failed(Failure),
}

impl Untried {
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Smoke(failure) | Self::Failed(failure) => failure,
        }
    }
}

impl From<Failure> for Untried {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Trying<'_> {
    /// Runs it inside the walls, as the package would be run; what has neither a server nor tests passes.
    pub(super) fn check(&self, ready: &mut Ready) -> Result<(), Untried> {
        let package = self.package;
        let asks_server = has_server(package);
        let wanted = self.wanted(ready);
        if package.smoke.is_none() && !asks_server && wanted.is_none() {
            return Ok(());
        }
        let mut tool = self.tool(ready)?;
        let runtime = owner::runtime()?;
        // What fails leaves no trace but in the log: it is counted in a copy that nobody keeps.
        let copy = tempfile::tempdir().map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to make a temporary folder").cause(error)
        })?;
        let records = runtime.block_on(async {
            let home = self.home.path();
            match self.home.database() {
                Some(database) => Records::for_shared_trial(home, database, copy.path()).await,
                None => Records::for_trial(home, copy.path()).await,
            }
        });
        let records = Arc::new(records.map_err(|error| owner::of_state(&error))?);
        let vault = owner::vault(self.home, self.ask)?;
        let settings = call::settings(self.home)?;
        let host = Host::new(settings, walls::launcher()?, vault, records);
        let called_off = interrupt::calling_off();
        let tried = runtime.block_on(async {
            let tried = async {
                if asks_server {
                    self.ask_server(&mut tool, ready, &host, &called_off).await?;
                }
                if package.smoke.is_some() {
                    self.smoke(&tool, &host, &called_off).await?;
                }
                if let Some((suite, which)) = &wanted {
                    self.test(&tool, suite, *which, &host, &called_off).await?;
                }
                Ok(())
            };
            let tried = tried.await;
            // Where it is tried it does not stay.
            host.retire(&package.canonical_id());
            host.settle().await;
            let _ = host.records().settle().await;
            tried
        });
        interrupt::nothing_runs();
        if tried.is_ok() {
            self.pass_on(&host, &runtime);
        }
        tried
    }

    /// Passes on what was found out of its implementations, so that no call finds it out again. What cannot be noted is found
    /// out then.
    fn pass_on(&self, host: &Host, runtime: &Runtime) {
        let (id, version) = (self.package.canonical_id(), self.package.semver());
        let found = runtime.block_on(host.records().state.pasts(&id, &version, now()));
        let mut broken = found
            .into_iter()
            .flatten()
            .filter_map(|(implementation, past)| Some((implementation, past.broken?)));
        let Some(first) = broken.next() else { return };
        let Ok(records) = owner::records(self.home, runtime) else { return };
        for (implementation, one) in std::iter::once(first).chain(broken) {
            let (series, told) = ((&*id, &*version, &*implementation), (&*one.why, one.is_sure));
            let _ = runtime.block_on(records.state.note_broken(series, told, one.at));
        }
    }

    /// The tests that are run before it is installed, if any.
    fn wanted(&self, ready: &Ready) -> Option<(Suite, Which)> {
        let suite = Suite::of(self.package, &ready.folder);
        let which = match self.policy.tests.on_install {
            OnInstall::Run => Which::All,
            OnInstall::Skip => Which::Promised,
            OnInstall::Never => return None,
        };
        let is_promised = suite.verify.as_ref().is_some_and(|verify| verify.on_install);
        if suite.is_empty() || (which == Which::Promised && !is_promised) {
            return None;
        }
        if which == Which::Promised
            && let Some(path) = suite.absent()
        {
            let path = line(path);
            self.printer.note(&format!("Its cases are not run: `{path}` did not come with it"));
            return None;
        }
        Some((suite, which))
    }

    /// Runs its tests, as far as they are wanted.
    async fn test(
        &self,
        tool: &Tool,
        suite: &Suite,
        which: Which,
        host: &Host,
        called_off: &CancellationToken,
    ) -> Result<(), Untried> {
        let mut tool = tool.clone();
        if let (Some(surface), true) = (&tool.surface, tool.package.actions.is_empty()) {
            let until = Instant::now() + READING;
            let actions = host::actions_of(surface, until).await.map_err(|error| {
                let message = "what its server offers cannot be read, so it is not installed";
                Untried::Smoke(failure(&error, message, &tool))
            })?;
            tool.package.actions = actions;
        }
        let approver = Arc::new(Owner::new(self.home, self.ask, None));
        let how = How {
            until: Some(Instant::now() + LONGEST),
            ..How::one_by_one(tool.root.clone(), Some(approver), called_off.clone())
        };
        let mut left_out = 0_u64;
        let cases = suite.cases().filter(|case| {
            let origin = case.as_ref().map_or_else(|error| error.origin, |case| case.origin);
            let is_wanted = which == Which::All || origin == Origin::Promised;
            // Its owner has not said that it may be tried so.
            let changes = which == Which::Promised
                && case.as_ref().is_ok_and(|case| changes_something(&tool, case));
            left_out += u64::from(is_wanted && changes);
            is_wanted && !changes
        });
        let report = prove::run(host, &tool, cases, &how, &mut |_| {}).await;
        for fallen in &report.fallen {
            self.printer.warn(&call::fallen_words(fallen));
        }
        if called_off.is_cancelled() {
            let cancelled = CallError::new(Kind::Cancelled, "it was called off");
            let message = "its tests were called off, so it is not installed";
            return Err(Untried::Failed(failure(&cancelled, message, &tool)));
        }
        if report.is_cut_short {
            let minutes = LONGEST.as_secs() / 60;
            let message = format!("its tests took over {minutes} minutes, so it is not installed");
            return Err(Untried::Smoke(Failure::new(Exit::Failed, message)));
        }
        let mut verify = suite.verify.clone();
        if left_out > 0 {
            let cases = count(left_out, "case");
            self.printer.note(&format!("{cases} that would change something: not run"));
            if let Some(verify) = &mut verify {
                verify.case_count = None;
            }
        }
        let promises = verify.map(|verify| verify.promises(&report.promised)).unwrap_or_default();
        let broken: Vec<_> = promises.iter().filter(|one| !one.is_kept).collect();
        if report.is_good_but_for_promises() && broken.is_empty() {
            let tests = count(report.total(), "test");
            self.printer.note(&format!("{tests}: {} passed", report.passed()));
            return Ok(());
        }
        let broken = broken
            .iter()
            .map(|one| format!("{} is {}, promised {}", one.name, one.found, one.expected));
        let details = failures(&report, &tool).into_iter().chain(broken);
        let (failed, all) = (report.failed(), count(report.total(), "test"));
        let message = if report.is_good_but_for_promises() {
            "it does not keep what its author promises, so it is not installed".to_owned()
        } else {
            format!("{failed} of {all} of it failed, so it is not installed")
        };
        let failure = Failure::new(Exit::Failed, message).details(details);
        Err(Untried::Smoke(
            failure.hint("`[tests] on_install = \"never\"` in your policy installs without trying"),
        ))
    }

    /// The package as it is staged, as a tool.
    fn tool(&self, ready: &Ready) -> Result<Tool, Failure> {
        let found = |path: PathBuf| {
            path.canonicalize().map_err(|error| {
                let message = format!("failed to find `{}`", path.display());
                Failure::new(Exit::Unavailable, message).cause(error)
            })
        };
        let place = found(ready.folder.clone())?;
        let mut tool = Tool {
            package: self.package.clone(),
            root: found(run_from(&place, &ready.record))?,
            brought: brought(&place, &ready.record),
            place,
            // It was let in by now, however far it is trusted.
            consent: Consent::ByCard { admitted: self.trust },
            source_trust: self.trust,
            given: Given {
                values: self.values.clone(),
                hosts: ready.record.beside.smoke.clone(),
                grants: self.grants.clone(),
            },
            surface: None,
            links: None,
            digest: None,
        };
        steps::link_one(&mut tool, &[], self.home, Printer::silent());
        Ok(tool)
    }

    /// Asks a server for everything that it offers; that is what is approved of.
    async fn ask_server(
        &self,
        tool: &mut Tool,
        ready: &mut Ready,
        host: &Host,
        called_off: &CancellationToken,
    ) -> Result<(), Untried> {
        match host.discover(tool, &Surface::Test, None, called_off).await {
            Ok(found) => {
                if let Some(surface) = found.surface {
                    pin(ready, &surface);
                    tool.surface = Some(surface);
                }
                take_actions(ready, self.package, &found.actions);
                let number = crate::commands::count(found.actions.len(), "tool");
                self.printer.note(&format!("Its server offers {number}"));
                Ok(())
            }
            // Whoever runs elsewhere may be asked later, and is not called before.
            Err(error) if may_wait(&error, self.package) => {
                let id = line(&self.package.canonical_id());
                let mut words = format!("Its server was not asked what it offers: {error}");
                if error.kind == Kind::NeedsLogin {
                    words += &format!("\n`haft login {id}` signs in");
                }
                words += &format!(
                    "\nIt is called once you have approved that: `haft approve surface {id}`"
                );
                self.printer.note(&words);
                Ok(())
            }
            Err(error) => {
                let message =
                    "its server could not be asked what it offers, so it is not installed";
                Err(Untried::Smoke(failure(&error, message, tool)))
            }
        }
    }

    async fn smoke(
        &self,
        tool: &Tool,
        host: &Host,
        called_off: &CancellationToken,
    ) -> Result<(), Untried> {
        match host.smoke(tool, called_off).await {
            Ok(smoked) if smoked.passed => {
                self.printer.note(&format!(
                    "Smoke test passed ({}, {} ms)",
                    smoked.kind,
                    smoked.took.as_millis()
                ));
                Ok(())
            }
            Ok(smoked) => Err(Untried::Smoke(failed(&smoked))),
            Err(error) => {
                let message = "its smoke test could not be run, so it is not installed";
                Err(Untried::Smoke(failure(&error, message, tool)))
            }
        }
    }
}

/// Which tests are run before a package is installed.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    All,
    /// The cases that its author wants run then.
    Promised,
}

/// How long what a server offers may be read.
const READING: Duration = Duration::from_secs(10);

/// How long the tests of a package may take before it is installed.
const LONGEST: Duration = Duration::from_mins(10);

/// Whether a case calls an action that says that it changes something.
fn changes_something(tool: &Tool, case: &Case) -> bool {
    let action = match &case.action {
        Some(name) => tool.action(name),
        None => tool.package.actions.first(),
    };
    let effects = action.and_then(|action| action.side_effects);
    matches!(effects, Some(SideEffects::Write | SideEffects::Destructive))
}

/// How many tests are told that failed.
const MOST_TOLD: usize = 20;

/// The tests that failed, and why.
fn failures(report: &Report, tool: &Tool) -> Vec<String> {
    let failed: Vec<&Ended> = report.ended.iter().filter(|one| !one.outcome.is_passed()).collect();
    let mut told: Vec<_> = failed
        .iter()
        .take(MOST_TOLD)
        .map(|one| format!("{}: {}", one.name, reasons(&one.outcome, tool).join("; ")))
        .collect();
    if failed.len() > MOST_TOLD {
        told.push(format!("and {} more", failed.len() - MOST_TOLD));
    }
    told
}

/// Whether a package has a server of its own that can be asked what it offers.
pub(crate) fn has_server(package: &Package) -> bool {
    let is_tool = |action: &Action| matches!(action.invocation, Invocation::McpTool { .. });
    package.is_server() && (package.actions.is_empty() || package.actions.iter().any(is_tool))
}

/// Pins what a server offers.
pub(crate) fn pin(ready: &mut Ready, surface: &Offered) {
    ready.record.pinned.surface = Digest::parse(surface.digest()).map(Sha256);
    ready.record.surface = Some(surface.to_value());
}

/// A package that does not say what can be called has what its server offers.
fn take_actions(ready: &mut Ready, package: &Package, actions: &[Action]) {
    if package.actions.is_empty() {
        ready.record.pinned.actions = actions.iter().map(|one| one.name.clone()).collect();
    }
}

fn may_wait(error: &CallError, package: &Package) -> bool {
    let is_elsewhere = package
        .implementations
        .iter()
        .any(|one| matches!(one.entry, Entry::McpHttp { .. } | Entry::McpTool { .. }));
    is_elsewhere && matches!(error.kind, Kind::NeedsLogin | Kind::Unavailable | Kind::TimedOut)
}

fn failed(smoked: &Smoked) -> Failure {
    let wrong = smoked.checks.iter().filter(|check| check.verdict == Verdict::Failed);
    let wrong = wrong.map(|check| {
        line(&format!("{}: expected {}, found {}", check.what, check.expected, check.found))
    });
    let printed = smoked.output.lines().map(|said| format!("  {}", line(said)));
    let printed = std::iter::once("it printed:".to_owned()).chain(printed);
    let printed = printed.filter(|_| !smoked.output.trim().is_empty());
    Failure::new(Exit::Failed, "its smoke test failed, so it is not installed")
        .details(wrong.chain(printed))
}

/// Why it could not be run, with what it tried in vain.
fn failure(error: &CallError, message: &str, tool: &Tool) -> Failure {
    let mut told = call::failure(error, &Blocked::of(error), tool);
    let cause = std::mem::replace(&mut told.message, message.to_owned());
    told.causes.insert(0, cause);
    match error.kind {
        Kind::Cancelled => {
            let message = "called off, so it is not installed";
            Failure::new(Exit::Of(interrupt::CODE), message)
        }
        Kind::NeedsLogin => told.hint("`haft login --from PATH` signs in before; --on-smoke-fail=keep-disabled keeps it, and `haft login ID` signs in"),
        _ => told,
    }
}
