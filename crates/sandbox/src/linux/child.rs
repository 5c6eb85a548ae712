//! A program inside the walls, as the host holds it.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Signal;

use super::host::{Line, Room};
use super::pipe::Pipe;
use super::wire::{self, Cause, End, Group, Nudge, Word};
use crate::confinement::Limits;
use crate::held::HeldFolder;
use crate::killer::Killer;
use crate::network::{Asked, Ends};
use crate::outcome::{Ended, Exit, Usage};
use crate::output::{Finished, Output, Tally};
use crate::streams::Ours;

/// How long a room has to do what it must before it is killed itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often to look up while nothing is heard.
const LOOK_UP: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// What the host holds of a program's network.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) ends: Option<Ends>,
    /// Where it has none.
    pub(crate) asked: Option<Asked>,
}

/// A program inside the walls. Dropping it ends the program and all it started.
#[derive(Debug)]
pub struct Child {
    room: Room,
    stdin: Option<PipeWriter>,
    stdout: Option<Output>,
    stderr: Option<Output>,
    network: Network,
    terminal: Option<OwnedFd>,
    killer: Killer,
    tally: Arc<Tally>,
    began: Instant,
    deadline: Option<Instant>,
    /// When the room itself is killed, because it has not done what it must.
    kill_at: Option<Instant>,
    ended: Option<Ended>,
    /// Whether the kernel was seen to end a part of it for lack of memory.
    is_out_of_memory: bool,
    /// Removed when nothing of the program is left.
    _scratch: Option<HeldFolder>,
    /// Its walls stand as long as the launcher lives.
    line: Arc<Line>,
}

impl Child {
    pub(crate) fn new(
        room: Room,
        ours: Ours,
        network: Network,
        scratch: Option<HeldFolder>,
        limits: &Limits,
        began: Instant,
        line: Arc<Line>,
    ) -> io::Result<Self> {
        let deadline = limits.deadline.and_then(|after| began.checked_add(after));
        let socket = Arc::new(room.socket.try_clone()?);
        let nudged = Arc::clone(&socket);
        let killer = Killer::new(move || nudge(&nudged, Nudge::Kill));
        let tally = Tally::new(limits.output);
        let output = |pipe: Option<PipeReader>| {
            pipe.map(|pipe| Output::new(Pipe::new(pipe, &socket), &tally, &killer))
        };
        Ok(Self {
            stdin: ours.stdin,
            terminal: ours.terminal,
            stdout: output(ours.stdout),
            stderr: output(ours.stderr),
            network,
            deadline,
            kill_at: deadline.map(|deadline| deadline + PATIENCE),
            killer,
            tally,
            began,
            room,
            ended: None,
            is_out_of_memory: false,
            _scratch: scratch,
            line,
        })
    }

    /// The number outside of the first process of its namespace.
    pub fn id(&self) -> u32 {
        self.room.pid
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

    /// The other end of its terminal, where it has one; once.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    /// The ends of its otherwise empty network, where one was allowed; once.
    /// What connects to them is the program, and whatever it is told is for the caller to decide.
    pub fn take_network(&mut self) -> Option<Ends> {
        self.network.ends.take()
    }

    /// The names it asks for in vain, where it has no network and somebody hears them; once.
    pub fn take_asked(&mut self) -> Option<Asked> {
        self.network.asked.take()
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
        nudge(&self.room.socket, Nudge::Terminate);
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
        if let Some(ended) = &self.ended {
            return Some(ended.clone());
        }
        loop {
            let now = Instant::now();
            self.kill_if_late(now);
            // Somebody else may use the killer while we wait, so look up now and then.
            let look_up = Some(now + PATIENCE);
            let next = [self.kill_at, until, look_up].into_iter().flatten().min();
            if is_readable(&self.room.socket, next) {
                let ended = self.hear_end();
                self.ended = Some(ended.clone());
                return Some(ended);
            }
            if self.end_if_out_of_memory() {
                self.kill_at = Some(Instant::now() + PATIENCE);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return None;
            }
        }
    }

    /// Kills a room that has not done what it must.
    fn kill_if_late(&mut self, now: Instant) {
        if self.killer.was_used() && self.kill_at.is_none_or(|at| at > now + PATIENCE) {
            self.kill_at = Some(now + PATIENCE);
        }
        if self.kill_at.is_some_and(|at| now >= at) {
            let _ = rustix::process::pidfd_send_signal(&self.room.process, Signal::KILL);
            self.kill_at = Some(now + PATIENCE);
        }
    }

    fn ran_out(&self) -> bool {
        self.room.group.as_ref().is_some_and(|group| group.ran_out(&self.room.before))
    }

    /// Whether a room that gave no word was killed for lack of memory. Its group may be gone already, so
    /// the launcher is asked, who looked before that.
    fn fell_out_of_memory(&self) -> bool {
        let kills = self.line.leave(self.room.id);
        self.ran_out() || kills.is_some_and(|kills| kills > self.room.before.kills)
    }

    /// Ends all of it when the kernel has ended a part of it for lack of memory; whether it just did.
    fn end_if_out_of_memory(&mut self) -> bool {
        let is_out = self.ran_out();
        let is_new = is_out && !self.is_out_of_memory;
        if is_new {
            self.is_out_of_memory = true;
            nudge(&self.room.socket, Nudge::Kill);
        }
        is_new
    }

    fn hear_end(&self) -> Ended {
        let end = match wire::receive::<Word>(&self.room.socket) {
            Ok(Some((Word::Ended(end), _))) => Some(end),
            _ => None,
        };
        let ended = Ended { exit: self.exit(end.as_ref()), usage: self.usage(end.as_ref()) };
        // The room has waited for its control group to be read; now it may go.
        let _ = self.room.socket.shutdown(std::net::Shutdown::Both);
        if self.room.is_guarded {
            self.line.leave(self.room.id);
        }
        ended
    }

    fn exit(&self, end: Option<&End>) -> Exit {
        let ran_out = || self.ran_out();
        if self.tally.is_over() {
            return Exit::Output;
        }
        match end {
            Some(end) => match end.cause {
                Cause::Itself if end.status != 0 && ran_out() => Exit::Memory,
                Cause::Itself if libc::WIFEXITED(end.status) => {
                    Exit::Code(libc::WEXITSTATUS(end.status))
                }
                Cause::Itself => Exit::Signal(libc::WTERMSIG(end.status)),
                Cause::Deadline => Exit::Deadline,
                Cause::Memory => Exit::Memory,
                Cause::Processor => Exit::Processor,
                Cause::Processes => Exit::Processes,
                Cause::Uncovered => Exit::Uncovered,
                Cause::Host if self.killer.was_used() => Exit::Cancelled,
                Cause::Host if self.is_out_of_memory => Exit::Memory,
                Cause::Host => Exit::Cancelled,
            },
            None if self.killer.was_used() => Exit::Cancelled,
            None if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                Exit::Deadline
            }
            None if self.is_out_of_memory || self.fell_out_of_memory() => Exit::Memory,
            None => Exit::Lost,
        }
    }

