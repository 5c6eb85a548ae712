//! What a process may have: plain data, decided by others.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::level::Level;

/// The folder of a walled process that is its own: it is empty when the
/// process starts, holds at most [`Confinement::scratch`] bytes, and is gone
/// when it ends.
pub const SCRATCH: &str = "/tmp";

/// The port on the loopback address inside the walls where the proxy listens
/// when the network is [`Network::Allow`]. The network namespace is empty, so
/// the port is always free.
pub const PROXY_PORT: u16 = 3128;

/// Everything one process may see and use. What is not here, it does not have.
#[derive(Debug, Clone, PartialEq)]
pub struct Confinement {
    /// The least that the walls must be; below it nothing is started.
    pub required: Level,
    /// A folder that is its root, read-only, instead of the system's programs and libraries: those of an
    /// image. `/proc`, `/dev`, `/tmp` and the files that say who it is are the same as ever; what is granted lies on top.
    /// It needs namespaces.
    pub root: Option<PathBuf>,
    /// Files and folders it may read and execute, at the paths they have outside.
    /// Absolute and without symbolic links: a link could be turned elsewhere
    /// between the question and the answer. The system's own programs and
    /// libraries are always there.
    pub readable: Vec<PathBuf>,
    /// Files and folders it may also write. What must not be planted in a
    /// folder ([`protected_names`](crate::protected_names)) stays as it is.
    pub writable: Vec<PathBuf>,
    /// Files and folders that are empty to it, also below a granted folder.
    /// What is granted below a hidden folder is there again.
    pub hidden: Vec<PathBuf>,
    /// Symbolic links to make: where, and what they say.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Devices under `/dev` besides `null`, `zero`, `full`, `random`, `urandom`, `tty` and its own terminals.
    pub devices: Vec<PathBuf>,
    /// The size of the private scratch folder in bytes.
    pub scratch: u64,
    /// Whether it reaches anything but itself.
    pub network: Network,
    /// With a network: the ports at which a program that knows of no proxy is let in, at most
    /// [`MOST_DOORS`](crate::MOST_DOORS).
    pub doors: Vec<u16>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder it starts in.
    pub folder: PathBuf,
    /// How much it may use.
    pub limits: Limits,
    /// Where its standard input comes from.
    pub stdin: Stream,
    /// Where its standard output goes.
    pub stdout: Stream,
    /// Where its standard error goes.
    pub stderr: Stream,
}

impl Default for Confinement {
    /// A process that sees the system's programs and an empty scratch folder, and nothing else.
    fn default() -> Self {
        Self {
            required: Level::L2,
            root: None,
            readable: Vec::new(),
            writable: Vec::new(),
            hidden: Vec::new(),
            links: Vec::new(),
            devices: Vec::new(),
            scratch: 256 << 20,
            network: Network::Deny,
            doors: Vec::new(),
            environment: vec![
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
                ("HOME".into(), SCRATCH.into()),
                ("TMPDIR".into(), SCRATCH.into()),
                ("LANG".into(), "C.UTF-8".into()),
            ],
            folder: PathBuf::from(SCRATCH),
            limits: Limits::default(),
            stdin: Stream::Null,
            stdout: Stream::Pipe,
            stderr: Stream::Pipe,
        }
    }
}

/// Whether a walled process reaches anything outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// It has a loopback interface of its own and nothing else. The names it asks for are refused, and told to
    /// the holder of [`Child::take_asked`](crate::Child::take_asked).
    Deny,
    /// The same, and listeners on [`PROXY_PORT`] and at its doors whose other ends are ours:
    /// [`Child::take_network`](crate::Child::take_network). What is reached through it is for its holder to decide.
    /// Where a process has no network of its own (L1, so also macOS) it is refused: anybody on the machine could use the listener.
    Allow,
}

/// How much a walled process and all its descendants may use together, unless said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Bytes of memory; past it the whole tree is killed.
    pub memory: Option<u64>,
    /// Processor time; past it the whole tree is killed.
    pub cpu_time: Option<Duration>,
    /// Processors it may use at a time, in hundredths: 150 is one and a half.
    pub cpu_share: Option<u32>,
    /// Processes and threads at a time.
    pub processes: u32,
    /// Open files of each process.
    pub open_files: u32,
    /// The size of any one file it writes.
    pub file_size: Option<u64>,
    /// Bytes of standard output and standard error together; past it the whole tree is killed.
    pub output: Option<u64>,
    /// Time on the clock; past it the whole tree is killed.
    pub deadline: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: Some(1 << 30),
            cpu_time: None,
            cpu_share: None,
            processes: 512,
            open_files: 1024,
            file_size: Some(4 << 30),
            output: Some(64 << 20),
            deadline: None,
        }
    }
}

/// Where one of the three standard streams leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Nowhere.
    Null,
    /// To us.
    Pipe,
    /// Where our own leads. Output through it is not counted.
    Inherit,
    /// To a terminal of its own, the same for all streams that lead to one. The other end is ours:
    /// [`Child::take_terminal`](crate::Child::take_terminal). Output through it is not counted. Where a
    /// system has none to give, where our own leads.
    Terminal,
}
