//! Limits by control groups: the unified hierarchy where this user may make
//! groups in it, else the old ones.
//!
//! The launcher owns a group and makes one below it for each room, because it
//! outlives the host and can take them away. The host writes the limits and reads the usage.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Pid;

use super::mounts::Doing;
use super::process::{self, Namespaces};
use super::wire::{Bytes, Group};
use crate::confinement::Limits;
use crate::level::Fault;

/// What the name of every group of ours begins with.
const PREFIX: &str = "haft-";

/// The kernel has no more process numbers than this, and takes no larger bound.
const MOST_PROCESSES: u32 = 1 << 22;

/// More processors than any machine has, in hundredths.
const MOST_SHARE: u32 = 10_000 * 100;

/// What a control group is limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limited {
    memory: Option<u64>,
    processes: u32,
}

impl Limited {
    pub(crate) fn by(limits: &Limits) -> Self {
        Self { memory: limits.memory, processes: limits.processes }
    }
}

/// What a control group had counted before a room used it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before {
    memory: u64,
    pub(crate) kills: u64,
}

/// The group of a launcher. Groups are removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Groups {
    hierarchy: Hierarchy,
    next: AtomicU64,
}

#[derive(Debug)]
enum Hierarchy {
    Unified(PathBuf),
    Split {
        memory: PathBuf,
        processes: Option<PathBuf>,
        cpu: Option<PathBuf>,
        accounting: Option<PathBuf>,
    },
}

impl Groups {
    /// Finds where groups can be made, by making one.
    pub(crate) fn find() -> Result<Self, Fault> {
        let doing = || "read the control groups".to_owned();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").doing(doing)?;
        let own = std::fs::read_to_string("/proc/self/cgroup").doing(doing)?;
        let unified = unified(&mounts, &own);
        let hierarchy = match unified {
            Ok(folder) => Hierarchy::Unified(folder),
            Err(fault) => split(&mounts, &own).map_err(|split| match split.errno {
                libc::ENOENT => fault,
                _ => split,
            })?,
        };
        Ok(Self { hierarchy, next: AtomicU64::new(0) })
    }

    /// What it is, for people.
    pub(crate) fn kind(&self) -> String {
        match &self.hierarchy {
            Hierarchy::Unified(_) => "v2".into(),
            Hierarchy::Split { .. } => "v1".into(),
        }
    }

    /// Makes the group of one room.
    pub(crate) fn make(&self) -> Result<Group, Fault> {
        let name = format!("room-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let make = |base: &Path| {
            let path = base.join(&name);
            std::fs::create_dir(&path)
                .doing(|| format!("make the control group `{}`", path.display()))?;
            Ok(Bytes::of(&path))
        };
        match &self.hierarchy {
            Hierarchy::Unified(base) => Ok(Group::Unified(make(base)?)),
            // To move a process costs as much as to start one, so only memory and processes are
            // counted for all; the others are for the host to make where it needs them.
            Hierarchy::Split { memory, processes, cpu, accounting } => {
                let beside = |base: &PathBuf| Bytes::of(base.join(&name));
                Ok(Group::Split {
                    memory: make(memory)?,
                    processes: processes.as_deref().map(make).transpose()?,
                    cpu: cpu.as_ref().map(beside),
                    accounting: accounting.as_ref().map(beside),
                })
            }
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for base in bases(&self.hierarchy) {
            remove(base);
        }
    }
}

fn bases(hierarchy: &Hierarchy) -> Vec<&Path> {
    match hierarchy {
        Hierarchy::Unified(base) => vec![base],
        Hierarchy::Split { memory, processes, cpu, accounting } => {
            [Some(memory), processes.as_ref(), cpu.as_ref(), accounting.as_ref()]
                .into_iter()
                .flatten()
                .map(PathBuf::as_path)
                .collect()
        }
    }
}

/// Removes a group and those below it; `false` while a process is still in one.
fn remove(group: &Path) -> bool {
    match std::fs::remove_dir(group) {
        Ok(()) => return true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
        Err(_) => {}
    }
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    std::fs::remove_dir(group).is_ok()
}

/// Removes what a launcher that was killed left behind. Numbers mean something only among those who
/// count alike, so others' are left alone.
fn sweep(parent: &Path) {
    let prefix = prefix();
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(&*prefix));
        if let Some(owner) = owner.and_then(|owner| owner.parse::<i32>().ok())
            && Pid::from_raw(owner).is_some_and(|pid| {
                rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
            })
        {
            remove(&entry.path());
        }
    }
}

/// What every group of ours is called: this, and the number of its launcher. It names the
/// namespace in which that number counts.
fn prefix() -> String {
    let space = std::fs::metadata("/proc/self/ns/pid").map_or(0, |space| space.ino());
    format!("{PREFIX}{space:x}-")
}

