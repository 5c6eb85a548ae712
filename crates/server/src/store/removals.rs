//! Package files that no version has.
//!
//! A file is removed in two steps, so that nobody who publishes the same bytes at the same moment is left with a
//! version without its file, whoever is killed and whenever:
//!
//! 1. [`Store::mark`] notes, durably, that the file is going to be removed.
//! 2. [`Store::remove_marked`] removes it, while nobody else changes anything and no version has it, and notes that
//!    it is gone. The note stays for [`KEPT`].
//!
//! Whoever publishes first puts the file there and then, in the step that makes the version known, looks for a
//! note. Where there is one the file may be gone: the note is taken away, nothing is published, and all of it
//! begins again with putting the file there. Where there is none, nobody has removed it since.
//!
//! A note without an end is of somebody who was killed half-way; the order to remove the file may still be on its
//! way to a bucket. Until [`UNDERWAY`] has passed whoever publishes these bytes is asked to come again.

use std::future::Future;
use std::time::Duration;

use package::digest::Digest;
use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::{Changing, Store, StoreError, read, stored};

/// How long an order to a store of files may be under way.
pub const UNDERWAY: Duration = Duration::from_mins(10);
/// How long a note stays after the file is gone: longer than anybody takes from putting a file to publishing it.
pub const KEPT: Duration = Duration::from_hours(48);
/// How many files are asked about at once.
pub const BATCH: usize = 200;

const REMOVE: &str = "remove package files";

/// What whoever publishes finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// Nobody has removed the file.
    None,
    /// It may be gone: put it there again.
    Gone,
    /// It may be removed at any moment.
    Underway,
}

/// What became of a file that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// Somebody has published it meanwhile.
    Kept,
}

/// Looks for a note on a file, and takes it away where the file may be gone.
pub(super) async fn look(
    connection: &mut AnyConnection,
    digest: &str,
    now: u64,
    doing: &'static str,
) -> Result<Note, StoreError> {
    let found = sqlx::query("SELECT marked_at, removed_at FROM removals WHERE digest = $1")
        .bind(digest)
        .fetch_optional(&mut *connection)
        .await
        .map_err(StoreError::query(doing))?;
    let Some(row) = found else { return Ok(Note::None) };
    let marked_at: i64 = row.try_get(0).map_err(StoreError::query(doing))?;
    let removed_at: Option<i64> = row.try_get(1).map_err(StoreError::query(doing))?;
    let limit = u64::try_from(UNDERWAY.as_millis()).unwrap_or(u64::MAX);
    if removed_at.is_none() && now.abs_diff(read(marked_at)) < limit {
        return Ok(Note::Underway);
    }
    forget(connection, digest, doing).await?;
    Ok(Note::Gone)
}

async fn forget(
    connection: &mut AnyConnection,
    digest: &str,
    doing: &'static str,
) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM removals WHERE digest = $1")
        .bind(digest)
        .execute(connection)
        .await
        .map(drop)
        .map_err(StoreError::query(doing))
}

impl Store {
    /// Those of these files that no version has; at most [`BATCH`] are asked about.
    pub async fn unused(&self, digests: &[Digest]) -> Result<Vec<Digest>, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(StoreError::query(REMOVE))?;
        unused(&mut connection, digests).await
    }

    /// Notes that files are going to be removed; those of them that no version has.
    pub async fn mark(&self, digests: &[Digest], now: u64) -> Result<Vec<Digest>, StoreError> {
        let mut change = self.alone().await?;
        let unused = unused(&mut change.transaction, digests).await?;
        for digest in &unused {
            sqlx::query(
                "INSERT INTO removals (digest, marked_at, removed_at) VALUES ($1, $2, NULL) \
                 ON CONFLICT (digest) DO UPDATE SET marked_at = $3, removed_at = NULL",
            )
            .bind(digest.to_string())
            .bind(stored(now))
            .bind(stored(now))
            .execute(&mut *change.transaction)
            .await
            .map_err(StoreError::query(REMOVE))?;
        }
        change.transaction.commit().await.map_err(StoreError::query(REMOVE))?;
        Ok(unused)
    }

    /// Removes a file that was marked, unless somebody has published it since.
    pub async fn remove_marked<E: From<StoreError>>(
        &self,
        digest: Digest,
        now: u64,
        remove: impl Future<Output = Result<(), E>>,
    ) -> Result<Removal, E> {
        let mut change = self.alone().await?;
        let connection = &mut *change.transaction;
        let marked: Option<i64> = sqlx::query_scalar(
            "SELECT marked_at FROM removals WHERE digest = $1 AND removed_at IS NULL",
        )
        .bind(digest.to_string())
        .fetch_optional(&mut *connection)
        .await
        .map_err(StoreError::query(REMOVE))?;
        if marked.is_none() || unused(connection, &[digest]).await?.is_empty() {
            return Ok(Removal::Kept);
        }
        remove.await?;
        sqlx::query("UPDATE removals SET removed_at = $1 WHERE digest = $2")
            .bind(stored(now))
            .bind(digest.to_string())
            .execute(connection)
            .await
            .map_err(StoreError::query(REMOVE))?;
        change.transaction.commit().await.map_err(StoreError::query(REMOVE))?;
        Ok(Removal::Removed)
    }

    /// Takes away notes that nobody needs any more.
    pub async fn forget_removals(&self, now: u64) -> Result<(), StoreError> {
        let kept = u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX);
        let mut change = self.alone().await?;
        sqlx::query("DELETE FROM removals WHERE removed_at < $1")
            .bind(stored(now.saturating_sub(kept)))
            .execute(&mut *change.transaction)
            .await
            .map_err(StoreError::query(REMOVE))?;
        change.transaction.commit().await.map_err(StoreError::query(REMOVE))
    }

    /// Begins a change during which nobody publishes.
    async fn alone(&self) -> Result<Changing<'_>, StoreError> {
        let mut change = self.change(REMOVE).await?;
        sqlx::query("UPDATE feed SET number = number")
            .execute(&mut *change.transaction)
            .await
            .map_err(StoreError::query(REMOVE))?;
        Ok(change)
    }
}

async fn unused(
    connection: &mut AnyConnection,
    digests: &[Digest],
) -> Result<Vec<Digest>, StoreError> {
    if digests.is_empty() {
        return Ok(Vec::new());
    }
    let places: Vec<String> = (1..=digests.len()).map(|place| format!("${place}")).collect();
    let asked =
        format!("SELECT DISTINCT digest FROM versions WHERE digest IN ({})", places.join(", "));
    let mut query = sqlx::query_scalar::<_, String>(AssertSqlSafe(asked));
    for digest in digests {
        query = query.bind(digest.to_string());
    }
    let used = query.fetch_all(connection).await.map_err(StoreError::query(REMOVE))?;
    let used: std::collections::BTreeSet<String> = used.into_iter().collect();
    Ok(digests.iter().filter(|digest| !used.contains(&digest.to_string())).copied().collect())
}
