//! The launcher: our own program, executed again, with one thread and nothing
//! of the host's memory. It makes rooms, keeps what must be taken away after them, and
//! dies with the host: when its socket closes, it ends every room and cleans up.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::UnshareFlags;

use super::bare;
use super::calls::Filters;
use super::files::{self, Connections, Rights};
use super::furniture::{Furniture, System};
use super::groups::Groups;
use super::mounts::Doing;
use super::porter::Porter;
use super::process::{self, Namespaces, Reaped, Wait};
use super::protect::Guard;
use super::room::{self, Plan};
use super::wire::{self, Answer, Ask, Failure, Group, Word};
use crate::level::{Fault, Finding, Primitive, Walls};

/// How long to wait before a control group that was busy is tried again.
const RETRY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// How long a room that has ended its program may take to end itself, and how often to look.
const FAREWELL: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_micros(100);

/// How many rooms that nobody asks about any more are remembered.
const MOST_FALLEN: usize = 1024;

/// How many porters to keep that have nothing to do.
const KEPT: usize = 8;

/// A room that stands, as far as the launcher has to do with it.
struct Standing {
    id: u64,
    guard: Guard,
    /// Who made it; without namespaces nobody but the launcher.
    porter: Option<Porter>,
    group: Option<Group>,
}

struct Launcher {
    plan: Plan,
    groups: Option<Groups>,
    /// Porters that have nothing to do.
    porters: Vec<Porter>,
    rooms: HashMap<i32, Standing>,
    /// Groups that were still busy when they should have gone.
    lingering: Vec<Group>,
    /// Rooms that ended otherwise than they should, and how often the kernel had killed something in their
    /// groups: these may be gone before the host looks.
    fallen: HashMap<u64, u64>,
    next: u64,
}

