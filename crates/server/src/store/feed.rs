//! What has changed since.

use sqlx::Row;

use super::{Store, StoreError};

/// A package that has changed, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its id.
    pub id: String,
    /// The number of its last change.
    pub number: i64,
    /// What is found of it; none when all versions were taken back.
    pub offered: Option<Offered>,
}

/// What is found of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// What the index is made from.
    pub entry: Vec<u8>,
    /// What finding it answers.
    pub found: String,
}

const READ: &str = "read what has changed";

impl Store {
    /// The packages that were changed after the change of this number, in order, at most `limit`.
    ///
    /// Changes become visible in the order of their numbers, so none before the last that is given is left out.
    pub async fn changes(&self, after: i64, limit: u32) -> Result<Vec<Changed>, StoreError> {
        let rows = sqlx::query(
            "SELECT p.id, p.changed, v.entry, v.found FROM packages p \
             LEFT JOIN versions v ON v.package = p.id AND v.version = p.latest \
             WHERE p.changed > $1 ORDER BY p.changed LIMIT $2",
        )
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(StoreError::query(READ))?;
        rows.iter().map(|row| changed(row).map_err(StoreError::query(READ))).collect()
    }
}

fn changed(row: &sqlx::any::AnyRow) -> Result<Changed, sqlx::Error> {
    let entry: Option<Vec<u8>> = row.try_get(2)?;
    let found: Option<String> = row.try_get(3)?;
    let offered = entry.zip(found).map(|(entry, found)| Offered { entry, found });
    Ok(Changed { id: row.try_get(0)?, number: row.try_get(1)?, offered })
}
