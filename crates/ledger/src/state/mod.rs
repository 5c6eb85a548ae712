//! The database of a home: what was decided, and what was counted.
//!
//! A [`State`] is one open `state.db`. Several processes may have it open at once; whatever is given
//! out once (an approval, the last call of a budget) is given out once among all of them.
//! What a function has returned from outlives the end of any process.
//!
//! A database that a newer Haft wrote, that is damaged, or that is somebody else's is refused and
//! left as it is.
//!
//! | module | what it is |
//! |---|---|
//! | `error` | why the database refuses |
//! | `schema` | the tables, version by version |
//! | [`latency`], `decay`, [`recent`] | latencies in buckets; how much a call of long ago still counts; the last calls one by one |
//! | [`metrics`], [`counting`] | how often, how fast, how well; calls counted, many at once |
//! | [`flows`] | what went into calls and came out of them, as digests |
//! | [`implementations`], [`machine`] | how each implementation fared; what programs said of themselves |
//! | [`tested`], [`regressions`] | how tests went; what got worse |
//! | [`approvals`] | tickets: one question, one answer, one use |
//! | [`rules`] | answers that are remembered |
//! | `packages` | which packages were seen here |
//! | [`grants`] | what the owner allowed, and what was reached for in vain |
//! | [`budgets`] | calls and cents of a day; calls of a minute |
//! | [`pins`] | what was seen first and must not change unnoticed |

pub mod approvals;
pub mod budgets;
pub mod counting;
mod decay;
mod error;
pub mod flows;
pub mod grants;
pub mod implementations;
pub mod latency;
pub mod machine;
pub mod metrics;
pub mod names;
mod packages;
pub mod pins;
pub mod recent;
pub mod regressions;
pub mod rules;
mod schema;
pub mod tested;
pub mod wishes;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

pub use error::{StateError, StateErrorKind};

/// How long a process waits for the others.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes of a journal that takes longer to read than a call should.
const LONG_JOURNAL: u64 = 256 << 10;

/// The open database of a home.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    connection: Mutex<SqliteConnection>,
}

/// What the files of a database look like: their sizes, and when they were changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark([Option<(u64, SystemTime)>; 2]);

