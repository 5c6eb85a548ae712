//! The host's side: one launcher, rooms made ahead, and orders to them.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, Signal};

use super::child::{Child, Network};
use super::early::Early;
use super::groups::{Before, Limited};
use super::order;
use super::process;
use super::wire::{self, Answer, Ask, Failure, Group, Order, Word};
use crate::confinement::{Confinement, Limits};
use crate::level::{Fault, Primitive, Walls};
use crate::network::{Asked, Ends};
use crate::outcome::{SpawnError, StartError};
use crate::runtime::is_system;
use crate::script::Obstacle;
use crate::streams::{Ours, Streams};

/// What the launcher calls itself; by it `main` knows what it is.
pub(crate) const NAME: &str = "haft-launcher";

/// How long the launcher has to clean up after itself.
const FAREWELL: Duration = Duration::from_secs(2);

/// The host's end of the launcher. Cheap to clone; the launcher and all that
/// it started end with the last clone and the last [`Child`].
#[derive(Debug, Clone)]
pub struct Launcher {
    shared: Arc<Shared>,
    /// Rooms to keep ready.
    ahead: usize,
}

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    /// One that has begun and was not heard yet.
    begun: Mutex<Option<Link>>,
    opened: OnceLock<Result<Opened, StartError>>,
}

/// A launcher that was heard.
#[derive(Debug)]
struct Opened {
    walls: Walls,
    /// The line that is in use. Children keep the one they came from.
    line: Mutex<Arc<Line>>,
}

/// What there is where no launcher answers.
const NO_WALLS: &Walls = &Walls { findings: Vec::new() };

/// The line to one launcher process, which ends with it.
#[derive(Debug)]
pub(crate) struct Line {
    link: Mutex<Link>,
    /// What the control groups are limited to, by their folders.
    limited: Mutex<HashMap<PathBuf, Limited>>,
}

#[derive(Debug)]
struct Link {
    socket: UnixStream,
    process: Pid,
    ready: VecDeque<Room>,
    /// Rooms that were asked for and have not come.
    asked: usize,
}

/// A room that waits for its order.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) id: u64,
    pub(crate) pid: u32,
    pub(crate) socket: UnixStream,
    pub(crate) process: OwnedFd,
    pub(crate) group: Option<Group>,
    /// What the control group had counted before.
    pub(crate) before: Before,
    /// Whether it has already said that it stands.
    is_heard: bool,
    /// Whether something stands in folders of the host while it does.
    pub(crate) is_guarded: bool,
}

impl Launcher {
    /// Starts the launcher: this very program, executed again, whose `main` calls
    /// [`enter_if_launcher`](crate::enter_if_launcher) before anything else. Walls are tried out here, and one room is made.
    pub fn start(program: &Path) -> Result<Self, StartError> {
        let opened = Opened::by(Link::execute(program)?)?;
        Ok(Self::of(None, OnceLock::from(Ok(opened)), program))
    }

    /// One that has begun already and is waited for when it is needed; should it be lost, the program is executed.
    pub fn begun(early: Early, program: &Path) -> Self {
        Self::of(Some(Link::new(early.socket, early.process)), OnceLock::new(), program)
    }

    fn of(
        begun: Option<Link>,
        opened: OnceLock<Result<Opened, StartError>>,
        program: &Path,
    ) -> Self {
        let (program, begun) = (program.to_owned(), Mutex::new(begun));
        Self { shared: Arc::new(Shared { program, begun, opened }), ahead: 1 }
    }

    /// The same, keeping so many rooms ready: for a host that starts many processes at a time.
    pub fn keeping_ready(mut self, rooms: usize) -> Self {
        self.ahead = rooms;
        self
    }

    /// What the walls of this machine are made of: nothing, where no launcher answers.
    pub fn walls(&self) -> &Walls {
        self.shared.opened().as_ref().map_or(NO_WALLS, |opened| &opened.walls)
    }

    /// Starts a program (an absolute path) with its arguments inside the walls.
    pub fn spawn(&self, confinement: &Confinement, argv: &[OsString]) -> Result<Child, SpawnError> {
        self.spawn_if(confinement, argv, || true)
    }

