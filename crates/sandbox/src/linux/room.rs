//! A room: the first process of its own namespaces, which builds the walls,
//! starts one program inside them, watches it, and ends with it.
//!
//! A room is made ahead of time and waits for its order. When it dies, by
//! whatever cause, the kernel ends everything in its namespace with it; and it dies when the launcher does.

use std::ffi::CString;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Signal};
use rustix::thread::UnshareFlags;

use super::calls::Filters;
use super::covers::Lookout;
use super::files::{self, Connections, Rights};
use super::furniture::System;
use super::mounts::Doing;
use super::names::{self, Refuser};
use super::process::{self, Namespaces, Wait};
use super::root::{INSIDE_ID, Root};
use super::watch::Watch;
use super::wire::{self, Access, Cause, End, Failure, Nudge, Order, Prepared, Word};
use super::{bare, limits};
use crate::confinement::SCRATCH;
use crate::level::Fault;

/// What a launcher knows and every room of it needs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) system: System,
    pub(crate) namespaces: Namespaces,
    /// `None` where the kernel has no Landlock.
    pub(crate) landlock: Option<u32>,
    /// The lists of system calls; `None` where they do not work.
    pub(crate) filters: Option<Filters>,
    /// The user outside.
    pub(crate) user: u32,
}

/// The status a room ends with when its network and its control group are as before.
pub(crate) const CLEAN: i32 = 0;

/// What is left of the network and the control group of a room.
enum After {
    /// They can be used again.
    AsNew,
    /// Its ends were handed out, or there are other groups beside.
    Spent,
}

/// The life of a room, from its first moment to its end.
pub(crate) fn run(socket: UnixStream, plan: &Plan, is_in: Result<(), Fault>) -> i32 {
    match live(socket, plan, is_in) {
        Ok(After::AsNew) => CLEAN,
        Ok(After::Spent) | Err(_) => 1,
    }
}

fn live(socket: UnixStream, plan: &Plan, is_in: Result<(), Fault>) -> io::Result<After> {
    // The kernel ends a namespace with its first process; without one the room has to do it.
    let at_the_end = match plan.namespaces {
        Namespaces::New => Signal::KILL,
        Namespaces::Shared => Signal::TERM,
    };
    rustix::process::set_parent_process_death_signal(Some(at_the_end))?;
    let socket = alone_with(socket)?;
    let built = is_in.and_then(|()| match plan.namespaces {
        Namespaces::New => build(plan).map(Some),
        Namespaces::Shared => bare::build().map(|()| None),
    });
    let root = match built {
        Ok(root) => root,
        Err(fault) => {
            wire::send(&socket, &Word::Prepared(Err(fault)), &[])?;
            return Ok(After::Spent);
        }
    };
    let made_of = match root {
        Some(_) => "user, mount, pid, network, ipc, uts, cgroup".into(),
        None => String::new(),
    };
    wire::send(&socket, &Word::Prepared(Ok(Prepared { made_of })), &[])?;
    let Some((order, streams)) = wire::receive::<Order>(&socket)? else {
        return Ok(After::AsNew);
    };
    let is_spent = !order.listen.is_empty() || order.is_regrouped;
    let after = if is_spent { After::Spent } else { After::AsNew };
    let began = Instant::now();
    match start(plan, root, &order, &streams) {
        Ok(Started { main, mut openings, lookout }) => {
            let mut more = streams.into_iter().skip(3);
            let told = if order.tells_names { more.next() } else { None };
            let refuser = told.and_then(|told| Some(Refuser::new(openings.names.take()?, told)));
            let (has_names, descriptors) = openings.descriptors();
            // A host that is gone is noticed below, and takes the program with it.
            let _ = wire::send(&socket, &Word::Started { has_names }, &descriptors);
            drop(openings);
            let eyes = Eyes { own: Watch::new(plan.namespaces, more.next()), lookout, refuser };
            let end = watch(&socket, &order, main, began, plan.namespaces, eyes)?;
            wire::send(&socket, &Word::Ended(end), &[])?;
            // The host reads the usage of the control group now, which goes when this process does.
            // It may still send nudges.
            while matches!((&socket).read(&mut [0]), Ok(1..)) {}
        }
        Err(failure) => wire::send(&socket, &Word::Failed(failure), &[])?,
    }
    Ok(after)
}

/// Keeps the socket and standard error, and nothing else of what the launcher had open.
pub(crate) fn alone_with(socket: UnixStream) -> io::Result<UnixStream> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    let (socket, _nothing) = (socket.into_raw_fd(), nothing.into_raw_fd());
    process::keep_only(socket).map_err(io::Error::from)
}

