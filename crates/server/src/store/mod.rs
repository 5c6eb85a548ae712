//! What a registry knows: packages, their versions, and tokens.
//!
//! A [`Store`] is one open database: a file of `SQLite`, or `PostgreSQL` for several replicas. Both are asked in the
//! same words. What a function has returned from outlives the end of any process.
//!
//! | module | what it is |
//! |---|---|
//! | `error` | why the database refuses |
//! | `schema` | the tables, version by version |
//! | [`each`] | rows read one by one |
//! | [`versions`] | publishing, and what is known of a version |
//! | [`yanks`] | taking back a version, and offering it again |
//! | [`feed`] | what has changed since |
//! | [`doors`] | what other worlds are told |
//! | [`tokens`] | who may do what |
//! | [`owners`] | who else may publish a package |
//! | [`reviews`] | what waits for a reviewer, and what was said of it |
//! | [`namespaces`] | who publishes in a namespace, and with what |
//! | [`publishers`] | whose identities are trusted |
//! | [`listen`] | hearing of changes at once |
//! | [`removals`] | package files that no version has |
//! | [`rows`] | everything, for a backup |
//! | [`inspect`] | row by row, for a check |

pub mod doors;
pub mod each;
mod error;
pub mod feed;
pub mod inspect;
pub mod listen;
pub mod namespaces;
pub mod owners;
pub mod publishers;
pub mod removals;
pub mod reviews;
pub mod rows;
mod schema;
pub mod tokens;
pub mod versions;
pub mod yanks;

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use sqlx::any::AnyPoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Any, AnyConnection, AnyPool, Connection, PgConnection, Transaction};
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

pub use error::StoreError;

use crate::trouble::check_version;
use trace::{Place, Running, part};

/// How long is waited for a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a last try may take, which says why there was no connection.
const LAST_TRY: Duration = Duration::from_secs(2);
/// The most connections to a database.
const CONNECTIONS: u32 = 16;
/// How many of them look through whole tables at once; the others are for what is found at once.
const SCANS: usize = 4;

/// The database of a registry.
pub struct Store {
    pool: AnyPool,
    id: String,
    engine: Engine,
    /// How whoever listens connects.
    listening: Option<PgConnectOptions>,
    /// `SQLite` has one writer at a time: those of this process wait here, in order, and not by asking again and again.
    writing: Mutex<()>,
    /// One for each question that looks through whole tables.
    scanning: Semaphore,
    /// How often a row could not be read.
    unread: AtomicU64,
}

/// Without the address, which may hold a password.
impl std::fmt::Debug for Store {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Store").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// How many connections to the database there are, and how many of them do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// All of them.
    pub open: u32,
    /// Those that wait for somebody.
    pub idle: usize,
}

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    /// Begins what must be all or nothing; `SQLite` waits for other writers at once, not half-way.
    fn begin(self) -> &'static str {
        match self {
            Engine::Sqlite => "BEGIN IMMEDIATE",
            Engine::Postgres => "BEGIN",
        }
    }

    /// The type of bytes.
    fn bytes(self) -> &'static str {
        match self {
            Engine::Sqlite => "BLOB",
            Engine::Postgres => "BYTEA",
        }
    }

    /// How the order of bytes is asked for, where it is not the usual one.
    fn by_bytes(self) -> &'static str {
        match self {
            Engine::Sqlite => "",
            Engine::Postgres => "COLLATE \"C\"",
        }
    }
}

