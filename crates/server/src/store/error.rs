//! Why the database refuses.

use std::error::Error;
use std::fmt;

/// Why the database refuses.
#[derive(Debug)]
pub enum StoreError {
    /// The address is none of a database we know.
    Address(String),
    /// It cannot be opened.
    Open(Box<dyn Error + Send + Sync>),
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
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StoreError {
    /// What to say when something did not work.
    pub(super) fn query(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |error| StoreError::Query { doing, source: error.into() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Address(scheme) => {
                write!(out, "`{scheme}` is no database; give a file or `postgres://…`")
            }
            StoreError::Open(_) => out.write_str("failed to open the registry's database"),
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
            StoreError::Open(source) | StoreError::Query { source, .. } => Some(&**source),
            StoreError::Address(_) | StoreError::Newer { .. } => None,
        }
    }
}
