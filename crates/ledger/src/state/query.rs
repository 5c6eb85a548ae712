//! Questions to a database, in the same words whichever of the two it is.
//!
//! Words that both understand are written once. Three rules make that so: what a conflict is about is always named,
//! a column that is added to is named with its table, and a sum of whole numbers is cast to `BIGINT`.
//!
//! What waits for a database is boxed: whoever may have to ask it and usually need not stays small.

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{
    Connection as _, FromRow, PgConnection, Postgres, SqlSafeStr, SqlStr, Sqlite, SqliteConnection,
    Transaction,
};
use tokio::sync::MutexGuard;

/// How long an answer of a server may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// The first half of the number of each turn: the letters `HAFT`.
const OURS: i32 = 0x4841_4654;

/// Something that is asked, with what is filled in.
#[must_use = "nothing is asked yet"]
pub(super) struct Query<'q> {
    words: SqlStr,
    given: Vec<Given<'q>>,
}

/// A value that is filled in.
pub(super) enum Given<'q> {
    Text(Option<Cow<'q, str>>),
    Number(Option<i64>),
    Real(f64),
    Truth(bool),
    Bytes(&'q [u8]),
}

/// A row that can be read from either database.
pub(super) trait Row:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<T> Row for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{}

/// A connection, for as long as somebody asks.
pub(super) enum Connection<'s> {
    Sqlite(MutexGuard<'s, SqliteConnection>),
    Postgres(PoolConnection<Postgres>),
}

/// What must be all or nothing, and is done by nobody else meanwhile; dropped, it never was.
pub(super) enum Alone<'c> {
    Sqlite(Transaction<'c, Sqlite>),
    Postgres(Transaction<'c, Postgres>),
}

/// Where a question is asked.
pub(super) enum On<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

/// What one at a time does. `SQLite` has one writer for all of it; elsewhere those who do different things do not wait
/// for each other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// Making the tables.
    Tables,
    /// Counting against budgets.
    Budgets,
    /// Counting calls.
    Calls,
    /// Remembering an answer.
    Rules,
    /// Taking back what was allowed.
    Grants,
    /// Noting what got worse.
    Regressions,
    /// Keeping lines of logs.
    Lines,
}

/// A question in these words.
pub(super) fn query<'q>(words: impl SqlSafeStr) -> Query<'q> {
    Query { words: words.into_sql_str(), given: Vec::new() }
}

/// Fills in all values of a question, for either database.
macro_rules! filled {
    ($query:expr, $given:expr) => {{
        let mut query = $query;
        for one in $given {
            query = match one {
                Given::Text(text) => query.bind(text),
                Given::Number(number) => query.bind(number),
                Given::Real(number) => query.bind(number),
                Given::Truth(truth) => query.bind(truth),
                Given::Bytes(bytes) => query.bind(bytes),
            };
        }
        query
    }};
}

impl<'q> Query<'q> {
    /// Fills in the next value.
    pub(super) fn bind(mut self, value: impl Into<Given<'q>>) -> Self {
        self.given.push(value.into());
        self
    }

    /// Does it; how many rows it is about.
    pub(super) async fn execute(self, on: impl Into<On<'_>>) -> Result<u64, sqlx::Error> {
        let Self { words, given } = self;
        match on.into() {
            On::Sqlite(connection) => {
                let done = filled!(sqlx::query(words), given).execute(connection);
                Ok(Box::pin(done).await?.rows_affected())
            }
            On::Postgres(connection) => {
                let done = filled!(sqlx::query(words), without_zeros(given)).execute(connection);
                Ok(Box::pin(in_time(done)).await?.rows_affected())
            }
        }
    }

    /// All rows.
    pub(super) async fn fetch_all<T: Row>(
        self,
        on: impl Into<On<'_>>,
    ) -> Result<Vec<T>, sqlx::Error> {
        let Self { words, given } = self;
        match on.into() {
            On::Sqlite(connection) => {
                Box::pin(filled!(sqlx::query_as(words), given).fetch_all(connection)).await
            }
            On::Postgres(connection) => {
                let asked = filled!(sqlx::query_as(words), without_zeros(given));
                Box::pin(in_time(asked.fetch_all(connection))).await
            }
        }
    }

    /// The row, if there is one.
    pub(super) async fn fetch_optional<T: Row>(
        self,
        on: impl Into<On<'_>>,
    ) -> Result<Option<T>, sqlx::Error> {
        let Self { words, given } = self;
        match on.into() {
            On::Sqlite(connection) => {
                Box::pin(filled!(sqlx::query_as(words), given).fetch_optional(connection)).await
            }
            On::Postgres(connection) => {
                let asked = filled!(sqlx::query_as(words), without_zeros(given));
                Box::pin(in_time(asked.fetch_optional(connection))).await
            }
        }
    }

    /// The row, which is there.
    pub(super) async fn fetch_one<T: Row>(self, on: impl Into<On<'_>>) -> Result<T, sqlx::Error> {
        self.fetch_optional(on).await?.ok_or(sqlx::Error::RowNotFound)
    }
}

impl Connection<'_> {
    /// Begins what must be all or nothing; it waits for its turn at once, not half-way.
    pub(super) async fn alone(&mut self, turn: Turn) -> Result<Alone<'_>, sqlx::Error> {
        match self {
            Connection::Sqlite(connection) => {
                Ok(Alone::Sqlite(Box::pin(connection.begin_with("BEGIN IMMEDIATE")).await?))
            }
            Connection::Postgres(connection) => {
                let mut alone = Box::pin(in_time(connection.begin())).await?;
                let waiting = sqlx::query("SELECT pg_advisory_xact_lock($1, $2)")
                    .bind(OURS)
                    .bind(turn as i32)
                    .execute(&mut *alone);
                Box::pin(in_time(waiting)).await?;
                Ok(Alone::Postgres(alone))
            }
        }
    }

    /// Begins to read everything as it is at one moment, whatever others do meanwhile.
    pub(super) async fn moment(&mut self) -> Result<Alone<'_>, sqlx::Error> {
        Ok(match self {
            Connection::Sqlite(connection) => Alone::Sqlite(Box::pin(connection.begin()).await?),
            Connection::Postgres(connection) => {
                let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                Alone::Postgres(Box::pin(in_time(connection.begin_with(begin))).await?)
            }
        })
    }
}

