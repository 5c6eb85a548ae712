//! Questions to the owner. Whoever has the owner before it asks while the call waits; an agent cannot answer for
//! them, so its questions are left as tickets.

use std::sync::Arc;
use std::time::Duration;

use ledger::Time;
use ledger::state::approvals::{Asked, Shown, Taken, TicketId};
use ledger::state::rules::Lasts;
use policy::{Answer, Decision, Pattern, Question, Surface, Verdict, Who, digest_of};
use serde_json::{Value, json};

use super::foreseeing::{self, Foreseen};
use super::{Host, Prepared, broken_off};
use crate::call::{Approver, AskedStep, Call, Matter, Said, Tool, Unasked};
use crate::error::{CallError, Kind};
use crate::records::{broken, now};

/// How many questions may wait for the owner: nobody reads more, and an agent could ask for ever.
const MOST_WAITING: usize = 100;

/// How many of them may be of one client, so that it does not take the place of all others.
const MOST_OF_ONE: usize = 40;

/// When there may be room again, in seconds.
const ROOM_AFTER: u32 = 60;

/// How long a ticket that ran out is remembered, so that whoever comes with it is told why.
const REMEMBERED: Duration = Duration::from_hours(24);

/// What the owner is asked.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) question: &'a Question,
    /// What the tool would have them told.
    pub(super) message: Option<&'a str>,
    /// Of a chain: what would be decided of its steps.
    pub(super) steps: &'a [Foreseen],
}

impl Asking<'_> {
    /// What an answer is for: these arguments, and of a chain the steps that are shown with them.
    fn digest(&self) -> String {
        let steps = self.steps_to_value();
        match steps.as_array() {
            Some(shown) if !shown.is_empty() => digest_of(&json!([self.question.digest, steps])),
            _ => self.question.digest.clone(),
        }
    }

    fn steps_to_value(&self) -> Value {
        foreseeing::asked(self.steps).iter().map(AskedStep::to_value).collect()
    }
}

impl Host {
    /// What the owner answers, or answered before: to an agent's question, by the ticket it came with. Without
    /// a ticket, or while nobody has answered, the question stands, and the error names its ticket.
    pub(super) async fn ask_owner(
        &self,
        tool: &Tool,
        call: &Call,
        prepared: &Prepared<'_>,
        asking: Asking<'_>,
    ) -> Result<Answer, CallError> {
        let Asking { question, message, steps } = asking;
        if let Some(approver) = &call.approver {
            return self.ask_now(approver, tool, call, prepared, asking).await;
        }
        let Surface::Agent { session, who, .. } = &call.surface else {
            return Err(shown_of(prepared, asking));
        };
        let asked = Asked {
            package: tool.package.raw_sha256.clone(),
            action: prepared.action.name.clone(),
            arguments: asking.digest(),
            surface: call.surface.name().to_owned(),
        };
        let input = &prepared.input;
        let input = if input.arguments.is_whole() {
            input.arguments.value().clone()
        } else {
            Value::String(input.shown())
        };
        let mut told = json!({
            "package": tool.package.canonical_id(),
            "input": input,
            "because": question.why.words(),
            "message": message,
            "is_first": question.is_first,
            "folder": call.folder.to_string_lossy(),
            "client": who.name,
            "has_token": who.has_token,
            "by": call.surface.client(),
            "client_says": who.says,
        });
        if tool.package.chain.is_some() {
            told["steps"] = asking.steps_to_value();
        }
        let by = By { session, who, told: &told };
        let Some((ticket, taken)) = self.taken(call.ticket.as_ref(), &asked, &by).await? else {
            let (ticket, expires) = self.leave(&asked, &by, question).await?;
            return Err(shown_of(prepared, asking)
                .with("ticket", ticket.to_string())
                .with("expires", expires.to_string()));
        };
        let refused = |words: &str| Err(CallError::new(Kind::Denied, words).by("approval"));
        match taken {
            Taken::Approved(shown) => {
                // A tool may have said otherwise then; the owner answered what they were shown.
                let shown: Value = serde_json::from_str(&shown).unwrap_or_default();
                if question.is_first && shown["is_first"] == true {
                    let lasts = Lasts::First(call.surface.name().to_owned());
                    self.records.remember(tool, &asked.action, &Pattern::any(), lasts).await?;
                    self.remember_steps(steps, call).await?;
                }
                Ok(Answer::Approved { digest: question.digest.clone() })
            }
            Taken::Refused => Ok(Answer::Refused),
            Taken::Waiting => Err(shown_of(prepared, asking).with("ticket", ticket.to_string())),
            Taken::Used => refused("this approval was used already"),
            Taken::Expired => refused("this approval ran out before it was used"),
            Taken::OtherCall => refused("this approval is for another call"),
            Taken::Unknown => refused("there is no such approval"),
        }
    }

