//! The walls, as the other commands use them: one launcher, and failures in our words.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sandbox::{Launcher, Level, SpawnError, StartError};

use crate::exit::{Exit, Failure};

/// The least the walls must be for a program to be started. Only the owner's policy can name a lower level.
pub(crate) const REQUIRED: Level = Level::L2;

/// Starts the launcher of the walls.
pub(crate) fn launcher() -> Result<Launcher, Failure> {
    // The link is to the program that runs, also when another was installed in its place since.
    let program = if cfg!(target_os = "linux") {
        Ok(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe()
    };
    let program = program
        .map_err(|error| Failure::new(Exit::Bug, "failed to find our own program").cause(error))?;
    Launcher::start(&program).map_err(|error| {
        let failure = Failure::of(Exit::Unavailable, &error);
        match error {
            StartError::Unsupported => failure.hint(
                "on Windows, run haft inside WSL2; authoring, registries and remote tools work here",
            ),
            StartError::Program(_) | StartError::Silent => failure,
        }
    })
}

/// Why a program was not started, with what to do about it.
pub(crate) fn failure(error: &SpawnError) -> Failure {
    let exit = match error {
        SpawnError::TooWeak { .. }
        | SpawnError::Wall(_)
        | SpawnError::Needs(_)
        | SpawnError::Launcher(_)
        | SpawnError::Host(_) => Exit::Unavailable,
        SpawnError::BadPath(_) | SpawnError::Own(_) | SpawnError::BadText | SpawnError::Link(_) => {
            Exit::Invalid
        }
        SpawnError::Missing(_, cause)
        | SpawnError::Program(_, cause)
        | SpawnError::Folder(_, cause) => match cause.kind() {
            ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Invalid,
        },
        SpawnError::Moved(_) => Exit::Conflict,
    };
    let mut failure = Failure::of(exit, error);
    if let SpawnError::TooWeak { walls, .. } = error {
        for (primitive, fault) in walls.missing() {
            failure = failure.detail(format!("{primitive}: {fault}"));
        }
    }
    match error {
        SpawnError::TooWeak { .. } | SpawnError::Wall(_) => {
            failure.hint("`haft doctor` shows what is missing and how to get it")
        }
        SpawnError::BadPath(path) if path == Path::new("/") => {
            failure.hint("name the folders that are needed; all of them at once is no wall")
        }
        SpawnError::Program(..) => failure.hint("`--read` grants what the program needs"),
        _ => failure,
    }
}