impl Alone<'_> {
    /// Makes it count.
    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Alone::Sqlite(alone) => Box::pin(alone.commit()).await,
            Alone::Postgres(alone) => Box::pin(in_time(alone.commit())).await,
        }
    }
}

/// An answer that comes in time: a server that is cut off says nothing at all.
pub(super) async fn in_time<T>(
    asked: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

/// The same texts without a character that `PostgreSQL` keeps in none; a tool may have chosen one with it.
fn without_zeros(mut given: Vec<Given<'_>>) -> Vec<Given<'_>> {
    for one in &mut given {
        if let Given::Text(Some(text)) = one
            && text.contains('\0')
        {
            *text = Cow::Owned(text.replace('\0', "\u{fffd}"));
        }
    }
    given
}

impl<'c> From<&'c mut Connection<'_>> for On<'c> {
    fn from(connection: &'c mut Connection<'_>) -> Self {
        match connection {
            Connection::Sqlite(connection) => On::Sqlite(connection),
            Connection::Postgres(connection) => On::Postgres(connection),
        }
    }
}

impl<'c> From<&'c mut Alone<'_>> for On<'c> {
    fn from(alone: &'c mut Alone<'_>) -> Self {
        match alone {
            Alone::Sqlite(alone) => On::Sqlite(alone),
            Alone::Postgres(alone) => On::Postgres(alone),
        }
    }
}

impl<'q> From<&'q str> for Given<'q> {
    fn from(text: &'q str) -> Self {
        Given::Text(Some(text.into()))
    }
}

impl<'q> From<&'q String> for Given<'q> {
    fn from(text: &'q String) -> Self {
        Given::Text(Some(text.into()))
    }
}

impl From<String> for Given<'_> {
    fn from(text: String) -> Self {
        Given::Text(Some(text.into()))
    }
}

impl<'q> From<Option<&'q str>> for Given<'q> {
    fn from(text: Option<&'q str>) -> Self {
        Given::Text(text.map(Cow::Borrowed))
    }
}

impl From<i64> for Given<'_> {
    fn from(number: i64) -> Self {
        Given::Number(Some(number))
    }
}

impl From<Option<i64>> for Given<'_> {
    fn from(number: Option<i64>) -> Self {
        Given::Number(number)
    }
}

impl From<f64> for Given<'_> {
    fn from(number: f64) -> Self {
        Given::Real(number)
    }
}

impl From<bool> for Given<'_> {
    fn from(truth: bool) -> Self {
        Given::Truth(truth)
    }
}

impl<'q> From<&'q [u8]> for Given<'q> {
    fn from(bytes: &'q [u8]) -> Self {
        Given::Bytes(bytes)
    }
}
