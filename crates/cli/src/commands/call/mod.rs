//! `haft call`: one call of a tool, inside the walls.

mod blocked;
mod explained;
mod made;
mod told;
mod values;
mod violation;
mod wanted;

use std::time::Instant;

use clap::Args;
use policy::Surface;

use crate::ask::Ask;
use crate::exit::Outcome;
use crate::home::Home;
use crate::printer::Printer;

pub(super) use blocked::granting;
pub(crate) use explained::explain;
pub(super) use made::settings;
pub(crate) use told::remedies;
pub(super) use told::{exit_of, failure, fallen_words, login_hint};
pub(crate) use violation::act;
pub(crate) use wanted::Wanted;
pub(super) use wanted::offered;

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that is typed")]
#[command(
    after_help = "The result goes to standard output, everything else to standard error; a call that fails leaves standard output empty, unless --json is given.\n\nExamples:\n  haft call --from examples/capability/greet '{\"name\":\"Ann\"}'\n  haft call --from examples/agentcli/tools.json get_time '{\"timezone\":\"UTC\"}'\n  haft call --from examples/install-manifest/word-count count '{\"text\":\"one two\"}'\n  haft call --from examples/jumith/dice.bundle.json demo.dice --explain"
)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    wanted: Wanted,
    /// Approve this one call
    #[arg(long)]
    approve: bool,
    /// Show what would be run with this input, and why it may, and run nothing
    #[arg(long)]
    explain: bool,
    /// Start everything anew for this call
    #[arg(long)]
    cold: bool,
    /// Make every step of a chain, whatever it answered before
    #[arg(long)]
    no_cache: bool,
}

pub(crate) fn run(
    args: &CallArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let began = Instant::now();
    let made = if args.explain {
        explain(&args.wanted, Surface::Terminal, home, ask, json_wanted, printer)
    } else {
        made::make(args, home, ask, json_wanted, printer)
    };
    match made {
        Ok(exit) => Ok(exit),
        Err(mut unmade) if json_wanted => {
            unmade.failure = home.place(unmade.failure);
            let exit = unmade.failure.exit;
            printer.json(&told::document(Err(unmade.to_value()), began.elapsed(), 0, None, &[]))?;
            Ok(exit)
        }
        Err(unmade) => Err(unmade.failure),
    }
}