impl Store {
    /// Opens a database by its address: `postgres://…`, or the path of a file, which is made when there is none.
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        match address.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Self::postgres(address).await,
            Some((scheme, _)) if scheme != "sqlite" => Err(StoreError::Address(scheme.to_owned())),
            Some((_, path)) => Self::file(Path::new(path)).await,
            None => Self::file(Path::new(address)).await,
        }
    }

    /// Opens a database in a file, which is made when there is none.
    pub async fn file(path: &Path) -> Result<Self, StoreError> {
        let place = path.display().to_string();
        make_private(path).map_err(StoreError::open(&place))?;
        let bytes = path.as_os_str().as_encoded_bytes();
        let path = percent_encoding::percent_encode(bytes, percent_encoding::NON_ALPHANUMERIC);
        Self::connect(&format!("sqlite://{path}?mode=rw"), Engine::Sqlite, &place, None).await
    }

    async fn postgres(address: &str) -> Result<Self, StoreError> {
        let options: Result<PgConnectOptions, sqlx::Error> = address.parse();
        let options = options.map_err(StoreError::open("postgres://…"))?;
        // Without the user, and above all without the password.
        let (host, port) = (options.get_host(), options.get_port());
        let place = match options.get_socket().map(|socket| socket.display().to_string()) {
            Some(socket) => socket,
            None if host.starts_with('/') => host.to_owned(),
            None => format!("{host}:{port}"),
        };
        let database = options.get_database().unwrap_or(options.get_username());
        let place = format!("{place}/{database}");
        Self::connect(address, Engine::Postgres, &place, Some(options)).await
    }

    async fn connect(
        address: &str,
        engine: Engine,
        place: &str,
        listening: Option<PgConnectOptions>,
    ) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let options = AnyPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE)
            // `SQLite` ends a change by itself when the disk is full, and the pool goes on believing that it is under way.
            .before_acquire(|connection, _| {
                let is_free = !connection.is_in_transaction();
                Box::pin(async move { Ok(is_free) })
            })
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    match engine {
                        Engine::Sqlite => set(connection).await,
                        Engine::Postgres => Ok(()),
                    }
                })
            });
        if engine == Engine::Sqlite {
            // A pool asks again and again what fails, and then says only that its time is over.
            let first = async {
                let mut connection = AnyConnection::connect(address).await?;
                set(&mut connection).await?;
                connection.close().await
            };
            first.await.map_err(StoreError::open(place))?;
        }
        let pool = match options.connect(address).await {
            Ok(pool) => pool,
            Err(error) => {
                return Err(StoreError::open(place)(why(error, listening.as_ref()).await));
            }
        };
        if engine == Engine::Postgres {
            let asked = "SELECT current_setting('server_version_num')::bigint";
            let version = sqlx::query_scalar::<_, i64>(asked).fetch_one(&pool).await;
            let version = version.map_err(StoreError::open(place))?;
            check_version(version).map_err(StoreError::open(place))?;
        }
        schema::bring_up(&pool, engine).await?;
        let (writing, scanning) = (Mutex::new(()), Semaphore::new(SCANS));
        let (id, unread) = (schema::id(&pool).await?, AtomicU64::new(0));
        Ok(Self { pool, id, engine, listening, writing, scanning, unread })
    }

    /// The connections there are now.
    pub fn connections(&self) -> Connections {
        Connections { open: self.pool.size(), idle: self.pool.num_idle() }
    }

    /// What the registry is called, by which its package files are known to be its own.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the database answers.
    pub async fn check_alive(&self) -> Result<(), StoreError> {
        let one =
            sqlx::query_scalar::<_, i64>("SELECT number FROM feed").fetch_one(&self.pool).await;
        one.map(drop).map_err(StoreError::query("look whether anything is there"))
    }

    /// Lets go of all connections. Without it nothing is lost.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// A turn for a question that looks through whole tables: whoever asks many of them keeps nobody else from asking.
    async fn scan(&self, doing: &'static str) -> Result<SemaphorePermit<'_>, StoreError> {
        let turn = tokio::time::timeout(PATIENCE, self.scanning.acquire()).await;
        turn.ok()
            .and_then(Result::ok)
            .ok_or_else(|| StoreError::query(doing)(sqlx::Error::PoolTimedOut))
    }

    /// Begins a change.
    async fn change(&self, doing: &'static str) -> Result<Changing<'_>, StoreError> {
        let asking = asking(doing);
        let turn = match self.engine {
            Engine::Sqlite => Some(self.writing.lock().await),
            Engine::Postgres => None,
        };
        let begun = self.pool.begin_with(self.engine.begin()).await;
        let transaction = begun.map_err(StoreError::query(doing))?;
        Ok(Changing { transaction, _turn: turn, _asking: asking })
    }
}

/// Makes a connection to `SQLite` what we need. An acknowledged publish outlives a power cut: each waits for the disk.
async fn set(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    let settings = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; \
         PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON";
    sqlx::raw_sql(settings).execute(connection).await.map(drop)
}

/// Why nobody answers: the pool asks again and again, and then says only that its time is over. One more try by itself
/// says what is wrong.
async fn why(error: sqlx::Error, options: Option<&PgConnectOptions>) -> sqlx::Error {
    let (sqlx::Error::PoolTimedOut, Some(options)) = (&error, options) else { return error };
    match tokio::time::timeout(LAST_TRY, PgConnection::connect_with(options)).await {
        Ok(Err(cause)) => cause,
        Ok(Ok(_)) | Err(_) => error,
    }
}

/// A change that is under way; dropped, it never was.
struct Changing<'s> {
    transaction: Transaction<'static, Any>,
    _turn: Option<MutexGuard<'s, ()>>,
    _asking: Running,
}

/// Asks the database for something, as a part of the request that is under way.
fn asking(doing: &'static str) -> Running {
    part(Place::Database, doing)
}

/// Numbers are stored with a sign.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn read(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A new file is for its owner alone; `SQLite` gives its journals the same rights. Of one that is there it is seen that
/// it can be written, because `SQLite` does not say why it cannot.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::doors::{AskedVersion, ServerQuery};
    use super::*;

    #[tokio::test]
    async fn those_who_look_through_everything_keep_nobody_else_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::file(&folder.path().join("registry.db")).await.unwrap();
        let busy = store.scanning.acquire_many(u32::try_from(SCANS).unwrap()).await.unwrap();
        let soon = Duration::from_millis(200);
        let plain = ServerQuery::default();
        let named = ServerQuery { name: Some("a/b".to_owned()), ..ServerQuery::default() };
        let names = Some(vec!["a/b".to_owned(), "a/c".to_owned()]);
        let found = ServerQuery { names: names.clone(), ..plain.clone() };
        for quick in [&plain, &named, &found] {
            assert!(tokio::time::timeout(PATIENCE, store.servers(quick, 1)).await.is_ok());
        }
        let since = ServerQuery { updated_since: Some(1), ..plain.clone() };
        let version =
            ServerQuery { version: AskedVersion::Exactly("1.0.0".to_owned()), ..plain.clone() };
        // Of names there can be many, and few that have it.
        let among = ServerQuery { names, ..since.clone() };
        let namespace = ServerQuery { namespace: Some("acme".to_owned()), ..plain };
        for slow in [since, among, version, namespace] {
            let waits = tokio::time::timeout(soon, store.servers(&slow, 1)).await;
            assert!(waits.is_err(), "{slow:?}");
        }
        assert!(tokio::time::timeout(soon, store.listed(None, "", 1)).await.is_err());
        drop(busy);
        assert!(store.listed(None, "", 1).await.unwrap().rows.is_empty());
    }
}
