//! Who else may publish a package.

use sqlx::Row;

use super::{Store, StoreError, asking, stored};

const READ: &str = "look for owners";
const CHANGE: &str = "change owners";

/// The most owners of one package, beside its own namespace.
pub const MOST: usize = 100;

/// What became of a change of owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is done.
    Done,
    /// It was so already.
    Unchanged,
    /// There are too many.
    TooMany,
}

impl Store {
    /// The namespaces that own a package beside its own, by name.
    pub async fn owners(&self, id: &str) -> Result<Vec<String>, StoreError> {
        let asked = "SELECT namespace FROM owners WHERE package = $1 ORDER BY namespace";
        Ok(self.each(sqlx::query(asked).bind(id), READ, |row| row.try_get(0)).await?.rows)
    }

    /// Whether a namespace owns a package beside its own.
    pub async fn is_owner(&self, id: &str, namespace: &str) -> Result<bool, StoreError> {
        let _asking = asking(READ);
        let found: Option<i64> =
            sqlx::query_scalar("SELECT added_at FROM owners WHERE package = $1 AND namespace = $2")
                .bind(id)
                .bind(namespace)
                .fetch_optional(&self.pool)
                .await
                .map_err(StoreError::query(READ))?;
        Ok(found.is_some())
    }

    /// Adds an owner, and notes who did.
    pub async fn add_owner(
        &self,
        id: &str,
        namespace: &str,
        by: &str,
        now: u64,
    ) -> Result<Changed, StoreError> {
        let mut change = self.change(CHANGE).await?;
        let connection = &mut *change.transaction;
        let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM owners WHERE package = $1")
            .bind(id)
            .fetch_one(&mut *connection)
            .await
            .map_err(StoreError::query(CHANGE))?;
        if usize::try_from(count).unwrap_or(usize::MAX) >= MOST {
            return Ok(Changed::TooMany);
        }
        let done = sqlx::query(
            "INSERT INTO owners (package, namespace, added_by, added_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (package, namespace) DO NOTHING",
        )
        .bind(id)
        .bind(namespace)
        .bind(by)
        .bind(stored(now))
        .execute(&mut *connection)
        .await
        .map_err(StoreError::query(CHANGE))?;
        change.transaction.commit().await.map_err(StoreError::query(CHANGE))?;
        Ok(if done.rows_affected() == 0 { Changed::Unchanged } else { Changed::Done })
    }

    /// Removes an owner.
    pub async fn remove_owner(&self, id: &str, namespace: &str) -> Result<Changed, StoreError> {
        let mut change = self.change(CHANGE).await?;
        let done = sqlx::query("DELETE FROM owners WHERE package = $1 AND namespace = $2")
            .bind(id)
            .bind(namespace)
            .execute(&mut *change.transaction)
            .await
            .map_err(StoreError::query(CHANGE))?;
        change.transaction.commit().await.map_err(StoreError::query(CHANGE))?;
        Ok(if done.rows_affected() == 0 { Changed::Unchanged } else { Changed::Done })
    }
}
