//! The tables, version by version.

use sqlx::{AnyPool, AssertSqlSafe};

use super::{Engine, StoreError};

/// What each version adds. What is here once is never changed; a new version is a new line.
const VERSIONS: &[&str] = &[include_str!("version_1.sql")];

/// The version of a database that has them all.
const KNOWN: i64 = VERSIONS.len().cast_signed() as i64;

/// Brings a database to the last version. Several replicas may do so at once.
pub(super) async fn bring_up(pool: &AnyPool, engine: Engine) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| StoreError::Open(error.into());
    let mut alone = pool.begin_with(engine.begin()).await.map_err(failed)?;
    if engine == Engine::Postgres {
        // Making a table that another makes at the same moment fails, even when it says `IF NOT EXISTS`.
        let lock = "SELECT pg_advisory_xact_lock(4841465452454749)";
        sqlx::raw_sql(lock).execute(&mut *alone).await.map_err(failed)?;
    }
    let table = "CREATE TABLE IF NOT EXISTS haft_registry (version BIGINT NOT NULL)";
    sqlx::raw_sql(table).execute(&mut *alone).await.map_err(failed)?;
    let found: Option<i64> = sqlx::query_scalar("SELECT version FROM haft_registry")
        .fetch_optional(&mut *alone)
        .await
        .map_err(failed)?;
    let version = found.unwrap_or(0);
    if version > KNOWN {
        return Err(StoreError::Newer { found: version, known: KNOWN });
    }
    if version == KNOWN {
        return Ok(());
    }
    let done = usize::try_from(version).unwrap_or(0);
    for tables in VERSIONS.iter().skip(done) {
        let tables = tables.replace("{bytes}", engine.bytes());
        sqlx::raw_sql(AssertSqlSafe(tables)).execute(&mut *alone).await.map_err(failed)?;
    }
    let noted = match found {
        None => "INSERT INTO haft_registry (version) VALUES ($1)",
        Some(_) => "UPDATE haft_registry SET version = $1",
    };
    sqlx::query(noted).bind(KNOWN).execute(&mut *alone).await.map_err(failed)?;
    alone.commit().await.map_err(failed)
}