/// Makes the launcher's group below a folder.
fn base(parent: &Path) -> io::Result<PathBuf> {
    sweep(parent);
    let path = parent.join(format!("{}{}", prefix(), std::process::id()));
    match std::fs::create_dir(&path) {
        // Controllers can share a hierarchy.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(path),
        made => made.map(|()| path),
    }
}

/// A nearest group above our own in which this user may make one with limits, and move processes
/// to it. Where there is none, our own group, if it was handed over to this user.
fn unified(mounts: &str, own: &str) -> Result<PathBuf, Fault> {
    let fault = |errno| Fault { doing: "make a control group (v2)".into(), errno };
    let root = mount_point(mounts, "cgroup2", None).ok_or_else(|| fault(libc::ENOENT))?;
    let path =
        own.lines().find_map(|line| line.strip_prefix("0::")).ok_or_else(|| fault(libc::ENOENT))?;
    let own = Path::new(path.trim_start_matches('/'));
    let mut last = fault(libc::ENOENT);
    for relative in own.ancestors() {
        let parent = root.join(relative);
        if !has_both(&parent, "cgroup.subtree_control") {
            continue;
        }
        match base(&parent).and_then(|base| try_unified(&base)) {
            Ok(base) => return Ok(base),
            Err(error) => last = fault(error.raw_os_error().unwrap_or(0)),
        }
    }
    let own = root.join(own);
    if !is_handed_over(&own) || !has_both(&own, "cgroup.controllers") {
        return Err(last);
    }
    hand_down(&own)
        .and_then(|()| base(&own))
        .and_then(|base| try_unified(&base))
        .map_err(|error| fault(error.raw_os_error().unwrap_or(0)))
}

/// Whether a file of a group names the two controllers that are needed.
fn has_both(group: &Path, file: &str) -> bool {
    let given = std::fs::read_to_string(group.join(file)).unwrap_or_default();
    let has = |name: &str| given.split_whitespace().any(|controller| controller == name);
    has("memory") && has("pids")
}

/// Whether a group was given to this user to arrange, and to nobody but us: of a desktop, or of a shell, the
/// other processes are not ours to move. Every group is root's, so that says nothing.
fn is_handed_over(group: &Path) -> bool {
    let user = rustix::process::geteuid();
    let host = rustix::process::getppid().map_or(0, Pid::as_raw_pid);
    let ours = [std::process::id().to_string(), host.to_string()];
    let inside = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    !user.is_root()
        && std::fs::metadata(group).is_ok_and(|found| found.uid() == user.as_raw())
        && inside.lines().all(|pid| ours.iter().any(|one| one == pid))
}

/// Gives the controllers on to what is below a group. The kernel wants no process in it then, so the
/// host and the launcher move into a group below, which stays as long as they live.
fn hand_down(group: &Path) -> io::Result<()> {
    /// Processes may start others while they are moved.
    const ATTEMPTS: usize = 16;
    let below = group.join(format!("{PREFIX}processes"));
    match std::fs::create_dir(&below) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let control = group.join("cgroup.subtree_control");
    let attempt = || {
        move_all(group, &below)?;
        std::fs::write(&control, "+memory +pids")
    };
    let mut given = attempt();
    for _ in 1..ATTEMPTS {
        match &given {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => given = attempt(),
            _ => break,
        }
    }
    match &given {
        Ok(()) => {
            let _ = std::fs::write(&control, "+cpu");
        }
        Err(_) => {
            let _ = move_all(&below, group);
            remove(&below);
        }
    }
    given
}

/// Moves all processes of a group to another.
fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    for pid in std::fs::read_to_string(from.join("cgroup.procs"))?.lines() {
        match std::fs::write(to.join("cgroup.procs"), pid) {
            // It has ended meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            moved => moved?,
        }
    }
    Ok(())
}

/// Gives the controllers on, and starts a process in a group, which is refused across a delegation.
fn try_unified(base: &Path) -> io::Result<PathBuf> {
    let attempt = || {
        std::fs::write(base.join("cgroup.subtree_control"), "+memory +pids")?;
        // Processor shares are welcome, not needed.
        let _ = std::fs::write(base.join("cgroup.subtree_control"), "+cpu");
        let trial = base.join("trial");
        std::fs::create_dir(&trial)?;
        let started = std::fs::File::open(&trial).and_then(|place| {
            Ok(process::fork_apart(Namespaces::Shared, Some(place.as_fd()), || 0)?)
        });
        let ended = started.map(|(pid, _)| process::reap(pid));
        std::fs::remove_dir(&trial)?;
        ended?.map(drop).map_err(io::Error::from)
    };
    attempt().map(|()| base.to_owned()).inspect_err(|_| {
        remove(base);
    })
}

