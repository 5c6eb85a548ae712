//! Systems whose walls Haft does not know: nothing is started there.
//!
//! The types are those of the other systems, and no value of them exists, so
//! that a program compiles everywhere and is told at its first question.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, PipeWriter};
use std::path::Path;
use std::time::Instant;

use crate::confinement::Confinement;
use crate::killer::Killer;
use crate::level::Walls;
use crate::network::{Asked, Ends};
use crate::outcome::{Ended, SpawnError, StartError};
use crate::output::{Finished, Output};

/// The host's end of the launcher, of which there is none.
#[derive(Debug, Clone)]
pub struct Launcher(Infallible);

impl Launcher {
    /// Says that this system has no walls that Haft knows.
    pub fn start(_program: &Path) -> Result<Self, StartError> {
        Err(StartError::Unsupported)
    }

    /// The same, keeping so many rooms ready.
    pub fn keeping_ready(self, _rooms: usize) -> Self {
        match self.0 {}
    }

    /// What the walls of this machine are made of.
    pub fn walls(&self) -> &Walls {
        match self.0 {}
    }

    /// Starts a program (an absolute path) with its arguments inside the walls.
    pub fn spawn(&self, _: &Confinement, _argv: &[OsString]) -> Result<Child, SpawnError> {
        match self.0 {}
    }

    /// The same, if it may be started.
    pub fn spawn_if(
        &self,
        _: &Confinement,
        _argv: &[OsString],
        _may: impl FnOnce() -> bool,
    ) -> Result<Child, SpawnError> {
        match self.0 {}
    }
}

/// A program inside the walls, of which there is none.
#[derive(Debug)]
pub struct Child(Infallible);

impl Child {
    /// The number of its first process.
    pub fn id(&self) -> u32 {
        match self.0 {}
    }

    /// The other end of its standard input, where that is a pipe; once.
    pub fn take_stdin(&mut self) -> Option<PipeWriter> {
        match self.0 {}
    }

    /// Its standard output, where that is a pipe; once.
    pub fn take_stdout(&mut self) -> Option<Output> {
        match self.0 {}
    }

    /// Its standard error, where that is a pipe; once.
    pub fn take_stderr(&mut self) -> Option<Output> {
        match self.0 {}
    }

    /// The ends of its network, where one was allowed; once.
    pub fn take_network(&mut self) -> Option<Ends> {
        match self.0 {}
    }

    /// The names it asks for in vain, where it has no network and somebody hears them; once.
    pub fn take_asked(&mut self) -> Option<Asked> {
        match self.0 {}
    }

    /// The other end of its terminal, where it has one; once.
    #[cfg(unix)]
    pub fn take_terminal(&mut self) -> Option<std::os::fd::OwnedFd> {
        match self.0 {}
    }

    /// Something that can end it from another thread.
    pub fn killer(&self) -> Killer {
        match self.0 {}
    }

    /// Ends it and all it started, at once.
    pub fn kill(&self) {
        match self.0 {}
    }

    /// Asks it to end. It may take its time or refuse.
    pub fn terminate(&self) {
        match self.0 {}
    }

    /// Waits until nothing of it is left.
    pub fn wait(&mut self) -> Ended {
        match self.0 {}
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> Option<Ended> {
        match self.0 {}
    }

    /// Waits until nothing of it is left, or until a moment has come.
    pub fn wait_until(&mut self, _until: Option<Instant>) -> Option<Ended> {
        match self.0 {}
    }

    /// Gives it its whole input, takes all its output, and waits for its end.
    pub fn finish(self, _input: &[u8]) -> io::Result<Finished> {
        match self.0 {}
    }

    /// The same, while somebody is told what it writes to its standard output as it comes.
    pub fn finish_hearing(
        self,
        _input: &[u8],
        _heard: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Finished> {
        match self.0 {}
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for Child {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self.0 {}
    }
}

/// Does nothing: there is no launcher to become.
pub fn enter_if_launcher() {}

/// Says that it cannot close the memory of this process here.
pub fn close_memory() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_walls_says_so_and_starts_nothing() {
        enter_if_launcher();
        let started = Launcher::start(Path::new("/usr/bin/haft"));
        assert!(matches!(started, Err(StartError::Unsupported)));
        assert_eq!(close_memory().unwrap_err().kind(), io::ErrorKind::Unsupported);
    }
}
