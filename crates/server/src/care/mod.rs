//! What an operator does for a registry: each works while it is served.
//!
//! | module | what it is |
//! |---|---|
//! | [`check`] | is everything there, and what it should be |
//! | [`gc`] | removes package files that no version has |
//! | [`backup`] | all of it, in one file or folder |
//! | [`restore`] | back from there, into stores of either kind |
//! | `place` | the file or the folder of a backup |

pub mod backup;
pub mod check;
pub mod gc;
mod place;
pub mod restore;

use std::fmt;

use crate::blobs::{BlobError, Blobs};
use crate::store::rows::LoadError;
use crate::store::{Store, StoreError};
use crate::trouble::Trouble;

/// Why something is not done.
#[derive(Debug)]
pub enum CareError {
    /// The database refuses.
    Store(StoreError),
    /// The store of files refuses.
    Blob(BlobError),
    /// A file of a backup cannot be read or written.
    File {
        /// Which.
        path: String,
        /// Why not.
        trouble: Trouble,
    },
    /// Something is there already.
    Exists(String),
    /// The folder that something goes to is not there.
    NoFolder(String),
    /// There is no such backup.
    NotThere(String),
    /// What is given is no backup of a registry.
    NoBackup(String),
    /// A newer Haft made the backup.
    Newer {
        /// The form of its tables.
        found: i64,
        /// The last that is known here.
        known: i64,
    },
    /// A part of a backup is not what it was.
    Damaged(String),
    /// There is something in the registry already, in this table.
    NotEmpty(&'static str),
}

/// Whether the files may be the registry's own: they are, or nobody has said whose they are.
async fn check_together(store: &Store, blobs: &Blobs) -> Result<(), CareError> {
    match blobs.check_bound(store.id()).await {
        Ok(()) | Err(BlobError::NoRegistry) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl fmt::Display for CareError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CareError::Store(error) => error.fmt(out),
            CareError::Blob(error) => error.fmt(out),
            CareError::File { path, .. } => write!(out, "failed to read or write `{path}`"),
            CareError::Exists(path) => write!(out, "`{path}` is there already"),
            CareError::NoFolder(path) => write!(out, "there is no folder `{path}`"),
            CareError::NotThere(path) => write!(out, "there is no backup `{path}`"),
            CareError::NoBackup(why) => write!(out, "this is no backup of a registry: {why}"),
            CareError::Newer { found, known } => write!(
                out,
                "a newer version of Haft made the backup (its form is {found}, known is {known})"
            ),
            CareError::Damaged(what) => write!(out, "the backup is damaged: {what}"),
            CareError::NotEmpty(table) => {
                write!(out, "the registry is not empty: it has {table}")
            }
        }
    }
}

impl std::error::Error for CareError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CareError::Store(error) => error.source(),
            CareError::Blob(error) => error.source(),
            CareError::File { trouble, .. } => Some(trouble),
            _ => None,
        }
    }
}

impl From<StoreError> for CareError {
    fn from(error: StoreError) -> Self {
        CareError::Store(error)
    }
}

impl From<BlobError> for CareError {
    fn from(error: BlobError) -> Self {
        CareError::Blob(error)
    }
}

impl From<LoadError> for CareError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::NotEmpty(table) => CareError::NotEmpty(table),
            LoadError::Line(number, why) => {
                CareError::Damaged(format!("line {number} of its rows: {why}"))
            }
            LoadError::Store(error) => CareError::Store(error),
            LoadError::Read(error) => place::failed(place::ROWS)(error),
        }
    }
}
