//! Whose identities are trusted.

use registry::{NewPublisher, Publisher};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Store, StoreError, read, stored};

const KEEP: &str = "keep a trusted publisher";
const READ: &str = "look for trusted publishers";

impl Store {
    /// Keeps a rule; the same rule again changes nothing.
    pub async fn keep_publisher(
        &self,
        id: &str,
        rule: &NewPublisher,
        created_at: u64,
    ) -> Result<(), StoreError> {
        let text = serde_json::to_string(rule).unwrap_or_default();
        let mut change = self.change(KEEP).await?;
        sqlx::query(
            "INSERT INTO publishers (id, issuer, namespace, rule, created_at) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING",
        )
        .bind(id)
        .bind(&rule.issuer)
        .bind(&rule.namespace)
        .bind(text)
        .bind(stored(created_at))
        .execute(&mut *change.transaction)
        .await
        .map_err(StoreError::query(KEEP))?;
        change.transaction.commit().await.map_err(StoreError::query(KEEP))
    }

    /// All rules that can be read, the oldest first.
    pub async fn publishers(&self) -> Result<Vec<Publisher>, StoreError> {
        let asked =
            sqlx::query("SELECT id, rule, created_at FROM publishers ORDER BY created_at, id");
        Ok(self.each(asked, READ, publisher_of).await?.rows)
    }

    /// The ids of rules that cannot be read; nobody is trusted by them.
    pub async fn unreadable_publishers(&self) -> Result<Vec<String>, StoreError> {
        let readable = self.publishers().await?.into_iter().map(|rule| rule.id).collect();
        self.ids_unread(sqlx::query("SELECT id FROM publishers ORDER BY id"), READ, readable).await
    }

    /// The rules of an issuer.
    pub async fn publishers_of(&self, issuer: &str) -> Result<Vec<Publisher>, StoreError> {
        let asked = sqlx::query("SELECT id, rule, created_at FROM publishers WHERE issuer = $1");
        Ok(self.each(asked.bind(issuer), READ, publisher_of).await?.rows)
    }

    /// Removes a rule; says whether there was one.
    pub async fn remove_publisher(&self, id: &str) -> Result<bool, StoreError> {
        let mut change = self.change(KEEP).await?;
        let done = sqlx::query("DELETE FROM publishers WHERE id = $1")
            .bind(id)
            .execute(&mut *change.transaction)
            .await
            .map_err(StoreError::query(KEEP))?;
        change.transaction.commit().await.map_err(StoreError::query(KEEP))?;
        Ok(done.rows_affected() > 0)
    }
}

/// A row that cannot be read trusts nobody.
fn publisher_of(row: &AnyRow) -> Result<Publisher, sqlx::Error> {
    let rule: String = row.try_get(1)?;
    let rule: NewPublisher =
        registry::read(rule.as_bytes()).map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(Publisher::new(row.try_get(0)?, rule, read(row.try_get(2)?)))
}
