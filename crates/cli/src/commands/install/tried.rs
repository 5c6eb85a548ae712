//! The smoke test of a package that is staged: what fails it leaves no trace.

use std::sync::Arc;

use host::smoke::Verdict;
use host::{CallError, CancellationToken, Given, Host, Records, Smoked, Tool};
use install::Ready;
use install::home::FILES;
use manifest::model::{Package, Trust};
use policy::Consent;

use super::inputs::Values;
use crate::ask::Ask;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::printer::{Printer, indented, line};
use crate::{interrupt, owner, walls};

/// Runs it inside the walls, as the package would be run; a package without one passes.
pub(super) fn check(
    ready: &Ready,
    package: &Package,
    (trust, values): (Trust, &Values),
    home: &Home,
    ask: Ask,
    printer: Printer,
) -> Result<(), Failure> {
    if package.smoke.is_none() {
        return Ok(());
    }
    let folder = ready.draft.folder().join(FILES);
    let root = folder.canonicalize().map_err(|error| {
        Failure::new(Exit::Unavailable, format!("failed to find `{}`", folder.display()))
            .cause(error)
    })?;
    let tool = Tool {
        package: package.clone(),
        place: root.clone(),
        root,
        // It was let in by now, however far it is trusted.
        consent: Consent::ByCard { admitted: trust },
        source_trust: trust,
        given: Given {
            values: values.clone(),
            hosts: ready.record.beside.smoke.clone(),
            ..Given::default()
        },
        surface: None,
    };
    let runtime = owner::runtime()?;
    // What fails leaves no trace but in the log: it is counted in a copy that nobody keeps.
    let copy = tempfile::tempdir().map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to make a temporary folder").cause(error)
    })?;
    let records = runtime.block_on(Records::for_trial(home.path(), copy.path()));
    let records = Arc::new(records.map_err(|error| owner::of_state(&error))?);
    let vault = owner::vault(home, ask)?;
    let host = Host::new(super::super::call::settings(home)?, walls::launcher()?, vault, records);
    let called_off = CancellationToken::new();
    let token = called_off.clone();
    interrupt::end_first(move || token.cancel());
    let smoked = runtime.block_on(host.smoke(&tool, &called_off));
    runtime.block_on(host.settle());
    let _ = runtime.block_on(host.records().settle());
    interrupt::nothing_runs();
    match smoked {
        Ok(smoked) if smoked.passed => {
            printer.note(&format!(
                "Smoke test passed ({}, {} ms)",
                smoked.kind,
                smoked.took.as_millis()
            ));
            Ok(())
        }
        Ok(smoked) => Err(failed(&smoked)),
        Err(error) => Err(untried(&error)),
    }
}

fn failed(smoked: &Smoked) -> Failure {
    let wrong = smoked.checks.iter().filter(|check| check.verdict == Verdict::Failed);
    let wrong = wrong.map(|check| {
        line(&format!("{}: expected {}, found {}", check.what, check.expected, check.found))
    });
    let printed = smoked.output.trim_end();
    let printed = (!printed.is_empty()).then(|| format!("it printed:\n{}", indented(printed)));
    Failure::new(Exit::Failed, "its smoke test failed, so it is not installed")
        .details(wrong.chain(printed))
}

fn untried(error: &CallError) -> Failure {
    let exit = if error.kind.is_refusal() { Exit::Denied } else { Exit::Failed };
    Failure::new(exit, "its smoke test could not be run, so it is not installed")
        .cause(line(&error.to_string()))
}
