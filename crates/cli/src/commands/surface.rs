//! `haft approve surface`: everything that a server offers, held against what was approved before.

use clap::Args;
use host::surface::Surface;
use host::{CallError, Host};
use install::{Installed, Sha256};
use package::digest::Digest;
use serde_json::{Value, json};

use super::install::has_server;
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::installed::{self, Named, named};
use crate::printer::{Printer, line};
use crate::{interrupt, owner, shell, walls};

#[derive(Args, Debug)]
pub(crate) struct SurfaceArgs {
    /// The id of an installed server, with its dialect or without
    #[arg(value_name = "ID")]
    id: String,
    /// Approve exactly the surface of this digest, without being asked: sha256:…
    #[arg(long, value_name = "DIGEST", allow_hyphen_values = true)]
    digest: Option<String>,
    /// Say what is different, and approve nothing
    #[arg(long, conflicts_with = "digest")]
    check: bool,
}

/// The words of a difference that are shown at most.
const MOST_SHOWN: usize = 200;

pub(crate) fn run(
    args: &SurfaceArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let at = installed::home(home);
    let named = named(&args.id, &at)?;
    let no_server = || {
        let message = format!("`{}` has no server that could offer anything", line(&named.id));
        Failure::invalid(message)
    };
    let pinned = named.pinned.as_ref().ok_or_else(no_server)?;
    let installed = Installed::load(&at, pinned)?;
    if !has_server(&installed.package) {
        return Err(no_server());
    }
    owner::check_presence(home, ask)?;
    let approved = installed::approved(&installed.record, &named)?;
    let mut record = installed.record.clone();
    let declares = !installed.package.actions.is_empty();
    let (found, actions) = offered(installed, &named, home, ask)?;
    let digest = format!("sha256:{}", found.digest());
    let is_same = approved.as_ref().is_some_and(|approved| approved.digest() == found.digest());
    let changes = if is_same { Vec::new() } else { changes(approved.as_ref(), &found) };
    if !is_same {
        printer.note(&changes.join("\n"));
        printer.note(&format!("Its digest is {digest}"));
    }
    if args.check {
        if json_wanted {
            // The first line says what the others are.
            let differences: Vec<_> = changes.iter().skip(1).map(|one| one.trim()).collect();
            printer.json(&json!({
                "id": named.id, "surface": digest, "tools": actions, "changed": !is_same,
                "differences": differences,
            }))?;
        } else if is_same {
            printer.note(&format!("{} offers what you approved", line(&named.id)));
        }
        return Ok(Exit::Done);
    }
    if !is_same {
        agree(args.digest.as_deref(), &digest, ask)?;
        record.pinned.surface = Digest::parse(found.digest()).map(Sha256);
        record.surface = Some(found.to_value());
        if !declares {
            record.pinned.actions.clone_from(&actions);
        }
        at.lock()?.amend(record)?;
    }
    let id = line(&named.id);
    if json_wanted {
        printer.json(&json!({
            "id": named.id, "surface": digest, "tools": actions, "changed": !is_same,
        }))?;
    } else if is_same {
        printer.note(&format!("{id} offers what you approved, {}", tools(&actions)));
    } else {
        printer.note(&format!("Approved what {id} offers, {}", tools(&actions)));
    }
    Ok(Exit::Done)
}

fn tools(actions: &[String]) -> String {
    super::count(actions.len(), "tool")
}

/// What the server offers now, and the names of its tools.
fn offered(
    installed: Installed,
    named: &Named,
    home: &Home,
    ask: Ask,
) -> Result<(Surface, Vec<String>), Failure> {
    let tool = installed::unasked(installed, named)?;
    let runtime = owner::runtime()?;
    let records = owner::records(home, &runtime)?;
    let vault = owner::vault(home, ask)?;
    let host = Host::new(super::call::settings(home)?, walls::launcher()?, vault, records);
    let called_off = interrupt::calling_off();
    let found = runtime.block_on(async {
        let found = host.discover(&tool, &policy::Surface::Terminal, None, &called_off).await;
        host.settle().await;
        let _ = host.records().settle().await;
        found
    });
    interrupt::nothing_runs();
    let found = found.map_err(|error| unasked(&error, named))?;
    let names = found.actions.into_iter().map(|action| action.name).collect();
    let surface = found.surface.ok_or_else(|| Failure::invalid("it has no server of its own"))?;
    Ok((surface, names))
}

fn unasked(error: &CallError, named: &Named) -> Failure {
    let exit = if error.kind.is_refusal() { Exit::Denied } else { Exit::Unavailable };
    let failure = Failure::new(exit, "its server could not be asked what it offers")
        .cause(line(&error.to_string()));
    let command = format!("haft login {}", shell::word(&named.id));
    match super::call::login_hint(error, &command) {
        Some(words) => failure.hint(words),
        None => failure,
    }
}

/// What is new, in words: everything where nothing was approved before.
pub(super) fn changes(approved: Option<&Surface>, found: &Surface) -> Vec<String> {
    let told = |value: &Value| {
        let about = value["description"].as_str().unwrap_or_default();
        let says = |hint: &str| value["annotations"][hint] == true;
        let effects = match (says("readOnlyHint"), says("destructiveHint")) {
            (true, _) => " (only reads, as it says)",
            (false, true) => " (destroys, as it says)",
            (false, false) => "",
        };
        line(&format!("  {}{effects}  {about}", value["name"].as_str().unwrap_or_default()))
    };
    let Some(approved) = approved else {
        let tools = found.to_value();
        let rows = tools.as_array().into_iter().flatten().map(told);
        return std::iter::once("It offers:".to_owned()).chain(rows).collect();
    };
    let differences = approved.differences(found);
    let more = differences.len().saturating_sub(MOST_SHOWN);
    let rows = differences.iter().take(MOST_SHOWN).map(|one| line(&format!("  {one}")));
    let more = (more > 0).then(|| format!("  and {more} more"));
    std::iter::once("It does not offer what you approved:".to_owned())
        .chain(rows)
        .chain(more)
        .collect()
}

fn agree(typed: Option<&str>, found: &str, ask: Ask) -> Result<(), Failure> {
    match typed {
        Some(typed)
            if typed.trim_start_matches("sha256:") == found.trim_start_matches("sha256:") =>
        {
            Ok(())
        }
        Some(_) => Err(Failure::new(Exit::Denied, "what it offers has another digest")),
        None if !ask.is_possible() => {
            let message = "what it offers has to be approved, and nobody can be asked";
            Err(Failure::new(Exit::Denied, message)
                .hint(format!("`--digest {found}` approves exactly this")))
        }
        None if ask.yes_or_no("Approve it?")? => Ok(()),
        None => Err(Failure::new(Exit::Denied, "you did not approve it")),
    }
}
