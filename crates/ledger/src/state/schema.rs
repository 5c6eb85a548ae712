//! The tables of a file, version by version.
//!
//! The version is kept in the file's header (`user_version`), so that an up-to-date database is
//! known by its first page; a table of migrations would cost a look at several.

use sqlx::{Connection, SqliteConnection};

use super::StateError;

/// The letters `HAFT`: whose database it is.
const OURS: i64 = 0x4841_4654;

/// What each version adds. What is here once is never changed; a new version is a new line.
const VERSIONS: &[&str] = &[
    include_str!("version_1.sql"),
    include_str!("version_2.sql"),
    include_str!("version_3.sql"),
    include_str!("version_4.sql"),
    include_str!("version_5.sql"),
    include_str!("version_6.sql"),
    include_str!("version_7.sql"),
    include_str!("version_8.sql"),
    include_str!("version_9.sql"),
    include_str!("version_10.sql"),
];

/// The version of a database that has them all.
const KNOWN: i64 = VERSIONS.len().cast_signed() as i64;

/// Brings a database to the last version.
pub(super) async fn bring_up(
    connection: &mut SqliteConnection,
    place: &str,
) -> Result<(), StateError> {
    if check(connection, place).await? == KNOWN {
        return Ok(());
    }
    let failed = |error| StateError::opening(place, error);
    // Whoever comes first turns it on for all; it cannot be done inside of a transaction.
    sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&mut *connection).await.map_err(failed)?;
    let mut alone = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    // Another process may have been here in the meantime.
    let version = check(&mut alone, place).await?;
    let done = usize::try_from(version).unwrap_or(VERSIONS.len());
    for tables in VERSIONS.iter().skip(done) {
        sqlx::raw_sql(*tables).execute(&mut *alone).await.map_err(failed)?;
    }
    alone.commit().await.map_err(failed)
}

/// The version of a database that is ours, or empty.
async fn check(connection: &mut SqliteConnection, place: &str) -> Result<i64, StateError> {
    let (version, owner, pages): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT user_version FROM pragma_user_version), \
         (SELECT application_id FROM pragma_application_id), \
         (SELECT count(*) FROM (SELECT 1 FROM sqlite_master LIMIT 1))",
    )
    .fetch_one(connection)
    .await
    .map_err(|error| StateError::opening(place, error))?;
    let is_new = version == 0 && owner == 0 && pages == 0;
    if owner != OURS && !is_new {
        return Err(StateError::Foreign { place: place.to_owned() });
    }
    if version > KNOWN {
        return Err(StateError::Newer { place: place.to_owned(), found: version, known: KNOWN });
    }
    Ok(version)
}
