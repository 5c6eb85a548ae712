//! `haft policy`: what your policy says.

use clap::{Args, Subcommand};
use policy::Surface;
use serde_json::json;

use super::call::{Wanted, explain};
use crate::ask::Ask;
use crate::exit::{Exit, Outcome};
use crate::home::Home;
use crate::owner;
use crate::printer::Printer;

#[derive(Args, Debug)]
#[command(
    after_help = "See docs/policy.md.\n\nExamples:\n  haft policy check\n  haft policy explain --from examples/jumith/dice.bundle.json demo.dice --as agent"
)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Show the file, or that there is none
    Show,
    /// Say whether the file can be read, and what is wrong with it
    Check,
    /// Show what it means for one call: the decision with its reasons, the walls, the plan
    Explain {
        #[command(flatten)]
        wanted: Wanted,
        /// Who calls: you, or an agent through Haft
        #[arg(long = "as", value_name = "CALLER", default_value = "owner")]
        caller: Caller,
    },
}

/// Who calls.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Caller {
    Owner,
    Agent,
}

pub(crate) fn run(
    args: &PolicyArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let path = home.path().join("policy.toml");
    let policy = owner::policy(home)?;
    match &args.what {
        What::Show => {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if json_wanted {
                printer.json(&json!({
                    "path": path.to_string_lossy(),
                    "exists": path.exists(),
                    "level": policy.sandbox.level.to_string(),
                    "timeout_ms": policy.sandbox.timeout_ms,
                    "trust": policy.trust.allow.iter().map(|one| one.name()).collect::<Vec<_>>(),
                    "approval": {
                        "none": policy.approval.none.name(),
                        "read": policy.approval.read.name(),
                        "write": policy.approval.write.name(),
                        "destructive": policy.approval.destructive.name(),
                        "undeclared": policy.approval.undeclared.name(),
                    },
                    "packages": policy.packages.keys().collect::<Vec<_>>(),
                }))?;
            } else if text.is_empty() {
                printer.note(&format!(
                    "there is no `{}`: everything is as docs/policy.md says",
                    path.display()
                ));
            } else {
                printer.result(&crate::printer::escaped(&text))?;
            }
        }
        What::Explain { wanted, caller } => {
            let surface = match caller {
                Caller::Owner => Surface::Terminal,
                Caller::Agent => Surface::Agent { name: "mcp".into(), session: String::new() },
            };
            return explain(wanted, surface, home, ask, json_wanted, printer);
        }
        What::Check => {
            if json_wanted {
                printer.json(&json!({ "path": path.to_string_lossy(), "ok": true }))?;
            } else if path.exists() {
                printer.note(&format!("`{}` can be read", path.display()));
            } else {
                printer.note(&format!("there is no `{}`, which is fine", path.display()));
            }
        }
    }
    Ok(Exit::Done)
}
