//! One call, from what is wanted to what is told.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

use host::{Call, CancellationToken, Host, Output, Records, Said, Warmth};
use policy::Surface;
use tokio::runtime::Runtime;

use super::CallArgs;
use super::blocked::blocked_words;
use super::told::{Unmade, failed, fallen_words, in_json, show};
use super::violation;
use super::wanted::{Wanted, choose, discover};
use crate::approver::Owner;
use crate::ask::Ask;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::load::Loading;
use crate::policy_file::NO_POLICY;
use crate::printer::{Printer, check_output, line};
use crate::progress::{self, Watcher};
use crate::tools::{self, Found};
use crate::{installed, interrupt, measured, owner, steps, walls};

pub(in crate::commands) use crate::owner::settings;

/// What is said when somebody calls it off.
const CANCELLED: &str = "cancelled";

pub(super) fn make(
    args: &CallArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Result<Exit, Unmade> {
    // What a call does cannot be undone, and its result would be gone.
    check_output()?;
    let Ready { runtime, host, mut found } = Ready::new(&args.wanted, home, ask, printer)
        .inspect_err(|failure| note_refusal(failure, &args.wanted, home, printer))?;
    let began = Instant::now();
    let called_off = CancellationToken::new();
    interrupt::end_first(calling_off(&called_off));
    let discovering = discover(&mut found.tools, &args.wanted, &host, &called_off);
    let discovered = runtime.block_on(discovering);
    runtime.block_on(host.settle());
    // It may end here; what cannot be counted now is counted with the call.
    let _ = runtime.block_on(host.records().settle());
    if called_off.is_cancelled() {
        printer.note(CANCELLED);
        return Ok(Exit::Of(interrupt::CODE));
    }
    let unasked = discovered?;
    let typed = owner::vault(home, ask)?.waited();
    let asked_for = began.elapsed().saturating_sub(typed);
    let (tool, action) = choose(&found, args.wanted.name(), &unasked)?;
    let records = match (json_wanted, std::io::stdout().is_terminal()) {
        (true, _) => progress::Records::Nowhere,
        (false, true) => progress::Records::Terminal,
        (false, false) => progress::Records::Output,
    };
    let notes = std::io::stderr().is_terminal().then_some(printer);
    let watcher = Watcher::new(notes, records, called_off.clone());
    let approver = Arc::new(Owner::new(home, ask, args.approve.then_some(Said::Once)));
    let call = Call {
        approver: Some(Arc::<Owner>::clone(&approver)),
        progress: Some(Arc::<Watcher>::clone(&watcher)),
        called_off,
        ..args.wanted.call(&action, Surface::Terminal)?
    };
    let warmth = if args.cold { Warmth::Cold } else { Warmth::Warm };
    let host = if args.no_cache { host.without_cache() } else { host };
    let mut made = runtime.block_on(host.call(tool, &call, warmth));
    runtime.block_on(host.settle());
    let settled = made.violation.take();
    let mut consequence = settled.map(|one| violation::act(&one, tool, home, ask, printer));
    for (tool, one) in made.step_violations.drain(..) {
        let mut told = violation::act(&one, &tool, home, ask, printer);
        told["package"] = tool.package.canonical_id().into();
        // All of them are done something about; the first is told.
        consequence.get_or_insert(told);
    }
    interrupt::nothing_runs();
    if let Err(error) = runtime.block_on(host.records().settle()) {
        made.unwritten.push(host::records::whole(&error));
    }
    measured::watch(host.records(), &runtime, printer);
    // Where that is why it was not made, its error says so.
    if made.reply.as_ref().is_err_and(|error| error.details["unwritten"] == true) {
        made.unwritten.clear();
    }
    for fault in &made.unwritten {
        printer.alarm(&format!("the call could not be written down: {}", line(fault)));
    }
    let fallen = made.fallen.iter().filter(|_| !json_wanted);
    fallen.for_each(|one| printer.warn(&fallen_words(one)));
    // Told to stop, or nobody reads its records any more.
    if call.called_off.is_cancelled() {
        // A question may still wait for its answer, and nobody waits for the question.
        runtime.shutdown_background();
        if json_wanted {
            made.took += asked_for;
            in_json(
                made,
                consequence,
                approver.take_failure(),
                tool,
                args.wanted.place(tool),
                home,
                printer,
            )?;
        }
        interrupt::restore_terminal();
        printer.note(CANCELLED);
        return Ok(Exit::Of(interrupt::CODE));
    }
    if json_wanted {
        made.took += asked_for;
        return Ok(in_json(
            made,
            consequence,
            approver.take_failure(),
            tool,
            args.wanted.place(tool),
            home,
            printer,
        )?);
    }
    if let Some(failure) = approver.take_failure() {
        return Err(failure.into());
    }
    let output =
        made.reply.map_err(|error| failed(&error, &made.blocked, tool, args.wanted.place(tool)))?;
    for one in &made.blocked {
        printer.note(&format!("hint: {}", blocked_words(one, tool)));
    }
    if matches!(output, Output::Records(_)) && watcher.has_shown() {
        return Ok(Exit::Done);
    }
    Ok(show(&output, printer)?)
}

/// Writes down a call that is not made because there is no policy to ask, where it can be told what it would be.
fn note_refusal(failure: &Failure, wanted: &Wanted, home: &Home, printer: Printer) {
    if !failure.is_kind(NO_POLICY) {
        return;
    }
    let loading = Loading { dialect: wanted.dialect, id: wanted.id.as_deref() };
    let Ok(found) = find(wanted, loading, home, Printer::silent()) else { return };
    let Ok((tool, action)) = choose(&found, wanted.name(), &[]) else { return };
    let Ok(call) = wanted.call(&action, Surface::Terminal) else { return };
    let noted = host::records::refuse(home.path(), tool, &call, &failure.message, NO_POLICY);
    if let Err(error) = noted {
        printer.alarm(&format!("the call could not be written down: {}", line(&error.to_string())));
    }
}

/// The tools that are meant: those at a path, or an installed one.
fn find(
    wanted: &Wanted,
    loading: Loading<'_>,
    home: &Home,
    printer: Printer,
) -> Result<Found, Failure> {
    let with = steps::with(&wanted.with, home, printer)?;
    match &wanted.from {
        Some(from) => {
            let mut found = tools::at(from, loading, home, printer)?;
            steps::link_all(&mut found, &with, home, printer);
            Ok(found.keeping(with))
        }
        None => {
            let found = installed::found_with(wanted.package()?, &with, home, printer)?;
            Ok(found.keeping(with))
        }
    }
}

/// What calls a call off.
fn calling_off(token: &CancellationToken) -> impl FnOnce() + Send + 'static {
    let token = token.clone();
    move || token.cancel()
}