/// Builds the walls that are the same for every order.
fn build(plan: &Plan) -> Result<Root, Fault> {
    map_user(INSIDE_ID, INSIDE_ID)?;
    let root = Root::build(&plan.system, plan.user)?;
    // Some containers forbid the call; the name of the container is then seen inside.
    let _ = rustix::system::sethostname(b"haft");
    // From here on nobody of the same user reads this process's memory.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .doing(|| "close the memory of the room".into())?;
    Ok(root)
}

/// One user and one group exist inside: those of the parent namespace with these numbers. Who may
/// not change groups there may not here either; the launcher gave that up.
pub(crate) fn map_user(user: u32, group: u32) -> Result<(), Fault> {
    say_of_self("uid_map", &format!("{INSIDE_ID} {user} 1"))?;
    say_of_self("gid_map", &format!("{INSIDE_ID} {group} 1"))
}

/// Writes to one of the files by which a process sets what it is.
pub(crate) fn say_of_self(file: &str, text: &str) -> Result<(), Fault> {
    std::fs::write(format!("/proc/self/{file}"), text).doing(|| format!("write `{file}`"))
}

/// A program that runs.
struct Started {
    main: Pid,
    openings: Openings,
    /// Where it has covers that can fall off.
    lookout: Option<Lookout>,
}

/// What is open in its network.
#[derive(Default)]
struct Openings {
    /// The proxy's, and the doors.
    listeners: Vec<TcpListener>,
    /// Where names are asked for.
    names: Option<UdpSocket>,
}

impl Openings {
    /// Opens what was ordered. A door that is taken, or too low for us, stays shut: the proxy leads there too.
    fn open(ports: &[u16]) -> Result<Self, Fault> {
        let mut listeners = Vec::new();
        if let [proxy, doors @ ..] = ports {
            let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, *proxy));
            listeners.push(bound.doing(|| "listen for the proxy".into())?);
            for port in doors {
                let everywhere = TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port));
                // Some programs try this one first, or alone.
                let newer = TcpListener::bind((Ipv6Addr::LOCALHOST, *port));
                listeners.extend([everywhere, newer].into_iter().flatten());
            }
        }
        Ok(Self { listeners, names: names::open() })
    }

    /// Whether names are among them, and all of them in the order the host expects.
    fn descriptors(&self) -> (bool, Vec<BorrowedFd<'_>>) {
        let [proxy, doors @ ..] = &self.listeners[..] else { return (false, Vec::new()) };
        let mut all = vec![proxy.as_fd()];
        all.extend(self.names.as_ref().map(AsFd::as_fd));
        all.extend(doors.iter().map(AsFd::as_fd));
        (self.names.is_some(), all)
    }
}

/// Finishes the walls and starts the program inside them.
fn start(
    plan: &Plan,
    root: Option<Root>,
    order: &Order,
    streams: &[OwnedFd],
) -> Result<Started, Failure> {
    let (mut openings, mut lookout) = (Openings::default(), None);
    if let Some(mut root) = root {
        root.furnish(order)?;
        process::unshare(UnshareFlags::NEWCGROUP)
            .doing(|| "make a control group namespace".into())
            .map_err(Failure::Wall)?;
        lookout = root.enter(order.limits.processes).map_err(Failure::Wall)?;
        openings = Openings::open(&order.listen).map_err(Failure::Wall)?;
    }
    let broken = Fault { doing: "prepare the program".into(), errno: 0 };
    // Left as it is by a child that panics. One that becomes the program leaves nothing.
    let mut failure = Some(Failure::Wall(broken));
    let main = process::start(|| {
        match prepare_program(plan, order, streams) {
            Ok((program, arguments, environment)) => {
                failure = None;
                let errno = process::execute(&program, &arguments, &environment);
                failure = Some(Failure::Program(errno.raw_os_error()));
            }
            Err(refused) => failure = Some(refused),
        }
        127
    });
    let main = main.doing(|| "start a process".into()).map_err(Failure::Wall)?;
    if let Some(failure) = failure {
        let _ = process::reap(main);
        return Err(failure);
    }
    let dropped = process::drop_capabilities();
    dropped.doing(|| "drop capabilities".into()).map_err(Failure::Wall)?;
    Ok(Started { main, openings, lookout })
}

type Program = (CString, Vec<CString>, Vec<CString>);

