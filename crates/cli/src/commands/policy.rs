//! `haft policy`: what your policy says.

use clap::{Args, Subcommand};
use policy::{Policy, Surface};
use serde_json::{Value, json};

use super::call::{Wanted, explain};
use super::policy_profile;
use crate::ask::Ask;
use crate::exit::{Exit, Outcome};
use crate::home::Home;
use crate::owner;
use crate::policy_file::PolicyFile;
use crate::printer::{Printer, escaped, line};
use crate::{policy_doubts, sources};

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  haft policy show --defaults\n  haft policy check\n  haft policy explain --from examples/jumith/dice.bundle.json demo.dice --as agent"
)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Show the file, or that there is none
    Show {
        /// Show every key with its default and what it means instead, as a file that can be changed
        #[arg(long)]
        defaults: bool,
    },
    /// Say all that is wrong with the file, or may be
    Check,
    /// Name parts of what is installed, for clients and tokens
    Profile {
        #[command(subcommand)]
        verb: policy_profile::Verb,
    },
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
    match &args.what {
        What::Show { defaults: true } => {
            if json_wanted {
                let mut document = summary(&Policy::default());
                document["text"] = policy::DEFAULTS.into();
                printer.json(&document)?;
            } else {
                printer.result(policy::DEFAULTS)?;
            }
            Ok(Exit::Done)
        }
        What::Show { defaults: false } => show(owner::policy_file(home)?, json_wanted, printer),
        What::Check => check(home, json_wanted, printer),
        What::Profile { verb } => policy_profile::run(verb, home, ask, json_wanted, printer),
        What::Explain { wanted, caller } => {
            owner::policy(home)?;
            let surface = match caller {
                Caller::Owner => Surface::Terminal,
                Caller::Agent => Surface::Agent {
                    name: "mcp".into(),
                    session: String::new(),
                    who: policy::Who::default(),
                },
            };
            Ok(explain(wanted, surface, home, ask, json_wanted, printer)?)
        }
    }
}

/// Shows the file; one that cannot be read too, with what is wrong and what holds meanwhile.
fn show(file: PolicyFile, json_wanted: bool, printer: Printer) -> Outcome {
    if json_wanted {
        return show_json(file, printer);
    }
    match &file.text {
        None => printer.note(&format!(
            "there is no `{}`; `haft policy show --defaults` shows every key with its default",
            file.path.display()
        )),
        Some(text) => {
            printer.note(&format!("`{}` says", file.path.display()));
            printer.result(&escaped(text))?;
            if !text.is_empty() && !text.ends_with('\n') {
                printer.result("\n")?;
            }
        }
    }
    file.policy().map(|_| Exit::Done)
}

fn show_json(file: PolicyFile, printer: Printer) -> Outcome {
    let (path, exists) = (file.path.to_string_lossy().into_owned(), file.text.is_some());
    let mut document = summary(&file.policy()?);
    document["path"] = path.into();
    document["exists"] = exists.into();
    document["ok"] = true.into();
    printer.json(&document)?;
    Ok(Exit::Done)
}

/// What a policy says, in short.
fn summary(policy: &Policy) -> Value {
    json!({
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
    })
}

/// Says whether the file can be read, and what in it may not be meant.
fn check(home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let file = owner::policy_file(home)?;
    let (path, is_there) = (file.path.clone(), file.text.is_some());
    let policy = file.policy()?;
    sources::check(&policy.sources)?;
    let doubts = policy_doubts::doubts(&policy, home)?;
    let doubts: Vec<String> = doubts.iter().map(|doubt| line(&doubt.to_string())).collect();
    if json_wanted {
        let path = path.to_string_lossy();
        printer.json(&json!({ "path": path, "ok": true, "warnings": doubts }))?;
        return Ok(Exit::Done);
    }
    for doubt in &doubts {
        printer.warn(doubt);
    }
    let shown = path.display();
    printer.note(&if is_there {
        format!("`{shown}` can be read")
    } else {
        format!("there is no `{shown}`, which is fine")
    });
    Ok(Exit::Done)
}
