//! `haft metrics`: how often, how fast and how well tools were called here, and what got worse.

mod beside;
mod columns;
mod plot;
mod told;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use host::Records;
use host::records::{now, whole};
use ledger::state::StateErrorKind;
use ledger::state::metrics::{Metrics, Span};
use ledger::state::regressions::Regression;
use ledger::state::tested::Tested;
use ledger::{State, StateError};
use manifest::shape::suggest;
use prove::measured::bare;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::{installed, output, owner, shell};

#[derive(Args, Debug)]
#[command(
    after_help = "Calls that were refused, called off or asked for wrongly are no failures of the tool; latencies are those of calls that went well. See docs/metrics-and-rank.md.\n\nExamples:\n  haft metrics\n  haft metrics demo.echo --plot echo.svg\n  haft metrics demo.echo --write"
)]
pub(crate) struct MetricsArgs {
    /// The package, with its dialect or without; without one, all
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Draw its calls and latencies over time into a new file
    #[arg(long, value_name = "FILE", requires = "id")]
    plot: Option<PathBuf>,
    /// Write what was measured of the installed version beside it, as metadata.json
    #[arg(long, requires = "id")]
    write: bool,
}

/// All that is known of one package.
pub(super) struct Known {
    pub(super) package: String,
    /// Series by series.
    pub(super) metrics: Vec<Metrics>,
    pub(super) spans: Vec<Span>,
    pub(super) tested: Vec<Tested>,
    /// The newest first.
    pub(super) regressions: Vec<Regression>,
}

impl Known {
    /// Everything together.
    pub(super) fn total(&self) -> Metrics {
        joined(self.metrics.iter())
    }
}

/// Metrics of several series together.
pub(super) fn joined<'m>(metrics: impl Iterator<Item = &'m Metrics>) -> Metrics {
    metrics.fold(Metrics::default(), |mut all, one| {
        all.join(one);
        all
    })
}

pub(crate) fn run(args: &MetricsArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let runtime = owner::runtime()?;
    let records = owner::records_to_look(home, &runtime)?;
    let Some(name) = &args.id else {
        let read = async {
            let metrics = records.state.metrics(None).await?;
            Ok((metrics, records.state.regressions(None).await?))
        };
        let (metrics, regressions) =
            runtime.block_on(read).map_err(|error: StateError| owner::of_state(&error))?;
        if json_wanted {
            printer.json(&told::all_in_json(&metrics, &regressions))?;
        } else if metrics.is_empty() {
            printer.note("nothing was called here yet");
        } else {
            printer.result(&told::all(&metrics, &regressions))?;
        }
        return Ok(Exit::Done);
    };
    let package = meant(name, &records.state, &runtime, home, printer)?;
    let known = look(&package, &records, &runtime, printer)?;
    if let Some(path) = &args.plot {
        let drawn = plot::draw(&known, now());
        output::keep(path, drawn.as_bytes())?;
    }
    let written = args.write.then(|| beside::write(&known, home)).transpose()?;
    if json_wanted {
        let mut document = told::in_json(&known);
        if let Some(path) = &args.plot {
            document["plot"] = json!(path.to_string_lossy());
        }
        if let Some(path) = &written {
            document["metadata"] = json!(path.to_string_lossy());
        }
        printer.json(&document)?;
        return Ok(Exit::Done);
    }
    if known.metrics.is_empty() {
        printer.note(&format!("no call of `{}` was counted yet", line(&known.package)));
    } else {
        printer.result(&told::one(&known, now()))?;
    }
    for path in args.plot.iter().chain(&written) {
        printer.note(&format!("Wrote {}", line(&path.display().to_string())));
    }
    Ok(Exit::Done)
}

/// The package that a name stands for: one that was called here, or else one that is installed.
fn meant(
    name: &str,
    state: &State,
    runtime: &Runtime,
    home: &Home,
    printer: Printer,
) -> Result<String, Failure> {
    let packages = runtime.block_on(state.packages()).map_err(|error| owner::of_state(&error))?;
    if packages.iter().any(|one| one == name) {
        return Ok(name.to_owned());
    }
    let called: Vec<_> = packages.iter().filter(|one| bare(one) == bare(name)).collect();
    match called.as_slice() {
        [one] => Ok((*one).clone()),
        [] => match installed::named_around(name, home, printer) {
            Ok(named) => Ok(named.id),
            Err(failure) => Err(match suggest(name, packages.iter().map(|one| bare(one))) {
                Some(near) => failure.hint(format!("did you mean `{}`?", line(near))),
                None => failure,
            }),
        },
        several => {
            let ids: Vec<_> = several.iter().map(|one| shell::word(one)).collect();
            let message = format!("`{}` is the name of {} packages", line(name), ids.len());
            Err(Failure::new(Exit::Conflict, message).hint(format!("name one: {}", ids.join(", "))))
        }
    }
}

/// All that is known of a package, once somebody has looked whether it got worse.
fn look(
    package: &str,
    records: &Arc<Records>,
    runtime: &Runtime,
    printer: Printer,
) -> Result<Known, Failure> {
    let state = &records.state;
    let read = async {
        let metrics = state.metrics(Some(package)).await?;
        let spans = state.over_time(package, None).await?;
        let tested = state.tested(Some(package)).await?;
        let regressions = if metrics.is_empty() {
            Vec::new()
        } else {
            match prove::watch::watch(state, &records.audit, package, now()).await {
                Ok(seen) => {
                    if let Some(error) = seen.unwritten {
                        let why = line(&whole(&error));
                        printer.alarm(&format!("it could not be written down: {why}"));
                    }
                    seen.regressions
                }
                // Where nothing can be written, what is known can still be told.
                Err(error) if error.kind() == StateErrorKind::Unavailable => {
                    state.regressions(Some(package)).await?
                }
                Err(error) => return Err(error),
            }
        };
        Ok(Known { package: package.to_owned(), metrics, spans, tested, regressions })
    };
    runtime.block_on(read).map_err(|error: StateError| owner::of_state(&error))
}
