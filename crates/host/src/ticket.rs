//! What the owner is shown of a call that waits for their word, read from its ticket: by the terminal, the console and the log.

use ledger::state::approvals::Ticket;
use manifest::shape::escaped;
use policy::{Arguments, Pattern};
use serde_json::Value;

/// The package that is called, with its dialect.
pub fn package_of(ticket: &Ticket) -> String {
    ticket.shown.value()["package"].as_str().unwrap_or_default().to_owned()
}

/// Whether a yes counts for whatever follows, so that none counts for longer.
pub fn is_first(ticket: &Ticket) -> bool {
    ticket.shown.value()["is_first"] == true
}

/// The conversation that the call is part of. One that stands alone has none: whoever made it is known by its token, and that may
/// be shown for years.
pub fn conversation(ticket: &Ticket) -> Option<&str> {
    let (session, shown) = (&*ticket.shown.session, ticket.shown.value());
    (!session.is_empty() && shown["client"].as_str() != Some(session)).then_some(session)
}

/// The arguments that the question is about, and no others. What is shown of them must be what the answer is for.
pub fn exactly(ticket: &Ticket) -> Option<Pattern> {
    let arguments = Arguments::new(ticket.shown.value()["input"].clone());
    let is_same = arguments.digest() == ticket.asked.arguments;
    Pattern::exactly(&arguments).filter(|_| is_same)
}

/// What a step of a chain calls, and with what; nothing of it steers whatever shows it.
pub fn step_words(step: &Value) -> String {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let takes = step["takes"].as_object().into_iter().flatten();
    let takes = takes.map(|(to, from)| format!("{to} from {}", from.as_str().unwrap_or_default()));
    let takes: Vec<_> = takes.collect();
    let with = if takes.is_empty() { String::new() } else { format!(" with {}", takes.join(", ")) };
    let each = step["forEach"].as_str().map(|of| format!(" for each element of {of}"));
    let (action, package) = (text("action"), text("package"));
    escaped(&format!("`{action}` of {package}{with}{}", each.unwrap_or_default()))
}
