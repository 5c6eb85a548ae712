//! Questions to the owner that are put in the client of an agent, where that can show one and the policy lets it.
//!
//! It is the client's person who answers, not the agent. Whoever starts `haft mcp` runs as the owner and could as well type `haft approve`; whoever
//! comes with a token may be anybody, and is asked only where the token was made for that. `ask_in_client = false` forbids all of it.
//! Everybody else finds the same question in the console and with `haft approve`.

use host::{CallError, Kind, Peer};
use ledger::state::approvals::{Answer, TicketId};
use policy::policy::Presence;
use serde_json::{Map, Value, json};

use super::error::{Code, Error};
use super::seal::State;
use super::tools::Making;

/// The name of the one question.
const QUESTION: &str = "approve";

/// Whether an owner has to be asked, and a question waits for them.
pub(crate) fn is_question(error: &CallError) -> bool {
    matches!(error.kind, Kind::NeedsApproval(_)) && ticket_of(error).is_some()
}

/// Puts the question in the client, or leaves it where the owner finds it.
pub(crate) async fn ask(making: &Making<'_>, error: &CallError) -> Result<String, Error> {
    let Some(ticket) = ticket_of(error) else { return Ok(making.refused(error)) };
    if !may_ask(making) {
        return Ok(making.refused(error));
    }
    let params = question(making, error);
    if making.asked.revision.is_stateless() {
        let request = json!({ "method": "elicitation/create", "params": params });
        let requests = Map::from_iter([(QUESTION.to_owned(), request)]);
        return making.input_required(&requests, State::Ticket(ticket.to_string()));
    }
    let asker = making.asked.asker(None, None);
    match asker.ask("elicitation/create", params).await {
        Ok(answer) => {
            let ticket = answer_ticket(making, ticket, &answer).await?;
            making.start(ticket, None).await
        }
        Err(_) => Ok(making.refused(error)),
    }
}

/// What the client's person answered, as the ticket that the call is made with.
pub(crate) async fn answered(
    making: &Making<'_>,
    name: &str,
    responses: &Map<String, Value>,
) -> Result<Option<TicketId>, Error> {
    let ticket = TicketId::parse(name);
    let ticket = ticket.ok_or_else(|| Error::new(Code::Internal, "the ticket cannot be read"))?;
    match responses.get(QUESTION) {
        Some(answer) if may_ask(making) => answer_ticket(making, ticket, answer).await,
        Some(_) | None => Ok(Some(ticket)),
    }
}

/// Writes down what was answered. Whoever looked away has not answered, and the question stays.
async fn answer_ticket(
    making: &Making<'_>,
    ticket: TicketId,
    answer: &Value,
) -> Result<Option<TicketId>, Error> {
    let said = match (answer["action"].as_str(), answer["content"]["decision"].as_str()) {
        (Some("accept"), Some("allow")) => Answer::Approved,
        (Some("accept" | "decline"), _) => Answer::Refused,
        _ => return Ok(Some(ticket)),
    };
    let written = making.stock.host.records().answer(&ticket, said, "mcp").await;
    written.map_err(|error| Error::new(Code::Internal, error.to_string()))?;
    Ok(Some(ticket))
}

fn may_ask(making: &Making<'_>) -> bool {
    let policy = &making.stock.policy;
    policy.agents.ask_in_client
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

/// Our own words with the whole input; the tool's own are quoted beneath.
fn question(making: &Making<'_>, error: &CallError) -> Value {
    let (offer, input) = (making.offer, &making.input);
    let quoted = error.details["message"].as_str();
    let quoted = quoted.map(|words| format!("\nThe tool itself says: {words:?}"));
    let because = match &error.kind {
        Kind::NeedsApproval(question) => question.why.words().into_owned(),
        _ => error.message.clone(),
    };
    let message = format!(
        "An agent wants to call `{}` of {} with\n{input}\nYou are asked because {because}.{}",
        offer.action,
        offer.package.id,
        quoted.unwrap_or_default(),
    );
    let lasts = match &error.kind {
        Kind::NeedsApproval(question) if question.is_first => {
            "It counts for this action from now on, whatever the arguments: you are asked the first time it is called from here."
        }
        _ => "It counts for this one call with these very arguments.",
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

fn ticket_of(error: &CallError) -> Option<TicketId> {
    error.details["ticket"].as_str().and_then(TicketId::parse)
}