impl State {
    /// Opens a database; it is made when there is none.
    pub async fn open(path: &Path) -> Result<Self, StateError> {
        make_private(path).map_err(unopened(path))?;
        let mut connection = connect(path, options().filename(path)).await?;
        // Whoever comes first reads the whole journal, and many that come alone never empty it: what one of them has
        // carried over to the database is not known to the next. So it is done here, and the next change starts anew.
        if std::fs::metadata(journal(path)).is_ok_and(|found| found.len() > LONG_JOURNAL) {
            // Where that does not work (the disk is full), everything stays in the journal, which is as good.
            let emptied = sqlx::raw_sql("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut connection);
            let _ = emptied.await;
        }
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection) })
    }

    /// Opens a database to look at it: nothing is made, and it need not be one that can be written. Where there is
    /// none, it is an empty one that nobody keeps.
    pub async fn look(path: &Path) -> Result<Self, StateError> {
        let connection = if path.try_exists().map_err(unopened(path))? {
            match Self::open(path).await {
                // A folder that can only be read has no room for a journal; where there is none, nobody writes.
                Err(error)
                    if error.kind() == StateErrorKind::Unavailable && !journal(path).exists() =>
                {
                    connect(path, options().filename(path).read_only(true).immutable(true)).await?
                }
                opened => return opened,
            }
        } else {
            connect(path, options().in_memory(true)).await?
        };
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection) })
    }

    /// Copies a database, with what is in its journal, and changes neither; where there is none, the copy is a new one.
    /// This process must not have it open: to close a file ends the locks that it holds on it.
    pub async fn copy(from: &Path, to: &Path) -> Result<(), StateError> {
        /// How often somebody may change it in the meantime.
        const TRIES: usize = 5;
        let mut tried = 0;
        loop {
            for (from, to) in [(from.to_owned(), to.to_owned()), (journal(from), journal(to))] {
                match std::fs::copy(&from, &to) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        let _ = std::fs::remove_file(&to);
                    }
                    copied => drop(copied.map_err(unopened(&from))?),
                }
            }
            tried += 1;
            // A change that is written while it is copied may leave a half of itself.
            let whole = Self::open(to).await;
            let checked = match &whole {
                Ok(copied) => copied.check().await,
                Err(_) => Ok(()),
            };
            match (whole, checked) {
                (Ok(copied), Ok(())) => return copied.close().await,
                (Err(error), _) | (Ok(_), Err(error)) if tried == TRIES => return Err(error),
                _ => {}
            }
        }
    }

    /// All rows of a query that makes one JSON text of them.
    async fn in_one<T: DeserializeOwned>(
        &self,
        query: &'static str,
        package: Option<&str>,
        doing: &'static str,
    ) -> Result<Vec<T>, StateError> {
        let text: String = sqlx::query_scalar(query)
            .bind(package)
            .fetch_one(&mut *self.connection().await)
            .await
            .map_err(|error| self.failed(doing, error))?;
        serde_json::from_str(&text)
            .map_err(|error| self.failed(doing, sqlx::Error::Decode(Box::new(error))))
    }

    /// What the files of the database look like now. While that stays the same, nobody has changed anything.
    /// `None` where the last change is so fresh that another could look the same.
    pub fn mark(&self) -> Option<Mark> {
        /// Longer than the clock by which files are stamped stands still.
        const FRESH: Duration = Duration::from_millis(50);
        let look = |path: &Path| match std::fs::metadata(path) {
            Ok(found) => Some(Some((found.len(), found.modified().ok()?))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(None),
            Err(_) => None,
        };
        let mark = Mark([look(&self.path)?, look(&journal(&self.path))?]);
        let is_settled =
            |(_, changed): &(u64, SystemTime)| changed.elapsed().is_ok_and(|since| since > FRESH);
        mark.0.iter().flatten().all(is_settled).then_some(mark)
    }

    /// Looks at every page; what is damaged is an error. It takes as long as reading the file.
    pub async fn check(&self) -> Result<(), StateError> {
        let mut connection = self.connection().await;
        let said: Result<String, _> =
            sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(&mut *connection).await;
        match said.map_err(|error| self.failed("check", error))?.as_str() {
            "ok" => Ok(()),
            said => Err(StateError::Corrupt { path: self.path.clone(), said: said.to_owned() }),
        }
    }

    /// Closes the database and tidies its journal. Without it nothing is lost.
    pub async fn close(self) -> Result<(), StateError> {
        let Self { path, connection } = self;
        let closed = connection.into_inner().close().await;
        closed.map_err(|error| StateError::query(&path, "close", error))
    }

    async fn connection(&self) -> MutexGuard<'_, SqliteConnection> {
        self.connection.lock().await
    }

    /// What to say when something did not work.
    fn failed(&self, doing: &'static str, error: sqlx::Error) -> StateError {
        StateError::query(&self.path, doing, error)
    }
}

fn options() -> SqliteConnectOptions {
    // The journal of WAL outlives a process that is killed; that it outlives a power cut too
    // is not worth a wait for the disk at every call.
    SqliteConnectOptions::new()
        .busy_timeout(PATIENCE)
        .foreign_keys(false)
        .synchronous(SqliteSynchronous::Normal)
        // What is left of a long journal once it was emptied.
        .pragma("journal_size_limit", LONG_JOURNAL.to_string())
        .disable_statement_logging()
}

/// A connection to a database with all its tables.
async fn connect(
    path: &Path,
    options: SqliteConnectOptions,
) -> Result<SqliteConnection, StateError> {
    let opened = options.connect().await;
    let mut connection = opened.map_err(|error| StateError::opening(path, error))?;
    schema::bring_up(&mut connection, path).await?;
    Ok(connection)
}

/// What to say of a file that the system does not open.
fn unopened(path: &Path) -> impl FnOnce(std::io::Error) -> StateError {
    move |source| StateError::Open { path: path.to_owned(), source: source.into() }
}

/// Where the journal of a database is.
fn journal(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Begins what must be all or nothing; it waits for the other writers at once, not half-way.
const ALONE: &str = "BEGIN IMMEDIATE";

/// Numbers are stored with a sign.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn read(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A new file is for its owner alone; `SQLite` gives its journals the same rights.
///
/// One that is there is not opened: closing it again would end the locks that this process has on
/// it through other connections, and with them the order among all processes.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}
