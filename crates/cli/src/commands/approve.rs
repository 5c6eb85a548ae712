//! `haft approve`: what may be called without being asked again.

use clap::{Args, Subcommand};
use host::records::now;
use ledger::state::rules::{Lasts, Rule};
use policy::Pattern;
use serde_json::json;

use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::owner;
use crate::printer::{Printer, line};

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  haft approve always mcpkg:acme.mail send '{\"to\":\"*@example.com\"}'\n  haft approve rules\n  haft approve forget 3"
)]
pub(crate) struct ApproveArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Let an action be called without asking, where its arguments fit
    Always {
        /// The package, with its dialect: mcpkg:acme.mail
        #[arg(value_name = "PACKAGE", value_parser = owner::package_id)]
        package: String,
        /// The action
        #[arg(value_name = "ACTION")]
        action: String,
        /// A JSON object whose members must fit; `*` in a text stands for any letters
        #[arg(value_name = "PATTERN", default_value = "{}", value_parser = Pattern::parse)]
        pattern: Pattern,
    },
    /// Show what may be called without asking
    Rules,
    /// Ask again from now on
    Forget {
        /// The number that `haft approve rules` shows
        #[arg(value_name = "NUMBER")]
        number: i64,
    },
}

pub(crate) fn run(
    args: &ApproveArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let runtime = owner::runtime()?;
    let failed = |error: ledger::StateError| Failure::of(Exit::Unavailable, &error);
    match &args.what {
        What::Always { package, action, pattern } => {
            owner::check_presence(home, ask)?;
            let records = owner::records(home, &runtime)?;
            let rule = Rule {
                package: package.clone(),
                action: action.clone(),
                arguments: pattern.to_string(),
                lasts: Lasts::Always,
                by: "terminal".to_owned(),
            };
            let number = runtime.block_on(records.state.remember(&rule, now())).map_err(failed)?;
            printer.note(&format!(
                "Rule {number}: `{}` of {package} is not asked about",
                line(action)
            ));
        }
        What::Rules => {
            let records = owner::records(home, &runtime)?;
            let rules = runtime.block_on(records.state.remembered(None)).map_err(failed)?;
            if json_wanted {
                let entry = |one: &ledger::state::rules::Remembered| {
                    json!({ "number": one.id, "package": one.rule.package, "action": one.rule.action,
                        "pattern": one.rule.arguments, "by": one.rule.by, "since": one.created.to_string() })
                };
                printer.json(&json!(rules.iter().map(entry).collect::<Vec<_>>()))?;
                return Ok(Exit::Done);
            }
            for one in &rules {
                let rule = &one.rule;
                printer.result(&format!(
                    "{} {} {} {}\n",
                    one.id,
                    line(&rule.package),
                    line(&rule.action),
                    line(&rule.arguments)
                ))?;
            }
            if rules.is_empty() {
                printer.note("there are no rules: what has to be asked is asked");
            }
        }
        What::Forget { number } => {
            let records = owner::records(home, &runtime)?;
            if !runtime.block_on(records.state.forget_rule(*number)).map_err(failed)? {
                let message = format!("there is no rule {number}");
                return Err(Failure::new(Exit::NotFound, message)
                    .hint("`haft approve rules` shows which there are"));
            }
            printer.note(&format!("Rule {number} is forgotten"));
        }
    }
    Ok(Exit::Done)
}
