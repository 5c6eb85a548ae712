//! What becomes of an installed package that reached for what it was not given, where the policy wants something done.

use host::violation::{Then, Violation};
use host::{Blocked, Tool};
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::changes::{By, Change, Verb, noted};
use crate::exit::Failure;
use crate::home::Home;
use crate::installed::{self, Named, named};
use crate::printer::{Printer, line};
use crate::revoking::{Revoking, Secrets};

/// Switches it off, or revokes it, and says so; what programs are told of it comes back.
pub(crate) fn act(
    violation: &Violation,
    tool: &Tool,
    home: &Home,
    ask: Ask,
    printer: Printer,
) -> Value {
    let id = tool.package.canonical_id();
    let reached: Vec<_> = violation.blocked.iter().map(|one| one.asked.as_str()).collect();
    let what = format!("{} reached for {}", line(&id), line(&reached.join(", ")));
    let done = named(&id, &installed::home(home)).and_then(|named| match violation.then {
        Then::Disable => disable(&named, &violation.blocked, home, printer),
        Then::Revoke => revoke(&named, &violation.blocked, home, ask, printer),
    });
    let (state, why) = match done {
        Ok((state, words)) => {
            printer.alarm(&format!("{what}, as your policy does not let it: {words}"));
            (state, None)
        }
        Err(failure) => {
            let why = line(&failure.message);
            printer.alarm(&format!("{what}, and could not be switched off: {why}"));
            ("failed", Some(failure.message))
        }
    };
    let blocked: Vec<_> = violation
        .blocked
        .iter()
        .map(|one| json!({ one.kind().name(): one.asked, "why": one.why.to_string() }))
        .collect();
    json!({ "blocked": blocked, "state": state, "why": why })
}

fn disable(
    named: &Named,
    blocked: &[Blocked],
    home: &Home,
    printer: Printer,
) -> Result<(&'static str, String), Failure> {
    let change = Change::new(home, Verb::Disable, &named.id, printer)
        .about(named.pinned.as_ref())
        .by(By::Policy, blocked);
    noted(change, || Ok(installed::home(home).lock()?.switch(&named.id_in_catalog, false)?))?;
    Ok(("disabled", "it is switched off".to_owned()))
}

fn revoke(
    named: &Named,
    blocked: &[Blocked],
    home: &Home,
    ask: Ask,
    printer: Printer,
) -> Result<(&'static str, String), Failure> {
    let (secrets, with, by) = (Secrets::Kept, None, By::Policy);
    let revoked = Revoking { home, ask, printer, secrets, with, by, blocked }.revoke(named)?;
    Ok((revoked.state.name(), revoked.words()))
}
