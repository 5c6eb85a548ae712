//! What keeps a home from being read or changed.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a home could not be read or changed.
#[derive(Debug)]
pub enum HomeError {
    /// The system refused something.
    Failed {
        /// What was being done.
        doing: Doing,
        /// What it said.
        cause: io::Error,
        /// Whether the change counts all the same, and is finished by the next command.
        is_made: bool,
    },
    /// A file of ours is not what it should be.
    Broken {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// What was being done.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each names its path")]
pub enum Doing {
    Read(PathBuf),
    Write(PathBuf),
    Make(PathBuf),
    Move(PathBuf, PathBuf),
    Remove(PathBuf),
    Lock(PathBuf),
}

impl Doing {
    pub(crate) fn failed(&self, cause: io::Error) -> HomeError {
        HomeError::Failed { doing: self.clone(), cause, is_made: false }
    }
}

impl HomeError {
    /// The same, of a change that counts.
    pub(crate) fn made(self) -> Self {
        match self {
            Self::Failed { doing, cause, .. } => Self::Failed { doing, cause, is_made: true },
            broken @ Self::Broken { .. } => broken,
        }
    }
}

impl fmt::Display for HomeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { doing, is_made: false, .. } => write!(out, "{doing}"),
            Self::Failed { doing, is_made: true, .. } => {
                write!(out, "the change is made, and the next command finishes it: {doing}")
            }
            Self::Broken { path, why } => write!(out, "`{}` cannot be used: {why}", path.display()),
        }
    }
}

impl std::error::Error for HomeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed { cause, .. } => Some(cause),
            Self::Broken { .. } => None,
        }
    }
}

impl fmt::Display for Doing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(out, "failed to read `{}`", path.display()),
            Self::Write(path) => write!(out, "failed to write `{}`", path.display()),
            Self::Make(path) => write!(out, "failed to make `{}`", path.display()),
            Self::Move(from, to) => {
                write!(out, "failed to move `{}` to `{}`", from.display(), to.display())
            }
            Self::Remove(path) => write!(out, "failed to remove `{}`", path.display()),
            Self::Lock(path) => write!(out, "failed to lock `{}`", path.display()),
        }
    }
}
