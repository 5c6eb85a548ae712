//! A server that is a process inside the walls.

use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use manifest::dialect::Dialect;
use sandbox::{Child, Ended, Exit, Launcher};
use vault::Redactor;

use super::session::Health;
use super::session::stdio::Wire;
use crate::blocked::Blocked;
use crate::confine::Walls;
use crate::error::{CallError, Kind};
use crate::output::ended_by;
use crate::run::said::{Hearing, Said};
use crate::run::{Network, not_started};

/// What is started.
#[derive(Clone, Debug)]
pub(super) struct Order {
    argv: Vec<OsString>,
    walls: Walls,
    longest: u64,
    /// Knows the secrets among its variables.
    redactor: Redactor,
}

impl Order {
    /// An order for a server whose messages are so long at most. Its walls are without what is counted by
    /// call, not for as long as a server lives.
    pub(super) fn new(argv: &[OsString], walls: &Walls, longest: u64, redactor: Redactor) -> Self {
        let mut walls = walls.clone();
        walls.confinement.limits.deadline = None;
        walls.confinement.limits.output = None;
        Self { argv: argv.to_vec(), walls, longest, redactor }
    }

    /// All that makes one server different from another.
    pub(super) fn key(&self) -> String {
        format!("{:?} {:?} {}", self.argv, self.walls, self.longest)
    }
}

/// A server that runs. It and all it started end when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Mutex<Child>,
    network: Network,
    said: Said,
    health: Arc<Health>,
}

impl Process {
    /// Starts a server. It blocks for as long as the walls take.
    pub(super) fn start(
        launcher: &Launcher,
        order: &Order,
        patience: Option<Duration>,
    ) -> Result<(Self, Wire), CallError> {
        let spawned = launcher.spawn(&order.walls.confinement, &order.argv);
        let mut child = spawned.map_err(|error| not_started(&error))?;
        let network = Network::open(&mut child, &order.walls.rules)?;
        let said = Said::new(&order.redactor);
        let pipes = (child.take_stdin(), child.take_stdout(), child.take_stderr());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(no_pipes(&io::ErrorKind::BrokenPipe.into()));
        };
        let (wire, health) = Wire::open(stdin, stdout, order.longest, patience, said.clone())
            .map_err(|error| no_pipes(&error))?;
        let counting = Arc::clone(&health);
        said.listen(stderr, move |count| counting.overhear(count).is_err())
            .map_err(|error| no_pipes(&error))?;
        Ok((Self { child: Mutex::new(child), network, said, health }, wire))
    }

    /// How it is doing.
    pub(super) fn health(&self) -> Arc<Health> {
        Arc::clone(&self.health)
    }

    /// Ends it, at once.
    pub(super) fn kill(&self) {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }

    /// What it tried to reach since the last time.
    pub(super) fn take_blocked(&self) -> Vec<Blocked> {
        self.network.take_blocked()
    }

    /// What it says beside its answers.
    pub(super) fn said(&self) -> &Said {
        &self.said
    }

    /// Adds to an error what it said to the call, and what it reached for.
    pub(super) fn with_words(&self, error: CallError, heard: &Hearing) -> CallError {
        heard.told_with(error).after(self.take_blocked())
    }

    /// Why its wire is gone. It blocks for a moment, because the end of a process comes after that of its output.
    pub(super) fn why_gone(&self, heard: &Hearing) -> CallError {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = child.wait_until(Some(Instant::now() + Duration::from_secs(1)));
        child.kill();
        match ended {
            Some(Ended { exit: Exit::Code(code), .. }) => {
                let message = format!("the server ended with code {code} instead of answering");
                let error = CallError::new(Kind::Failed, message).with("exit", code);
                self.with_words(error, heard).passing()
            }
            Some(Ended { exit, .. }) => {
                ended_by(exit, &heard.bytes(), Dialect::Jumith).after(self.take_blocked())
            }
            None => self.with_words(super::answer::odd("it closed its output"), heard),
        }
    }
}

fn no_pipes(error: &io::Error) -> CallError {
    CallError::new(Kind::Unavailable, format!("failed to speak with the server: {error}"))
}
