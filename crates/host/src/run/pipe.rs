//! The way to a process: a pipe that blocks nobody who does not want to wait.

use std::io::{self, PipeWriter, Write};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// So many bytes are written as a whole, or not at all.
pub(super) const SMALL: usize = rustix::pipe::PIPE_BUF;

/// The end of a pipe that is written to.
#[derive(Debug)]
pub(super) struct Pipe(PipeWriter);

impl Pipe {
    pub(super) fn new(pipe: PipeWriter) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self(pipe))
    }

    /// Writes something short where there is room for all of it; whether it was written.
    pub(super) fn try_write(&self, text: &[u8]) -> io::Result<bool> {
        if text.len() > SMALL {
            return Ok(false);
        }
        loop {
            match (&self.0).write(text) {
                Ok(count) if count == text.len() => return Ok(true),
                Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes all, and waits for room until the time is over.
    pub(super) fn write_all(&self, mut rest: &[u8], until: Option<Instant>) -> io::Result<()> {
        while !rest.is_empty() {
            match (&self.0).write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(until)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until there may be room.
    fn wait(&self, until: Option<Instant>) -> io::Result<()> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use super::*;

    #[test]
    fn something_short_is_written_as_a_whole_or_not_at_all() {
        let (mut reader, writer) = io::pipe().unwrap();
        let pipe = Pipe::new(writer).unwrap();
        let text = [b'x'; 3000];
        let mut count = 0;
        while pipe.try_write(&text).unwrap() {
            count += 1;
        }
        assert!(count > 0);
        assert!(!pipe.try_write(&[b'x'; SMALL + 1]).unwrap());
        let late = pipe.write_all(&text, Some(Instant::now() + Duration::from_millis(20)));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // Nothing of what was refused is in it.
        let mut all = vec![0; count * text.len()];
        reader.read_exact(&mut all).unwrap();
        assert!(pipe.try_write(b"again").unwrap());
        let mut again = [0; 5];
        reader.read_exact(&mut again).unwrap();
        assert_eq!(&again, b"again");
        drop(reader);
        assert_eq!(pipe.try_write(&text).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(pipe.write_all(&text, None).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn all_of_it_is_written_to_whoever_reads_slowly() {
        let (mut reader, writer) = io::pipe().unwrap();
        let pipe = Pipe::new(writer).unwrap();
        let writing = std::thread::spawn(move || pipe.write_all(&vec![b'y'; 1 << 20], None));
        std::thread::sleep(Duration::from_millis(50));
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        writing.join().unwrap().unwrap();
        assert_eq!(all.len(), 1 << 20);
    }
}
