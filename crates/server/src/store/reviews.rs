//! What waits for a reviewer, and what was said of it.

use registry::{Reviewed, State, Waiting, WaitingList};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::versions::{FindError, commit, next, settle};
use super::{Store, StoreError, read, stored};
use crate::token::Scope;

const READ: &str = "look for what waits for a reviewer";
const REVIEW: &str = "keep what a reviewer says";

/// What a reviewer says of a version.
#[derive(Clone, Copy, Debug)]
pub struct Review<'r> {
    /// The id of its package.
    pub id: &'r str,
    /// The version.
    pub version: &'r str,
    /// Where it stood when it was decided that this may be said.
    pub seen: State,
    /// Where it stands from now on.
    pub state: State,
    /// Why.
    pub reason: &'r str,
    /// The id of the reviewer's token.
    pub by: &'r str,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// What became of what a reviewer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It holds.
    Said,
    /// The version stands somewhere else than whoever said it has seen.
    Moved,
}

impl Store {
    /// Some of what waits, the oldest first, among the names of a scope.
    pub async fn waiting(
        &self,
        scope: &Scope,
        offset: u32,
        limit: u32,
    ) -> Result<WaitingList, StoreError> {
        let among = match scope {
            Scope::All => "$1 = '*'",
            Scope::Namespace(_) => "p.namespace = $1",
        };
        let from = format!(
            "FROM versions v JOIN packages p ON p.id = v.package \
             WHERE v.channel = 'quarantine' AND {among}"
        );
        let counted = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) {from}"));
        let total: i64 = sqlx::query_scalar(counted)
            .bind(scope.name())
            .fetch_one(&self.pool)
            .await
            .map_err(StoreError::query(READ))?;
        let asked = sqlx::AssertSqlSafe(format!(
            "SELECT v.package, v.version, v.digest, p.namespace, v.publisher, v.published_at {from} \
             ORDER BY v.published_at, v.package, v.version LIMIT $2 OFFSET $3"
        ));
        let asked =
            sqlx::query(asked).bind(scope.name()).bind(i64::from(limit)).bind(i64::from(offset));
        let waiting = self.each(asked, READ, waiting_of).await?.rows;
        Ok(WaitingList { waiting, total: read(total) })
    }

    /// Keeps what a reviewer says; from then on it holds. Where the version has come to stand somewhere else
    /// meanwhile nothing is kept: look again who may say that.
    pub async fn review(&self, review: &Review<'_>) -> Result<Kept, FindError> {
        let mut change = self.change(REVIEW).await?;
        let connection = &mut *change.transaction;
        let number = next(connection, REVIEW).await?;
        let done = sqlx::query(
            "UPDATE versions SET channel = $1, review_reason = $2, updated_at = $5 \
             WHERE package = $3 AND version = $4 AND channel = $6",
        )
        .bind(review.state.name())
        .bind(Some(review.reason).filter(|reason| !reason.is_empty()))
        .bind(review.id)
        .bind(review.version)
        .bind(stored(review.at))
        .bind(review.seen.name())
        .execute(&mut *connection)
        .await
        .map_err(StoreError::query(REVIEW))?;
        if done.rows_affected() == 0 {
            return Ok(Kept::Moved);
        }
        sqlx::query(
            "INSERT INTO reviews (package, version, number, channel, reason, reviewer, at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(review.id)
        .bind(review.version)
        .bind(number)
        .bind(review.state.name())
        .bind(review.reason)
        .bind(review.by)
        .bind(stored(review.at))
        .execute(&mut *connection)
        .await
        .map_err(StoreError::query(REVIEW))?;
        settle(connection, review.id, number, REVIEW).await?;
        commit(change, REVIEW).await?;
        Ok(Kept::Said)
    }

    /// Everything that was said of a version, the oldest first.
    pub async fn reviews(&self, id: &str, version: &str) -> Result<Vec<Reviewed>, StoreError> {
        let asked = sqlx::query(
            "SELECT channel, reason, reviewer, at FROM reviews WHERE package = $1 AND version = $2 \
             ORDER BY number",
        )
        .bind(id)
        .bind(version);
        let said = |row: &AnyRow| -> Result<Reviewed, sqlx::Error> {
            let channel: String = row.try_get(0)?;
            Ok(Reviewed {
                channel: State::named(&channel).unwrap_or(State::Rejected),
                reason: row.try_get(1)?,
                reviewer: row.try_get(2)?,
                at: read(row.try_get(3)?),
            })
        };
        Ok(self.each(asked, READ, said).await?.rows)
    }
}

fn waiting_of(row: &AnyRow) -> Result<Waiting, sqlx::Error> {
    Ok(Waiting {
        id: row.try_get(0)?,
        version: row.try_get(1)?,
        sha256: row.try_get(2)?,
        namespace: row.try_get(3)?,
        publisher: row.try_get(4)?,
        published_at: read(row.try_get(5)?),
    })
}
