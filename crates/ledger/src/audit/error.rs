//! Why the log cannot be written or read.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why the log cannot be written or read. Whoever gets one from [`Audit::begin`](super::Audit::begin)
/// must not run the call.
#[derive(Debug)]
pub enum AuditError {
    /// A file of the log could not be used.
    File {
        /// What was to be done with it: `open`, `write`, …
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process kept the lock for too long.
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// The key of the home is there, but is no key.
    BadKey {
        /// Its file.
        path: PathBuf,
    },
    /// The system gives no randomness for a key.
    NoRandomness,
}

/// What kind of trouble it is; each face maps it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditErrorKind {
    /// Later it may work.
    Busy,
    /// The disk or its rights are in the way.
    Unavailable,
    /// A file is not what it should be.
    Broken,
}

impl AuditError {
    /// What kind of trouble it is.
    pub fn kind(&self) -> AuditErrorKind {
        match self {
            AuditError::Busy { .. } => AuditErrorKind::Busy,
            AuditError::File { .. } | AuditError::NoRandomness => AuditErrorKind::Unavailable,
            AuditError::BadKey { .. } => AuditErrorKind::Broken,
        }
    }

    pub(super) fn file(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> AuditError + use<> {
        let path = path.to_owned();
        move |source| AuditError::File { doing, path, source }
    }
}

impl fmt::Display for AuditError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditError::File { doing, path, .. } => {
                write!(out, "failed to {doing} `{}` of the audit log", path.display())
            }
            AuditError::Busy { path } => {
                write!(out, "another process keeps the audit log locked (`{}`)", path.display())
            }
            AuditError::BadKey { path } => {
                write!(out, "`{}` holds no key of an audit log", path.display())
            }
            AuditError::NoRandomness => out.write_str("the system gives no randomness for a key"),
        }
    }
}

impl std::error::Error for AuditError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AuditError::File { source, .. } => Some(source),
            AuditError::Busy { .. } | AuditError::BadKey { .. } | AuditError::NoRandomness => None,
        }
    }
}
