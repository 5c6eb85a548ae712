//! What programs of this machine said of themselves, so that they need not be asked before every call.

use super::{State, StateError};
use crate::Time;

/// How many answers are kept.
const MOST: i64 = 200;

/// What a program said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What the files looked like that the answer comes from; whoever asked knows how to read it.
    pub stamp: String,
    /// The answer.
    pub said: String,
    /// When that was.
    pub at: Time,
}

impl State {
    /// What was said when this was asked.
    pub async fn said(&self, asked: &str) -> Result<Option<Said>, StateError> {
        let row: Option<(String, String, i64)> =
            sqlx::query_as("SELECT stamp, said, at FROM machine WHERE asked = $1")
                .bind(asked)
                .fetch_optional(&mut *self.connection().await)
                .await
                .map_err(|error| self.failed("read what a program said", error))?;
        Ok(row.map(|(stamp, said, at)| Said { stamp, said, at: Time::from_unix_millis(at) }))
    }

    /// Keeps what was said when this was asked; of too much the oldest is forgotten.
    pub async fn note_said(&self, asked: &str, said: &Said) -> Result<(), StateError> {
        let failed = |error| self.failed("keep what a program said", error);
        let mut connection = self.connection().await;
        let kept = sqlx::query("INSERT OR REPLACE INTO machine VALUES ($1, $2, $3, $4)")
            .bind(asked)
            .bind(&said.stamp)
            .bind(&said.said)
            .bind(said.at.unix_millis())
            .execute(&mut *connection);
        kept.await.map_err(failed)?;
        sqlx::query(
            "DELETE FROM machine WHERE asked NOT IN \
             (SELECT asked FROM machine ORDER BY at DESC LIMIT $1)",
        )
        .bind(MOST)
        .execute(&mut *connection)
        .await
        .map_err(failed)
        .map(drop)
    }
}
