//! `haft yank`: a published version that should not be chosen any more.

use clap::Args;
use registry::Yank;
use registry::client::Remote;
use registry::read::Checked;
use serde_json::json;

use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::owner;
use crate::printer::{Printer, line};
use crate::remote::{self, Known, Which};

#[derive(Args, Debug)]
#[command(
    after_help = "The version is not found any more and never the latest; who has it in a lock can still download it, and is told the reason.\n\nExamples:\n  haft yank demo.echo@0.1.0 --reason \"loses data\"\n  haft yank demo.echo@0.1.0 --reason \"sends keys to its author\" --security\n  haft yank demo.echo@0.1.0 --undo"
)]
pub(crate) struct YankArgs {
    /// The version, as ID@VERSION
    #[arg(value_name = "ID@VERSION", value_parser = version)]
    version: (String, String),
    /// Why, for everybody to read
    #[arg(long, value_name = "TEXT", default_value = "", conflicts_with = "undo")]
    reason: String,
    /// It endangers those who have it: they are told so, wherever they are told that it was taken back
    #[arg(long, conflicts_with = "undo")]
    security: bool,
    /// Offer it again
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    which: Which,
}

/// Reads `ID@VERSION`; an id may hold an `@` itself.
pub(super) fn version(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('@') {
        Some((id, version)) if !id.is_empty() && !version.is_empty() => {
            Ok((id.to_owned(), version.to_owned()))
        }
        _ => Err("write ID@VERSION, for example demo.echo@0.1.0".to_owned()),
    }
}

pub(crate) fn run(
    args: &YankArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let (id, version) = &args.version;
    let yank = Yank { reason: args.reason.clone(), security: args.security };
    yank.check().map_err(|fault| Failure::invalid(fault.to_string()))?;
    let remote = Known::new(home, ask)?.one(&args.which)?;
    let yank = (!args.undo).then_some(&yank);
    let runtime = owner::runtime()?;
    let was_offered = args.undo && runtime.block_on(is_offered(&remote, id, version));
    let yanked = runtime.block_on(remote.yank(id, version, yank));
    yanked.map_err(|error| remote::failed(remote.name(), &error))?;
    if json_wanted {
        let (yanked, security) = (!args.undo, args.security);
        let done = json!({"id": id, "version": version, "yanked": yanked, "security": security});
        printer.json(&done)?;
    } else if was_offered {
        printer.note(&format!("Unchanged: {} {} was not taken back", line(id), line(version)));
    } else {
        let done = if args.undo { "Offered again:" } else { "Yanked" };
        let mark = if args.security { " for security" } else { "" };
        printer.note(&format!("{done} {} {}{mark}", line(id), line(version)));
    }
    Ok(Exit::Done)
}

/// Whether it is known that a version was not taken back. Only what is said hangs on that, so a failure is none.
async fn is_offered(remote: &Remote, id: &str, version: &str) -> bool {
    let known = remote.describe(id, Some(version)).await;
    known.is_ok_and(|described| described.yanked.is_none())
}
