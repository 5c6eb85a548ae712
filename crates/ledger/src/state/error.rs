//! Why the database refuses.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why the database refuses.
#[derive(Debug)]
pub enum StateError {
    /// The file cannot be opened.
    Open {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A newer Haft wrote it.
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The last version that is known here.
        known: i64,
    },
    /// It is a database, but of another program.
    Foreign {
        /// The file.
        path: PathBuf,
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

    pub(super) fn opening(path: &Path, error: sqlx::Error) -> Self {
        match Self::query(path, "open", error) {
            StateError::Query { source, .. } => StateError::Open { path: path.to_owned(), source },
            other => other,
        }
    }

    pub(super) fn query(path: &Path, doing: &'static str, error: sqlx::Error) -> Self {
        // The last eight bits are the plain code: 5 and 6 busy or locked, 8 read-only, 11 damaged, 26 no database.
        let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
        let path = path.to_owned();
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

/// What the database said, without that it was the database.
fn plain(error: sqlx::Error) -> Box<dyn Error + Send + Sync> {
    match error {
        sqlx::Error::Database(said) => said.into_error(),
        other => other.into(),
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::Open { path, .. } => write!(out, "failed to open `{}`", path.display()),
            StateError::Newer { path, found, known } => write!(
                out,
                "`{}` was written by a newer version of Haft (its form is {found}, known is {known})",
                path.display()
            ),
            StateError::Foreign { path } => {
                write!(out, "`{}` is a database of another program", path.display())
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
