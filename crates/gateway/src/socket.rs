//! The one host of a home, as its clients reach it: a socket that only its owner can use.
//!
//! Whoever connects says in one line what it wants, is told in one line whether it gets that, and then speaks MCP.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use host::CancellationToken;
use policy::Who;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::runtime::Handle;

use crate::gateway::Gateway;
use crate::lanes::Lanes;
use crate::mcp::lines::{Caller, speak};
use crate::view::View;
use crate::web::open_console;

/// The socket, in the home.
pub const SOCKET: &str = "host.sock";
/// Locked by the host of the home for as long as it runs.
const LOCK: &str = "host.lock";

/// The version of this program.
const OWN: &str = env!("CARGO_PKG_VERSION");

/// The longest first line.
const LONGEST: u64 = 64 << 10;

/// How long somebody who connects may take to say what they want.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether somebody is there, and whether they would find us.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What somebody who connects wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// The version of the program that asks.
    pub version: String,
    /// What for.
    pub want: Want,
}

/// What is wanted of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Want {
    /// To speak MCP.
    Speak {
        /// The profile that is shown.
        profile: Option<String>,
        /// The package that is shown alone.
        only: Option<String>,
        /// Where tools are called from.
        folder: PathBuf,
        /// Which conversation it is.
        session: String,
    },
    /// That it ends, because another takes over.
    Retire,
    /// Whether somebody serves the home where it can be seen.
    Place,
    /// An address that signs the owner in to the console.
    SignIn,
}

/// What a host answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Told {
    /// It is so.
    Welcome,
    /// It is of another version, and ends.
    Outdated,
    /// It is not so, and why.
    Refused(String),
    /// What was asked for is there.
    Address(String),
}

/// The right to be the host of a home, for as long as this lives.
#[derive(Debug)]
pub struct Seat {
    home: PathBuf,
    _lock: File,
}

impl Seat {
    /// Takes the seat, where nobody has it.
    pub fn take(home: &Path) -> io::Result<Option<Self>> {
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = options.open(home.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { home: home.to_owned(), _lock: lock })),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether the socket is still where clients look for it.
    fn is_found(&self) -> bool {
        self.home.join(SOCKET).exists()
    }

    /// Listens where clients look for the host.
    pub fn listen(&self) -> io::Result<UnixListener> {
        let near = Near::of(&self.home)?;
        // Nobody else is here, so what lies there is of one that was killed.
        match std::fs::remove_file(near.socket()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(near.socket())?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let only_owner = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(self.home.join(SOCKET), only_owner)?;
        }
        Ok(listener)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.home.join(SOCKET));
    }
}

/// A home by a short path: those of sockets have about a hundred bytes at most.
struct Near {
    folder: File,
}

impl Near {
    fn of(home: &Path) -> io::Result<Self> {
        Ok(Self { folder: File::open(home)? })
    }

    #[cfg(target_os = "linux")]
    fn socket(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", self.folder.as_raw_fd()))
    }
}

/// Connects to the host of a home, if there is one, and says what is wanted.
pub async fn connect(home: &Path, wish: &Wish) -> io::Result<(UnixStream, Told)> {
    let near = Near::of(home)?;
    let mut stream = UnixStream::connect(near.socket()).await?;
    check_owner(&stream)?;
    let mut text = serde_json::to_vec(wish)?;
    text.push(b'\n');
    stream.write_all(&text).await?;
    let line = tokio::time::timeout(PATIENCE, first_line(&mut stream)).await;
    let line = line.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    Ok((stream, serde_json::from_slice(&line)?))
}

/// Refuses whoever runs as somebody else.
fn check_owner(stream: &UnixStream) -> io::Result<()> {
    let (theirs, ours) = (stream.peer_cred()?.uid(), own_user()?);
    if theirs == ours { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Whom this process runs as.
fn own_user() -> io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata("/proc/self")?.uid())
}

/// Reads a line byte by byte: what follows is for somebody else.
async fn first_line(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut reader = BufReader::with_capacity(1, stream).take(LONGEST);
    reader.read_until(b'\n', &mut line).await?;
    if line.pop() == Some(b'\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// How long a host lives that nobody needs.
#[derive(Clone, Copy, Debug)]
pub enum Stay {
    /// Until it is told to stop.
    Always,
    /// Until nobody was there for so long.
    While(Duration),
}

/// Serves those who connect, until it is told to stop, nobody needs it any more, or another takes over.
pub async fn serve(
    gateway: Arc<Gateway>,
    seat: Arc<Seat>,
    listener: UnixListener,
    lanes: Arc<Lanes>,
    stay: Stay,
    stop: CancellationToken,
) {
    let clients = Arc::new(AtomicUsize::new(0));
    let mut left = Instant::now();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let Ok(stream) = stream.into_std() else { continue };
                let here = Here::new(&clients);
                let (gateway, stop) = (Arc::clone(&gateway), stop.clone());
                let opener = Opener { runtime: Handle::current(), lanes: Arc::downgrade(&lanes) };
                lanes.serve(async move {
                    let _here = here;
                    if let Ok(stream) = UnixStream::from_std(stream) {
                        let _ = welcome(&gateway, stream, stay, &opener, &stop).await;
                    }
                });
            }
            () = tokio::time::sleep(LOOK_AGAIN) => {
                // Where nobody can find it, nobody will need it.
                if !seat.is_found() {
                    stop.cancel();
                }
                if clients.load(Ordering::Acquire) > 0 {
                    left = Instant::now();
                }
                // Whoever looks at the console needs it too.
                left = gateway.door.used_at().map_or(left, |used_at| used_at.max(left));
                if let Stay::While(idle) = stay && left.elapsed() >= idle {
                    stop.cancel();
                }
            }
            () = stop.cancelled() => return,
        }
    }
}

