//! A call that waits for its owner, as it is shown.

use host::ticket::{conversation, exactly, is_first, package_of};
use ledger::Time;
use ledger::state::approvals::Ticket;
use manifest::words::Fact;
use policy::policy::Presence;
use serde_json::Value;

use super::link;
use super::moment::{Moment, left};
use super::timeline::Tone;
use super::tool::{effect, facts};
use crate::shelf::Stock;

/// A value that is longer is shown behind a click.
const LONG: usize = 300;

/// A call that waits.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) ticket: String,
    pub(super) package: String,
    pub(super) address: String,
    pub(super) action: String,
    /// What the action says that it does.
    pub(super) summary: Option<String>,
    /// What it changes, in a word or two, and how much that weighs.
    pub(super) effect: (&'static str, Tone),
    pub(super) surface: String,
    /// What the owner calls the client, and what its program says that it is.
    pub(super) client: Option<String>,
    pub(super) client_says: Option<String>,
    /// Where the tool would be called from.
    pub(super) folder: Option<String>,
    pub(super) expires: Moment,
    pub(super) left: String,
    pub(super) because: String,
    /// What the tool itself says.
    pub(super) message: Option<String>,
    pub(super) arguments: Vec<Argument>,
    pub(super) steps: Vec<String>,
    /// What the package may reach at all.
    pub(super) may: Vec<Fact>,
    /// Whether the yes is for this kind of client from now on.
    pub(super) is_first: bool,
    /// Whether it can be for the rest of the conversation.
    pub(super) has_session: bool,
    /// Whether it can be for exactly these arguments, always.
    pub(super) is_exact: bool,
    /// What has to be typed, where a page is not enough for the policy.
    pub(super) only_by: Option<String>,
}

/// One argument.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) is_long: bool,
}

impl Question {
    pub(super) fn new(ticket: &Ticket, stock: &Stock, now: Time) -> Self {
        let shown = ticket.shown.value();
        let package = package_of(ticket);
        let tool = stock.package(&package).and_then(|one| one.tool.as_ref().ok());
        let action = tool.and_then(|tool| tool.action(&ticket.asked.action));
        let about = ["Network", "Files", "Secrets"];
        let may = tool.map(|tool| facts(&tool.package)).unwrap_or_default();
        let only_by = match stock.policy.approval.owner_presence {
            Presence::Any => None,
            Presence::Terminal | Presence::Passphrase => {
                Some(format!("haft approve allow {}", ticket.id))
            }
        };
        Self {
            ticket: ticket.id.to_string(),
            address: link::seen(&package, stock),
            action: ticket.asked.action.clone(),
            summary: action
                .and_then(|action| action.summary.clone().or_else(|| action.description.clone())),
            effect: action.map_or(("effects not known", Tone::Warn), effect),
            surface: ticket.asked.surface.clone(),
            client: shown["client"].as_str().map(str::to_owned),
            client_says: shown["client_says"].as_str().map(str::to_owned),
            expires: Moment::new(ticket.expires, now),
            left: left(ticket.expires, now),
            because: shown["because"].as_str().unwrap_or_default().to_owned(),
            folder: shown["folder"].as_str().map(str::to_owned),
            message: shown["message"].as_str().map(str::to_owned),
            arguments: arguments(&shown["input"]),
            steps: shown["steps"].as_array().into_iter().flatten().map(step).collect(),
            may: may.into_iter().filter(|fact| about.contains(&fact.about)).collect(),
            is_first: is_first(ticket),
            has_session: conversation(ticket).is_some() && !is_first(ticket),
            is_exact: exactly(ticket).is_some() && !is_first(ticket),
            only_by,
            package,
        }
    }
}

fn arguments(input: &Value) -> Vec<Argument> {
    let argument = |name: &str, value: &Value| {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Object(_) | Value::Array(_) => {
                serde_json::to_string_pretty(value).unwrap_or_default()
            }
            other => other.to_string(),
        };
        let is_long = value.len() > LONG || value.lines().count() > 8;
        Argument { name: name.to_owned(), value, is_long }
    };
    match input {
        Value::Object(members) => {
            members.iter().map(|(name, value)| argument(name, value)).collect()
        }
        Value::Null => Vec::new(),
        other => vec![argument("input", other)],
    }
}

fn step(step: &Value) -> String {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let because =
        step["because"].as_str().map(|why| format!(", because {why}")).unwrap_or_default();
    let decision = step["decision"].as_str().map(|word| format!(": {word}")).unwrap_or_default();
    format!("{}: {} of {}{decision}{because}", text("step"), text("action"), text("package"))
}