    /// The same, if it may be started, which is asked when all else is done: whoever has to find that out does so
    /// meanwhile.
    pub fn spawn_if(
        &self,
        confinement: &Confinement,
        argv: &[OsString],
        may: impl FnOnce() -> bool,
    ) -> Result<Child, SpawnError> {
        let mut may = Some(may);
        // It is asked once, however often it is tried.
        let mut may = || may.take().is_none_or(|may| may());
        let opened = self.shared.opened().as_ref();
        let opened = opened.map_err(|error| SpawnError::Launcher(error.told_again()))?;
        if opened.walls.level() < confinement.required {
            let (required, walls) = (confinement.required, opened.walls.clone());
            return Err(SpawnError::TooWeak { required, walls });
        }
        let line = opened.line();
        match self.attempt(&line, confinement, argv, &mut may) {
            // The launcher may be older than a mount of the host, and then a path is another one
            // to it; or it was killed, and everything it had started died with it. A new one sees and lives.
            Err(SpawnError::Moved(_) | SpawnError::Launcher(_)) => {
                let line = opened.renew(&line, &self.shared.program)?;
                self.attempt(&line, confinement, argv, &mut may)
            }
            spawned => spawned,
        }
    }

    fn attempt(
        &self,
        line: &Arc<Line>,
        confinement: &Confinement,
        argv: &[OsString],
        may: &mut dyn FnMut() -> bool,
    ) -> Result<Child, SpawnError> {
        let began = Instant::now();
        let mut order = order::write(confinement, argv)?;
        let mut scratch = None;
        if self.walls().has(Primitive::Namespaces) {
            order.tells_names = order.listen.is_empty();
        } else {
            scratch = Some(order::without_namespaces(&mut order, confinement)?);
        }
        let streams = Streams::open(confinement).map_err(SpawnError::Host)?;
        let room = line.room(&order, self.ahead)?;
        let (id, is_guarded) = (room.id, room.is_guarded);
        let occupied = Self::occupy(line, room, order, streams, confinement, may);
        if occupied.is_err() && is_guarded {
            // What stands in folders of the host goes before the answer is given.
            line.leave(id);
        }
        let (room, ours, network) = occupied?;
        Child::new(room, ours, network, scratch, &confinement.limits, began, Arc::clone(line))
            .map_err(SpawnError::Host)
    }

    /// Gives a room its order. One that cannot carry it out is left to itself, and ends.
    fn occupy(
        line: &Line,
        mut room: Room,
        mut order: Order,
        streams: Streams,
        confinement: &Confinement,
        may: &mut dyn FnMut() -> bool,
    ) -> Result<(Room, Ours, Network), SpawnError> {
        // A room that could not be built says why before anything of it is gone.
        if !room.is_heard {
            match Self::hear(&room)? {
                (Word::Prepared(prepared), _) => prepared.map_err(SpawnError::Wall)?,
                _ => return Err(SpawnError::Wall(lost(0))),
            };
        }
        if let Some(group) = &room.group {
            order.is_regrouped = group.needs_more(&confinement.limits);
            room.before = line.limit(group, &confinement.limits, room.pid)?;
            order.limits.grouped = true;
            if group.divides_processors() {
                order.limits.processors = None;
            }
        }
        let broken = |error: io::Error| match error.kind() {
            io::ErrorKind::ArgumentListTooLong => explain(Failure::Program(libc::E2BIG), &order),
            _ => SpawnError::Wall(Fault { doing: "reach a room".into(), errno: 0 }),
        };
        let time = room.group.as_ref().filter(|_| order.limits.cpu_time_ms.is_some());
        let time = time.and_then(Group::processor_time);
        let mut descriptors = streams.inside().to_vec();
        let asked = order.tells_names.then(asked).transpose().map_err(SpawnError::Host)?;
        descriptors.extend(asked.as_ref().map(|(_, theirs)| theirs.as_fd()));
        descriptors.extend(time.as_ref().map(AsFd::as_fd));
        if !may() {
            return Err(SpawnError::Withheld);
        }
        wire::send(&room.socket, &order, &descriptors).map_err(broken)?;
        let (ours, ends) = match Self::hear(&room)? {
            (Word::Started { has_names }, descriptors) => {
                (streams.ours(), ends(has_names, descriptors))
            }
            (Word::Failed(failure), _) => return Err(explain(failure, &order)),
            _ => return Err(SpawnError::Wall(lost(0))),
        };
        Ok((room, ours, Network { ends, asked: asked.map(|(ours, _)| ours) }))
    }

    fn hear(room: &Room) -> Result<(Word, Vec<OwnedFd>), SpawnError> {
        match wire::receive::<Word>(&room.socket) {
            Ok(Some(heard)) => Ok(heard),
            Ok(None) => Err(SpawnError::Wall(lost(0))),
            Err(error) => Err(SpawnError::Wall(lost(error.raw_os_error().unwrap_or_default()))),
        }
    }
}

impl Shared {
    /// The launcher, heard by whoever needs it first.
    fn opened(&self) -> &Result<Opened, StartError> {
        self.opened.get_or_init(|| {
            let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
            let opened = begun.and_then(|link| Opened::by(link).ok());
            opened.map_or_else(|| Link::execute(&self.program).and_then(Opened::by), Ok)
        })
    }
}

