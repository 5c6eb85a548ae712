//! What was seen last, to be compared with what is seen next.
//!
//! A pin is text that a caller can compare. Secrets have no place here: of a token its scopes
//! and its end are kept, the token itself is in the vault.

use super::query::query;
use super::{State, StateError};
use crate::Time;

/// What a pin is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PinKind {
    /// The era of the protocol that an MCP server speaks.
    Era,
    /// What is known of a token, without the token.
    Token,
}

/// What is pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The text.
    pub value: String,
    /// Since when.
    pub pinned: Time,
}

impl PinKind {
    fn name(self) -> &'static str {
        match self {
            PinKind::Era => "era",
            PinKind::Token => "token",
        }
    }
}

impl State {
    /// Pins a text in the place of another.
    pub async fn pin(
        &self,
        kind: PinKind,
        subject: &str,
        value: &str,
        now: Time,
    ) -> Result<(), StateError> {
        let done = query(
            "INSERT INTO pins (kind, subject, value, pinned) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (kind, subject) DO UPDATE \
             SET value = excluded.value, pinned = excluded.pinned",
        )
        .bind(kind.name())
        .bind(subject)
        .bind(value)
        .bind(now.unix_millis())
        .execute(&mut self.connection().await?)
        .await;
        done.map(drop).map_err(|error| self.failed("pin", error))
    }

    /// What is pinned.
    pub async fn pinned(&self, kind: PinKind, subject: &str) -> Result<Option<Pin>, StateError> {
        let row: Option<(String, i64)> =
            query("SELECT value, pinned FROM pins WHERE kind = $1 AND subject = $2")
                .bind(kind.name())
                .bind(subject)
                .fetch_optional(&mut self.connection().await?)
                .await
                .map_err(|error| self.failed("look at a pin", error))?;
        let pin = |(value, pinned)| Pin { value, pinned: Time::from_unix_millis(pinned) };
        Ok(row.map(pin))
    }

    /// Forgets a pin; whether there was one.
    pub async fn unpin(&self, kind: PinKind, subject: &str) -> Result<bool, StateError> {
        let gone = query("DELETE FROM pins WHERE kind = $1 AND subject = $2")
            .bind(kind.name())
            .bind(subject)
            .execute(&mut self.connection().await?)
            .await;
        Ok(gone.map_err(|error| self.failed("unpin", error))? == 1)
    }
}