/// The old hierarchies: memory must be there, the others are taken where they are.
fn split(mounts: &str, own: &str) -> Result<Hierarchy, Fault> {
    let make = |controller: &str| -> io::Result<PathBuf> {
        let missing = || io::Error::from_raw_os_error(libc::ENOENT);
        let root = mount_point(mounts, "cgroup", Some(controller)).ok_or_else(missing)?;
        let path = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            controllers.split(',').any(|name| name == controller).then(|| parts.next()).flatten()
        });
        base(&root.join(path.ok_or_else(missing)?.trim_start_matches('/')))
    };
    let memory = make("memory").doing(|| "make a control group (v1)".into())?;
    Ok(Hierarchy::Split {
        memory,
        processes: make("pids").ok(),
        cpu: make("cpu").ok(),
        accounting: make("cpuacct").ok(),
    })
}

/// Where a hierarchy is mounted, and from its root.
fn mount_point(mounts: &str, kind: &str, controller: Option<&str>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let options = if after.next()? == kind { after.nth(1)? } else { return None };
        let has = |name: &str| options.split(',').any(|option| option == name);
        if controller.is_some_and(|controller| !has(controller)) {
            return None;
        }
        before.split(' ').nth(4).map(PathBuf::from)
    })
}

/// Reads the file that tells the processor time, of either hierarchy.
pub(crate) fn processor_time(text: &str) -> Option<Duration> {
    match text.lines().find_map(|line| line.strip_prefix("usage_usec ")) {
        Some(micros) => micros.trim().parse().ok().map(Duration::from_micros),
        None => text.trim().parse().ok().map(Duration::from_nanos),
    }
}

/// Writes who is to be in a group to one of its files.
fn enter(folder: &Path, file: &str, who: &str) -> Result<(), Fault> {
    std::fs::write(folder.join(file), who)
        .doing(|| format!("enter the control group `{}`", folder.display()))
}

/// Controllers can share a hierarchy, and then a group that is there already.
fn make_and_enter(folder: &Path, pid: u32) -> Result<(), Fault> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.doing(|| format!("make the control group `{}`", folder.display())),
    }?;
    enter(folder, "cgroup.procs", &pid.to_string())
}

impl Group {
    /// Runs a function in a process of its own in this group, which says first whether it is in it.
    /// What it starts is in it too.
    ///
    /// To move a process stops all others from starting any, for which the kernel waits some milliseconds when
    /// nobody has done so for a while. A process that starts in its group is not moved, and one that moves its
    /// only thread by itself stops nobody.
    pub(crate) fn fork(
        group: Option<&Self>,
        what: &str,
        run: impl FnOnce(Result<(), Fault>) -> i32,
    ) -> Result<(Pid, OwnedFd), Fault> {
        let doing = || format!("start {what}");
        let place = match group {
            Some(Self::Unified(folder)) => Some(std::fs::File::open(folder.path()).doing(doing)?),
            Some(Self::Split { .. }) | None => None,
        };
        let place = place.as_ref().map(AsFd::as_fd);
        process::fork_apart(Namespaces::Shared, place, || run(group.map_or(Ok(()), Self::join)))
            .doing(doing)
    }

    /// Moves the only thread of this process in, where it was not started in it.
    fn join(&self) -> Result<(), Fault> {
        let Self::Split { memory, processes, .. } = self else { return Ok(()) };
        for folder in [Some(memory), processes.as_ref()].into_iter().flatten() {
            enter(folder.path(), "tasks", "0")?;
        }
        Ok(())
    }