impl Opened {
    fn by(link: Link) -> Result<Self, StartError> {
        let (line, walls) = Line::open(link)?;
        Ok(Self { walls, line: Mutex::new(Arc::new(line)) })
    }

    fn line(&self) -> Arc<Line> {
        Arc::clone(&self.line.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a new launcher in the place of one that is of no more use, unless somebody else has.
    /// The new one must not be weaker than what was promised.
    fn renew(&self, old: &Arc<Line>, program: &Path) -> Result<Arc<Line>, SpawnError> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&line, old) {
            old.bury();
            let opened = Link::execute(program).and_then(Line::open);
            let (opened, walls) = opened.map_err(SpawnError::Launcher)?;
            let required = self.walls.level();
            if walls.level() < required {
                return Err(SpawnError::TooWeak { required, walls });
            }
            *line = Arc::new(opened);
        }
        Ok(Arc::clone(&line))
    }
}

impl Line {
    fn open(mut link: Link) -> Result<(Self, Walls), StartError> {
        let walls = link.greet()?;
        Ok((Self { link: Mutex::new(link), limited: Mutex::default() }, walls))
    }

    /// Frees the number of a launcher that was killed, by which the next one knows that its
    /// control groups can go.
    fn bury(&self) {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = process::try_reap(link.process);
    }

    /// Limits a control group, as far as it is not limited so already.
    fn limit(&self, group: &Group, limits: &Limits, pid: u32) -> Result<Before, SpawnError> {
        /// Groups come and go; those that went are forgotten now and then.
        const MOST: usize = 256;
        let mut limited = self.limited.lock().unwrap_or_else(PoisonError::into_inner);
        let last = limited.remove(group.name());
        drop(limited);
        let before = group.limit(limits, pid, last).map_err(SpawnError::Wall)?;
        let mut limited = self.limited.lock().unwrap_or_else(PoisonError::into_inner);
        if limited.len() >= MOST {
            limited.clear();
        }
        limited.insert(group.name().to_owned(), Limited::by(limits));
        Ok(before)
    }

    /// Waits until the launcher has cleaned up after a room that has ended. If that was otherwise than it
    /// should, gives how often the kernel had killed something in its control group.
    pub(crate) fn leave(&self, room: u64) -> Option<u64> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        // A launcher that is gone cleans up no more.
        link.leave(room).ok().flatten()
    }

    /// Takes a room, has the folders of the order guarded, and has the next room made.
    fn room(&self, order: &Order, ahead: usize) -> Result<Room, SpawnError> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = |Gone| SpawnError::Launcher(StartError::Silent);
        let mut room = link.take().map_err(gone)?.map_err(SpawnError::Wall)?;
        let folders = order::guarded(order);
        if !folders.is_empty() {
            room.is_guarded = true;
            let guarded = link.guard(room.id, folders, order.held.clone()).map_err(gone)?;
            guarded.map_err(|failure| explain(failure, order))?;
        }
        while link.ready.len() + link.asked < ahead {
            link.ask_for_room().map_err(gone)?;
        }
        Ok(room)
    }
}

/// Both ends of where a room tells which names it has refused: the host's, and its own.
fn asked() -> io::Result<(Asked, OwnedFd)> {
    // Neither knows the end of a message otherwise, nor how many fit.
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let socket = UnixDatagram::from(ours);
    socket.set_nonblocking(true)?;
    Ok((Asked { socket }, theirs))
}

/// The ends that came with the word that a program runs.
fn ends(has_names: bool, descriptors: Vec<OwnedFd>) -> Option<Ends> {
    let mut descriptors = descriptors.into_iter();
    let proxy = descriptors.next()?.into();
    let names = if has_names { descriptors.next().map(Into::into) } else { None };
    Some(Ends { proxy, names, doors: descriptors.map(Into::into).collect() })
}

/// A room that does not say what it must.
fn lost(errno: i32) -> Fault {
    Fault { doing: "hear from a room".into(), errno }
}

fn explain(failure: Failure, order: &Order) -> SpawnError {
    let program = || order.arguments.first().map(|path| path.path().to_owned()).unwrap_or_default();
    match failure {
        Failure::Program(errno) => {
            let (program, said) = (program(), io::Error::from_raw_os_error(errno));
            // What is not there inside, or is of an image, is not what this machine has at that path.
            let is_ours = order.root.is_none()
                && (is_system(&program)
                    || order.placements.iter().any(|one| program.starts_with(one.path.path())));
            let said = if is_ours { Obstacle::explaining(&program, said) } else { said };
            SpawnError::Program(program, said)
        }
        Failure::Folder(errno) => {
            SpawnError::Folder(order.folder.path().to_owned(), io::Error::from_raw_os_error(errno))
        }
        Failure::Moved(path) => SpawnError::Moved(path.into_path()),
        Failure::Wall(fault) => SpawnError::Wall(fault),
    }
}

