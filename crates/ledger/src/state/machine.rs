//! What programs of this machine said of themselves, so that they need not be asked before every call. Where replicas
//! share the state, each keeps its own in memory: what is true of one machine says nothing of another.

use std::collections::HashMap;
use std::sync::PoisonError;

use super::query::query;
use super::{Engine, State, StateError, stored};
use crate::Time;

/// How many answers are kept.
const MOST: usize = 200;

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
        if let Engine::Shared(_, heard) = &self.engine {
            return Ok(heard.lock().unwrap_or_else(PoisonError::into_inner).get(asked).cloned());
        }
        let row: Option<(String, String, i64)> =
            query("SELECT stamp, said, at FROM machine WHERE asked = $1")
                .bind(asked)
                .fetch_optional(&mut self.connection().await?)
                .await
                .map_err(|error| self.failed("read what a program said", error))?;
        Ok(row.map(|(stamp, said, at)| Said { stamp, said, at: Time::from_unix_millis(at) }))
    }

    /// Keeps what was said when this was asked; of too much the oldest is forgotten.
    pub async fn note_said(&self, asked: &str, said: &Said) -> Result<(), StateError> {
        if let Engine::Shared(_, heard) = &self.engine {
            keep(&mut heard.lock().unwrap_or_else(PoisonError::into_inner), asked, said);
            return Ok(());
        }
        let failed = |error| self.failed("keep what a program said", error);
        let mut connection = self.connection().await?;
        let kept = query(
            "INSERT INTO machine VALUES ($1, $2, $3, $4) ON CONFLICT (asked) DO UPDATE \
             SET stamp = excluded.stamp, said = excluded.said, at = excluded.at",
        )
        .bind(asked)
        .bind(&said.stamp)
        .bind(&said.said)
        .bind(said.at.unix_millis())
        .execute(&mut connection);
        kept.await.map_err(failed)?;
        query(
            "DELETE FROM machine WHERE asked NOT IN \
             (SELECT asked FROM machine ORDER BY at DESC LIMIT $1)",
        )
        .bind(stored(MOST as u64))
        .execute(&mut connection)
        .await
        .map_err(failed)
        .map(drop)
    }
}

/// Keeps an answer among those that are kept in memory.
fn keep(heard: &mut HashMap<String, Said>, asked: &str, said: &Said) {
    heard.insert(asked.to_owned(), said.clone());
    if heard.len() > MOST {
        let oldest = heard.iter().min_by_key(|(_, said)| said.at).map(|(asked, _)| asked.clone());
        heard.retain(|asked, _| Some(asked) != oldest.as_ref());
    }
}
