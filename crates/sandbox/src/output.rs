//! What a program writes: counted as it is read, and held to its limit.

use std::fmt::Debug;
use std::io::{self, Read};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(unix)]
use rustix::event::{PollFd, PollFlags};

use crate::killer::Killer;
use crate::outcome::Ended;

/// What a program writes, as it comes. Past the limit the program is ended and reading fails.
#[derive(Debug)]
pub struct Output {
    pipe: Box<dyn Source>,
    tally: Arc<Tally>,
    killer: Killer,
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.pipe.read(buffer)?;
        self.counted(count)
    }
}

impl Output {
    /// Holds what was read to its limit.
    fn counted(&self, count: usize) -> io::Result<usize> {
        let before = self.tally.written.fetch_add(count as u64, Ordering::Relaxed);
        if self.tally.most.is_some_and(|most| before + count as u64 > most) {
            self.tally.is_over.store(true, Ordering::Release);
            self.killer.kill();
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the output is over its limit",
            ));
        }
        Ok(count)
    }
}

#[cfg(unix)]
impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(unix)]
impl Output {
    /// Something that waits for more of it, while somebody else holds what it is read from.
    pub fn watch(&self) -> io::Result<Watch> {
        Ok(Watch { pipe: self.pipe.as_fd().try_clone_to_owned()?, end: self.pipe.end()? })
    }

    /// Somebody read so much of it elsewhere: it counts like what is read here.
    pub fn read_elsewhere(&self, count: usize) -> io::Result<()> {
        self.counted(count).map(drop)
    }

    /// Reads what is there, without waiting: nothing, where there is nothing now.
    pub fn read_present(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match rustix::io::ioctl_fionread(self.pipe.as_fd())? {
            0 => Ok(0),
            _ => self.read(buffer),
        }
    }
}

/// Waits for what a program writes.
#[cfg(unix)]
#[derive(Debug)]
pub struct Watch {
    pipe: OwnedFd,
    end: Option<OwnedFd>,
}

/// What was waited for.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// There is more to read.
    More,
    /// What is there now is the last.
    Last,
}

#[cfg(unix)]
impl Watch {
    /// The pipe itself, and what tells its end where it does not say so.
    pub fn into_parts(self) -> (OwnedFd, Option<End>) {
        (self.pipe, self.end.map(End))
    }

    /// Waits until there is something to read, or nothing will be.
    pub fn wait(&self) -> io::Result<Sign> {
        let watched = std::iter::once(&self.pipe).chain(&self.end);
        let mut ready: Vec<_> = watched.map(|one| PollFd::new(one, PollFlags::IN)).collect();
        rustix::io::retry_on_intr(|| rustix::event::poll(&mut ready, None))?;
        let is_closed = !(ready[0].revents() - PollFlags::IN).is_empty();
        let has_ended = ready[1..].iter().any(|end| !end.revents().is_empty());
        Ok(if is_closed || has_ended { Sign::Last } else { Sign::More })
    }
}

/// Waits until a program writes nothing more.
#[cfg(unix)]
#[derive(Debug)]
pub struct End(OwnedFd);

#[cfg(unix)]
impl End {
    /// Waits for it.
    pub fn wait(&self) -> io::Result<()> {
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        Ok(rustix::io::retry_on_intr(|| rustix::event::poll(&mut ready, None)).map(drop)?)
    }
}

/// Everything of a program that ran to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub ended: Ended,
}

/// What one program wrote so far.
#[derive(Debug)]
pub(crate) struct Tally {
    written: AtomicU64,
    most: Option<u64>,
    is_over: AtomicBool,
}

/// Where it is read.
#[cfg(unix)]
pub(crate) trait Source: Read + AsFd + Debug + Send + Sync {
    /// What can be read when nothing more will be written, where the pipe itself does not say so.
    fn end(&self) -> io::Result<Option<OwnedFd>> {
        Ok(None)
    }
}

#[cfg(unix)]
impl Source for io::PipeReader {}

/// Where it is read.
#[cfg(not(unix))]
pub(crate) trait Source: Read + Debug + Send + Sync {}

#[cfg(any(target_os = "linux", target_os = "macos"))]
impl Output {
    pub(crate) fn new(pipe: impl Source + 'static, tally: &Arc<Tally>, killer: &Killer) -> Self {
        Self { pipe: Box::new(pipe), tally: Arc::clone(tally), killer: killer.clone() }
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
impl Tally {
    pub(crate) fn new(most: Option<u64>) -> Arc<Self> {
        Arc::new(Self { written: AtomicU64::new(0), most, is_over: AtomicBool::new(false) })
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}
