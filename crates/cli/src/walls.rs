//! The walls, as the other commands use them: one launcher, and failures in our words.

use std::io::ErrorKind;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::{Mutex, PoisonError};

use sandbox::{Launcher, Level, Obstacle, SpawnError, StartError};

use crate::exit::{Exit, Failure};
use crate::shell;

/// The least the walls must be for a program to be started. Only the owner's policy can name a lower level.
pub(crate) const REQUIRED: Level = Level::L2;

/// A launcher that was begun before anything else, until somebody needs it.
#[cfg(target_os = "linux")]
static EARLY: Mutex<Option<sandbox::Early>> = Mutex::new(None);

/// Begins a launcher where the command line has a word that needs one. It is the first thing that is done, while this
/// process has one thread; should nobody need it after all, it ends with this process.
pub(crate) fn begin_early() {
    #[cfg(target_os = "linux")]
    if std::env::args_os().any(|word| word == "call" || word == "sandbox") && !sandbox::is_walled()
    {
        *EARLY.lock().unwrap_or_else(PoisonError::into_inner) = sandbox::Early::fork().ok();
    }
}

#[cfg(target_os = "linux")]
fn start(program: &Path) -> Result<Launcher, StartError> {
    let early = EARLY.lock().unwrap_or_else(PoisonError::into_inner).take();
    early.map_or_else(|| Launcher::start(program), |early| Ok(Launcher::begun(early, program)))
}

#[cfg(not(target_os = "linux"))]
fn start(program: &Path) -> Result<Launcher, StartError> {
    Launcher::start(program)
}

/// Starts the launcher of the walls. One that was begun early is waited for when it is needed.
pub(crate) fn launcher() -> Result<Launcher, Failure> {
    if sandbox::is_walled() {
        let message = "this is inside the walls of another haft, and none can be built in there";
        return Err(Failure::new(Exit::Unavailable, message)
            .hint("start the program itself: the walls around this one hold it too"));
    }
    let program = sandbox::own_program()
        .map_err(|error| Failure::new(Exit::Bug, "failed to find our own program").cause(error))?;
    let started = start(&program).map(|launcher| launcher.keeping_ready(0));
    started.inspect(|launcher| {
        // It cleans up when this process ends, also without anybody who waits for that.
        std::mem::forget(launcher.clone());
    })
    .map_err(|error| {
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
        | SpawnError::Host(_)
        | SpawnError::Withheld => Exit::Unavailable,
        SpawnError::BadPath(_)
        | SpawnError::Own(_)
        | SpawnError::BadArgument(_)
        | SpawnError::BadVariable(_)
        | SpawnError::Link(_) => Exit::Invalid,
        SpawnError::Missing(_, cause)
        | SpawnError::Program(_, cause)
        | SpawnError::Folder(_, cause) => match cause.kind() {
            ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Invalid,
        },
        SpawnError::Moved(_) | SpawnError::LeadsTooFar(_) => Exit::Conflict,
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
        SpawnError::Program(..) => failure.hint(program_hint(error)),
        _ => failure,
    }
}

/// How to go on with a program that is there and was not executed, by the code of the obstacle.
pub(crate) fn obstacle_words(code: &str) -> Option<&'static str> {
    match code {
        "interpreter" => {
            Some("write one that is inside the walls into its first line, such as `/bin/sh`")
        }
        "carriage-return" => Some("save it with the line ends of Unix"),
        "no-first-line" => Some("write the program that runs it into a first line, after `#!`"),
        "foreign" => Some("get the one that is made for this machine"),
        _ => None,
    }
}

fn program_hint(error: &SpawnError) -> String {
    let obstacle = error.obstacle();
    match obstacle {
        Some(Obstacle::Interpreter(name)) if Path::new(name).exists() => {
            format!("`--read {}` grants it", shell::word(name))
        }
        _ => {
            let words = obstacle.and_then(|obstacle| obstacle_words(obstacle.code()));
            words.unwrap_or("`--read` grants what the program needs").to_owned()
        }
    }
}
