//! Tickets: one question, one answer, one use.
//!
//! A call that needs approval leaves a ticket. The answer may come from any face and any process.
//! The ticket is good for the same call once: same package, same action, same arguments, same surface.

use std::fmt;

use serde_json::Value;

use super::query::query;
use super::{State, StateError};
use crate::Time;

/// The name of a ticket: 128 random bits in hex. Whoever has one can use it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TicketId(String);

/// The call that a ticket is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The digest of the package.
    pub package: String,
    /// The action.
    pub action: String,
    /// The digest of the arguments.
    pub arguments: String,
    /// Where the call came from.
    pub surface: String,
}

/// What the owner is shown of a question, as the asker writes it. It says whose the answer is, and binds nobody else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The package, the arguments and the reason, as the asker writes them.
    pub text: String,
    /// The session of the client that called.
    pub session: String,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Its name.
    pub id: TicketId,
    /// What it is for.
    pub asked: Asked,
    /// What is shown of it.
    pub shown: Shown,
    /// When it was asked.
    pub created: Time,
    /// Until when it counts.
    pub expires: Time,
}

/// What the owner says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Approved,
    /// No.
    Refused,
}

/// What became of a ticket that was to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The call may run; the ticket is used up. This is what the owner was shown.
    Approved(String),
    /// The owner said no.
    Refused,
    /// Nobody answered yet.
    Waiting,
    /// It was used before.
    Used,
    /// It is too late.
    Expired,
    /// It is for another call.
    OtherCall,
    /// There is no such ticket.
    Unknown,
}

impl Shown {
    /// The text as the value that askers write it as; nothing where it is another's.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

impl TicketId {
    /// Reads 32 small hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (text.len() == 32 && is_hex).then(|| Self(text.to_owned()))
    }

    fn new() -> Result<Self, StateError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| StateError::NoRandomness)?;
        Ok(Self(format!("{:032x}", u128::from_be_bytes(bytes))))
    }
}

