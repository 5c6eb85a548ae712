//! Porters: each keeps an empty network and a control group, and makes one room after another in them.
//!
//! To make and destroy a network namespace, and to move a process into a control group, cost
//! more than everything else about a room together; what a porter starts is in both from its first moment.
//!
//! An empty network has no state a tool could leave: the room's user namespace has no rights over
//! it, and it is used again only when no socket is left in it. One whose listener was handed out is never used
//! again; nor is a control group whose counts cannot be set back.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::thread::UnshareFlags;

use super::groups::Groups;
use super::mounts::Doing;
use super::process::{self, Namespaces};
use super::room::{self, Plan};
use super::wire::{self, Group};
use crate::level::Fault;

/// A porter, as the launcher holds it. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Porter {
    /// By its descriptor, because its number may be another's when it was killed.
    process: OwnedFd,
    socket: UnixStream,
    group: Option<Group>,
}

/// What a porter says of a room it was to make: its process number, or why there is none.
type Said = Result<i32, Fault>;

impl Porter {
    /// Starts a porter, which is not ready yet.
    pub(crate) fn begin(plan: &Plan, groups: Option<&Groups>) -> Result<Self, Fault> {
        let (socket, theirs) = UnixStream::pair().doing(|| "make a socket".into())?;
        let group = groups.map(Groups::make).transpose()?;
        let forked = Group::fork(group.as_ref(), "a porter", |is_in| {
            i32::from(work(theirs, plan, is_in).is_err())
        });
        let (_, process) = forked.inspect_err(|_| {
            let _ = group.as_ref().is_some_and(Group::remove);
        })?;
        Ok(Self { process, socket, group })
    }

    /// Waits until it has its network.
    pub(crate) fn ready(self) -> Result<Self, Fault> {
        self.hear()?;
        Ok(self)
    }

    /// Has it make a room, whose parent is the launcher.
    pub(crate) fn make_room(&self, socket: UnixStream) -> Result<(Pid, OwnedFd), Fault> {
        let lost = || Fault { doing: "reach a porter".into(), errno: 0 };
        wire::send(&self.socket, &(), &[socket.as_fd()]).map_err(|_| lost())?;
        drop(socket);
        let (pid, descriptors) = self.hear()?;
        let descriptor = descriptors.into_iter().next().ok_or_else(lost)?;
        Ok((Pid::from_raw(pid).ok_or_else(lost)?, descriptor))
    }

    /// The control group of its rooms.
    pub(crate) fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Whether another room can be made by it after one that changed nothing.
    pub(crate) fn can_go_on(&self) -> bool {
        self.group.as_ref().is_none_or(Group::can_be_set_back)
    }

    fn hear(&self) -> Result<(i32, Vec<OwnedFd>), Fault> {
        match wire::receive::<Said>(&self.socket) {
            Ok(Some((said, descriptors))) => Ok((said?, descriptors)),
            _ => Err(Fault { doing: "hear from a porter".into(), errno: 0 }),
        }
    }
}

impl Drop for Porter {
    fn drop(&mut self) {
        // It is waited for like every other child: its network takes its time to go.
        let _ = rustix::process::pidfd_send_signal(&self.process, Signal::KILL);
    }
}

/// The life of a porter.
fn work(socket: UnixStream, plan: &Plan, is_in: Result<(), Fault>) -> std::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let launcher = room::alone_with(socket)?;
    let network = is_in
        .and_then(|()| {
            let made = process::unshare(UnshareFlags::NEWNET);
            made.doing(|| "make a network namespace".into())
        })
        .and_then(|()| {
            let switched = process::switch_loopback_on();
            switched.doing(|| "switch the loopback interface on".into())
        });
    // So that a room can be asked for names and has doors; where it does not work there are none.
    let _ = std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    let said: Said = network.map(|()| 0);
    let is_broken = said.is_err();
    wire::send(&launcher, &said, &[])?;
    while let Some(((), descriptors)) = wire::receive::<()>(&launcher)?
        && !is_broken
    {
        let Some(socket) = descriptors.into_iter().next() else { continue };
        let made = if is_empty() {
            process::fork_apart(Namespaces::New, None, || room::run(socket.into(), plan, Ok(())))
        } else {
            Err(Errno::ADDRINUSE)
        };
        let doing = || "make namespaces of users, mounts, processes, ipc and host name".to_owned();
        match made.doing(doing) {
            Ok((pid, descriptor)) => {
                let said: Said = Ok(pid.as_raw_pid());
                wire::send(&launcher, &said, &[descriptor.as_fd()])?;
            }
            Err(fault) => {
                let said: Said = Err(fault);
                wire::send(&launcher, &said, &[])?;
            }
        }
    }
    Ok(())
}

/// Whether no socket is left in the network this process is in.
fn is_empty() -> bool {
    let text = std::fs::read_to_string("/proc/self/net/sockstat").unwrap_or_default();
    let number_after = |line: &str, word: &str| {
        let mut words = line.split_whitespace().skip_while(|found| *found != word);
        words.nth(1).and_then(|number| number.parse::<u64>().ok())
    };
    let is_unused = text.lines().any(|line| number_after(line, "used") == Some(0));
    is_unused && text.lines().all(|line| number_after(line, "tw").unwrap_or(0) == 0)
}
