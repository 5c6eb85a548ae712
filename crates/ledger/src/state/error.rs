//! Why the database refuses.

use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use sqlx::sqlite::SqliteError;

/// Why the database refuses.
#[derive(Debug)]
pub enum StateError {
    /// It cannot be opened.
    Open {
        /// The file, or where a shared database is.
        place: String,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A newer Haft wrote it.
    Newer {
        /// The file, or where a shared database is.
        place: String,
        /// Its version.
        found: i64,
        /// The last version that is known here.
        known: i64,
    },
    /// It is a database, but of another program.
    Foreign {
        /// The file, or where a shared database is.
        place: String,
    },
    /// It is damaged, or no database at all. It is never deleted.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What the database said.
        said: String,
    },
    /// Another process wrote for too long.
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Something did not work.
    Query {
        /// What was to be done.
        doing: &'static str,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The system gives no randomness for a ticket.
    NoRandomness,
}

/// What kind of trouble it is; each face maps it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateErrorKind {
    /// Later it may work.
    Busy,
    /// The disk, its rights or the system are in the way.
    Unavailable,
    /// The file is not what it should be.
    Broken,
}

impl StateError {
    /// What kind of trouble it is.
    pub fn kind(&self) -> StateErrorKind {
        match self {
            StateError::Busy { .. } => StateErrorKind::Busy,
            StateError::Newer { .. } | StateError::Foreign { .. } | StateError::Corrupt { .. } => {
                StateErrorKind::Broken
            }
            StateError::Open { .. } | StateError::Query { .. } | StateError::NoRandomness => {
                StateErrorKind::Unavailable
            }
        }
    }

    /// What to say where a database was to be opened, by its place.
    pub(super) fn opening(place: &str, error: sqlx::Error) -> Self {
        match Self::query(place, "open", error) {
            StateError::Query { source, .. } => {
                StateError::Open { place: place.to_owned(), source }
            }
            other => other,
        }
    }

    /// What to say where something was to be done in the database at a place.
    pub(super) fn query(place: &str, doing: &'static str, error: sqlx::Error) -> Self {
        // The last eight bits are the plain code: 5 and 6 busy or locked, 8 read-only, 11 damaged, 26 no database.
        // Codes of other databases mean something else.
        let said =
            error.as_database_error().and_then(|said| said.try_downcast_ref::<SqliteError>());
        let code =
            said.and_then(|said| sqlx::error::DatabaseError::code(said)?.parse::<u32>().ok());
        let path = PathBuf::from(place);
        match code.map(|code| code & 0xff) {
            Some(5 | 6) => StateError::Busy { path },
            Some(11 | 26) => StateError::Corrupt { path, said: error.to_string() },
            Some(8) => {
                let source = format!("`{}` can only be read", path.display()).into();
                StateError::Query { doing, source }
            }
            _ => StateError::Query { doing, source: plain(error) },
        }
    }
}

/// What the database said, without that it was the database. Nothing of it holds the address of one.
fn plain(error: sqlx::Error) -> Box<dyn Error + Send + Sync> {
    match error {
        sqlx::Error::Database(said) if said.try_downcast_ref::<SqliteError>().is_some() => {
            said.into_error()
        }
        // The rest of what `PostgreSQL` says repeats rows.
        sqlx::Error::Database(said) => said.message().into(),
        sqlx::Error::PoolTimedOut => "no answer came in time".into(),
        sqlx::Error::Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused => "nobody listens there".into(),
            ErrorKind::NotFound => {
                "nobody listens there, or a file that its address names is not there".into()
            }
            ErrorKind::UnexpectedEof
            | ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted => "the connection was cut".into(),
            _ => error.into(),
        },
        other => innermost(&other).to_string().into(),
    }
}

/// Each cause repeats the ones beneath it.
pub(super) fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    std::iter::successors(Some(error), |error| (**error).source()).last().unwrap_or(error)
}

impl fmt::Display for StateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::Open { place, .. } => write!(out, "failed to open `{place}`"),
            StateError::Newer { place, found, known } => write!(
                out,
                "`{place}` was written by a newer version of Haft (its form is {found}, known is {known})"
            ),
            StateError::Foreign { place } => {
                write!(out, "`{place}` is a database of another program")
            }
            StateError::Corrupt { path, said } => {
                write!(out, "`{}` is damaged and was left as it is: {said}", path.display())
            }
            StateError::Busy { path } => {
                write!(out, "another process keeps `{}` locked", path.display())
            }
            StateError::Query { doing, .. } => {
                write!(out, "failed to {doing} in the state of the home")
            }
            StateError::NoRandomness => {
                out.write_str("the system gives no randomness for a ticket")
            }
        }
    }
}

impl Error for StateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StateError::Open { source, .. } | StateError::Query { source, .. } => Some(&**source),
            StateError::Newer { .. }
            | StateError::Foreign { .. }
            | StateError::Corrupt { .. }
            | StateError::Busy { .. }
            | StateError::NoRandomness => None,
        }
    }
}
