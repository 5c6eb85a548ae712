//! Questions to the owner that are put in the client of an agent, where that can show one and the policy lets it.
//!
//! It is the client's person who answers, not the agent. Whoever starts `haft mcp` runs as the owner and could as well type `haft approve`; whoever
//! comes with a token may be anybody, and is asked only where the token was made for that. `ask_in_client = false` forbids all of it.
//! Everybody else finds the same question in the console and with `haft approve`.

use host::{CallError, Kind, Unasked};
use ledger::state::approvals::{Answer, TicketId};
use policy::policy::Presence;
use serde_json::{Map, Value, json};

use super::error::{Code, Error};
use super::seal::State;
use super::tools::Making;

/// The name of the one question.
const QUESTION: &str = "approve";

/// The question to the owner that a call came to, where it may be put in the client; what the answer comes back with.
pub(crate) fn question_of(
    making: &Making<'_>,
    error: &CallError,
) -> Option<(Map<String, Value>, State)> {
    let Kind::NeedsApproval(open) = &error.kind else { return None };
    let ticket = error.details["ticket"].as_str().filter(|_| may_ask(making))?;
    let request = json!({ "method": "elicitation/create", "params": form(making, open, error) });
    let requests = Map::from_iter([(QUESTION.to_owned(), request)]);
    Some((requests, State::Ticket(ticket.to_owned(), making.resumed.clone())))
}

/// Writes down what the client's person answered. It gives the ticket that the call is made with, whatever they said.
pub(crate) async fn answered(
    making: &mut Making<'_>,
    ticket: &str,
    responses: &Map<String, Value>,
) -> Result<TicketId, Error> {
    let ticket = TicketId::parse(ticket);
    let ticket = ticket.ok_or_else(|| Error::new(Code::Internal, "the ticket cannot be read"))?;
    let Some(answer) = responses.get(QUESTION).filter(|_| may_ask(making)) else {
        return Ok(ticket);
    };
    let said = match (answer["action"].as_str(), answer["content"]["decision"].as_str()) {
        (Some("accept"), Some("allow")) => Answer::Approved,
        (Some("accept" | "decline"), _) => Answer::Refused,
        // Whoever looked away has not answered: the question stays where the owner finds it, and is not put to them again at once.
        _ => {
            making.looked_away = true;
            return Ok(ticket);
        }
    };
    let written = making.stock.host.records().answer(&ticket, said, "mcp").await;
    written.map_err(|error| Error::new(Code::Internal, error.to_string()))?;
    Ok(ticket)
}

fn may_ask(making: &Making<'_>) -> bool {
    let policy = &making.stock.policy;
    !making.looked_away
        && policy.agents.ask_in_client
        && making.asked.client.asks
        && policy.approval.owner_presence == Presence::Any
        && can_elicit(making)
}

/// Whether the client can show a form.
fn can_elicit(making: &Making<'_>) -> bool {
    match making.asked.capabilities.get("elicitation") {
        Some(Value::Object(modes)) => modes.is_empty() || modes.contains_key("form"),
        _ => false,
    }
}

/// Our own words with the whole input, as the tool would get it; the tool's own are quoted beneath.
fn form(making: &Making<'_>, open: &Unasked, error: &CallError) -> Value {
    let Unasked { question, input, steps } = open;
    let (offer, input) = (&making.offer, input.as_ref().unwrap_or(&making.input));
    let steps: String = steps.iter().map(|step| format!("\nIt calls {step}.")).collect();
    let quoted = error.details["message"].as_str();
    let quoted = quoted.map(|words| format!("\nThe tool itself says: {words:?}"));
    let message = format!(
        "An agent wants to call `{}` of {} with\n{input}{steps}\nYou are asked because {}.{}",
        offer.action,
        offer.package.id,
        question.why.words(),
        quoted.unwrap_or_default(),
    );
    let lasts = if question.is_first {
        "It counts for this action from now on, whatever the arguments: you are asked the first time it is called from here."
    } else {
        "It counts for this one call with these very arguments."
    };
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Allow this call?",
                    "description": lasts,
                    "enum": ["allow", "deny"],
                },
            },
            "required": ["decision"],
        },
    })
}
