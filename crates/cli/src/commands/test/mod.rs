//! `haft test`: the tests of a package, run inside the walls by the path of every call.

mod junit;
mod round;
mod taped;
mod told;
mod watch;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;
use manifest::dialect::Dialect;

use crate::ask::Ask;
use crate::exit::{Exit, Outcome};
use crate::home::Home;
use crate::printer::{Printer, check_output};

use round::Round;

pub(super) use round::discover;
pub(super) use told::{json_of, reasons};

/// How many tests are run at a time, unless somebody says otherwise.
const JOBS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);

#[derive(Args, Debug)]
#[command(
    after_help = "What is run: the tests that the manifest lists, or those in `tests`; the smoke test and the cases of `verify`, where there are any. Every call has the walls, the grants and the approvals of any other, and is written down as one of a test.\nIt ends with 0 when all pass, and with 1 when one does not. A test that does not always end the same is `flaky`, and has not passed.\n\nExamples:\n  haft test demo.echo\n  haft test ./echo --only greeting --repeat 5\n  haft test ./weather --record weather.tape\n  haft test ./weather --replay weather.tape --junit results.xml"
)]
pub(crate) struct TestArgs {
    /// The id of an installed package, or what is not installed: a folder, an archive, a bundle, a manifest
    #[arg(value_name = "ID|PATH")]
    what: String,
    /// Tools that the steps of a chain may call without being installed, at this path; may be repeated
    #[arg(long, value_name = "PATH")]
    with: Vec<PathBuf>,
    /// Run only tests whose name or path contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Run as many at a time [default: 4; 1 with a recording]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64), conflicts_with_all = ["record", "replay"])]
    jobs: Option<u8>,
    /// Call each so often: one that does not always end the same is flaky
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Run them by this implementation and no other, or by `all` that run here, one after the other
    #[arg(long, value_name = "ID|all")]
    implementation: Option<String>,
    /// Approve the calls that need your word
    #[arg(long)]
    approve: bool,
    /// Write the results as JUnit XML too, over what is there
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Run them again whenever a file changes, until you end it
    #[arg(long, conflicts_with = "record")]
    watch: bool,
    /// Write down what servers answer to HTTP tools, without secrets, over the last recording
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Answer HTTP tools from a recording, and ask no server
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// The dialect, when it is not to be recognised
    #[arg(long, value_name = "NAME", value_parser = crate::commands::dialect)]
    dialect: Option<Dialect>,
    /// The id of a tools.json [default: its folder's name]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

impl TestArgs {
    fn jobs(&self) -> NonZeroUsize {
        match self.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into())) {
            Some(jobs) => jobs,
            // The same request may have had several answers, in order.
            None if self.record.is_some() || self.replay.is_some() => NonZeroUsize::MIN,
            None => JOBS,
        }
    }

    fn calls(&self) -> NonZeroU32 {
        NonZeroU32::new(self.repeat).unwrap_or(NonZeroU32::MIN)
    }
}

pub(crate) fn run(
    args: &TestArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    check_output()?;
    let round = || Round::run(args, home, ask, json_wanted, printer);
    if args.watch {
        return watch::run(args, round, json_wanted, printer);
    }
    let round = round()?;
    if json_wanted {
        printer.json(&round.json())?;
    }
    Ok(if round.is_good() { Exit::Done } else { Exit::Failed })
}
