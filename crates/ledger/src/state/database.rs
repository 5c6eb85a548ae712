//! A database that several replicas share: where it is, and the connections to it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection as _, PgConnection, PgPool, Postgres};

use super::error::{StateError, innermost};

/// How long is waited for a connection: a server that is started anew is back by then.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a last try may take, which says why there was no connection.
const LAST_TRY: Duration = Duration::from_secs(2);
/// After how long a connection that did nothing is tried before it is used. No server is started anew within less.
const DOUBTED: Duration = Duration::from_millis(100);
/// The most connections of one process.
const CONNECTIONS: u32 = 8;
/// The oldest server that is taken.
const OLDEST: i64 = 14;

/// Where a shared database is. It is shown without the user and the password.
#[derive(Clone)]
pub struct Database {
    options: PgConnectOptions,
    place: String,
}

impl Database {
    /// Reads `postgres://USER@HOST:PORT/DATABASE`. What it leaves out is had from the variables and the file that all
    /// clients of `PostgreSQL` know: `PGPASSWORD`, `~/.pgpass`, ….
    pub fn parse(address: &str) -> Result<Self, AddressError> {
        let is_ours = ["postgres://", "postgresql://"].iter().any(|one| address.starts_with(one));
        if !is_ours {
            return Err(AddressError::Scheme);
        }
        let options = PgConnectOptions::from_str(address)
            .map_err(|error| AddressError::Unreadable(innermost(&error).to_string()))?;
        let (host, port) = (options.get_host(), options.get_port());
        let place = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None if host.starts_with('/') => host.to_owned(),
            None => format!("{host}:{port}"),
        };
        let database = options.get_database().unwrap_or(options.get_username());
        let place = format!("{place}/{database}");
        Ok(Self { options: options.disable_statement_logging(), place })
    }

    /// Where it is, without the user and the password.
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Database").field(&self.place).finish()
    }
}

/// Why an address is none. What was written is not repeated: there may be a password in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// It is of nothing that can be shared.
    Scheme,
    /// It cannot be read: why not.
    Unreadable(String),
}

impl fmt::Display for AddressError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Scheme => {
                out.write_str("the address of a shared state begins with `postgres://`")
            }
            AddressError::Unreadable(why) => {
                write!(out, "the address of the shared state cannot be read: {why}")
            }
        }
    }
}

impl std::error::Error for AddressError {}

/// Connections to a shared database. One that is lost is replaced when it is next needed.
pub(super) struct Pool {
    database: Database,
    pool: PgPool,
}

impl fmt::Debug for Pool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.database.fmt(out)
    }
}

impl Pool {
    /// Connects, and looks whether the server is one that is taken.
    pub(super) async fn connect(database: &Database) -> Result<Self, StateError> {
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .test_before_acquire(false)
            .before_acquire(|connection, found| {
                Box::pin(async move {
                    if found.idle_for < DOUBTED {
                        return Ok(true);
                    }
                    let tried = tokio::time::timeout(LAST_TRY, connection.ping()).await;
                    Ok(matches!(tried, Ok(Ok(()))))
                })
            })
            .connect_lazy_with(database.options.clone());
        let shared = Self { database: database.clone(), pool };
        let mut connection = shared.take().await?;
        let version: i64 =
            sqlx::query_scalar("SELECT current_setting('server_version_num')::bigint")
                .fetch_one(&mut *connection)
                .await
                .map_err(|error| shared.unopened(error))?;
        let version = version / 10_000;
        if version < OLDEST {
            let source = format!("it is PostgreSQL {version}, and {OLDEST} is the oldest");
            return Err(StateError::Open { place: database.place.clone(), source: source.into() });
        }
        Ok(shared)
    }

    /// A connection, or why there is none.
    pub(super) async fn take(&self) -> Result<PoolConnection<Postgres>, StateError> {
        match self.pool.acquire().await {
            Ok(connection) => Ok(connection),
            // It was tried again and again, and then it was too late. One more try by itself says what is wrong.
            Err(sqlx::Error::PoolTimedOut) => {
                let tried = PgConnection::connect_with(&self.database.options);
                let error = match tokio::time::timeout(LAST_TRY, tried).await {
                    Ok(Err(error)) => error,
                    Ok(Ok(_)) | Err(_) => sqlx::Error::PoolTimedOut,
                };
                Err(self.unopened(error))
            }
            Err(error) => Err(self.unopened(error)),
        }
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }

    fn unopened(&self, error: sqlx::Error) -> StateError {
        StateError::opening(&self.database.place, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_user_and_password() {
        let database = Database::parse("postgres://eve7:s3cret@db.example:5433/tools").unwrap();
        assert_eq!(database.place(), "db.example:5433/tools");
        assert_eq!(format!("{database:?}"), "Database(\"db.example:5433/tools\")");
        let socket = Database::parse("postgres://eve7:s3cret@%2Frun%2Fpg/tools").unwrap();
        assert_eq!(socket.place(), "/run/pg/tools");
    }

    #[test]
    fn what_is_no_address_is_told_without_repeating_it() {
        for wrong in [
            "mysql://eve7:s3cret@db/tools",
            "s3cret",
            "postgres://eve7:s3cret@db:port/tools",
            "postgres://eve7:s3cret@db/tools?sslmode=wrong",
            "postgres://eve7:s3cret@[::1/tools",
        ] {
            let error = Database::parse(wrong).unwrap_err();
            let words = format!("{error} {error:?}");
            assert!(!words.contains("eve7") && !words.contains("s3cret"), "{words}");
        }
    }
}
