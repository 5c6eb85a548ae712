//! What a program writes: counted as it is read, and held to its limit.

use std::fmt::Debug;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
impl std::os::fd::AsFd for Output {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.pipe.as_fd()
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
pub(crate) trait Source: Read + std::os::fd::AsFd + Debug + Send + Sync {}
#[cfg(unix)]
impl<T: Read + std::os::fd::AsFd + Debug + Send + Sync> Source for T {}

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
