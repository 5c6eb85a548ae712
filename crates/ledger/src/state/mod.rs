//! The database of a home: what was decided, and what was counted.
//!
//! A [`State`] is one open `state.db`, or a database of `PostgreSQL` that replicas share; both are asked in the same
//! words. Several processes may have it open at once; whatever is given out once (an approval, the last call of a
//! budget) is given out once among all of them. What a function has returned from outlives the end of any process.
//!
//! A database that a newer Haft wrote, that is damaged, or that is somebody else's is refused and
//! left as it is.
//!
//! | module | what it is |
//! |---|---|
//! | `error` | why the database refuses |
//! | `query` | questions in the same words, whichever database it is |
//! | `database` | where a shared database is, and the connections to it |
//! | `schema`, `schema_shared` | the tables, version by version: of a file, and of a shared database |
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
//! | [`shared`], [`inquiries`] | what replicas share beyond that: the key of their seals, and the lines of their logs; what one asks another |

pub mod approvals;
pub mod budgets;
pub mod counting;
mod database;
mod decay;
mod error;
pub mod flows;
pub mod grants;
pub mod implementations;
pub mod inquiries;
pub mod latency;
pub mod machine;
pub mod metrics;
pub mod names;
mod packages;
pub mod pins;
mod query;
pub mod recent;
pub mod regressions;
pub mod rules;
mod schema;
mod schema_shared;
pub mod shared;
pub mod tested;
pub mod wishes;

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde::de::DeserializeOwned;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, SqliteConnection};
use tokio::sync::Mutex;

pub use database::{AddressError, Database};
pub use error::{StateError, StateErrorKind};

use database::Pool;
use machine::Said;
use query::{Connection, Row, query};

/// How long a process waits for the others.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes of a journal that takes longer to read than a call should.
const LONG_JOURNAL: u64 = 256 << 10;

/// The open database of a home, or of several.
#[derive(Debug)]
pub struct State {
    /// The file, or where a shared database is.
    place: String,
    engine: Engine,
    /// How often its connection was taken by somebody who may change something.
    taken: AtomicU64,
    /// The last look at the files, when it was, and how often the connection had been taken by then.
    looked: std::sync::Mutex<Option<(Instant, u64, Option<Mark>)>>,
}

/// Which database it is.
#[derive(Debug)]
enum Engine {
    /// A file of `SQLite`.
    File(PathBuf, Mutex<SqliteConnection>),
    /// `PostgreSQL`, and what programs of this machine said.
    Shared(Box<Pool>, Heard),
}

/// What programs of this machine said, by what they were asked.
type Heard = std::sync::Mutex<HashMap<String, Said>>;

/// What the files of a database look like: their sizes, and when they were changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark([Option<(u64, SystemTime)>; 2]);