/// The launcher is gone.
#[derive(Debug)]
struct Gone;

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl Link {
    fn execute(program: &Path) -> Result<Self, StartError> {
        let (socket, theirs) = UnixStream::pair().map_err(StartError::Program)?;
        let process = Command::new(program)
            .arg0(NAME)
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(StartError::Program)?;
        Ok(Self::new(socket, Pid::from_child(&process)))
    }

    fn new(socket: UnixStream, process: Pid) -> Self {
        Self { socket, process, ready: VecDeque::new(), asked: 1 }
    }

    /// Hears what the walls are made of.
    fn greet(&mut self) -> Result<Walls, StartError> {
        match wire::receive::<Answer>(&self.socket) {
            Ok(Some((Answer::Hello(walls), _))) => {
                // The room of the attempt has told the launcher already that it stands.
                if walls.has(Primitive::Namespaces) {
                    self.receive_room()
                        .map_err(|Gone| StartError::Silent)?
                        .map_err(|_| StartError::Silent)?;
                    if let Some(room) = self.ready.front_mut() {
                        room.is_heard = true;
                    }
                }
                Ok(walls)
            }
            _ => Err(StartError::Silent),
        }
    }

    fn tell(&self, ask: &Ask) -> Result<(), Gone> {
        Ok(wire::send(&self.socket, ask, &[])?)
    }

    fn ask_for_room(&mut self) -> Result<(), Gone> {
        self.tell(&Ask::Room)?;
        self.asked += 1;
        Ok(())
    }

    fn take(&mut self) -> Result<Result<Room, Fault>, Gone> {
        if let Some(room) = self.ready.pop_front() {
            return Ok(Ok(room));
        }
        if self.asked == 0 {
            self.ask_for_room()?;
        }
        match self.receive_room()? {
            Ok(()) => self.ready.pop_front().map(Ok).ok_or(Gone),
            Err(fault) => Ok(Err(fault)),
        }
    }

    fn receive_room(&mut self) -> Result<Result<(), Fault>, Gone> {
        let (answer, descriptors) = wire::receive::<Answer>(&self.socket)?.ok_or(Gone)?;
        self.note(answer, descriptors)
    }

    fn note(
        &mut self,
        answer: Answer,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Result<(), Fault>, Gone> {
        self.asked = self.asked.saturating_sub(1);
        match answer {
            Answer::Room { id, pid, group } => {
                let mut descriptors = descriptors.into_iter();
                let (socket, process) =
                    (descriptors.next().ok_or(Gone)?, descriptors.next().ok_or(Gone)?);
                let socket = socket.into();
                let room = Room {
                    id,
                    pid,
                    socket,
                    process,
                    group,
                    before: Before::default(),
                    is_heard: false,
                    is_guarded: false,
                };
                self.ready.push_back(room);
                Ok(Ok(()))
            }
            Answer::NoRoom(fault) => Ok(Err(fault)),
            Answer::Hello(_) | Answer::Guarded(_) | Answer::Left(_) => Err(Gone),
        }
    }

    fn guard(
        &mut self,
        room: u64,
        folders: Vec<wire::Placement>,
        held: Vec<wire::Held>,
    ) -> Result<Result<(), Failure>, Gone> {
        self.tell(&Ask::Guard { room, folders, held })?;
        match self.answer()? {
            Answer::Guarded(guarded) => Ok(guarded),
            _ => Err(Gone),
        }
    }

    fn leave(&mut self, room: u64) -> Result<Option<u64>, Gone> {
        self.tell(&Ask::Leave { room })?;
        match self.answer()? {
            Answer::Left(kills) => Ok(kills),
            _ => Err(Gone),
        }
    }

    /// The next answer that is no room. Rooms that were asked for before come first; if one
    /// could not be made, the next asks again.
    fn answer(&mut self) -> Result<Answer, Gone> {
        loop {
            match wire::receive::<Answer>(&self.socket)?.ok_or(Gone)? {
                (answer @ (Answer::Guarded(_) | Answer::Left(_)), _) => return Ok(answer),
                (answer, descriptors) => {
                    let _ = self.note(answer, descriptors)?;
                }
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.ready.clear();
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let until = Instant::now() + FAREWELL;
        let mut pause = Duration::from_micros(200);
        loop {
            match process::try_reap(self.process) {
                Ok(None) if Instant::now() < until => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                Ok(None) => {
                    let _ = rustix::process::kill_process(self.process, Signal::KILL);
                    let _ = process::reap(self.process);
                    break;
                }
                _ => break,
            }
        }
    }
}
