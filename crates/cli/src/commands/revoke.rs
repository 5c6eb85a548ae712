//! `haft revoke`: makes worthless what a package was given, and keeps it from being called.

use clap::Args;
use install::revoked::State;
use serde_json::json;

use crate::ask::Ask;
use crate::changes::{By, Change, Verb, noted};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::installed::{self, Named, named};
use crate::printer::{Printer, line};
use crate::revoking::{Revoked, Revoking, Secrets, Way, kept_values, without_secrets};
use crate::shell;

#[derive(Args, Debug)]
#[command(
    after_help = "It is switched off at once, whatever comes of its kill switch. Its secrets are kept until somebody confirms that they are worth nothing any more. Ends with 1 where nobody does; the same command tries it again."
)]
pub(crate) struct RevokeArgs {
    /// Its id, with its dialect or without
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    id: Option<String>,
    /// Everything that is installed or declared
    #[arg(long)]
    all: bool,
    /// Give up its secrets even if nobody confirms
    #[arg(long)]
    forget: bool,
    /// Of several secrets: the one that shows who revokes
    #[arg(long, value_name = "SECRET", conflicts_with = "all")]
    with: Option<String>,
    /// Do it without being asked
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(
    args: &RevokeArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let at = installed::home(home);
    let contents = at.read()?;
    let meant = match &args.id {
        Some(id) => match gone(id, &contents) {
            Some(id) => return forget_gone(&id, args, home, ask, json_wanted, printer),
            None => vec![named(id, &at)?],
        },
        None => {
            let ids = contents.listed().into_iter().map(|one| one.id);
            ids.map(|id| named(&id, &at)).collect::<Result<_, _>>()?
        }
    };
    let is_open = |one: &&Named| {
        contents.revoked.get(&one.id).is_none_or(|known| known.state == State::Unconfirmed)
    };
    let open: Vec<_> = meant.iter().filter(is_open).collect();
    check_meant(&open, args, ask)?;
    let secrets = if args.forget { Secrets::Forgotten } else { Secrets::Kept };
    let with = args.with.as_deref();
    let revoking = Revoking { home, ask, printer, secrets, with, by: By::Owner, blocked: &[] };
    let mut done = Vec::new();
    for one in &meant {
        let revoked = match revoking.revoke(one) {
            // Of many, one that fails does not keep the others.
            Err(failure) if args.all && !matches!(failure.exit, Exit::Of(_)) => {
                let (id, why) = (one.id.clone(), Some(failure.message));
                Revoked {
                    id,
                    state: State::Unconfirmed,
                    why,
                    by_hand: None,
                    way: Way::Switch,
                    outlive: Vec::new(),
                }
            }
            revoked => revoked?,
        };
        if !json_wanted {
            tell(&revoked, kept_values(&revoked.id, home), args, printer);
        }
        done.push(revoked);
    }
    if json_wanted {
        match done.as_slice() {
            [one] if !args.all => printer.json(&one.to_value())?,
            all => {
                let all: Vec<_> = all.iter().map(Revoked::to_value).collect();
                printer.json(&json!({"packages": all}))?;
            }
        }
    } else if done.is_empty() {
        printer.note("nothing is installed");
    }
    let is_unconfirmed = done.iter().any(|one| one.state == State::Unconfirmed);
    Ok(if is_unconfirmed { Exit::Failed } else { Exit::Done })
}

/// Asks once, unless it was said beforehand; what is confirmed already needs no question.
fn check_meant(open: &[&Named], args: &RevokeArgs, ask: Ask) -> Result<(), Failure> {
    let what = match open {
        [] => return Ok(()),
        [one] => line(&one.id),
        several => super::count(several.len(), "package"),
    };
    let question = format!("Revoke {what}? It is switched off, and what it was granted goes.");
    let is_meant =
        || ask.yes_or_no(&question).map_err(|failure| failure.hint("--yes says so beforehand"));
    if args.yes || is_meant()? {
        Ok(())
    } else {
        Err(Failure::new(Exit::Denied, "nothing was revoked"))
    }
}

/// Tells what came of it, and what is left to do while so many of its secrets are kept.
fn tell(revoked: &Revoked, kept: usize, args: &RevokeArgs, printer: Printer) {
    if revoked.state == State::Revoked {
        return printer.note(&revoked.words());
    }
    printer.alarm(&revoked.words());
    let mut id = shell::word(&revoked.id);
    match &args.with {
        Some(with) => id += &format!(" --with {}", shell::word(with)),
        None if revoked.why.as_deref().is_some_and(|why| why.contains("--with SECRET")) => {
            id += " --with SECRET";
        }
        None => {}
    }
    if let Some(by_hand) = &revoked.by_hand {
        printer.note(&format!("hint: you may do it yourself: {}", line(by_hand)));
    }
    if args.forget {
        return printer.note("What was kept for that is given up.");
    }
    let forgets = format!("`haft revoke {id} --forget` gives them up");
    printer.note(&match (revoked.way, kept) {
        (Way::ByHand, 0) => format!("hint: once you have, `haft revoke {id} --forget` says so"),
        (Way::ByHand, _) => format!("hint: its secrets are kept until you have; then {forgets}"),
        (Way::Switch | Way::NoSwitch | Way::Before, 0) => {
            format!("hint: `haft revoke {id}` tries it again")
        }
        (Way::Switch | Way::NoSwitch | Way::Before, _) => format!(
            "hint: `haft revoke {id}` tries it again\nhint: its secrets are kept for that alone; {forgets}"
        ),
    });
}

/// The package that a name stands for, where it was revoked and is not here any more.
fn gone(name: &str, contents: &install::Contents) -> Option<String> {
    if !contents.called(name).is_empty() {
        return None;
    }
    let is_meant = |id: &str| id == name || id.split_once(':').is_some_and(|(_, id)| id == name);
    contents.revoked.all().iter().find(|one| is_meant(&one.id)).map(|one| one.id.clone())
}

/// Gives up the secrets of a package that is not here any more: nothing is left that could revoke it.
fn forget_gone(
    id: &str,
    args: &RevokeArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    if !args.forget {
        let message = format!(
            "`{}` is not installed any more, so its kill switch cannot be run; its secrets are kept",
            line(id)
        );
        let word = shell::word(id);
        return Err(Failure::new(Exit::NotFound, message)
            .hint(format!("`haft revoke {word} --forget` gives them up")));
    }
    noted(Change::new(home, Verb::Revoke, id, printer), || {
        without_secrets(&[id], home, ask, printer, |changing, draft| {
            changing.forget_revocation(draft, id)
        })
    })?;
    if json_wanted {
        printer.json(&json!({"id": id, "state": "forgotten", "why": null, "by_hand": null}))?;
    } else {
        printer.note(&format!("Gave up the secrets of {}", line(id)));
    }
    Ok(Exit::Done)
}
