//! Which packages were seen here, and where.

use super::query::{Alone, query};
use super::{State, StateError};

impl State {
    /// The packages that were called, were granted something, or reached for something in vain, in order. A rule
    /// about a package does not count: it may be about one that nobody has.
    pub async fn packages(&self) -> Result<Vec<String>, StateError> {
        let rows: Vec<(String,)> = query(
            "SELECT package FROM totals UNION SELECT package FROM grants \
             UNION SELECT package FROM blocked ORDER BY package",
        )
        .fetch_all(&mut self.connection().await?)
        .await
        .map_err(|error| self.failed("list packages", error))?;
        Ok(rows.into_iter().map(|(package,)| package).collect())
    }

    /// Where a package was when it was last called.
    pub async fn last_place(&self, package: &str) -> Result<Option<String>, StateError> {
        let row: Option<(String,)> = query("SELECT place FROM places WHERE package = $1")
            .bind(package)
            .fetch_optional(&mut self.connection_to_read().await?)
            .await
            .map_err(|error| self.failed("find a package", error))?;
        Ok(row.map(|(place,)| place))
    }

    /// Makes a place one that a package is no longer called from. If it was the last, that is nowhere from now on:
    /// known to nobody, rather than to whoever comes next.
    pub async fn forget_place(&self, package: &str, place: &str) -> Result<(), StateError> {
        query("UPDATE places SET place = '' WHERE package = $1 AND place = $2")
            .bind(package)
            .bind(place)
            .execute(&mut self.connection().await?)
            .await
            .map_err(|error| self.failed("forget a place", error))
            .map(drop)
    }
}

/// Notes where a package is called from.
pub(super) async fn note_place(
    alone: &mut Alone<'_>,
    package: &str,
    place: &str,
) -> Result<(), sqlx::Error> {
    let noted = query(
        "INSERT INTO places (package, place) VALUES ($1, $2) \
         ON CONFLICT (package) DO UPDATE SET place = excluded.place \
         WHERE places.place != excluded.place",
    );
    noted.bind(package).bind(place).execute(alone).await.map(drop)
}