/// Takes the last rights away from what is about to become the program.
fn prepare_program(plan: &Plan, order: &Order, streams: &[OwnedFd]) -> Result<Program, Failure> {
    let wall = |doing: &'static str| {
        move |result: Result<(), Errno>| result.doing(|| doing.into()).map_err(Failure::Wall)
    };
    let strings = |list: &[wire::Bytes]| -> Result<Vec<CString>, Failure> {
        let string = |bytes: &wire::Bytes| CString::new(bytes.0.clone());
        let made: Result<Vec<_>, _> = list.iter().map(string).collect();
        made.map_err(|_| Failure::Program(libc::EINVAL))
    };
    let (mut arguments, environment) = (strings(&order.arguments)?, strings(&order.environment)?);
    let program = arguments.first().cloned().ok_or(Failure::Program(libc::ENOENT))?;
    if let Some(shown) = &order.shown_as {
        arguments[0] = CString::new(shown.0.clone()).map_err(|_| Failure::Program(libc::EINVAL))?;
    }
    let [input, output, errors, ..] = streams else {
        return Err(Failure::Wall(Fault { doing: "take the standard streams".into(), errno: 0 }));
    };
    if plan.namespaces == Namespaces::Shared {
        wall("die with the room")(rustix::process::set_parent_process_death_signal(Some(
            Signal::KILL,
        )))?;
    }
    // In a session of its own it has no controlling terminal to type into.
    let _ = rustix::process::setsid();
    wall("take the standard streams")(
        rustix::stdio::dup2_stdin(input)
            .and_then(|()| rustix::stdio::dup2_stdout(output))
            .and_then(|()| rustix::stdio::dup2_stderr(errors)),
    )?;
    // A terminal of its own becomes the one that controls it; one of the host's does not.
    let _ = rustix::process::ioctl_tiocsctty(input)
        .or_else(|_| rustix::process::ioctl_tiocsctty(output));
    wall("close descriptors")(process::close_on_execute_from(3))?;
    let folder = order.folder.path();
    rustix::process::chdir(folder).map_err(|errno| Failure::Folder(errno.raw_os_error()))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    if let Some(processors) = order.limits.processors {
        wall("choose processors")(process::pin_to_processors(processors))?;
    }
    limits::set(&order.limits, plan.namespaces).map_err(Failure::Wall)?;
    if plan.namespaces == Namespaces::New || rustix::process::geteuid().is_root() {
        wall("drop capabilities")(process::drop_capabilities_for_good())?;
    }
    wall("give up new privileges")(rustix::thread::set_no_new_privs(true))?;
    if plan.landlock.is_some() {
        let (rights, connections) = rights(plan, order);
        let ruleset = files::prepare(&rights, connections).map_err(Failure::Wall)?;
        files::enter(ruleset).map_err(Failure::Wall)?;
    }
    process::reset_signals();
    if let Some(filters) = &plan.filters {
        filters.of(&order.limits).enter().map_err(Failure::Wall)?;
    }
    Ok((program, arguments, environment))
}

/// The files it may use, for Landlock.
fn rights(plan: &Plan, order: &Order) -> (Rights, Connections) {
    let granted = |access: Access| {
        let placements = order.placements.iter().filter(move |one| one.access == access);
        placements.map(|one| one.path.clone().into_path())
    };
    let mut writable: Vec<PathBuf> = granted(Access::Write).collect();
    match plan.namespaces {
        // Everything that can be seen was put there to be read.
        Namespaces::New => {
            writable.push(SCRATCH.into());
            let rights =
                Rights { readable: vec!["/".into()], writable, devices: vec!["/dev".into()] };
            (rights, Connections::HeldElsewhere)
        }
        Namespaces::Shared => {
            let readable = plan.system.paths().chain(granted(Access::Read)).collect();
            let lent = order.devices.iter().map(|device| device.clone().into_path());
            let devices = bare::DEVICES.iter().map(PathBuf::from).chain(lent).collect();
            (Rights { readable, writable, devices }, Connections::Refused)
        }
    }
}

/// What a room looks at while the program runs.
struct Eyes {
    /// What its own processes use.
    own: Watch,
    /// Whether its covers lie in their places.
    lookout: Option<Lookout>,
    /// What it asks for in vain.
    refuser: Option<Refuser>,
}

