//! Which packages were seen here, and where.

use sqlx::SqliteConnection;

use super::{State, StateError};

impl State {
    /// The packages that were called, were granted something, or reached for something in vain, in order. A rule
    /// about a package does not count: it may be about one that nobody has.
    pub async fn packages(&self) -> Result<Vec<String>, StateError> {
        sqlx::query_scalar(
            "SELECT package FROM totals UNION SELECT package FROM grants \
             UNION SELECT package FROM blocked ORDER BY package",
        )
        .fetch_all(&mut *self.connection().await)
        .await
        .map_err(|error| self.failed("list packages", error))
    }

    /// Where a package was when it was last called.
    pub async fn last_place(&self, package: &str) -> Result<Option<String>, StateError> {
        sqlx::query_scalar("SELECT place FROM places WHERE package = $1")
            .bind(package)
            .fetch_optional(&mut *self.connection().await)
            .await
            .map_err(|error| self.failed("find a package", error))
    }

    /// Makes a place one that a package is no longer called from. If it was the last, that is nowhere from now on:
    /// known to nobody, rather than to whoever comes next.
    pub async fn forget_place(&self, package: &str, place: &str) -> Result<(), StateError> {
        sqlx::query("UPDATE places SET place = '' WHERE package = $1 AND place = $2")
            .bind(package)
            .bind(place)
            .execute(&mut *self.connection().await)
            .await
            .map_err(|error| self.failed("forget a place", error))
            .map(drop)
    }
}

/// Notes where a package is called from.
pub(super) async fn note_place(
    connection: &mut SqliteConnection,
    package: &str,
    place: &str,
) -> Result<(), sqlx::Error> {
    let noted = sqlx::query(
        "INSERT INTO places (package, place) VALUES ($1, $2) \
         ON CONFLICT DO UPDATE SET place = excluded.place WHERE place != excluded.place",
    );
    noted.bind(package).bind(place).execute(connection).await.map(drop)
}