    fn usage(&self, end: Option<&End>) -> Usage {
        let peak = self.room.group.as_ref().and_then(|group| group.peak(&self.room.before));
        let system = Duration::from_micros(end.map_or(0, |end| end.system_us));
        // A control group counts children that nobody waited for, too.
        let counted = self.room.group.as_ref().and_then(Group::used_processor_time);
        let waited_for = Duration::from_micros(end.map_or(0, |end| end.user_us));
        Usage {
            wall: self.began.elapsed(),
            user: counted.unwrap_or_default().saturating_sub(system).max(waited_for),
            system,
            peak_memory: peak.unwrap_or(0).max(end.map_or(0, |end| end.peak)),
            output: self.tally.written(),
        }
    }

    /// Gives it its whole input, takes all its output, and waits for its end. What was read
    /// when it went over a limit is kept.
    pub fn finish(self, input: &[u8]) -> io::Result<Finished> {
        self.finish_hearing(input, &mut |_| {})
    }

    /// The same, while somebody is told what it writes to its standard output as it comes.
    pub fn finish_hearing(
        mut self,
        input: &[u8],
        heard: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Finished> {
        let mut rest = input;
        let mut stdin = self.stdin.take();
        let (mut stdout, mut stderr) = (self.stdout.take(), self.stderr.take());
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        if let Some(pipe) = &stdin {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        let mut buffer = vec![0; 64 << 10];
        while stdin.is_some() || stdout.is_some() || stderr.is_some() {
            self.kill_if_late(Instant::now());
            let [has_ended, may_write, may_read, may_read_errors] = {
                let mut ready = Vec::with_capacity(4);
                ready.push(PollFd::new(&self.room.socket, PollFlags::IN));
                ready.extend(stdin.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
                ready.extend(stdout.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
                ready.extend(stderr.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
                match rustix::event::poll(&mut ready, Some(&LOOK_UP)) {
                    Err(Errno::INTR) => continue,
                    Ok(0) => {
                        self.end_if_out_of_memory();
                        continue;
                    }
                    polled => polled?,
                };
                let mut is_ready = ready.iter().map(|one| !one.revents().is_empty());
                [true, stdin.is_some(), stdout.is_some(), stderr.is_some()]
                    .map(|is_open| is_open && is_ready.next().unwrap_or(false))
            };
            if has_ended {
                stdin = None;
            } else if may_write {
                feed(&mut stdin, &mut rest);
            }
            // After the end these wait no more, whoever still holds the pipes.
            if may_read || has_ended {
                let before = output.len();
                drain(&mut stdout, &mut output, &mut buffer);
                heard(&output[before..]);
            }
            if may_read_errors || has_ended {
                drain(&mut stderr, &mut errors, &mut buffer);
            }
        }
        let ended = self.wait();
        Ok(Finished { stdout: output, stderr: errors, ended })
    }
}

impl AsFd for Child {
    /// Readable when it has ended and [`Child::try_wait`] knows how.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.room.socket.as_fd()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The room takes a closed socket for an order to end; the killer may hold a copy of it.
        let _ = self.room.socket.shutdown(std::net::Shutdown::Both);
    }
}

fn nudge(socket: &UnixStream, nudge: Nudge) {
    // A room that is gone needs no nudge.
    let _ = rustix::net::send(
        socket,
        &[nudge as u8],
        rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT,
    );
}

/// Writes what fits; closes when all is written, or when nobody reads.
fn feed(stdin: &mut Option<PipeWriter>, rest: &mut &[u8]) {
    let Some(pipe) = stdin else { return };
    if !rest.is_empty() {
        match pipe.write(rest) {
            Ok(count) => *rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => *rest = &[],
        }
    }
    if rest.is_empty() {
        *stdin = None;
    }
}

/// Reads what is there; closes at the end.
fn drain(pipe: &mut Option<Output>, into: &mut Vec<u8>, buffer: &mut [u8]) {
    let Some(open) = pipe else { return };
    match open.read(buffer) {
        Ok(0) | Err(_) => *pipe = None,
        Ok(count) => into.extend_from_slice(&buffer[..count]),
    }
}

fn is_readable(socket: &UnixStream, until: Option<Instant>) -> bool {
    let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = wait.map(|wait| Timespec {
        tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    });
    let mut ready = [PollFd::new(socket, PollFlags::IN)];
    matches!(rustix::event::poll(&mut ready, timeout.as_ref()), Ok(1..))
}
