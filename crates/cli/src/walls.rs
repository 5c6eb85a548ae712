//! The walls, as the other commands use them: one launcher, and failures in our words.

use std::io::{ErrorKind, Read};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::{Mutex, PoisonError};

use sandbox::{Launcher, Level, SpawnError, StartError};

use crate::exit::{Exit, Failure};

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
        SpawnError::Program(path, cause) => failure.hint(program_hint(path, cause)),
        _ => failure,
    }
}

/// What may be wrong with a program that is there and was not executed.
fn program_hint(path: &Path, cause: &std::io::Error) -> String {
    let first_line = first_line(path);
    match (cause.kind(), first_line) {
        (ErrorKind::NotFound, Some(line)) if line.ends_with('\r') => {
            "its first line ends with a carriage return; save it with the line ends of Unix".into()
        }
        (ErrorKind::NotFound, Some(line)) => {
            let interpreter = line.split_whitespace().next().unwrap_or_default();
            let is_here = Path::new(interpreter).exists();
            let way_out = if is_here {
                format!("`--read {interpreter}` grants it")
            } else {
                "there is none here either".into()
            };
            format!(
                "its first line asks for `{interpreter}`, which is not inside the walls; {way_out}"
            )
        }
        _ if cause.raw_os_error() == Some(EXEC_FORMAT) => {
            "it has no first line such as `#!/bin/sh`, or is made for another processor".into()
        }
        _ => "`--read` grants what the program needs".into(),
    }
}

/// The error of a system that does not know the format of a program; the same on all of them.
const EXEC_FORMAT: i32 = 8;

/// What stands after `#!` in the first line of a script.
fn first_line(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}