/// All that a call needs.
pub(super) struct Ready {
    pub(super) runtime: Runtime,
    pub(super) host: Host,
    pub(super) found: Found,
}

impl Ready {
    /// For a call that is made.
    pub(super) fn new(
        wanted: &Wanted,
        home: &Home,
        ask: Ask,
        printer: Printer,
    ) -> Result<Self, Failure> {
        let find = |loading: Loading<'_>| find(wanted, loading, home, printer);
        Self::with(wanted, home, ask, find, owner::records)
    }

    /// For a call that is only looked at: nothing is put into the home.
    pub(super) fn to_look(
        wanted: &Wanted,
        home: &Home,
        ask: Ask,
        printer: Printer,
    ) -> Result<Self, Failure> {
        let find = |loading: Loading<'_>| {
            let Some(from) = &wanted.from else { return find(wanted, loading, home, printer) };
            let with = steps::with(&wanted.with, home, printer)?;
            let mut found = tools::to_look(from, loading, printer)?;
            steps::link_all(&mut found, &with, home, printer);
            Ok(found.keeping(with))
        };
        Self::with(wanted, home, ask, find, owner::records_to_look)
    }

    fn with(
        wanted: &Wanted,
        home: &Home,
        ask: Ask,
        find: impl FnOnce(Loading<'_>) -> Result<Found, Failure>,
        records: fn(&Home, &Runtime) -> Result<Arc<Records>, Failure>,
    ) -> Result<Self, Failure> {
        wanted.check_order()?;
        let launcher = walls::launcher()?;
        let found = find(Loading { dialect: wanted.dialect, id: wanted.id.as_deref() })?;
        if let Some(from) = &wanted.from {
            found.check_id(wanted.id.as_deref(), from)?;
        }
        let settings = settings(home)?;
        let runtime = owner::runtime()?;
        let records = records(home, &runtime)?;
        let vault = owner::vault(home, ask)?;
        // What is committed is kept; to close the database as well would take longer than the call.
        std::mem::forget(Arc::clone(&records));
        let host = Host::new(settings, launcher, vault, records);
        Ok(Self { runtime, host, found })
    }
}
