//! A launcher that is a copy of this process, made before there is anything in it.
//!
//! To execute this program again takes longer than to make a first room. At the very beginning of `main` nothing is in a
//! process but what the system has told it, its arguments and its variables; the copy wipes these out.

use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use super::{host, launch, process};

/// A launcher that has begun and waits for nobody. Dropped, it ends.
#[derive(Debug)]
pub struct Early {
    pub(super) socket: UnixStream,
    pub(super) process: Pid,
}

impl Early {
    /// Starts one. This process must have one thread, as it has at the beginning of `main`.
    pub fn fork() -> io::Result<Self> {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads != 1 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (socket, theirs) = UnixStream::pair()?;
        let process = process::fork(|| i32::from(live(theirs).is_err()))?;
        Ok(Self { socket, process })
    }
}

fn live(socket: UnixStream) -> io::Result<()> {
    wipe()?;
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    let (socket, _nothing) = (socket.into_raw_fd(), nothing.into_raw_fd());
    launch::run(&process::keep_only(socket)?)
}

/// Puts the name of a launcher where the arguments of this process are, and nothing where its variables are.
fn wipe() -> io::Result<()> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    // Where the arguments begin and end, and the variables: fields 48 to 51. The first two are cut off.
    let places = fields.split_whitespace().skip(45).map_while(|field| field.parse::<usize>().ok());
    let places: Vec<usize> = places.take(4).collect();
    let [arguments, arguments_end, variables, variables_end] = places[..] else {
        return Err(Errno::NOSYS.into());
    };
    process::overwrite(arguments..arguments_end, host::NAME.as_bytes());
    process::overwrite(variables..variables_end, b"");
    Ok(())
}
