//! One round: all tests of what was named, run once over.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use host::{CallError, CancellationToken, Host, Said, Tool};
use ledger::state::tested::Tested as Noted;
use policy::Surface;
use prove::{Ended, How, Outcome, Promise, Report, Suite};

use super::taped::Taping;
use super::{TestArgs, junit, told};
use crate::approver::Owner;
use crate::ask::Ask;
use crate::commands::call::{act, failure, fallen_words, offered, settings};
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::load::Loading;
use crate::printer::{Printer, line};
use crate::tools::{self, Found};
use crate::{disk, fetch, installed, interrupt, measured, owner, steps, walls};

/// How all tests went.
pub(super) struct Round {
    pub(super) tested: Vec<Tested>,
    pub(super) took: Duration,
}

/// How the tests of one package went.
pub(super) struct Tested {
    pub(super) tool: Tool,
    pub(super) report: Report,
    pub(super) promises: Vec<Promise>,
    /// The implementation that they were run by, where one was named.
    pub(super) by: Option<String>,
}

impl Tested {
    /// Whether every test passed that has to.
    pub(super) fn is_good(&self) -> bool {
        self.report.is_good_but_for_promises() && self.promises.iter().all(|one| one.is_kept)
    }

    /// What is noted of it, to be ranked by.
    fn noted(&self) -> Noted {
        let is_flaky = |one: &&Ended| matches!(one.outcome, Outcome::Flaky { .. });
        let flaky = self.report.ended.iter().filter(is_flaky).count();
        Noted {
            package: self.tool.package.canonical_id(),
            version: self.tool.counted_version(),
            total: self.report.total() as u64,
            passed: self.report.passed() as u64,
            flaky: flaky as u64,
            latency: self.report.latency(),
            at: host::records::now(),
        }
    }
}

/// What is tested.
struct Subject {
    found: Found,
    /// Hosts that a smoke test may reach: those on a card that was accepted.
    smoke_hosts: Vec<String>,
}

