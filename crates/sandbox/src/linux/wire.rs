//! What the host, the launcher and a room say to each other, and how.
//!
//! Every message is its length and its bytes on a stream socket; descriptors
//! travel with the length. All three are the same program, so a message that
//! cannot be read is a bug or a dying peer, never something to mend.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::mounts::{self, Doing, Shape};
use crate::level::{Fault, Walls};
use crate::network::MOST_DOORS;

/// The longest message: room for all the arguments and variables a process can have.
const LONGEST: u32 = 16 << 20;

/// The most descriptors that travel with one message: the proxy's, that of the names, and two for each door.
const DESCRIPTORS: usize = 2 + 2 * MOST_DOORS;

/// Bytes of a path, an argument or a variable; not all of them are text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn of(text: impl AsRef<std::ffi::OsStr>) -> Self {
        Self(text.as_ref().as_bytes().to_vec())
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(std::ffi::OsStr::from_bytes(&self.0))
    }

    pub(crate) fn into_path(self) -> PathBuf {
        std::ffi::OsString::from_vec(self.0).into()
    }
}

/// What the host asks of the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Make a room and hand over its socket and its process.
    Room,
    /// Say when nothing of this room is left, and how its control group fared. Answered by `Left`.
    Leave { room: u64 },
    /// Keep what must not be planted in these folders out of them while this room stands.
    Guard { room: u64, folders: Vec<Placement>, held: Vec<Held> },
}

/// What the launcher answers, in the order it was asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// What the walls are made of; said once, unasked.
    Hello(Walls),
    /// A room, with its socket and the descriptor of its first process.
    Room { id: u64, pid: u32, group: Option<Group> },
    /// There is no room.
    NoRoom(Fault),
    /// Nothing is left. If the room ended otherwise than it should, with how often the kernel had killed
    /// something in its control group.
    Left(Option<u64>),
    /// The folders are guarded, or not.
    Guarded(Result<(), Failure>),
}

/// The control group of a room.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Group {
    /// One folder of the unified hierarchy.
    Unified(Bytes),
    /// A folder for each controller of the old hierarchies.
    Split { memory: Bytes, processes: Option<Bytes>, cpu: Option<Bytes>, accounting: Option<Bytes> },
}

/// What is to be done in a room. The standard streams travel with it, and where a control group
/// counts the processor time, the file that tells it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The program (an absolute path) and its arguments.
    pub(crate) arguments: Vec<Bytes>,
    /// What the program is told it was called as, where that is not its path.
    pub(crate) shown_as: Option<Bytes>,
    /// Variables as `NAME=value`.
    pub(crate) environment: Vec<Bytes>,
    pub(crate) folder: Bytes,
    /// The folder to take for the root instead of the system's.
    pub(crate) root: Option<Placement>,
    /// What is put where, parents before children.
    pub(crate) placements: Vec<Placement>,
    /// What stays as it is in folders that may be written, beside what does for its name; parents
    /// before children.
    pub(crate) held: Vec<Held>,
    pub(crate) links: Vec<(Bytes, Bytes)>,
    pub(crate) devices: Vec<Bytes>,
    pub(crate) scratch: u64,
    /// The ports of its network that lead to the host; the first is the proxy's.
    pub(crate) listen: Vec<u16>,
    /// Whether the host hears the names that are refused.
    pub(crate) tells_names: bool,
    /// Whether the room has more control groups than the one it was made in.
    pub(crate) is_regrouped: bool,
    pub(crate) limits: Bounds,
}

/// One path of the outside, as the room shall see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Placement {
    pub(crate) path: Bytes,
    pub(crate) access: Access,
    /// The device and inode that the host saw, so that the room grants this and nothing else.
    pub(crate) identity: (u64, u64),
}

impl Placement {
    /// Opens what the host looked at, and nothing that has taken its place since.
    pub(crate) fn open(&self) -> Result<(OwnedFd, Shape), Failure> {
        let path = self.path.path();
        let named = || path.display().to_string();
        let opened = match mounts::plain(path) {
            Err(Errno::LOOP) => return Err(Failure::Moved(self.path.clone())),
            opened => opened.doing(|| format!("open `{}`", named())).map_err(Failure::Wall)?,
        };
        let stat = rustix::fs::fstat(&opened)
            .doing(|| format!("look at `{}`", named()))
            .map_err(Failure::Wall)?;
        if (stat.st_dev, stat.st_ino) != self.identity {
            return Err(Failure::Moved(self.path.clone()));
        }
        let shape = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Shape::Folder,
            _ => Shape::File,
        };
        Ok((opened, shape))
    }
}

