//! What waits for the owner, and their answer.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use host::records::now;
use host::ticket::{conversation, exactly, is_first, package_of};
use ledger::StateError;
use ledger::state::approvals::{Answer, Ticket};
use ledger::state::rules::{Lasts, Remembered, Rule};
use ledger::state::wishes::Wish;
use policy::Pattern;
use policy::policy::Presence;

use super::frame::{Frame, Part, done, page, see};
use super::moment::{Moment, count};
use super::question::Question;
use super::visit::{Posted, Visit};
use super::{Console, link};
use crate::door::Note;

/// Who a rule is from.
const BY: &str = "console";

/// What stands for all that wait.
const ALL: &str = "all";

/// What is not asked about again.
#[derive(Debug)]
struct Known {
    id: i64,
    package: String,
    action: String,
    about: String,
    since: Moment,
}

/// A tool that an agent would have.
#[derive(Debug)]
struct Wanted {
    tool: String,
    why: String,
    by: String,
    at: Moment,
    /// Where its card is, and where others like it are found.
    card: String,
    search: String,
}

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    frame: Frame,
    heading: String,
    /// Whether nothing can be called, and so nothing is asked either.
    is_closed: bool,
    questions: Vec<Question>,
    wanted: Vec<Wanted>,
    known: Vec<Known>,
    back: &'static str,
}

/// What waits, in a heading.
pub(super) fn heading(waiting: usize) -> String {
    match waiting {
        0 => "Nothing waits for you".to_owned(),
        1 => "One call waits for you".to_owned(),
        many => format!("{} wait for you", count(many, "call")),
    }
}

pub(super) async fn show(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let stock = console.gateway.stock().await;
    let now = now();
    let questions: Vec<_> =
        console.waiting().await.iter().map(|ticket| Question::new(ticket, &stock, now)).collect();
    let known = stock.host.records().state.remembered(None).await.unwrap_or_default();
    let known = known.into_iter().map(|one| of_rule(one, now)).collect();
    let wanted = stock.host.records().state.wishes().await.unwrap_or_default();
    let wanted = wanted.into_iter().map(|one| of_wish(one, now)).collect();
    let frame = Frame::new(&console, &visit, Part::Approvals, heading(questions.len())).await;
    page(&ApprovalsPage {
        heading: heading(questions.len()),
        is_closed: stock.trouble.is_some(),
        frame,
        questions,
        wanted,
        known,
        back: "/approvals",
    })
}

fn of_wish(wish: Wish, now: ledger::Time) -> Wanted {
    let tool = link::part(&wish.tool);
    Wanted {
        card: format!("/install/card?what={tool}"),
        search: format!("/install?q={tool}"),
        at: Moment::new(wish.at, now),
        by: wish.by(),
        tool: wish.tool,
        why: wish.why,
    }
}

/// Forgets that agents asked for a tool.
pub(super) async fn decline(State(console): State<Arc<Console>>, posted: Posted) -> Response {
    let stock = console.gateway.stock().await;
    let tool = posted.fields.get("tool").unwrap_or_default();
    let note = match stock.host.records().state.forget_wishes(Some(tool)).await {
        Ok(0) => late(),
        Ok(_) => done(format!("{tool} is not asked for any more, until somebody asks again.")),
        Err(error) => unwritten(&error),
    };
    console.gateway.door.note(&posted.visit.session, note);
    see("/approvals")
}

fn of_rule(one: Remembered, now: ledger::Time) -> Known {
    let Remembered { id, rule, created } = one;
    let about = match (rule.arguments.strip_prefix('='), rule.arguments.as_str()) {
        (Some(exact), _) => format!("with exactly {exact}"),
        (None, "{}") => "whatever its arguments".to_owned(),
        (None, pattern) => format!("where its arguments fit {pattern}"),
    };
    let lasts = match rule.lasts {
        Lasts::Session(_) => ", while that client is connected".to_owned(),
        Lasts::First(surface) => format!(", by {surface}, after its first call"),
        Lasts::Once | Lasts::Always => String::new(),
    };
    Known {
        id,
        package: rule.package,
        action: rule.action,
        about: about + &lasts,
        since: Moment::new(created, now),
    }
}

/// What the owner says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Once,
    Session,
    Always,
    Deny,
    Forget,
}

impl Said {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "once" => Self::Once,
            "session" => Self::Session,
            "always" => Self::Always,
            "deny" => Self::Deny,
            "forget" => Self::Forget,
            _ => return None,
        })
    }
}

