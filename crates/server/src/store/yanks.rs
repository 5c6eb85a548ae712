//! Taking back a version, and offering it again.

use super::versions::{FindError, commit, next, settle};
use super::{Store, StoreError, stored};
use crate::store::tokens::Token;
use crate::token::Role;

const YANK: &str = "take back a version";

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yanked {
    /// It is so.
    Done,
    /// Somebody who may do more took it back: whoever only publishes does not change that.
    Held,
}

impl Store {
    /// Takes back a version, or offers it again: then there is no reason. Who did so is kept, and what was taken
    /// back by more than a publisher is not changed by one.
    pub async fn yank(
        &self,
        id: &str,
        version: &str,
        reason: Option<&str>,
        by: &Token,
        now: u64,
    ) -> Result<Yanked, FindError> {
        let mut change = self.change(YANK).await?;
        let connection = &mut *change.transaction;
        let number = next(connection, YANK).await?;
        let held: Option<Option<String>> = sqlx::query_scalar(
            "SELECT yanked_as FROM versions WHERE package = $1 AND version = $2",
        )
        .bind(id)
        .bind(version)
        .fetch_optional(&mut *connection)
        .await
        .map_err(StoreError::query(YANK))?;
        let held = held.ok_or(FindError::NoVersion)?;
        // From `next` on nobody else changes anything, so it is still so below.
        if by.role == Role::Publish && held.is_some_and(|role| role != Role::Publish.name()) {
            return Ok(Yanked::Held);
        }
        sqlx::query(
            "UPDATE versions SET yanked_at = $1, yank_reason = $2, yanked_by = $3, yanked_as = $4, \
             updated_at = $5 WHERE package = $6 AND version = $7",
        )
        .bind(reason.map(|_| stored(now)))
        .bind(reason)
        .bind(reason.map(|_| by.id.as_str()))
        .bind(reason.map(|_| by.role.name()))
        .bind(stored(now))
        .bind(id)
        .bind(version)
        .execute(&mut *connection)
        .await
        .map_err(StoreError::query(YANK))?;
        settle(connection, id, number, YANK).await?;
        commit(change, YANK).await?;
        Ok(Yanked::Done)
    }
}
