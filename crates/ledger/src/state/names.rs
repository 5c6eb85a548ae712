//! What agents call each action. A name that was given once is given to no other, also when what it stood for is gone: somebody
//! may have allowed it by that name.

use super::query::query;
use super::{State, StateError};
use crate::Time;

/// A name, and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What agents call it.
    pub exposed: String,
    /// The package, with its dialect.
    pub package: String,
    /// The action.
    pub action: String,
}

impl State {
    /// Every name that was given.
    pub async fn names(&self) -> Result<Vec<Named>, StateError> {
        let rows: Vec<(String, String, String)> =
            query("SELECT exposed, package, action FROM names ORDER BY exposed")
                .fetch_all(&mut self.connection().await?)
                .await
                .map_err(|error| self.failed("read the names of tools", error))?;
        let named = |(exposed, package, action)| Named { exposed, package, action };
        Ok(rows.into_iter().map(named).collect())
    }

    /// Keeps names that were given; whether all of them are kept. One that somebody else has kept meanwhile stays
    /// theirs, and what they named meanwhile is called as they say.
    pub async fn keep_names(&self, names: &[Named], now: Time) -> Result<bool, StateError> {
        let failed = |error| self.failed("keep the names of tools", error);
        let mut connection = self.connection().await?;
        let mut kept = true;
        for one in names {
            let new = query("INSERT INTO names VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING")
                .bind(&one.exposed)
                .bind(&one.package)
                .bind(&one.action)
                .bind(now.unix_millis())
                .execute(&mut connection)
                .await
                .map_err(failed)?;
            kept &= new == 1;
        }
        Ok(kept)
    }
}
