//! `haft chain`: what chains of tools do, and which of two is better.

mod compare;
mod drawn;
mod look;
pub(super) mod proof;
mod show;
pub(super) mod subject;
mod suggest;

use clap::{Args, Subcommand};

use crate::ask::Ask;
use crate::exit::Outcome;
use crate::home::Home;
use crate::printer::Printer;

#[derive(Args, Debug)]
#[command(
    after_help = "A chain is a package whose manifest has `chain`: steps that call other tools. `haft call` runs one. See docs/chains.md.\n\nExamples:\n  haft chain show demo.text.report\n  haft chain show ./pipeline --with ./tools --svg pipeline.svg\n  haft chain compare demo.text.report@1.0.0 demo.text.report --repeat 20"
)]
pub(crate) struct ChainArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Show the steps of a chain, what flows where, and which tools are missing; nothing runs
    Show(show::ShowArgs),
    /// Run the tests of two chains, or of two versions, on both: speed, correctness and cost
    Compare(compare::CompareArgs),
    /// Find chains in what was called: sequences in which one result became the next input
    Suggest(suggest::SuggestArgs),
}

pub(crate) fn run(
    args: &ChainArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    match &args.what {
        What::Show(args) => show::run(args, home, json_wanted, printer),
        What::Compare(args) => compare::run(args, home, ask, json_wanted, printer),
        What::Suggest(args) => suggest::run(args, home, json_wanted, printer),
    }
}