impl fmt::Display for TicketId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl State {
    /// Leaves a question.
    pub async fn ask(
        &self,
        asked: &Asked,
        shown: &Shown,
        now: Time,
        expires: Time,
    ) -> Result<TicketId, StateError> {
        let id = TicketId::new()?;
        query(
            "INSERT INTO tickets \
             (id, package, action, arguments, surface, created, expires, shown, session) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(&id.0)
        .bind(&asked.package)
        .bind(&asked.action)
        .bind(&asked.arguments)
        .bind(&asked.surface)
        .bind(now.unix_millis())
        .bind(expires.unix_millis())
        .bind(&shown.text)
        .bind(&shown.session)
        .execute(&mut self.connection().await?)
        .await
        .map_err(|error| self.failed("ask for approval", error))?;
        Ok(id)
    }

    /// Answers a question; whether this was the answer. The first one counts, and none that is late.
    pub async fn answer(
        &self,
        id: &TicketId,
        answer: Answer,
        now: Time,
    ) -> Result<bool, StateError> {
        let word = match answer {
            Answer::Approved => "approved",
            Answer::Refused => "refused",
        };
        let answered = query(
            "UPDATE tickets SET answer = $2, answered = $3 \
             WHERE id = $1 AND answer IS NULL AND expires > $3",
        )
        .bind(&id.0)
        .bind(word)
        .bind(now.unix_millis())
        .execute(&mut self.connection().await?)
        .await;
        let done = answered.map_err(|error| self.failed("answer a question", error))?;
        Ok(done == 1)
    }

    /// The questions that wait for an answer, the oldest first.
    pub async fn waiting(&self, now: Time) -> Result<Vec<Ticket>, StateError> {
        type Row = (String, String, String, String, String, i64, i64, String, String);
        let rows: Vec<Row> = query(
            "SELECT id, package, action, arguments, surface, created, expires, shown, session \
             FROM tickets WHERE answer IS NULL AND expires > $1 ORDER BY created, id",
        )
        .bind(now.unix_millis())
        .fetch_all(&mut self.connection().await?)
        .await
        .map_err(|error| self.failed("list questions", error))?;
        let ticket = |row: Row| {
            let (id, package, action, arguments, surface, created, expires, text, session) = row;
            Ticket {
                id: TicketId(id),
                asked: Asked { package, action, arguments, surface },
                shown: Shown { text, session },
                created: Time::from_unix_millis(created),
                expires: Time::from_unix_millis(expires),
            }
        };
        Ok(rows.into_iter().map(ticket).collect())
    }

    /// The tickets of this very call that were answered and not used yet, the last answer first: whoever makes the same call
    /// again need not remember its ticket, and neither need whoever makes it for them.
    pub async fn answered(
        &self,
        call: &Asked,
        now: Time,
    ) -> Result<Vec<(TicketId, Shown)>, StateError> {
        let found: Vec<(String, String, String)> = query(
            "SELECT id, shown, session FROM tickets WHERE package = $1 AND action = $2 \
             AND arguments = $3 AND surface = $4 AND answer IS NOT NULL AND used IS NULL \
             AND expires > $5 ORDER BY answered DESC, id",
        )
        .bind(&call.package)
        .bind(&call.action)
        .bind(&call.arguments)
        .bind(&call.surface)
        .bind(now.unix_millis())
        .fetch_all(&mut self.connection().await?)
        .await
        .map_err(|error| self.failed("look for an answer", error))?;
        let one = |(id, text, session)| (TicketId(id), Shown { text, session });
        Ok(found.into_iter().map(one).collect())
    }

    /// Uses up a ticket without a call: what it allows is allowed by a rule from now on, and should not outlive that rule.
    pub async fn spend(&self, id: &TicketId, now: Time) -> Result<(), StateError> {
        query("UPDATE tickets SET used = $2 WHERE id = $1 AND used IS NULL")
            .bind(&id.0)
            .bind(now.unix_millis())
            .execute(&mut self.connection().await?)
            .await
            .map(drop)
            .map_err(|error| self.failed("use up a ticket", error))
    }

    /// Uses a ticket for a call. Of all processes that try, one gets [`Taken::Approved`].
    pub async fn take(&self, id: &TicketId, call: &Asked, now: Time) -> Result<Taken, StateError> {
        type Row = (String, String, String, String, Option<String>, Option<i64>, i64);
        let mut connection = self.connection().await?;
        let taken: Result<Option<(String,)>, _> = query(
            "UPDATE tickets SET used = $5 WHERE id = $1 AND package = $2 AND action = $3 \
             AND arguments = $4 AND surface = $6 AND answer = 'approved' AND used IS NULL \
             AND expires > $5 RETURNING shown",
        )
        .bind(&id.0)
        .bind(&call.package)
        .bind(&call.action)
        .bind(&call.arguments)
        .bind(now.unix_millis())
        .bind(&call.surface)
        .fetch_optional(&mut connection)
        .await;
        if let Some((shown,)) = taken.map_err(|error| self.failed("use a ticket", error))? {
            return Ok(Taken::Approved(shown));
        }
        let row: Option<Row> = query(
            "SELECT package, action, arguments, surface, answer, used, expires FROM tickets \
             WHERE id = $1",
        )
        .bind(&id.0)
        .fetch_optional(&mut connection)
        .await
        .map_err(|error| self.failed("look at a ticket", error))?;
        let Some((package, action, arguments, surface, answer, used, expires)) = row else {
            return Ok(Taken::Unknown);
        };
        let is_same = Asked { package, action, arguments, surface } == *call;
        Ok(match answer.as_deref() {
            _ if !is_same => Taken::OtherCall,
            _ if used.is_some() => Taken::Used,
            Some("refused") => Taken::Refused,
            _ if expires <= now.unix_millis() => Taken::Expired,
            _ => Taken::Waiting,
        })
    }

    /// Forgets the tickets that ran out before then; how many there were.
    pub async fn forget_tickets(&self, before: Time) -> Result<u64, StateError> {
        let gone = query("DELETE FROM tickets WHERE expires < $1")
            .bind(before.unix_millis())
            .execute(&mut self.connection().await?)
            .await;
        gone.map_err(|error| self.failed("forget tickets", error))
    }
}