/// The life of the launcher. The host's socket is its standard input.
pub(crate) fn run(host: &UnixStream) -> io::Result<()> {
    // What is typed at the host's terminal is not meant for it. A session of its own would do as well, but systems that
    // share processors among sessions let a new one wait for milliseconds; each program in a room has one.
    let _ = rustix::process::setpgid(None, None);
    rustix::process::chdir("/")?;
    rustix::process::umask(rustix::fs::Mode::empty());
    if rustix::process::geteuid().is_root() {
        // The groups of an ordinary user cannot be given up; root's can.
        let _ = rustix::thread::set_thread_groups(&[]);
    }
    raise_descriptors();
    // Kernels before 6.4 tell it by a file that a room does not see; it is kept from here on.
    let _ = rustix::param::page_size();
    process::default_signals();
    let signals = process::by_descriptor(&[libc::SIGCHLD])?;
    let (mut launcher, walls, first) = Launcher::find();
    wire::send(host, &Answer::Hello(walls), &[])?;
    if let Some((answer, descriptors)) = first {
        say(host, &answer, &descriptors)?;
    } else {
        launcher.make_and_say(host)?;
    }
    loop {
        let mut ready = [PollFd::new(host, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        let timeout = (!launcher.lingering.is_empty()).then_some(&RETRY);
        match rustix::event::poll(&mut ready, timeout) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        let (asked, ended) = (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
        if ended {
            let mut buffer = [0; size_of::<libc::signalfd_siginfo>() * 4];
            let _ = rustix::io::read(&signals, &mut buffer);
            launcher.reap();
        }
        if asked {
            match wire::receive::<Ask>(host)? {
                Some((Ask::Room, _)) => launcher.make_and_say(host)?,
                Some((Ask::Leave { room }, _)) => {
                    launcher.leave(room);
                    wire::send(host, &Answer::Left(launcher.fallen.remove(&room)), &[])?;
                }
                Some((Ask::Guard { room, folders, held }, _)) => {
                    let guarded = launcher.guard(room, &folders, &held);
                    wire::send(host, &Answer::Guarded(guarded), &[])?;
                }
                None => break,
            }
        }
        launcher.lingering.retain(|group| !group.remove());
    }
    Ok(())
}

/// Takes as many descriptors as this user may have: each room and each folder that is guarded keeps
/// some, and what most systems give at first is soon used up. Rooms have a limit of their own.
fn raise_descriptors() {
    let most = rustix::process::getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit { current: most, maximum: most };
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

fn say(host: &UnixStream, answer: &Answer, descriptors: &[OwnedFd]) -> io::Result<()> {
    let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    wire::send(host, answer, &descriptors)
}

type Made = (Answer, Vec<OwnedFd>);

/// A room's socket, its process and the descriptor of it, who made it, and its control group.
type Fresh = (UnixStream, Pid, OwnedFd, Option<Porter>, Option<Group>);

impl Launcher {
    /// Finds out what walls there are by building them once; the room of the attempt is kept.
    fn find() -> (Self, Walls, Option<Made>) {
        let filters = Filters::new(Namespaces::New);
        let system = System::find();
        let (landlock, seccomp) = try_in_child(&filters);
        let seccomp = seccomp.map(|()| filters);
        // Only now: a group is not ours to divide while there is anybody else in it.
        let groups = Groups::find();
        let mut findings = vec![
            (
                Primitive::Landlock,
                finding(landlock.as_ref().map(|version| format!("ABI {version}"))),
            ),
            (Primitive::Seccomp, finding(seccomp.as_ref().map(|_| "filter".into()))),
            (Primitive::ControlGroups, finding(groups.as_ref().map(Groups::kind))),
        ];
        let plan = Plan {
            system,
            namespaces: Namespaces::New,
            landlock: landlock.ok(),
            filters: seccomp.ok(),
            user: rustix::process::geteuid().as_raw(),
        };
        let mut launcher = Self {
            plan,
            groups: groups.ok(),
            porters: Vec::new(),
            rooms: HashMap::new(),
            lingering: Vec::new(),
            fallen: HashMap::new(),
            next: 0,
        };
        let (namespaces, first) = match launcher.try_namespaces() {
            Ok((made_of, made)) => (Finding::Works(made_of), Some(made)),
            Err(fault) => {
                launcher.plan.namespaces = Namespaces::Shared;
                // What a room that was killed leaves behind comes here.
                let _ = bare::become_reaper();
                if let Some(filters) = &mut launcher.plan.filters {
                    *filters = Filters::new(Namespaces::Shared);
                }
                (Finding::Fails(fault), None)
            }
        };
        findings.insert(0, (Primitive::Namespaces, namespaces));
        (launcher, Walls { findings }, first)
    }

    /// Moves the launcher itself into a user and a mount namespace, in which it is free to prepare
    /// what all rooms share, and makes a first room.
    fn try_namespaces(&mut self) -> Result<(String, Made), Fault> {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        process::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)
            .doing(|| "make a user namespace".into())?;
        room::say_of_self("setgroups", "deny")?;
        room::map_user(user.as_raw(), group.as_raw())?;
        // A network takes its time, in which the rest can be built.
        let porter = Porter::begin(&self.plan, self.groups.as_ref())?;
        Furniture::build(&self.plan.system)?;
        self.porters.push(porter.ready()?);
        let (answer, descriptors) = self.make();
        if let Answer::NoRoom(fault) = answer {
            return Err(fault);
        }
        let doing = || "hear from a room".to_owned();
        let socket = UnixStream::from(descriptors[0].try_clone().doing(doing)?);
        match wire::receive::<Word>(&socket).doing(doing)? {
            Some((Word::Prepared(Ok(prepared)), _)) => {
                Ok((prepared.made_of, (answer, descriptors)))
            }
            Some((Word::Prepared(Err(fault)), _)) => Err(fault),
            _ => Err(Fault { doing: doing(), errno: 0 }),
        }
    }

    fn make_and_say(&mut self, host: &UnixStream) -> io::Result<()> {
        let (answer, descriptors) = self.make();
        say(host, &answer, &descriptors)
    }

    fn make(&mut self) -> Made {
        match self.try_make() {
            Ok(made) => made,
            Err(fault) => (Answer::NoRoom(fault), Vec::new()),
        }
    }

    fn try_make(&mut self) -> Result<Made, Fault> {
        let (ours, pid, descriptor, porter, group) = match self.plan.namespaces {
            Namespaces::New => self.make_apart()?,
            Namespaces::Shared => self.make_bare()?,
        };
        let id = self.next;
        self.next += 1;
        let number = pid.as_raw_pid().unsigned_abs();
        let answer = Answer::Room { id, pid: number, group: group.clone() };
        let guard = Guard::default();
        let standing = Standing { id, guard, porter, group };
        self.rooms.insert(pid.as_raw_pid(), standing);
        Ok((answer, vec![ours.into(), descriptor]))
    }

    /// Has a porter make a room. One that was kept may have become useless; a new one may not.
    fn make_apart(&mut self) -> Result<Fresh, Fault> {
        while let Some(porter) = self.porters.pop() {
            let (ours, theirs) = UnixStream::pair().doing(|| "make a socket".into())?;
            match porter.make_room(theirs) {
                Ok((pid, descriptor)) => {
                    let group = porter.group().cloned();
                    return Ok((ours, pid, descriptor, Some(porter), group));
                }
                Err(_) => self.dismiss(porter),
            }
        }
        // One may have come free meanwhile.
        self.reap();
        if !self.porters.is_empty() {
            return self.make_apart();
        }
        let porter = Porter::begin(&self.plan, self.groups.as_ref())?.ready()?;
        let (ours, theirs) = UnixStream::pair().doing(|| "make a socket".into())?;
        match porter.make_room(theirs) {
            Ok((pid, descriptor)) => {
                let group = porter.group().cloned();
                Ok((ours, pid, descriptor, Some(porter), group))
            }
            Err(fault) => {
                self.dismiss(porter);
                Err(fault)
            }
        }
    }

    fn make_bare(&mut self) -> Result<Fresh, Fault> {
        let (ours, theirs) = UnixStream::pair().doing(|| "make a socket".into())?;
        let group = self.groups.as_ref().map(Groups::make).transpose()?;
        let plan = &self.plan;
        match Group::fork(group.as_ref(), "a room", |is_in| room::run(theirs, plan, is_in)) {
            Ok((pid, descriptor)) => Ok((ours, pid, descriptor, None, group)),
            Err(fault) => {
                self.lingering.extend(group);
                Err(fault)
            }
        }
    }

    fn dismiss_idle(&mut self) {
        while let Some(porter) = self.porters.pop() {
            self.dismiss(porter);
        }
    }

    /// Ends a porter. Its control group is removed when it has gone.
    fn dismiss(&mut self, porter: Porter) {
        self.lingering.extend(porter.group().cloned());
        drop(porter);
    }

    /// Waits for the end of a room, which is near, and cleans up after it.
    fn leave(&mut self, room: u64) {
        let pid = self.rooms.iter().find(|(_, standing)| standing.id == room).map(|(pid, _)| *pid);
        let Some(pid) = pid.and_then(Pid::from_raw) else { return };
        // It has nothing more to do. One that does not end all the same is killed.
        let until = Instant::now() + FAREWELL;
        let status = loop {
            match process::try_reap(pid) {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < until => std::thread::sleep(PAUSE),
                _ => {
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                    break process::reap(pid).unwrap_or(-1);
                }
            }
        };
        self.forget(Reaped { pid: pid.as_raw_pid(), status });
    }

    fn guard(
        &mut self,
        room: u64,
        folders: &[wire::Placement],
        held: &[wire::Held],
    ) -> Result<(), Failure> {
        let standing = self.rooms.values_mut().find(|standing| standing.id == room);
        // A room that is gone starts nothing, and has told the host why.
        let Some(standing) = standing else { return Ok(()) };
        folders.iter().try_for_each(|folder| standing.guard.add(folder))?;
        let mut held = held.iter();
        held.try_for_each(|held| standing.guard.hold(held.path.path(), held.shape))
            .map_err(Failure::Wall)
    }

    /// Cleans up after rooms that have ended.
    fn reap(&mut self) {
        while let Ok(Some(reaped)) = process::reap_any(Wait::No) {
            self.forget(reaped);
        }
        if self.plan.namespaces == Namespaces::Shared {
            let rooms: Vec<_> = self.rooms.keys().copied().collect();
            bare::kill_descendants(&rooms);
        }
    }

    /// Cleans up after a room. Its network and its group are used again only if it says so itself.
    fn forget(&mut self, reaped: Reaped) {
        let Some(standing) = self.rooms.remove(&reaped.pid) else { return };
        let is_clean = reaped.status == room::CLEAN;
        if !is_clean && let Some(group) = &standing.group {
            if self.fallen.len() >= MOST_FALLEN {
                self.fallen.clear();
            }
            self.fallen.insert(standing.id, group.kills());
        }
        match standing.porter {
            Some(porter) if is_clean && porter.can_go_on() && self.porters.len() < KEPT => {
                self.porters.push(porter);
            }
            Some(porter) => self.dismiss(porter),
            None => self.lingering.extend(standing.group.filter(|group| !group.remove())),
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.dismiss_idle();
        // Rooms that are killed are not clean, so their porters go with them.
        for pid in self.rooms.keys().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        loop {
            if self.plan.namespaces == Namespaces::Shared {
                bare::kill_descendants(&[]);
            }
            match process::reap_any(Wait::ForOne) {
                Ok(Some(reaped)) => {
                    self.forget(reaped);
                    self.dismiss_idle();
                }
                _ => break,
            }
        }
    }
}

fn finding(tried: Result<String, &Fault>) -> Finding {
    match tried {
        Ok(what) => Finding::Works(what),
        Err(fault) => Finding::Fails(fault.clone()),
    }
}

/// The version of Landlock, and whether system calls can be filtered.
type Tried = (Result<u32, Fault>, Result<(), Fault>);

/// Tries in a child what cannot be undone.
fn try_in_child(filters: &Filters) -> Tried {
    let fault = |errno| Fault { doing: "try in a child".into(), errno };
    // Left as it is by a child that does not come so far.
    let mut tried: Tried = (Err(fault(0)), Err(fault(0)));
    let child = process::start(|| {
        tried.0 = try_landlock();
        tried.1 = try_seccomp(filters);
        0
    });
    match child {
        Ok(child) => {
            let _ = process::reap(child);
            tried
        }
        Err(error) => (Err(fault(error.raw_os_error())), Err(fault(error.raw_os_error()))),
    }
}

fn try_landlock() -> Result<u32, Fault> {
    let version = files::version()?;
    rustix::thread::set_no_new_privs(true).doing(|| "give up new privileges".into())?;
    let rights = Rights { readable: vec!["/".into()], ..Rights::default() };
    files::enter(files::prepare(&rights, Connections::HeldElsewhere)?)?;
    Ok(version)
}

fn try_seccomp(filters: &Filters) -> Result<(), Fault> {
    rustix::thread::set_no_new_privs(true).doing(|| "give up new privileges".into())?;
    filters.strictest().enter()
}