impl Round {
    /// Runs the tests. Their results are printed as they come, unless they are wanted in JSON.
    pub(super) fn run(
        args: &TestArgs,
        home: &Home,
        ask: Ask,
        json_wanted: bool,
        printer: Printer,
    ) -> Result<Self, Failure> {
        let began = Instant::now();
        let taping = Taping::begin(args)?;
        let subject = find(args, home, printer)?;
        let launcher = walls::launcher()?;
        let runtime = owner::runtime()?;
        let records = owner::records(home, &runtime)?;
        let vault = owner::vault(home, ask)?;
        let host = taping.put_before(Host::new(settings(home)?, launcher, vault, records));
        let called_off = interrupt::calling_off();
        let folder = std::env::current_dir().map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to find this folder").cause(error)
        })?;
        let approver = Arc::new(Owner::new(home, ask, args.approve.then_some(Said::Once)));
        let how = How {
            jobs: args.jobs(),
            calls: args.calls(),
            only: args.only.clone(),
            ..How::one_by_one(folder, Some(Arc::<Owner>::clone(&approver)), called_off)
        };
        let telling = Telling { json_wanted, is_one_of_several: subject.found.tools.len() > 1 };
        let mut tested = Vec::new();
        let ran = runtime.block_on(async {
            for tool in &subject.found.tools {
                for implementation in implementations(args, tool, &host).await? {
                    let how = How { implementation, ..how.clone() };
                    let ran = one(tool, &subject.smoke_hosts, &host, &how, telling, printer);
                    tested.push(ran.await?);
                }
            }
            Ok::<_, Failure>(())
        });
        runtime.block_on(host.settle());
        interrupt::nothing_runs();
        if let Err(error) = runtime.block_on(host.records().settle()) {
            let why = line(&error.to_string());
            printer.alarm(&format!("the calls could not be counted: {why}"));
        }
        measured::watch(host.records(), &runtime, printer);
        if ran.is_ok() && args.only.is_empty() {
            let mut noted: Vec<String> = Vec::new();
            for one in tested.iter().filter(|one| one.report.total() > 0) {
                // What is called is the first of all, and not one that somebody names.
                let id = one.tool.package.canonical_id();
                if noted.contains(&id) || args.implementation.as_deref().is_some_and(|by| by != ALL)
                {
                    continue;
                }
                noted.push(id);
                let noted = runtime.block_on(host.records().state.note_tests(&one.noted()));
                if let Err(error) = noted {
                    printer.alarm(&format!(
                        "how they went could not be noted: {}",
                        line(&error.to_string())
                    ));
                }
            }
        }
        // A question may still wait for its answer, and nobody waits for the question.
        runtime.shutdown_background();
        if interrupt::was_told_to_stop() {
            return Err(interrupt::cancelled());
        }
        ran?;
        for one in &tested {
            if let Some(violation) = &one.report.violation {
                act(violation, &one.tool, home, ask, printer);
            }
            for (tool, violation) in &one.report.step_violations {
                act(violation, tool, home, ask, printer);
            }
            for fallen in &one.report.fallen {
                printer.warn(&fallen_words(fallen));
            }
            if let Some(fault) = &one.report.unwritten {
                printer.alarm(&format!("a call could not be written down: {}", line(fault)));
            }
        }
        if let Some(failure) = approver.take_failure() {
            return Err(failure);
        }
        let round = Self { tested, took: began.elapsed() };
        round.check_not_empty(args)?;
        taping.end(printer)?;
        if !json_wanted {
            printer.result(&told::totals(&round, printer))?;
        }
        if let Some(file) = &args.junit {
            junit::write(file, &round)?;
        }
        Ok(round)
    }

    /// Whether every test passed that has to.
    pub(super) fn is_good(&self) -> bool {
        self.tested.iter().all(Tested::is_good)
    }

    /// Refuses to say that all is well where nothing was looked at.
    fn check_not_empty(&self, args: &TestArgs) -> Result<(), Failure> {
        if self.tested.iter().any(|one| one.report.total() > 0) {
            return Ok(());
        }
        let what = line(&args.what);
        if args.only.is_empty() {
            return Err(Failure::new(Exit::NotFound, format!("`{what}` has no tests"))
                .hint("a test is a file `tests/NAME.test.json`; testing.md says what is in it"));
        }
        let wanted: Vec<_> = args.only.iter().map(|name| format!("`{}`", line(name))).collect();
        let message = format!("no test of `{what}` is called {}", wanted.join(" or "));
        Err(Failure::new(Exit::NotFound, message).hint("without --only all are run"))
    }
}

/// The word for every implementation that runs here.
const ALL: &str = "all";

/// The implementations that tests are run by, one after the other; none stands for what a call would choose.
async fn implementations(
    args: &TestArgs,
    tool: &Tool,
    host: &Host,
) -> Result<Vec<Option<String>>, Failure> {
    let ways = match &args.implementation {
        Some(named) if named == ALL => host.ways(tool).await,
        None => return Ok(vec![None]),
        Some(named) => {
            let ids: Vec<_> = tool.package.implementations.iter().map(|one| &*one.id).collect();
            if ids.contains(&&**named) {
                return Ok(vec![Some(named.clone())]);
            }
            let (id, named) = (line(&tool.package.id), line(named));
            let message = format!("`{id}` has no implementation `{named}`");
            let there = line(&ids.join(", "));
            let hint = match ids.len() {
                0 => "it is made of other tools".to_owned(),
                _ => format!("there are {there}, and `{ALL}`"),
            };
            return Err(Failure::invalid(message).hint(hint));
        }
    };
    let ways = ways.map_err(|error| failure(&error, &error.blocked, tool))?;
    let runs = ways.into_iter().filter(|one| one.place.is_some());
    let all: Vec<_> = runs.map(|one| Some(one.implementation)).collect();
    // A chain, or what nothing of runs here: a call says so.
    Ok(if all.is_empty() { vec![None] } else { all })
}