/// Somebody who is there.
struct Here(Arc<AtomicUsize>);

impl Here {
    fn new(clients: &Arc<AtomicUsize>) -> Self {
        clients.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(clients))
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Opens the console of a host that has none yet, for an owner who wants to see it.
struct Opener {
    /// Where it is served from: whoever asks for it is soon gone.
    runtime: Handle,
    lanes: Weak<Lanes>,
}

impl Opener {
    /// An address that signs the owner in.
    fn sign_in_link(&self, gateway: &Arc<Gateway>, stop: &CancellationToken) -> io::Result<String> {
        let ends = || io::Error::other("the host of this home ends");
        if gateway.console().is_none() {
            let lanes = self.lanes.upgrade().ok_or_else(ends)?;
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            let _entered = self.runtime.enter();
            let listener = TcpListener::from_std(listener)?;
            open_console(gateway, listener, &lanes, stop.clone())?;
        }
        gateway.sign_in_link().ok_or_else(ends)
    }
}

async fn welcome(
    gateway: &Arc<Gateway>,
    mut stream: UnixStream,
    stay: Stay,
    opener: &Opener,
    stop: &CancellationToken,
) -> io::Result<()> {
    check_owner(&stream)?;
    let line = tokio::time::timeout(PATIENCE, first_line(&mut stream)).await;
    let line = line.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let wish: Wish = match serde_json::from_slice(&line) {
        Ok(wish) => wish,
        Err(wrong) => return part(&line, wrong, stream, stay, stop).await,
    };
    let is_same = wish.version == OWN;
    let caller = match wish.want {
        // Whoever started it where it can be seen ends it there.
        Want::Retire | Want::Place if matches!(stay, Stay::Always) => {
            let words = serves_already(gateway.console());
            return tell(&mut stream, &Told::Refused(words)).await;
        }
        Want::Retire => {
            tell(&mut stream, &Told::Welcome).await?;
            stop.cancel();
            return Ok(());
        }
        Want::Place => return tell(&mut stream, &Told::Welcome).await,
        Want::SignIn => {
            let told = match opener.sign_in_link(gateway, stop) {
                Ok(link) => Told::Address(link),
                Err(error) => Told::Refused(format!("no console can be opened: {error}")),
            };
            return tell(&mut stream, &told).await;
        }
        // One that was started for clients makes room for another of their version; what its owner started stays, and what
        // follows is MCP, whatever the version.
        Want::Speak { .. } if !is_same && matches!(stay, Stay::While(_)) => {
            tell(&mut stream, &Told::Outdated).await?;
            stop.cancel();
            return Ok(());
        }
        Want::Speak { profile, only, folder, session } => {
            match view(gateway, profile, only).await {
                // Whoever can use the socket can approve at a terminal as well.
                Ok(view) => {
                    let name = Who::STDIO.to_owned();
                    Caller { session, name, has_token: false, view, folder, asks: true }
                }
                Err(words) => return tell(&mut stream, &Told::Refused(words)).await,
            }
        }
    };
    tell(&mut stream, &Told::Welcome).await?;
    let (input, output) = stream.into_split();
    tokio::select! {
        spoken = speak(gateway, caller, input, output) => spoken,
        () = stop.cancelled() => Ok(()),
    }
}

/// Parts with somebody of another version, whose wish we do not understand: one of us has to be replaced.
async fn part(
    line: &[u8],
    wrong: serde_json::Error,
    mut stream: UnixStream,
    stay: Stay,
    stop: &CancellationToken,
) -> io::Result<()> {
    #[derive(Deserialize)]
    struct Said {
        version: String,
    }
    let version = serde_json::from_slice::<Said>(line)?.version;
    if version == OWN {
        return Err(wrong.into());
    }
    if let Stay::While(_) = stay {
        tell(&mut stream, &Told::Outdated).await?;
        stop.cancel();
        return Ok(());
    }
    let words = format!(
        "`haft serve` of version {OWN} serves this home and does not understand version {version}; end it, and start it again with this one"
    );
    tell(&mut stream, &Told::Refused(words)).await
}

/// What whoever would serve a home is told where it is served, and where that is.
fn serves_already(place: Option<&str>) -> String {
    let place = place.map(|url| format!(" at {url}"));
    format!("`haft serve` or `haft up` serves this home already{}", place.unwrap_or_default())
}

/// What is to be shown, or why it cannot be.
async fn view(
    gateway: &Arc<Gateway>,
    profile: Option<String>,
    only: Option<String>,
) -> Result<View, String> {
    let stock = gateway.stock().await;
    match (profile, only) {
        (Some(name), _) if stock.is_without(&name) => Err(format!("there is no profile `{name}`")),
        (Some(name), _) => Ok(View::Profile(name)),
        (None, Some(id)) => match stock.package(&id) {
            Some(package) => Ok(View::Raw(package.id.clone())),
            None => Err(format!("`{id}` is not installed")),
        },
        (None, None) => Ok(View::Usual),
    }
}

async fn tell(stream: &mut UnixStream, told: &Told) -> io::Result<()> {
    let mut text = serde_json::to_vec(told)?;
    text.push(b'\n');
    stream.write_all(&text).await
}