    /// Uses the ticket that a call came with, or one by which the same call was answered, where there is any. A no counts for
    /// as long as a yes would have.
    async fn taken(
        &self,
        brought: Option<&TicketId>,
        asked: &Asked,
        by: &By<'_>,
    ) -> Result<Option<(TicketId, Taken)>, CallError> {
        let state = &self.records.state;
        if let Some(ticket) = brought {
            let taken = state.take(ticket, asked, now()).await.map_err(|error| broken(&error))?;
            return Ok(Some((ticket.clone(), taken)));
        }
        let found = state.answered(asked, now()).await.map_err(|error| broken(&error))?;
        for (ticket, _) in found.into_iter().filter(|(_, shown)| by.has_asked(shown)) {
            // Somebody else who asked the same may have been quicker.
            match state.take(&ticket, asked, now()).await.map_err(|error| broken(&error))? {
                Taken::Used | Taken::Expired | Taken::Unknown => {}
                taken => return Ok(Some((ticket, taken))),
            }
        }
        Ok(None)
    }

    /// Refuses a call that the owner has to be asked about whatever the tool says, where nobody can be asked and
    /// nothing can be left for them.
    pub(super) fn check_askable(decision: &Decision, call: &Call) -> Result<(), CallError> {
        let Verdict::Ask(question) = &decision.verdict else { return Ok(()) };
        let is_askable = match &call.approver {
            Some(approver) => approver.is_there(),
            None => matches!(call.surface, Surface::Agent { .. }),
        };
        if is_askable { Ok(()) } else { Err(needed(question)) }
    }

    /// Asks the owner, who is there, and remembers what is to be remembered.
    async fn ask_now(
        &self,
        approver: &Arc<dyn Approver>,
        tool: &Tool,
        call: &Call,
        prepared: &Prepared<'_>,
        asking: Asking<'_>,
    ) -> Result<Answer, CallError> {
        let Asking { question, message, steps } = asking;
        let asked = foreseeing::asked(steps);
        // What a later version of a chain would do was not shown with this one.
        let exact = Pattern::exactly(&prepared.input.arguments).filter(|_| asked.is_empty());
        let matter = Matter {
            package: tool.package.canonical_id(),
            action: prepared.action.name.clone(),
            input: prepared.input.shown(),
            question: question.clone(),
            message: message.map(str::to_owned),
            can_be_remembered: exact.is_some(),
            steps: asked,
        };
        let approver = Arc::clone(approver);
        let asked = tokio::task::spawn_blocking(move || approver.ask(&matter));
        let said = tokio::select! {
            said = asked => said.unwrap_or_else(|error| Err(broken_off(&error)))?,
            () = call.called_off.cancelled() => return Err(CallError::called_off()),
        };
        let action = &prepared.action.name;
        match (said, exact) {
            (None, _) => return Err(shown_of(prepared, asking)),
            (Some(Said::No), _) => return Ok(Answer::Refused),
            (Some(Said::Always), _) if question.is_first => {
                let lasts = Lasts::First(call.surface.name().to_owned());
                self.records.remember(tool, action, &Pattern::any(), lasts).await?;
                self.remember_steps(steps, call).await?;
            }
            (Some(Said::Always), Some(exact)) => {
                self.records.remember(tool, action, &exact, Lasts::Always).await?;
            }
            (Some(Said::Always), None) | (Some(Said::Once), _) => {}
        }
        Ok(Answer::Approved { digest: question.digest.clone() })
    }