    /// Writes the limits. Groups that only this room needs are made, and its process moved in.
    /// Says what was counted before, because a group is used again; what it was limited to last
    /// is not written once more.
    pub(crate) fn limit(
        &self,
        limits: &Limits,
        pid: u32,
        last: Option<Limited>,
    ) -> Result<Before, Fault> {
        let write = |folder: &Bytes, file: &str, value: String| {
            let path = folder.path().join(file);
            std::fs::write(&path, value).doing(|| format!("write `{}`", path.display()))
        };
        // Our own first process and the porter are in it too.
        let processes = limits.processes.saturating_add(2).min(MOST_PROCESSES).to_string();
        let share = limits.cpu_share.map(|share| u64::from(share.clamp(1, MOST_SHARE)) * 1000);
        match self {
            Self::Unified(folder) => {
                if let Some(memory) = limits.memory {
                    write(folder, "memory.max", memory.to_string())?;
                    let _ = write(folder, "memory.swap.max", "0".into());
                    let _ = write(folder, "memory.oom.group", "0".into());
                }
                write(folder, "pids.max", processes)?;
                if let Some(share) = share {
                    let share = write(folder, "cpu.max", format!("{share} 100000"));
                    if self.divides_processors() {
                        share?;
                    }
                }
            }
            Self::Split { memory, processes: pids, cpu, accounting } => {
                let most = limits.memory.map_or("-1".to_owned(), |most| most.to_string());
                // Neither may be above the other, and the limit before may have been any.
                let swap = || write(memory, "memory.memsw.limit_in_bytes", most.clone());
                if last != Some(Limited::by(limits)) {
                    let _ = swap();
                    write(memory, "memory.limit_in_bytes", most.clone())?;
                    let _ = swap();
                    // What waits in connections is counted apart.
                    let _ = write(memory, "memory.kmem.tcp.limit_in_bytes", most.clone());
                    if let Some(pids) = pids {
                        write(pids, "pids.max", processes)?;
                    }
                }
                let _ = write(memory, "memory.max_usage_in_bytes", "0".into());
                if let (Some(accounting), Some(_)) = (accounting, limits.cpu_time) {
                    make_and_enter(accounting.path(), pid)?;
                }
                if let (Some(cpu), Some(share)) = (cpu, share) {
                    make_and_enter(cpu.path(), pid)?;
                    write(cpu, "cpu.cfs_period_us", "100000".into())?;
                    write(cpu, "cpu.cfs_quota_us", share.to_string())?;
                }
            }
        }
        Ok(Before {
            memory: self.number("memory.usage_in_bytes").unwrap_or(0),
            kills: self.kills(),
        })
    }

    /// A number in a file of the old hierarchy of memory.
    fn number(&self, file: &str) -> Option<u64> {
        let Self::Split { memory, .. } = self else { return None };
        std::fs::read_to_string(memory.path().join(file)).ok()?.trim().parse().ok()
    }

    /// The folder by which it is known.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Self::Unified(folder) => folder.path(),
            Self::Split { memory, .. } => memory.path(),
        }
    }

    /// Whether it can serve another room as if it were new.
    pub(crate) fn can_be_set_back(&self) -> bool {
        matches!(self, Self::Split { .. })
    }

    /// Whether it divides the processors.
    pub(crate) fn divides_processors(&self) -> bool {
        match self {
            Self::Unified(folder) => folder.path().join("cpu.max").exists(),
            Self::Split { cpu, .. } => cpu.is_some(),
        }
    }

    /// The file that tells the processor time, where it is counted.
    pub(crate) fn processor_time(&self) -> Option<std::fs::File> {
        let path = match self {
            Self::Unified(folder) => folder.path().join("cpu.stat"),
            Self::Split { accounting, .. } => accounting.as_ref()?.path().join("cpuacct.usage"),
        };
        std::fs::File::open(path).ok()
    }

    /// The processor time that was used, where it was counted.
    pub(crate) fn used_processor_time(&self) -> Option<Duration> {
        let mut text = String::new();
        self.processor_time()?.read_to_string(&mut text).ok()?;
        processor_time(&text)
    }

    /// The most memory that was used, in bytes.
    pub(crate) fn peak(&self, before: &Before) -> Option<u64> {
        match self {
            Self::Unified(folder) => {
                let text = std::fs::read_to_string(folder.path().join("memory.peak")).ok()?;
                text.trim().parse().ok()
            }
            Self::Split { .. } => {
                Some(self.number("memory.max_usage_in_bytes")?.saturating_sub(before.memory))
            }
        }
    }

    /// Whether the kernel killed something in it for lack of memory since then.
    pub(crate) fn ran_out(&self, before: &Before) -> bool {
        self.kills() > before.kills
    }

    /// How often the kernel has killed something in it.
    pub(crate) fn kills(&self) -> u64 {
        let path = match self {
            Self::Unified(folder) => folder.path().join("memory.events"),
            Self::Split { memory, .. } => memory.path().join("memory.oom_control"),
        };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// Whether these limits need groups beside the one a room is made in.
    pub(crate) fn needs_more(&self, limits: &Limits) -> bool {
        match self {
            Self::Unified(_) => false,
            Self::Split { .. } => limits.cpu_share.is_some() || limits.cpu_time.is_some(),
        }
    }

    /// Removes it and all beside it; `false` while a process is still in one.
    pub(crate) fn remove(&self) -> bool {
        // All of them are tried, also when one is busy.
        self.folders().into_iter().filter(|folder| !remove(folder)).count() == 0
    }

    fn folders(&self) -> Vec<&Path> {
        match self {
            Self::Unified(folder) => vec![folder.path()],
            Self::Split { memory, processes, cpu, accounting } => {
                [Some(memory), processes.as_ref(), cpu.as_ref(), accounting.as_ref()]
                    .into_iter()
                    .flatten()
                    .map(Bytes::path)
                    .collect()
            }
        }
    }
}