/// Waits for the end of the program, or brings it about.
fn watch(
    socket: &UnixStream,
    order: &Order,
    main: Pid,
    began: Instant,
    namespaces: Namespaces,
    eyes: Eyes,
) -> io::Result<End> {
    let Eyes { mut own, lookout, refuser } = eyes;
    let bounds = &order.limits;
    let signals = match namespaces {
        Namespaces::New => process::by_descriptor(&[libc::SIGCHLD])?,
        Namespaces::Shared => process::by_descriptor(&[libc::SIGCHLD, libc::SIGTERM])?,
    };
    let deadline = bounds.deadline_ms.map(|after| began + Duration::from_millis(after));
    let mut look_at = Watch::is_needed(bounds).then(Instant::now);
    // The first look finds what happened while the covers were placed.
    let mut look_out_at = lookout.as_ref().map(|_| Instant::now());
    let mut status = None;
    let mut cause = Cause::Itself;
    // Children that ended before the signals were waited for are found here first.
    reap_ended(main, &mut status);
    while status.is_none() {
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            cause = Cause::Deadline;
            break;
        }
        if look_at.is_some_and(|at| now >= at) {
            match own.look(bounds) {
                Ok(pause) => look_at = Some(Instant::now() + pause),
                Err(overstepped) => {
                    cause = overstepped;
                    break;
                }
            }
        }
        if let Some(lookout) = lookout.as_ref().filter(|_| look_out_at.is_some_and(|at| now >= at))
        {
            if !lookout.is_whole() {
                cause = Cause::Uncovered;
                break;
            }
            look_out_at = Some(Instant::now() + Lookout::pause());
        }
        let moments = [deadline, look_at, look_out_at];
        match wait_for(socket, &signals, lookout.as_ref(), refuser.as_ref(), moments)? {
            Heard::Nothing => {}
            Heard::Change => look_out_at = Some(Instant::now()),
            Heard::Child => reap_ended(main, &mut status),
            Heard::Terminate => {
                let _ = rustix::process::kill_process(main, Signal::TERM);
            }
            Heard::Kill => {
                cause = Cause::Host;
                break;
            }
        }
    }
    end_everything(main, &mut status, namespaces);
    // One that has ended itself may have been faster than we were.
    if cause == Cause::Itself && lookout.is_some_and(|lookout| !lookout.is_whole()) {
        cause = Cause::Uncovered;
    }
    let (user_us, system_us, largest) = process::usage_of_children();
    let peak = own.peak.max(largest);
    Ok(End { status: status.unwrap_or(libc::SIGKILL), cause, user_us, system_us, peak })
}

/// How long the news of one signal is.
const ONE_SIGNAL: usize = size_of::<libc::signalfd_siginfo>();

enum Heard {
    Nothing,
    Child,
    /// Something lies otherwise than at the last look.
    Change,
    Terminate,
    Kill,
}

fn wait_for(
    mut socket: &UnixStream,
    signals: &OwnedFd,
    lookout: Option<&Lookout>,
    refuser: Option<&Refuser>,
    moments: [Option<Instant>; 3],
) -> io::Result<Heard> {
    let next = moments.into_iter().flatten().min();
    let next = next.map(|at| at.saturating_duration_since(Instant::now()));
    let timeout = next.map(|wait| rustix::event::Timespec {
        tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    });
    let mut ready = vec![PollFd::new(&socket, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
    ready.extend(refuser.map(Refuser::news));
    ready.extend(lookout.map(Lookout::news));
    match rustix::event::poll(&mut ready, timeout.as_ref()) {
        Ok(0) | Err(Errno::INTR) => return Ok(Heard::Nothing),
        polled => polled?,
    };
    if !ready[0].revents().is_empty() {
        let mut byte = [0];
        return Ok(match socket.read(&mut byte) {
            Ok(1) if byte[0] == Nudge::Terminate as u8 => Heard::Terminate,
            // `Kill`, or the host is gone.
            _ => Heard::Kill,
        });
    }
    let is_ready = |one: &PollFd<'_>| !one.revents().is_empty();
    let is_signalled = is_ready(&ready[1]);
    let mut others = ready[2..].iter();
    if let Some(refuser) = refuser
        && others.next().is_some_and(is_ready)
    {
        refuser.refuse();
    }
    if others.any(is_ready) {
        return Ok(Heard::Change);
    }
    if !is_signalled {
        return Ok(Heard::Nothing);
    }
    let mut buffer = [0; ONE_SIGNAL * 4];
    let count = rustix::io::read(signals, &mut buffer).unwrap_or_default();
    let term = libc::SIGTERM.to_ne_bytes();
    let is_asked_to_end = buffer[..count].chunks(ONE_SIGNAL).any(|one| one.starts_with(&term));
    Ok(if is_asked_to_end { Heard::Kill } else { Heard::Child })
}

fn reap_ended(main: Pid, status: &mut Option<i32>) {
    while let Ok(Some(reaped)) = process::reap_any(Wait::No) {
        if reaped.pid == main.as_raw_pid() {
            *status = Some(reaped.status);
        }
    }
}

/// Kills until nothing is left to be waited for.
fn end_everything(main: Pid, status: &mut Option<i32>, namespaces: Namespaces) {
    loop {
        match namespaces {
            Namespaces::New => process::signal_everything(Signal::KILL),
            Namespaces::Shared => bare::kill_descendants(&[]),
        }
        match process::reap_any(Wait::ForOne) {
            Ok(Some(reaped)) if reaped.pid == main.as_raw_pid() => *status = Some(reaped.status),
            Ok(_) => {}
            Err(_) => break,
        }
    }
}