    /// Remembers that steps which are asked about for the first time only were shown, and allowed.
    async fn remember_steps(&self, steps: &[Foreseen], call: &Call) -> Result<(), CallError> {
        for one in steps.iter().filter(|one| one.question().is_some_and(|asked| asked.is_first)) {
            let lasts = Lasts::First(call.surface.name().to_owned());
            let (tool, action) = (&one.target.tool, &one.target.action);
            self.records.remember(tool, action, &Pattern::any(), lasts).await?;
        }
        Ok(())
    }

    /// Leaves a question for the owner, or finds the same one, which still waits.
    async fn leave(
        &self,
        asked: &Asked,
        by: &By<'_>,
        question: &Question,
    ) -> Result<(TicketId, Time), CallError> {
        // Who asks the same at the same time finds the question that is left here.
        let _turn = self.records.asking.lock().await;
        let (state, now) = (&self.records.state, now());
        let before = |time: Time| now.unix_millis() - time.unix_millis();
        let waiting = state.waiting(now).await.map_err(|error| broken(&error))?;
        let same = waiting.iter().find(|one| one.asked == *asked && by.would_ask(&one.shown));
        if let Some(one) = same.filter(|one| before(one.created) >= 0) {
            return Ok((one.id.clone(), one.expires));
        }
        let of_one = waiting.iter().filter(|one| one.shown.value()["by"] == by.told["by"]).count();
        if waiting.len() >= MOST_WAITING || of_one >= MOST_OF_ONE {
            let count = waiting.len();
            let message = format!(
                "{count} questions already wait for the owner, {of_one} of them yours; there is room when some are answered, or have run out"
            );
            let error = CallError::new(Kind::Unavailable, message);
            return Err(CallError { passes_after: Some(ROOM_AFTER), ..error });
        }
        let old = now.minus(REMEMBERED);
        state.forget_tickets(old).await.map_err(|error| broken(&error))?;
        let expires = now.plus(Duration::from_secs(question.expires_seconds));
        let shown = Shown { text: by.told.to_string(), session: by.session.to_owned() };
        let id = state.ask(asked, &shown, now, expires).await;
        id.map(|id| (id, expires)).map_err(|error| broken(&error))
    }
}

/// Who asks, and what they would have the owner shown.
struct By<'b> {
    session: &'b str,
    who: &'b Who,
    told: &'b Value,
}

impl By<'_> {
    /// Whether a question was theirs: in this conversation, or in another that they had in the same folder under a name that is
    /// theirs alone, with a program that says it is the same. Some clients begin a new conversation for every call.
    fn has_asked(&self, shown: &Shown) -> bool {
        if shown.session == self.session {
            return true;
        }
        let before = shown.value();
        let is_same = |key: &str| before[key] == self.told[key];
        self.who.is_known()
            && self.who.says.is_some()
            && ["client", "has_token", "client_says", "folder"].into_iter().all(is_same)
    }

    /// Whether a question of theirs waits by which the owner is shown the same. What one conversation asks of several replicas
    /// is asked from the folder of each.
    fn would_ask(&self, shown: &Shown) -> bool {
        let mut before = shown.value();
        for key in ["by", "folder"] {
            before[key] = self.told[key].clone();
        }
        before == *self.told && self.has_asked(shown)
    }
}

/// The owner has to be asked first.
pub(super) fn needed(question: &Question) -> CallError {
    unasked(Unasked { question: question.clone(), input: None, steps: Vec::new() })
}

/// The same, with what they are shown.
fn shown_of(prepared: &Prepared<'_>, asking: Asking<'_>) -> CallError {
    let Asking { question, message, steps } = asking;
    let (question, steps) = (question.clone(), foreseeing::asked(steps));
    let error = unasked(Unasked { question, input: Some(prepared.input.shown()), steps });
    match message {
        Some(message) => error.with("message", message),
        None => error,
    }
}

fn unasked(open: Unasked) -> CallError {
    let words = format!("the owner has to be asked, because {}", open.question.why.words());
    let rule = open.question.rule;
    CallError::new(Kind::NeedsApproval(Box::new(open)), words).by(rule)
}
