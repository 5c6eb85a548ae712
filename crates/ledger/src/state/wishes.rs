//! Tools that agents would have, and that their owner decides about.

use super::query::query;
use super::{State, StateError};
use crate::Time;

/// How many are kept: nobody reads more, and an agent could wish for ever.
const MOST: i64 = 100;

/// A tool that an agent would have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// What it is called, as the agent wrote it.
    pub tool: String,
    /// What for.
    pub why: String,
    /// Where the wish came from.
    pub surface: String,
    /// Which client said it, as its owner knows it, where that is known.
    pub client: Option<String>,
    /// When it was last said.
    pub at: Time,
}

impl Wish {
    /// Who said it, for people.
    pub fn by(&self) -> String {
        match &self.client {
            Some(client) => format!("{client} over {}", self.surface),
            None => self.surface.clone(),
        }
    }
}

impl State {
    /// Notes a wish; the same one again is the same. Of too many the oldest are forgotten.
    pub async fn wish(&self, wish: &Wish) -> Result<(), StateError> {
        let failed = |error| self.failed("note a wish", error);
        let mut connection = self.connection().await?;
        query(
            "INSERT INTO wishes (tool, why, surface, at, client) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (tool, why) DO UPDATE \
             SET surface = excluded.surface, at = excluded.at, client = excluded.client",
        )
        .bind(&wish.tool)
        .bind(&wish.why)
        .bind(&wish.surface)
        .bind(wish.at.unix_millis())
        .bind(wish.client.as_deref())
        .execute(&mut connection)
        .await
        .map_err(failed)?;
        query(
            "DELETE FROM wishes WHERE (tool, why) NOT IN \
             (SELECT tool, why FROM wishes ORDER BY at DESC LIMIT $1)",
        )
        .bind(MOST)
        .execute(&mut connection)
        .await
        .map_err(failed)
        .map(drop)
    }

    /// All wishes, the newest first.
    pub async fn wishes(&self) -> Result<Vec<Wish>, StateError> {
        type Row = (String, String, String, i64, Option<String>);
        let rows: Vec<Row> =
            query("SELECT tool, why, surface, at, client FROM wishes ORDER BY at DESC, tool, why")
                .fetch_all(&mut self.connection().await?)
                .await
                .map_err(|error| self.failed("read wishes", error))?;
        let wish = |(tool, why, surface, at, client)| {
            let at = Time::from_unix_millis(at);
            Wish { tool, why, surface, client, at }
        };
        Ok(rows.into_iter().map(wish).collect())
    }

    /// Forgets the wishes for a tool, or all of them; how many there were.
    pub async fn forget_wishes(&self, tool: Option<&str>) -> Result<u64, StateError> {
        query("DELETE FROM wishes WHERE $1 IS NULL OR tool = $1")
            .bind(tool)
            .execute(&mut self.connection().await?)
            .await
            .map_err(|error| self.failed("forget wishes", error))
    }
}
