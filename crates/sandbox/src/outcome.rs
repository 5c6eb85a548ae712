//! How a walled process ended, what it used, and why one was not started.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::level::{Fault, Level, Walls};
use crate::script::Obstacle;

/// How a walled process ended. When this is known, nothing of it runs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What ended it.
    pub exit: Exit,
    /// What it and its descendants used.
    pub usage: Usage,
}

/// What ended a walled process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended itself with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It ran past its deadline.
    Deadline,
    /// It, or something it started, used more memory than it may.
    Memory,
    /// It used more processor time than it may.
    Processor,
    /// It started more processes than it may.
    Processes,
    /// It wrote more than it may.
    Output,
    /// Somebody outside moved or replaced what is protected in a folder it may write, so that
    /// it could have planted something there.
    Uncovered,
    /// We ended it.
    Cancelled,
    /// The walls came down around it: somebody else killed them.
    Lost,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Deadline => f.write_str("ran past its deadline"),
            Self::Memory => f.write_str("used more memory than it may"),
            Self::Processor => f.write_str("used more processor time than it may"),
            Self::Processes => f.write_str("started more processes than it may"),
            Self::Output => f.write_str("wrote more output than it may"),
            Self::Uncovered => f.write_str(
                "was ended, because something protected in a folder it may write was moved or replaced from outside",
            ),
            Self::Cancelled => f.write_str("was cancelled"),
            Self::Lost => f.write_str("was killed together with its walls"),
        }
    }
}

/// What a walled process and its descendants used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on the clock from its order to its end.
    pub wall: Duration,
    /// Processor time in the program.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The most memory at a time, in bytes.
    pub peak_memory: u64,
    /// Bytes of standard output and standard error that were read.
    pub output: u64,
}

/// Why the launcher did not start.
#[derive(Debug)]
pub enum StartError {
    /// The program could not be executed again.
    Program(std::io::Error),
    /// It started and did not answer.
    Silent,
    /// This system has no walls that we know.
    Unsupported,
}

impl StartError {
    /// The same, for whoever asks next.
    #[cfg(target_os = "linux")]
    pub(crate) fn told_again(&self) -> Self {
        match self {
            Self::Program(error) => Self::Program(match error.raw_os_error() {
                Some(number) => std::io::Error::from_raw_os_error(number),
                None => std::io::Error::new(error.kind(), error.to_string()),
            }),
            Self::Silent => Self::Silent,
            Self::Unsupported => Self::Unsupported,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(_) => f.write_str("failed to start the launcher"),
            Self::Silent => f.write_str("the launcher started and did not answer"),
            Self::Unsupported => f.write_str("this system has no walls that Haft knows"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Program(error) => Some(error),
            Self::Silent | Self::Unsupported => None,
        }
    }
}

/// Why a program was not started. Nothing of it ran.
#[derive(Debug)]
pub enum SpawnError {
    /// The walls of this machine are weaker than what is required.
    TooWeak {
        /// What is required.
        required: Level,
        /// What there is.
        walls: Walls,
    },
    /// The walls could not be built this time.
    Wall(Fault),
    /// A path is not absolute, is the root, or has `..` in it.
    BadPath(PathBuf),
    /// A path is of what every program has of its own.
    Own(PathBuf),
    /// A path is or leads through a symbolic link.
    Link(PathBuf),
    /// A path is not there, or may not be looked at.
    Missing(PathBuf, std::io::Error),
    /// A path is another file than a moment ago.
    Moved(PathBuf),
    /// A file with settings of git, in or around a folder to write, names more than can be held in its place.
    LeadsTooFar(PathBuf),
    /// The program is not there, or is not visible inside the walls, or cannot be executed.
    Program(PathBuf, std::io::Error),
    /// The folder to start in is not visible inside the walls.
    Folder(PathBuf, std::io::Error),
    /// The argument of this number, after the program, has a zero byte.
    BadArgument(usize),
    /// A variable has a zero byte, or its name an equals sign or nothing at all.
    BadVariable(OsString),
    /// What is asked needs walls that this machine does not have.
    Needs(&'static str),
    /// The launcher is gone and could not be started again.
    Launcher(StartError),
    /// Something of our own failed: descriptors, pipes.
    Host(std::io::Error),
    /// Whoever was to say that it may be started did not.
    Withheld,
}

impl SpawnError {
    /// What kept a program that is there from being executed, where that is known.
    pub fn obstacle(&self) -> Option<&Obstacle> {
        let Self::Program(_, cause) = self else { return None };
        cause.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooWeak { required, walls } => {
                write!(
                    f,
                    "the walls of this machine reach {}, {required} is required",
                    walls.level()
                )
            }
            Self::Wall(_) => f.write_str("the walls could not be built"),
            Self::BadPath(path) => match path.to_str() {
                Some("/") => f.write_str("`/` as a whole cannot be granted"),
                _ => write!(f, "`{}` is not an absolute path", path.display()),
            },
            Self::Own(path) => {
                write!(f, "`{}` cannot be granted: the program has its own", path.display())
            }
            Self::Link(path) => write!(f, "`{}` leads through a symbolic link", path.display()),
            Self::Missing(path, _) => write!(f, "failed to look at `{}`", path.display()),
            Self::Moved(path) => {
                write!(f, "`{}` is not what it was a moment ago", path.display())
            }
            Self::LeadsTooFar(path) => write!(
                f,
                "`{}` leads git to more files and folders than can be protected",
                path.display()
            ),
            Self::Program(path, _) => {
                write!(f, "failed to execute `{}` inside the walls", path.display())
            }
            Self::Folder(path, _) => {
                write!(f, "failed to start in the folder `{}`", path.display())
            }
            Self::BadArgument(number) => {
                write!(f, "argument {number} holds a character that no process can have")
            }
            Self::BadVariable(name) => write!(
                f,
                "the variable `{}` holds a character that no process can have",
                name.to_string_lossy().escape_debug()
            ),
            Self::Needs(what) => write!(f, "{what} needs namespaces, which do not work here"),
            Self::Launcher(_) => f.write_str("the launcher is gone"),
            Self::Host(_) => f.write_str("failed to prepare a process"),
            Self::Withheld => f.write_str("it was not to be started after all"),
        }
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Wall(fault) => Some(fault),
            Self::Missing(_, error)
            | Self::Program(_, error)
            | Self::Folder(_, error)
            | Self::Host(error) => Some(error),
            Self::Launcher(error) => Some(error),
            Self::TooWeak { .. }
            | Self::BadPath(_)
            | Self::Own(_)
            | Self::Link(_)
            | Self::Moved(_)
            | Self::LeadsTooFar(_)
            | Self::BadArgument(_)
            | Self::BadVariable(_)
            | Self::Withheld
            | Self::Needs(_) => None,
        }
    }
}