/// How results are told.
#[derive(Clone, Copy)]
struct Telling {
    json_wanted: bool,
    is_one_of_several: bool,
}

/// Runs the tests of one package.
async fn one(
    tool: &Tool,
    smoke_hosts: &[String],
    host: &Host,
    how: &How,
    telling: Telling,
    printer: Printer,
) -> Result<Tested, Failure> {
    let mut tool = tool.clone();
    let suite = Suite::of(&tool.package, tool.folder());
    let mut unprinted = None;
    let mut is_first = true;
    let shown = tool.clone();
    let mut tell = |ended: &Ended| {
        if telling.json_wanted || prove::run::is_called_off(&ended.outcome) {
            return;
        }
        let by = how.implementation.as_deref();
        let head = is_first.then(|| told::head(&shown, telling.is_one_of_several, by));
        is_first = false;
        let row = told::row(ended, &shown, printer);
        let written = printer.result(&format!("{}{row}", head.unwrap_or_default()));
        unprinted = unprinted.take().or(written.err());
    };
    let mut smoked = None;
    if tool.package.smoke.is_some() && how.means(prove::run::SMOKE, prove::run::SMOKE) {
        let mut tried = tool.clone();
        tried.given.hosts = smoke_hosts.to_vec();
        let ended = prove::smoke(host, &tried, how).await;
        tell(&ended);
        smoked = Some(ended);
    }
    let mut report = if suite.is_empty() {
        Report::default()
    } else {
        discover(&mut tool, host, &how.called_off)
            .await
            .map_err(|error| failure(&error, &error.blocked, &tool))?;
        prove::run(host, &tool, suite.cases(), how, &mut tell).await
    };
    if let Some(ended) = smoked {
        report.add_first(ended);
    }
    if let Some(failure) = unprinted {
        return Err(failure);
    }
    // Of some of the cases nothing was promised.
    let verify = suite.verify.filter(|_| how.only.is_empty());
    let promises = verify.map(|verify| verify.promises(&report.promised)).unwrap_or_default();
    Ok(Tested { tool, report, promises, by: how.implementation.clone() })
}

/// Asks a server what it has to be called, where its package does not say.
pub(in crate::commands) async fn discover(
    tool: &mut Tool,
    host: &Host,
    called_off: &CancellationToken,
) -> Result<(), CallError> {
    if tool.package.is_server() && tool.package.actions.is_empty() {
        tool.package.actions = offered(tool, &Surface::Test, None, host, called_off).await?;
    }
    Ok(())
}

/// What is to be tested: an installed package, or what lies at a path.
fn find(args: &TestArgs, home: &Home, printer: Printer) -> Result<Subject, Failure> {
    let (path, smoke_hosts) = (Path::new(&args.what), Vec::new());
    let with = steps::with(&args.with, home, printer)?;
    if fetch::is_id(&args.what) {
        let found = installed::found_with(&args.what, &with, home, printer).map_err(|failure| {
            if path.is_dir() && failure.exit == Exit::NotFound {
                failure.hint(format!("`./{}` is the folder of that name", line(&args.what)))
            } else {
                failure
            }
        })?;
        let smoke_hosts = installed::hosts_of_smoke(&args.what, home, Printer::silent())?;
        return Ok(Subject { found: found.keeping(with), smoke_hosts });
    }
    let loading = Loading { dialect: args.dialect, id: args.id.as_deref() };
    // One folder is one package: what lies among its tests is not looked at before it is run.
    let manifest = if path.is_dir() { disk::manifest_in(path).ok() } else { None };
    let mut found = tools::at(manifest.as_deref().unwrap_or(path), loading, home, printer)?;
    found.check_id(args.id.as_deref(), path)?;
    steps::link_all(&mut found, &with, home, printer);
    Ok(Subject { found: found.keeping(with), smoke_hosts })
}

/// Whether an outcome is of a call that could not be made as it is, for want of the owner's word.
pub(super) fn needs_word(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NoAnswer(error) if error.kind.code() == "needs_approval")
}
