//! Why the database refuses.

use std::error::Error;
use std::fmt;

use crate::trouble::Trouble;

/// Why the database refuses.
#[derive(Debug)]
pub enum StoreError {
    /// The address is none of a database we know.
    Address(String),
    /// It cannot be opened.
    Open {
        /// Which: a file, or a host with its port and the name of the database.
        place: String,
        /// Why not.
        trouble: Trouble,
    },
    /// A newer Haft wrote it.
    Newer {
        /// Its version.
        found: i64,
        /// The last version that is known here.
        known: i64,
    },
    /// Something did not work.
    Query {
        /// What was to be done.
        doing: &'static str,
        /// Why not.
        trouble: Trouble,
    },
}

impl StoreError {
    /// What to say when it cannot be opened.
    pub(super) fn open<E: Into<Trouble>>(place: &str) -> impl Fn(E) -> Self {
        move |error| StoreError::Open { place: place.to_owned(), trouble: error.into() }
    }

    /// Whether there is no room left for what was to be kept.
    pub(crate) fn is_full(&self) -> bool {
        matches!(
            self,
            StoreError::Open { trouble: Trouble::NoRoom, .. }
                | StoreError::Query { trouble: Trouble::NoRoom, .. }
        )
    }

    /// What to say when something did not work.
    pub(super) fn query(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |error| StoreError::Query { doing, trouble: error.into() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Address(scheme) => {
                write!(out, "`{scheme}` is no database; give a file or `postgres://…`")
            }
            StoreError::Open { place, .. } => {
                write!(out, "failed to open `{place}`, the registry's database")
            }
            StoreError::Newer { found, known } => write!(
                out,
                "a newer version of Haft wrote the registry's database (its form is {found}, known is {known})"
            ),
            StoreError::Query { doing, .. } => {
                write!(out, "failed to {doing} in the registry's database")
            }
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StoreError::Open { trouble, .. } | StoreError::Query { trouble, .. } => Some(trouble),
            StoreError::Address(_) | StoreError::Newer { .. } => None,
        }
    }
}
