//! What agents call each action. A name that was given once is given to no other, also when what it stood for is gone: somebody
//! may have allowed it by that name.

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
            sqlx::query_as("SELECT exposed, package, action FROM names ORDER BY exposed")
                .fetch_all(&mut *self.connection().await)
                .await
                .map_err(|error| self.failed("read the names of tools", error))?;
        let named = |(exposed, package, action)| Named { exposed, package, action };
        Ok(rows.into_iter().map(named).collect())
    }

    /// Keeps names that were given; one that somebody else has kept meanwhile stays theirs.
    pub async fn keep_names(&self, names: &[Named], now: Time) -> Result<(), StateError> {
        let failed = |error| self.failed("keep the names of tools", error);
        let mut connection = self.connection().await;
        for one in names {
            sqlx::query("INSERT OR IGNORE INTO names VALUES ($1, $2, $3, $4)")
                .bind(&one.exposed)
                .bind(&one.package)
                .bind(&one.action)
                .bind(now.unix_millis())
                .execute(&mut *connection)
                .await
                .map_err(failed)?;
        }
        Ok(())
    }
}
