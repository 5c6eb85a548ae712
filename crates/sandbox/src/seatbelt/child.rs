//! A program inside the walls, as the host holds it, and the thread that sees its end.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::system;
use crate::confinement::Limits;
use crate::held::HeldFolder;
use crate::killer::Killer;
use crate::network::{Asked, Ends};
use crate::outcome::{Ended, Exit, Usage};
use crate::output::{Finished, Output, Tally};
use crate::streams::Ours;

/// How long processes that were killed have to be gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long output is read on after the end. A process that left its group could keep it open for ever.
const AFTERMATH: Duration = Duration::from_secs(5);

/// A program inside the walls. Dropping it ends the program and all that is in its process group.
#[derive(Debug)]
pub struct Child {
    id: u32,
    stdin: Option<PipeWriter>,
    stdout: Option<Output>,
    stderr: Option<Output>,
    killer: Killer,
    tally: Arc<Tally>,
    began: Instant,
    life: Arc<Life>,
    /// Closed at the end by whoever watches.
    end: PipeReader,
    ended: Option<Ended>,
}

/// What is known of a program, shared with those who watch it.
#[derive(Debug)]
struct Life {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Its process group, for as long as the number is surely its own.
    group: Option<u32>,
    is_late: bool,
    over: Option<Over>,
}

/// How the first process ended, if that is known, and when nothing was left.
#[derive(Debug, Clone, Copy)]
struct Over {
    status: Option<ExitStatus>,
    at: Instant,
}

impl Child {
    /// Takes a process that leads its group, and watches it.
    pub(crate) fn watch(
        process: std::process::Child,
        ours: Ours,
        scratch: HeldFolder,
        limits: &Limits,
        began: Instant,
    ) -> io::Result<Self> {
        let id = process.id();
        let state = State { group: Some(id), is_late: false, over: None };
        let life = Arc::new(Life { state: Mutex::new(state), changed: Condvar::new() });
        let watched = Self::start_watching(process, &life, scratch, limits, began);
        let end = watched.inspect_err(|_| life.signal(system::KILL))?;
        let killed = Arc::clone(&life);
        let killer = Killer::new(move || killed.signal(system::KILL));
        let tally = Tally::new(limits.output);
        let output = |pipe: Option<PipeReader>| pipe.map(|pipe| Output::new(pipe, &tally, &killer));
        Ok(Self {
            id,
            stdin: ours.stdin,
            stdout: output(ours.stdout),
            stderr: output(ours.stderr),
            killer,
            tally,
            began,
            life,
            end,
            ended: None,
        })
    }

    fn start_watching(
        process: std::process::Child,
        life: &Arc<Life>,
        scratch: HeldFolder,
        limits: &Limits,
        began: Instant,
    ) -> io::Result<PipeReader> {
        let (end, closes) = io::pipe()?;
        let watched = Arc::clone(life);
        thread::Builder::new().name("haft-watch".into()).spawn(move || {
            watched.see_the_end(process, scratch);
            drop(closes);
        })?;
        if let Some(deadline) = limits.deadline.and_then(|after| began.checked_add(after)) {
            let watched = Arc::clone(life);
            let name = "haft-deadline".into();
            thread::Builder::new().name(name).spawn(move || watched.hold_to(deadline))?;
        }
        Ok(end)
    }

    /// The number of its first process, which leads its process group.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The other end of its standard input, where that is a pipe; once.
    pub fn take_stdin(&mut self) -> Option<PipeWriter> {
        self.stdin.take()
    }

    /// Its standard output, where that is a pipe; once.
    pub fn take_stdout(&mut self) -> Option<Output> {
        self.stdout.take()
    }

    /// Its standard error, where that is a pipe; once.
    pub fn take_stderr(&mut self) -> Option<Output> {
        self.stderr.take()
    }

