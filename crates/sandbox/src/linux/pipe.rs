//! A pipe out of a room, which ends with the room.
//!
//! A pipe by itself ends when nobody holds its other end, and a program can lend that to somebody in another room.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};

use crate::output::Source;

/// A pipe out of a room. What was in it when the room ended is the last that it gives.
#[derive(Debug)]
pub(crate) struct Pipe {
    reader: PipeReader,
    /// The room's socket, on which it says that it has ended.
    room: Arc<UnixStream>,
    /// What is still to be read, when the room has ended.
    left: Option<u64>,
}

impl Pipe {
    pub(crate) fn new(reader: PipeReader, room: &Arc<UnixStream>) -> Self {
        Self { reader, room: Arc::clone(room), left: None }
    }

    /// Waits until there is something to read, or nothing will be.
    fn wait(&mut self) -> io::Result<()> {
        let mut ready =
            [PollFd::new(&self.reader, PollFlags::IN), PollFd::new(&self.room, PollFlags::IN)];
        rustix::io::retry_on_intr(|| rustix::event::poll(&mut ready, None))?;
        if !ready[1].revents().is_empty() {
            self.left = Some(rustix::io::ioctl_fionread(&self.reader)?);
        }
        Ok(())
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.is_none() {
            self.wait()?;
        }
        match &mut self.left {
            None => self.reader.read(buffer),
            Some(0) => Ok(0),
            Some(left) => {
                let count = (&mut self.reader).take(*left).read(buffer)?;
                *left -= count as u64;
                Ok(count)
            }
        }
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

impl Source for Pipe {
    fn end(&self) -> io::Result<Option<OwnedFd>> {
        self.room.as_fd().try_clone_to_owned().map(Some)
    }
}