impl Mark {
    /// What they look like now; nothing where the last change is so fresh that another could look the same.
    fn of(path: &Path) -> Option<Self> {
        let clock = clock_of_files();
        let look = |path: &Path| match std::fs::metadata(path) {
            Ok(found) => Some(Some((found.len(), found.modified().ok()?))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(None),
            Err(_) => None,
        };
        let mark = Self([look(path)?, look(&journal(path))?]);
        // What is changed from now on is stamped later than what was changed by now.
        let is_settled = |(_, changed): &(u64, SystemTime)| *changed < clock;
        mark.0.iter().flatten().all(is_settled).then_some(mark)
    }
}

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
        Ok(Self::file(path, connection))
    }

    /// Opens a database that replicas share; its tables are made when there are none.
    pub async fn join(database: &Database) -> Result<Self, StateError> {
        let pool = Pool::connect(database).await?;
        let mut connection = Connection::Postgres(pool.take().await?);
        schema_shared::bring_up(&mut connection, database.place()).await?;
        let engine = Engine::Shared(Box::new(pool), Heard::default());
        Ok(Self::of(database.place().to_owned(), engine))
    }

    fn file(path: &Path, connection: SqliteConnection) -> Self {
        let place = path.display().to_string();
        Self::of(place, Engine::File(path.to_owned(), Mutex::new(connection)))
    }

    fn of(place: String, engine: Engine) -> Self {
        let (taken, looked) = Default::default();
        Self { place, engine, taken, looked }
    }

    /// Whether others share it, who may have changed something a moment ago.
    pub fn is_shared(&self) -> bool {
        matches!(self.engine, Engine::Shared(..))
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
        Ok(Self::file(path, connection))
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

    /// Some columns of many rows, of one package or of all. From a file they come as one JSON text: to take each row by
    /// itself would take longer than to read it.
    async fn in_one<T: DeserializeOwned + Row>(
        &self,
        columns: &'static str,
        rest: &'static str,
        package: Option<&str>,
        doing: &'static str,
    ) -> Result<Vec<T>, StateError> {
        let failed = |error| self.failed(doing, error);
        let mut connection = self.connection().await?;
        let rows = format!("SELECT {columns} {rest}");
        if self.is_shared() {
            let rows = query(AssertSqlSafe(rows)).bind(package).fetch_all(&mut connection);
            return rows.await.map_err(failed);
        }
        let text = format!("SELECT json_group_array(json_array({columns})) FROM ({rows})");
        let text = query(AssertSqlSafe(text)).bind(package).fetch_one(&mut connection).await;
        let (text,): (String,) = text.map_err(failed)?;
        serde_json::from_str(&text).map_err(|error| failed(sqlx::Error::Decode(Box::new(error))))
    }

    /// What the files of the database look like now. While that stays the same, nobody has changed anything.
    /// `None` where the last change is so fresh that another could look the same, and where others share it: then only
    /// the database itself knows. Whoever asks within a millisecond is told the same, unless this process used it meanwhile.
    pub fn mark(&self) -> Option<Mark> {
        const LATELY: Duration = Duration::from_millis(1);
        let Engine::File(path, connection) = &self.engine else { return None };
        let lock = || self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.taken();
        if let Some((at, then, mark)) = *lock()
            && then == taken
            && at.elapsed() < LATELY
        {
            return mark;
        }
        let (at, mark) = (Instant::now(), Mark::of(path));
        // Whoever has the connection now may change something after this look.
        if let Ok(_nobody) = connection.try_lock()
            && self.taken() == taken
        {
            *lock() = Some((at, taken, mark));
        }
        mark
    }

    /// Looks at every page of a file; what is damaged is an error. It takes as long as reading the file. A server does
    /// that for itself, and is only asked whether it is there.
    pub async fn check(&self) -> Result<(), StateError> {
        let mut connection = self.connection().await?;
        let failed = |error| self.failed("check", error);
        let Engine::File(path, _) = &self.engine else {
            return query("SELECT 1").execute(&mut connection).await.map(drop).map_err(failed);
        };
        let said = query("PRAGMA integrity_check(1)").fetch_one(&mut connection).await;
        let (said,): (String,) = said.map_err(failed)?;
        match said.as_str() {
            "ok" => Ok(()),
            _ => Err(StateError::Corrupt { path: path.clone(), said }),
        }
    }

    /// Closes the database and tidies its journal. Without it nothing is lost.
    pub async fn close(self) -> Result<(), StateError> {
        let Self { place, engine, .. } = self;
        match engine {
            Engine::File(_, connection) => {
                let closed = connection.into_inner().close().await;
                closed.map_err(|error| StateError::query(&place, "close", error))
            }
            Engine::Shared(pool, _) => {
                pool.close().await;
                Ok(())
            }
        }
    }

    /// How often this process may have changed something.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }

    /// The connection, for whoever may change something.
    async fn connection(&self) -> Result<Connection<'_>, StateError> {
        let connection = self.connection_to_read().await?;
        self.taken.fetch_add(1, Ordering::Release);
        Ok(connection)
    }

    /// The same, for whoever changes nothing.
    async fn connection_to_read(&self) -> Result<Connection<'_>, StateError> {
        Ok(match &self.engine {
            Engine::File(_, connection) => Connection::Sqlite(connection.lock().await),
            Engine::Shared(pool, _) => Connection::Postgres(Box::pin(pool.take()).await?),
        })
    }

    /// What to say when something did not work.
    fn failed(&self, doing: &'static str, error: sqlx::Error) -> StateError {
        StateError::query(&self.place, doing, error)
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
    let place = path.display().to_string();
    let mut connection = opened.map_err(|error| StateError::opening(&place, error))?;
    schema::bring_up(&mut connection, &place).await?;
    Ok(connection)
}

/// What to say of a file that the system does not open.
fn unopened(path: &Path) -> impl FnOnce(std::io::Error) -> StateError + use<> {
    let place = path.display().to_string();
    move |source| StateError::Open { place, source: source.into() }
}

/// Where the journal of a database is.
fn journal(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// What the clock shows by which files are stamped. It stands still for some milliseconds at a time.
#[cfg(target_os = "linux")]
fn clock_of_files() -> SystemTime {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let (seconds, nanos) = (now.tv_sec.try_into(), now.tv_nsec.try_into());
    SystemTime::UNIX_EPOCH + Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

/// The same where it cannot be asked: what it shows for certain.
#[cfg(not(target_os = "linux"))]
fn clock_of_files() -> SystemTime {
    /// Longer than it stands still.
    const FRESH: Duration = Duration::from_millis(20);
    SystemTime::now() - FRESH
}

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
