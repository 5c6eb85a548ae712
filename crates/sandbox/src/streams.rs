//! The three standard streams of a program, as they are opened for it.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::confinement::{Confinement, Stream};

/// The three standard streams: both ends of each.
#[derive(Debug)]
pub(crate) struct Streams {
    inside: [OwnedFd; 3],
    ours: Ours,
}

/// Our ends of the standard streams.
#[derive(Debug, Default)]
pub(crate) struct Ours {
    pub(crate) stdin: Option<PipeWriter>,
    pub(crate) stdout: Option<PipeReader>,
    pub(crate) stderr: Option<PipeReader>,
    pub(crate) terminal: Option<OwnedFd>,
}

impl Streams {
    pub(crate) fn open(confinement: &Confinement) -> io::Result<Self> {
        let mut ours = Ours::default();
        let all = [confinement.stdin, confinement.stdout, confinement.stderr];
        let mut theirs = None;
        if all.contains(&Stream::Terminal)
            && let Some((our_end, their_end)) = terminal()?
        {
            ours.terminal = Some(our_end);
            theirs = Some(their_end);
        }
        let lent =
            |own: BorrowedFd<'_>| theirs.as_ref().map_or(own, AsFd::as_fd).try_clone_to_owned();
        let stdin = match confinement.stdin {
            Stream::Null => nothing()?,
            Stream::Inherit => inherited(io::stdin().as_fd())?,
            Stream::Terminal => lent(io::stdin().as_fd())?,
            Stream::Pipe => {
                let (read, write) = io::pipe()?;
                ours.stdin = Some(write);
                read.into()
            }
        };
        let out =
            |stream: Stream, own: BorrowedFd<'_>| -> io::Result<(OwnedFd, Option<PipeReader>)> {
                Ok(match stream {
                    Stream::Null => (nothing()?, None),
                    Stream::Inherit => (inherited(own)?, None),
                    Stream::Terminal => (lent(own)?, None),
                    Stream::Pipe => {
                        let (read, write) = io::pipe()?;
                        (write.into(), Some(read))
                    }
                })
            };
        let (stdout, our_stdout) = out(confinement.stdout, io::stdout().as_fd())?;
        let (stderr, our_stderr) = out(confinement.stderr, io::stderr().as_fd())?;
        ours.stdout = our_stdout;
        ours.stderr = our_stderr;
        Ok(Self { inside: [stdin, stdout, stderr], ours })
    }

    pub(crate) fn inside(&self) -> [BorrowedFd<'_>; 3] {
        let [stdin, stdout, stderr] = &self.inside;
        [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]
    }

    pub(crate) fn ours(self) -> Ours {
        self.ours
    }
}

/// Both ends of a new terminal: ours and the program's.
#[cfg(target_os = "linux")]
fn terminal() -> io::Result<Option<(OwnedFd, OwnedFd)>> {
    use rustix::pty::OpenptFlags;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, flags)?;
    // As large as ours from its first moment.
    let size = rustix::termios::tcgetwinsize(io::stdout());
    if let Ok(size) = size.or_else(|_| rustix::termios::tcgetwinsize(io::stdin())) {
        let _ = rustix::termios::tcsetwinsize(&theirs, size);
    }
    Ok(Some((ours, theirs)))
}

#[cfg(not(target_os = "linux"))]
fn terminal() -> io::Result<Option<(OwnedFd, OwnedFd)>> {
    Ok(None)
}

/// One of our own streams. An open folder is none: it would be a way out of the root.
fn inherited(own: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let copy = std::fs::File::from(own.try_clone_to_owned()?);
    if copy.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(copy.into())
}

fn nothing() -> io::Result<OwnedFd> {
    Ok(std::fs::File::options().read(true).write(true).open("/dev/null")?.into())
}