/// A path in a writable folder that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) path: Bytes,
    /// What to put there meanwhile, where nothing is.
    pub(crate) shape: Shape,
}

/// How a path of the outside is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Access {
    Read,
    Write,
    Hide,
}

/// What the room itself enforces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bounds {
    pub(crate) memory: Option<u64>,
    /// Whether a control group holds the memory and the processes already.
    pub(crate) grouped: bool,
    pub(crate) cpu_time_ms: Option<u64>,
    /// Processors to use at a time, where no control group divides them.
    pub(crate) processors: Option<u32>,
    pub(crate) processes: u32,
    pub(crate) open_files: u32,
    pub(crate) file_size: Option<u64>,
    pub(crate) deadline_ms: Option<u64>,
}

/// What a room tells the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// It stands and waits for its order, or could not be built.
    Prepared(Result<Prepared, Fault>),
    /// The program runs. The ends of its network travel with it where one was asked for: the proxy's, that for names
    /// if there is one, and the doors.
    Started { has_names: bool },
    /// The program does not run.
    Failed(Failure),
    /// Nothing of the program is left.
    Ended(End),
}

/// What a standing room has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Prepared {
    /// Notes on what it is made of, for people.
    pub(crate) made_of: String,
}

/// Why a program was not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Failure {
    /// The program itself could not be executed.
    Program(i32),
    /// The folder to start in is not there.
    Folder(i32),
    /// A path is not what the host saw.
    Moved(Bytes),
    /// The walls could not be finished.
    Wall(Fault),
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// The status as `wait` gives it.
    pub(crate) status: i32,
    pub(crate) cause: Cause,
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    /// The most memory seen, in bytes.
    pub(crate) peak: u64,
}

/// Who ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cause {
    Itself,
    Deadline,
    Memory,
    Processor,
    Processes,
    /// What lay over a protected name is gone from there.
    Uncovered,
    Host,
}

/// What the host tells a running room, in one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Nudge {
    Terminate = b'T',
    Kill = b'K',
}

/// Sends one message and descriptors along with it.
pub(crate) fn send(
    mut socket: &UnixStream,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    bytes = postcard::to_extend(message, bytes).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len() - 4).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::ArgumentListTooLong))?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(fits, "at most {DESCRIPTORS} descriptors travel with a message");
    }
    let sent = loop {
        let parts = [IoSlice::new(&bytes)];
        match rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            sent => break sent?,
        }
    };
    socket.write_all(&bytes[sent..])
}

/// Receives one message and the descriptors that came with it; `None` when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(
    mut socket: &UnixStream,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut head = [0; 4];
    let mut descriptors = Vec::new();
    let mut filled = 0;
    while filled < 4 {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut head[filled..])];
        let received = match rustix::net::recvmsg(
            socket.as_fd(),
            &mut parts,
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            received => received?,
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        match received.bytes {
            0 => return Ok(None),
            more => filled += more,
        }
    }
    let length = u32::from_le_bytes(head);
    if length > LONGEST {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let mut bytes = vec![0; length as usize];
    match socket.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        read => read?,
    }
    let message = postcard::from_bytes(&bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Some((message, descriptors)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_with_its_descriptors() {
        let (left, right) = UnixStream::pair().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        let held = Held { path: Bytes(vec![0xff; 300_000]), shape: Shape::File };
        let ask = Ask::Guard { room: 7, folders: Vec::new(), held: vec![held] };
        let sender = std::thread::spawn(move || send(&left, &ask, &[file.as_fd()]).unwrap());
        let (ask, descriptors) = receive::<Ask>(&right).unwrap().unwrap();
        sender.join().unwrap();
        assert!(matches!(ask, Ask::Guard { room: 7, held, .. } if held[0].path.0.len() == 300_000));
        assert_eq!(descriptors.len(), 1);
    }

    #[test]
    fn a_closed_socket_is_an_end_and_a_torn_message_too() {
        let (left, right) = UnixStream::pair().unwrap();
        (&left).write_all(&[9, 0, 0, 0, 1]).unwrap();
        drop(left);
        assert!(receive::<Ask>(&right).unwrap().is_none());
        assert!(receive::<Ask>(&right).unwrap().is_none());
    }

    #[test]
    fn a_length_out_of_bounds_is_refused() {
        let (left, right) = UnixStream::pair().unwrap();
        (&left).write_all(&[0xff; 4]).unwrap();
        assert!(receive::<Ask>(&right).is_err());
    }
}
