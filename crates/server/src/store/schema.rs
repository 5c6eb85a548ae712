//! The tables, version by version.

use sqlx::{AnyPool, AssertSqlSafe};

use super::{Engine, StoreError};

/// What a version adds to the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// On both databases; `{bytes}` stands for the type of bytes, `{by_bytes}` for an order in which every machine has
    /// the same text at the same place.
    everywhere: &'static str,
    /// On `PostgreSQL` alone.
    postgres: &'static str,
}

/// What each version adds. What is released once is never changed; a new version is a new line.
const VERSIONS: &[Step] = &[Step {
    everywhere: include_str!("version_1.sql"),
    postgres: include_str!("version_1_postgres.sql"),
}];

/// What is done to a new database, and to an older one.
const MAKE: &str = "make the tables";

/// The version of a database that has them all.
pub(super) const KNOWN: i64 = VERSIONS.len().cast_signed() as i64;

/// The tables that hold what a registry knows, in the order in which rows can be put into them.
pub(super) fn tables() -> Vec<&'static str> {
    let made = VERSIONS.iter().flat_map(|step| step.everywhere.lines());
    let named = made.filter_map(|line| line.strip_prefix("CREATE TABLE "));
    named.filter_map(|rest| rest.split([' ', '(']).next()).collect()
}

/// Brings a database to the last version. Several replicas may do so at once.
pub(super) async fn bring_up(pool: &AnyPool, engine: Engine) -> Result<(), StoreError> {
    bring_through(pool, engine, VERSIONS).await
}

async fn bring_through(pool: &AnyPool, engine: Engine, steps: &[Step]) -> Result<(), StoreError> {
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let failed = |error| StoreError::query(MAKE)(error);
    let mut alone = pool.begin_with(engine.begin()).await.map_err(failed)?;
    if engine == Engine::Postgres {
        // Making a table that another makes at the same moment fails, even when it says `IF NOT EXISTS`.
        let lock = "SELECT pg_advisory_xact_lock(4841465452454749)";
        sqlx::raw_sql(lock).execute(&mut *alone).await.map_err(failed)?;
    }
    let table =
        "CREATE TABLE IF NOT EXISTS haft_registry (version BIGINT NOT NULL, id TEXT NOT NULL)";
    sqlx::raw_sql(table).execute(&mut *alone).await.map_err(failed)?;
    let found: Option<i64> = sqlx::query_scalar("SELECT version FROM haft_registry")
        .fetch_optional(&mut *alone)
        .await
        .map_err(failed)?;
    let version = found.unwrap_or(0);
    if version > known {
        return Err(StoreError::Newer { found: version, known });
    }
    if version == known {
        return Ok(());
    }
    let done = usize::try_from(version).unwrap_or(0);
    for step in steps.iter().skip(done) {
        let tables = step.everywhere.replace("{bytes}", engine.bytes());
        let tables = tables.replace("{by_bytes}", engine.by_bytes());
        sqlx::raw_sql(AssertSqlSafe(tables)).execute(&mut *alone).await.map_err(failed)?;
        if engine == Engine::Postgres && !step.postgres.is_empty() {
            sqlx::raw_sql(step.postgres).execute(&mut *alone).await.map_err(failed)?;
        }
    }
    let noted = match found {
        None => sqlx::query("INSERT INTO haft_registry (version, id) VALUES ($1, $2)")
            .bind(known)
            .bind(new_id()?),
        Some(_) => sqlx::query("UPDATE haft_registry SET version = $1").bind(known),
    };
    noted.execute(&mut *alone).await.map_err(failed)?;
    alone.commit().await.map_err(failed)
}

/// What a registry is called that is made now. It is in no backup: what is restored is another registry.
fn new_id() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    let filled = getrandom::fill(&mut bytes).map_err(std::io::Error::from);
    filled.map_err(|error| StoreError::query(MAKE)(error.into()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What the registry in a database is called.
pub(super) async fn id(pool: &AnyPool) -> Result<String, StoreError> {
    let id = sqlx::query_scalar("SELECT id FROM haft_registry").fetch_one(pool).await;
    id.map_err(StoreError::query("look for the tables"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    /// Two versions more, so that there is something to come from.
    fn later() -> Vec<Step> {
        let second = "CREATE TABLE shelves (name TEXT NOT NULL);\nINSERT INTO shelves (name) SELECT id FROM tokens";
        let third = "ALTER TABLE shelves ADD COLUMN room {bytes}";
        let mut steps = VERSIONS.to_vec();
        steps.extend([second, third].map(|everywhere| Step { everywhere, postgres: "" }));
        steps
    }

    #[tokio::test]
    async fn an_older_database_is_brought_forward_with_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::file(&folder.path().join("registry.db")).await.unwrap();
        let scope = crate::token::Scope::All;
        let made = crate::service::make_token(&store, scope, crate::token::Role::Read, None).await;
        let (_, token) = made.unwrap();
        let steps = later();
        // Several at the same moment, and again when it is done.
        let all = (0..4).map(|_| bring_through(&store.pool, Engine::Sqlite, &steps));
        for done in futures_util::future::join_all(all).await {
            done.unwrap();
        }
        let shelf = sqlx::query_scalar::<_, String>("SELECT name FROM shelves WHERE room IS NULL");
        assert_eq!(shelf.fetch_all(&store.pool).await.unwrap(), [token.id]);
        // The one that knows less refuses it, by name, and changes nothing.
        let refused = bring_up(&store.pool, Engine::Sqlite).await.unwrap_err();
        let newer = StoreError::Newer { found: KNOWN + 2, known: KNOWN };
        assert_eq!(refused.to_string(), newer.to_string());
        assert_eq!(store.tokens().await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_step_that_fails_leaves_the_version_before() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::file(&folder.path().join("registry.db")).await.unwrap();
        let mut steps = later();
        steps.push(Step { everywhere: "CREATE TABLE feed (twice BIGINT)", postgres: "" });
        assert!(bring_through(&store.pool, Engine::Sqlite, &steps).await.is_err());
        bring_up(&store.pool, Engine::Sqlite).await.unwrap();
        assert!(sqlx::query("SELECT name FROM shelves").execute(&store.pool).await.is_err());
    }

    #[test]
    fn the_tables_are_read_from_the_text_that_makes_them() {
        let tables = tables();
        assert!(tables.starts_with(&["feed", "packages", "versions"]), "{tables:?}");
    }
}