/// Answers a question, exactly as `haft approve` does; or forgets an answer that was remembered.
pub(super) async fn answer(
    State(console): State<Arc<Console>>,
    Path(name): Path<String>,
    posted: Posted,
) -> Response {
    let said = posted.fields.get("answer").and_then(Said::parse);
    let note = match said {
        None => Note { is_done: false, words: "That is no answer.".to_owned(), more: Vec::new() },
        Some(Said::Forget) => forget(&console, &name).await,
        Some(Said::Deny) if name == ALL => deny_all(&console).await,
        Some(said) => {
            match console.waiting().await.into_iter().find(|one| one.id.to_string() == name) {
                Some(ticket) => put(&console, &ticket, said).await,
                None => late(),
            }
        }
    };
    console.gateway.door.note(&posted.visit.session, note);
    see(if posted.fields.get("back") == Some("/") { "/" } else { "/approvals" })
}

/// Says no to everything that waits.
async fn deny_all(console: &Console) -> Note {
    let stock = console.gateway.stock().await;
    let mut refused = 0;
    for ticket in console.waiting().await {
        match stock.host.records().answer(&ticket.id, Answer::Refused, BY).await {
            Ok(is_answer) => refused += usize::from(is_answer),
            Err(error) => return unwritten(&error),
        }
    }
    if refused == 0 { late() } else { done(format!("{} refused.", count(refused, "call"))) }
}

fn late() -> Note {
    let words = "It was answered meanwhile, or ran out.".to_owned();
    Note { is_done: false, words, more: Vec::new() }
}

async fn put(console: &Console, ticket: &Ticket, said: Said) -> Note {
    let stock = console.gateway.stock().await;
    let presence = stock.policy.approval.owner_presence;
    if said != Said::Deny && presence != Presence::Any {
        let words = "Your policy wants more than this page for a yes.".to_owned();
        let more = vec![format!("At your terminal: haft approve allow {}", ticket.id)];
        return Note { is_done: false, words, more };
    }
    let lasts = match said {
        Said::Once | Said::Deny | Said::Forget => None,
        Said::Session | Said::Always if is_first(ticket) => return unfit(),
        Said::Session => match conversation(ticket) {
            Some(session) => Some((Lasts::Session(session.to_owned()), Pattern::any())),
            None => return unfit(),
        },
        Said::Always => match exactly(ticket) {
            Some(pattern) => Some((Lasts::Always, pattern)),
            None => return unfit(),
        },
    };
    let answer = if said == Said::Deny { Answer::Refused } else { Answer::Approved };
    let records = stock.host.records();
    let state = &records.state;
    match records.answer(&ticket.id, answer, BY).await {
        Ok(true) => {}
        Ok(false) => return late(),
        Err(error) => return unwritten(&error),
    }
    let (action, package) = (&ticket.asked.action, package_of(ticket));
    if said == Said::Deny {
        return done(format!("{action} of {package} is not called."));
    }
    let Some((lasts, pattern)) = lasts else {
        if is_first(ticket) {
            let surface = &ticket.asked.surface;
            return done(format!(
                "{action} of {package} may be called, and by {surface} from now on."
            ));
        }
        return done(format!("{action} of {package} may be called this once."));
    };
    let words = match lasts {
        Lasts::Session(_) => format!(
            "{action} of {package} may be called, and is not asked about while that client is connected."
        ),
        _ => format!(
            "{action} of {package} may be called, and is not asked about again with exactly these arguments."
        ),
    };
    let rule = Rule {
        package,
        action: action.clone(),
        arguments: pattern.to_string(),
        lasts,
        by: BY.to_owned(),
    };
    if let Err(error) = state.remember(&rule, now()).await {
        return unwritten(&error);
    }
    // Both cover the call that waits.
    if let Err(error) = state.spend(&ticket.id, now()).await {
        return unwritten(&error);
    }
    done(words)
}

async fn forget(console: &Console, number: &str) -> Note {
    let stock = console.gateway.stock().await;
    let Ok(id) = number.parse::<i64>() else { return late() };
    match stock.host.records().state.forget_rule(id).await {
        Ok(true) => done("It is asked again from now on."),
        Ok(false) => late(),
        Err(error) => unwritten(&error),
    }
}

fn unfit() -> Note {
    let words = "This call cannot be remembered so; nothing was answered.".to_owned();
    Note { is_done: false, words, more: Vec::new() }
}

fn unwritten(error: &StateError) -> Note {
    let words = "The answer could not be written down.".to_owned();
    Note { is_done: false, words, more: vec![host::records::whole(error)] }
}