    /// Nothing: a program that asks for the network is not started on this system.
    #[cfg_attr(
        target_os = "linux",
        expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "as elsewhere")
    )]
    pub fn take_network(&mut self) -> Option<Ends> {
        None
    }

    /// Nothing: here nobody hears what it asks for.
    #[cfg_attr(
        target_os = "linux",
        expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "as elsewhere")
    )]
    pub fn take_asked(&mut self) -> Option<Asked> {
        None
    }

    /// The other end of its terminal: there is none here.
    #[cfg_attr(
        target_os = "linux",
        expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "as elsewhere")
    )]
    pub fn take_terminal(&mut self) -> Option<std::os::fd::OwnedFd> {
        None
    }

    /// Something that can end it from another thread.
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }

    /// Ends it and all it started, at once.
    pub fn kill(&self) {
        self.killer.kill();
    }

    /// Asks it to end (`SIGTERM`). It may take its time or refuse.
    pub fn terminate(&self) {
        self.life.signal(system::TERMINATE);
    }

    /// Waits until nothing of it is left.
    pub fn wait(&mut self) -> Ended {
        loop {
            if let Some(ended) = self.wait_until(None) {
                return ended;
            }
        }
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> Option<Ended> {
        self.wait_until(Some(Instant::now()))
    }

    /// Waits until nothing of it is left, or until a moment has come.
    pub fn wait_until(&mut self, until: Option<Instant>) -> Option<Ended> {
        if self.ended.is_none() {
            let (over, is_late) = self.life.wait_until(until)?;
            let usage = Usage {
                wall: over.at.duration_since(self.began),
                output: self.tally.written(),
                ..Usage::default()
            };
            self.ended = Some(Ended { exit: self.exit(over.status, is_late), usage });
        }
        self.ended.clone()
    }

    fn exit(&self, status: Option<ExitStatus>, is_late: bool) -> Exit {
        if self.tally.is_over() {
            return Exit::Output;
        }
        let Some(status) = status else { return Exit::Lost };
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (_, Some(system::KILL)) if is_late => Exit::Deadline,
            (_, Some(system::KILL)) if self.killer.was_used() => Exit::Cancelled,
            (_, Some(system::PROCESSOR)) => Exit::Processor,
            (_, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Lost,
        }
    }

    /// Gives it its whole input, takes all its output, and waits for its end. What was read
    /// when it went over a limit is kept.
    pub fn finish(self, input: &[u8]) -> io::Result<Finished> {
        self.finish_hearing(input, &mut |_| {})
    }

    /// The same, while somebody is told what it wrote to its standard output: here, at the end.
    pub fn finish_hearing(
        mut self,
        input: &[u8],
        heard: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Finished> {
        if let Some(mut stdin) = self.stdin.take() {
            let input = input.to_vec();
            // Nobody need read it.
            thread::Builder::new().spawn(move || drop(stdin.write_all(&input)))?;
        }
        let stdout = Gathering::start(self.stdout.take())?;
        let stderr = Gathering::start(self.stderr.take())?;
        let over = self.life.wait_until(None).map_or_else(Instant::now, |(over, _)| over.at);
        let (stdout, stderr) = (stdout.take(over + AFTERMATH), stderr.take(over + AFTERMATH));
        heard(&stdout);
        Ok(Finished { stdout, stderr, ended: self.wait() })
    }
}

impl AsFd for Child {
    /// Readable when it has ended and [`Child::try_wait`] knows how.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.life.signal(system::KILL);
        // Its scratch folder is removed by the thread that watches, which ends with us.
        let _ = self.life.wait_until(Some(Instant::now() + 2 * PATIENCE));
    }
}

impl Life {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: i32) {
        if let Some(group) = self.lock().group {
            system::signal_group(group, signal);
        }
    }

    /// Waits for the first process, ends the rest of its group, and cleans up.
    fn see_the_end(&self, mut process: std::process::Child, scratch: HeldFolder) {
        let group = process.id();
        system::wait_for_end(group);
        let mut state = self.lock();
        // It was not collected yet, so the number cannot be somebody else's.
        system::signal_group(group, system::KILL);
        state.group = None;
        drop(state);
        let status = process.wait().ok();
        let until = Instant::now() + PATIENCE;
        while system::signal_group(group, 0) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        drop(scratch);
        self.lock().over = Some(Over { status, at: Instant::now() });
        self.changed.notify_all();
    }

    fn hold_to(&self, deadline: Instant) {
        if self.wait_until(Some(deadline)).is_some() {
            return;
        }
        let mut state = self.lock();
        if let Some(group) = state.group {
            state.is_late = true;
            system::signal_group(group, system::KILL);
        }
    }

    /// How it ended and whether it was late, once that is known.
    fn wait_until(&self, until: Option<Instant>) -> Option<(Over, bool)> {
        let mut state = self.lock();
        loop {
            if let Some(over) = state.over {
                return Some((over, state.is_late));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return None,
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// Output that another thread reads.
struct Gathering {
    gathered: Arc<Mutex<Vec<u8>>>,
    /// Closed at the end of the output.
    open: mpsc::Receiver<()>,
}

impl Gathering {
    fn start(output: Option<Output>) -> io::Result<Self> {
        let gathered = Arc::new(Mutex::new(Vec::new()));
        let (closes, open) = mpsc::channel();
        if let Some(mut output) = output {
            let into = Arc::clone(&gathered);
            thread::Builder::new().spawn(move || {
                let mut buffer = vec![0; 64 << 10];
                while let Ok(count @ 1..) = output.read(&mut buffer) {
                    into.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .extend_from_slice(&buffer[..count]);
                }
                drop(closes);
            })?;
        }
        Ok(Self { gathered, open })
    }

    /// What was read up to the end, or to a moment.
    fn take(self, until: Instant) -> Vec<u8> {
        let _ = self.open.recv_timeout(until.saturating_duration_since(Instant::now()));
        std::mem::take(&mut self.gathered.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
