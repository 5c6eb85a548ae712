//! What has changed since.

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::each::is_unreadable;
use super::{Store, StoreError, asking};

/// A package that has changed, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its id.
    pub id: String,
    /// The number of its last change.
    pub number: i64,
    /// Whose names it is among.
    pub namespace: String,
    /// Its name in the MCP world, where it is a server.
    pub server: Option<String>,
    /// What is found of it; none when no version is offered to everybody.
    pub offered: Option<Offered>,
    /// What those find who ask for beta versions, where it is something else.
    pub ahead: Option<Offered>,
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
        let _asking = asking(READ);
        match self.rows(after, limit).await {
            Ok(changes) => Ok(changes),
            // One row that cannot be read must not hide the others.
            Err(error) if is_unreadable(&error) => self.rows_one_by_one(after, limit).await,
            Err(error) => Err(StoreError::query(READ)(error)),
        }
    }

    /// What is found of the packages that were changed after the change of this number, in order, at most `limit`:
    /// for whoever has the index already. One row that cannot be read makes all of it useless.
    pub async fn found(&self, after: i64, limit: u32) -> Result<Vec<Changed>, StoreError> {
        let columns = "p.id, p.changed, v.found, p.namespace, b.found, p.server_name";
        let rows = self.columns(columns, after, limit).await.map_err(StoreError::query(READ))?;
        let offered =
            |found: Option<String>| found.map(|found| Offered { entry: Vec::new(), found });
        let changed = |row: &AnyRow| -> Result<Changed, sqlx::Error> {
            Ok(Changed {
                id: row.try_get(0)?,
                number: row.try_get(1)?,
                namespace: row.try_get(3)?,
                server: row.try_get(5)?,
                offered: offered(row.try_get(2)?),
                ahead: offered(row.try_get(4)?),
            })
        };
        rows.iter().map(changed).collect::<Result<_, _>>().map_err(StoreError::query(READ))
    }

    /// The package whose last change is the one of this number.
    pub async fn changed_at(&self, number: i64) -> Result<Option<String>, StoreError> {
        sqlx::query_scalar("SELECT id FROM packages WHERE changed = $1")
            .bind(number)
            .fetch_optional(&self.pool)
            .await
            .map_err(StoreError::query(READ))
    }

    async fn rows(&self, after: i64, limit: u32) -> Result<Vec<Changed>, sqlx::Error> {
        let columns =
            "p.id, p.changed, v.entry, v.found, p.namespace, b.entry, b.found, p.server_name";
        let rows = self.columns(columns, after, limit).await?;
        rows.iter().map(changed).collect()
    }

    /// These columns of the packages that have changed (`p`), of what is offered of each (`v`), and of what is ahead of
    /// that (`b`).
    async fn columns(
        &self,
        columns: &'static str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        let asked = format!(
            "SELECT {columns} FROM packages p \
             LEFT JOIN versions v ON v.package = p.id AND v.version = p.latest \
             LEFT JOIN versions b ON b.package = p.id AND b.version = p.latest_beta \
                 AND (p.latest IS NULL OR p.latest <> p.latest_beta) \
             WHERE p.changed > $1 ORDER BY p.changed LIMIT $2"
        );
        let query = sqlx::query(AssertSqlSafe(asked)).bind(after).bind(i64::from(limit));
        query.fetch_all(&self.pool).await
    }

    /// The same, each row for itself. One that cannot be read is given as one whose bytes make no sense, which
    /// whoever takes it in counts as damaged.
    async fn rows_one_by_one(&self, after: i64, limit: u32) -> Result<Vec<Changed>, StoreError> {
        let numbers: Vec<i64> = sqlx::query_scalar(
            "SELECT changed FROM packages WHERE changed > $1 ORDER BY changed LIMIT $2",
        )
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(StoreError::query(READ))?;
        let mut all = Vec::with_capacity(numbers.len());
        for number in numbers {
            match self.rows(number - 1, 1).await {
                Ok(changes) => all.extend(changes),
                Err(error) if is_unreadable(&error) => all.push(self.unreadable(number).await?),
                Err(error) => return Err(StoreError::query(READ)(error)),
            }
        }
        Ok(all)
    }

    async fn unreadable(&self, number: i64) -> Result<Changed, StoreError> {
        let found = sqlx::query("SELECT id, namespace FROM packages WHERE changed = $1")
            .bind(number)
            .fetch_one(&self.pool)
            .await;
        let (id, namespace) = match found {
            Ok(row) => (row.try_get(0).unwrap_or_default(), row.try_get(1).unwrap_or_default()),
            Err(error) if is_unreadable(&error) => (String::new(), String::new()),
            Err(error) => return Err(StoreError::query(READ)(error)),
        };
        let offered = Some(Offered { entry: Vec::new(), found: String::new() });
        Ok(Changed { id, number, namespace, server: None, offered, ahead: None })
    }
}

fn changed(row: &AnyRow) -> Result<Changed, sqlx::Error> {
    let offered = |columns: [usize; 2]| -> Result<Option<Offered>, sqlx::Error> {
        let entry: Option<Vec<u8>> = row.try_get(columns[0])?;
        let found: Option<String> = row.try_get(columns[1])?;
        Ok(entry.zip(found).map(|(entry, found)| Offered { entry, found }))
    };
    Ok(Changed {
        id: row.try_get(0)?,
        number: row.try_get(1)?,
        namespace: row.try_get(4)?,
        server: row.try_get(7)?,
        offered: offered([2, 3])?,
        ahead: offered([5, 6])?,
    })
}
