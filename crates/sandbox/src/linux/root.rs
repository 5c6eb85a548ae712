//! The root that a room sees: the system's programs and libraries, a fresh
//! `/proc`, a small `/dev`, an empty scratch folder, and what was granted.
//!
//! [`Root::build`] makes the part that is the same for all, ahead of time;
//! [`Root::furnish`] puts in what one order grants; [`Root::enter`] makes it the
//! only thing there is.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, UnmountFlags};

use super::mounts::{self, Doing, Mounted, Shape};
use super::protect;
use super::wire::{Access, Failure, Order, Placement};
use crate::confinement::SCRATCH;
use crate::level::Fault;

/// The user and the group that a walled process believes to be.
pub(crate) const INSIDE_ID: u32 = 1000;

/// Folders at the top that hold programs and libraries.
const PROGRAMS: [&str; 9] =
    ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store", "gnu/store"];

/// What programs read under `/etc` and what holds no secret. `/etc/ssl` is not
/// here as a whole: its private keys are readable to a host that is root.
const SETTINGS: [&str; 20] = [
    "etc/alternatives",
    "etc/ca-certificates",
    "etc/crypto-policies",
    "etc/debian_version",
    "etc/fonts",
    "etc/java-17-openjdk",
    "etc/java-21-openjdk",
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/ld.so.conf.d",
    "etc/localtime",
    "etc/magic",
    "etc/mime.types",
    "etc/os-release",
    "etc/pki/ca-trust",
    "etc/pki/tls/certs",
    "etc/services",
    "etc/ssl/certs",
    "etc/ssl/openssl.cnf",
    "etc/timezone",
];

/// Files under `/etc` of our own, so that look-ups of users and hosts have an answer.
const WRITTEN: [(&str, &str); 6] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/:/usr/sbin/nologin\n\
         tool:x:1000:1000:tool:/tmp:/bin/sh\n\
         nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\ntool:x:1000:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n127.0.0.1 haft\n"),
    ("etc/hostname", "haft\n"),
    ("etc/resolv.conf", ""),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
];

/// Devices that every program may expect.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Links under `/dev` that every program may expect. Shared memory by name lives in the scratch folder.
const DEVICE_LINKS: [(&str, &str); 6] = [
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
    ("dev/ptmx", "pts/ptmx"),
    ("dev/shm", SCRATCH),
];

/// Files under `/proc` that tell of the machine or steer it, and concern no program.
const MASKED: [&str; 9] = [
    "kcore",
    "keys",
    "key-users",
    "kmsg",
    "kpagecount",
    "kpageflags",
    "sched_debug",
    "sysrq-trigger",
    "timer_list",
];

/// What the system has of the lists above; looked up once.
#[derive(Debug)]
pub(crate) struct System {
    entries: Vec<Entry>,
}

#[derive(Debug)]
enum Entry {
    Tree(PathBuf, Shape),
    Link(PathBuf, PathBuf),
}

impl System {
    /// Looks at what is there.
    pub(crate) fn find() -> Self {
        let mut entries = Vec::new();
        for name in PROGRAMS.iter().chain(&SETTINGS) {
            let outside = Path::new("/").join(name);
            let Ok(metadata) = std::fs::symlink_metadata(&outside) else { continue };
            if metadata.is_symlink() {
                if let Ok(target) = std::fs::read_link(&outside) {
                    entries.push(Entry::Link(name.into(), target));
                }
            } else if metadata.is_dir() {
                entries.push(Entry::Tree(name.into(), Shape::Folder));
            } else {
                entries.push(Entry::Tree(name.into(), Shape::File));
            }
        }
        Self { entries }
    }

    /// The paths that every room can read, for walls that only name paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.entries.iter().map(|entry| match entry {
            Entry::Tree(path, _) | Entry::Link(path, _) => Path::new("/").join(path),
        })
    }
}

/// A root under construction. It lies on top of the host's root, which paths
/// still resolve in until [`Root::enter`].
#[derive(Debug)]
pub(crate) struct Root {
    top: OwnedFd,
    /// The fresh `/proc`; `None` where the host's own is masked and the kernel refuses a whole one.
    processes: Option<OwnedFd>,
    /// What becomes read-only when everything is in its place.
    to_close: Vec<OwnedFd>,
}

impl Root {
    /// Makes the part that is the same for every order.
    pub(crate) fn build(system: &System) -> Result<Self, Fault> {
        let root = mounts::memory(4 << 20, 4096, "755").doing(|| "make a root in memory".into())?;
        let top = mounts::name(CWD, "/").doing(|| "open the root".into())?;
        mounts::put(root.as_fd(), top.as_fd()).doing(|| "mount the new root".into())?;
        let mut built = Self { top: root, processes: None, to_close: Vec::new() };
        for entry in &system.entries {
            match entry {
                Entry::Tree(path, shape) => {
                    built.bind(&Path::new("/").join(path), *shape, Mounted::ReadOnly)?;
                }
                Entry::Link(path, target) => built.link(path, target)?,
            }
        }
        for (path, text) in WRITTEN {
            built.write(path, text).doing(|| format!("write `/{path}`"))?;
        }
        built.devices()?;
        built.processes()?;
        Ok(built)
    }

    fn devices(&mut self) -> Result<(), Fault> {
        for name in DEVICES {
            let device = Path::new("/dev").join(name);
            if rustix::fs::access(&device, rustix::fs::Access::EXISTS).is_ok() {
                self.bind(&device, Shape::File, Mounted::Device)?;
            }
        }
        for (path, target) in DEVICE_LINKS {
            self.link(Path::new(path), Path::new(target))?;
        }
        let doing = || "make terminals of its own".into();
        let settings = [("mode", "0620"), ("ptmxmode", "0666")];
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let terminals = mounts::fresh("devpts", &settings, flags).doing(doing)?;
        let place = self.place(Path::new("dev/pts"), Shape::Folder).doing(doing)?;
        mounts::put(terminals.as_fd(), place.as_fd()).doing(doing)
    }

    /// A `/proc` of the room's own processes. Where the host's `/proc` is partly covered (as in a
    /// container) the kernel refuses another whole one; then the part with processes alone is tried.
    fn processes(&mut self) -> Result<(), Fault> {
        let doing = || "mount a fresh `/proc`".into();
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let place = self.place(Path::new("proc"), Shape::Folder).doing(doing)?;
        let mounted = match mounts::fresh("proc", &[], flags) {
            Err(Errno::PERM) => mounts::fresh("proc", &[("subset", "pid")], flags),
            mounted => mounted,
        };
        let processes = mounted.doing(doing)?;
        mounts::put(processes.as_fd(), place.as_fd()).doing(doing)?;
        self.processes = Some(processes);
        Ok(())
    }

    /// Puts in what an order grants, parents before children.
    pub(crate) fn furnish(&mut self, order: &Order) -> Result<(), Failure> {
        self.scratch(order.scratch).map_err(Failure::Wall)?;
        for placement in &order.placements {
            self.furnish_one(placement)?;
        }
        for device in &order.devices {
            self.bind(device.path(), Shape::File, Mounted::Device).map_err(Failure::Wall)?;
        }
        for (path, target) in &order.links {
            self.link(path.path(), target.path()).map_err(Failure::Wall)?;
        }
        Ok(())
    }

    fn scratch(&mut self, size: u64) -> Result<(), Fault> {
        let doing = || "make the scratch folder".into();
        // A file in memory costs the kernel about a kilobyte even when it is empty.
        let inodes = (size / 1024).clamp(64, 1 << 20);
        let scratch = mounts::memory(size.max(4096), inodes, "1777").doing(doing)?;
        let place = self.place(Path::new(SCRATCH), Shape::Folder).doing(doing)?;
        mounts::put(scratch.as_fd(), place.as_fd()).doing(doing)
    }

    fn furnish_one(&mut self, placement: &Placement) -> Result<(), Failure> {
        let path = placement.path.path();
        let named = || path.display().to_string();
        let outside = mounts::name(CWD, path);
        let outside = outside.doing(|| format!("open `{}`", named())).map_err(Failure::Wall)?;
        let stat = rustix::fs::fstat(&outside)
            .doing(|| format!("look at `{}`", named()))
            .map_err(Failure::Wall)?;
        if (stat.st_dev, stat.st_ino) != placement.identity {
            return Err(Failure::Moved(placement.path.clone()));
        }
        let shape = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Shape::Folder,
            _ => Shape::File,
        };
        let doing = || format!("grant `{}`", named());
        let place = self.place(path, shape).doing(doing).map_err(Failure::Wall)?;
        let mount = match (placement.access, shape) {
            (Access::Read, _) => mounts::copy(outside.as_fd(), Path::new(""), Mounted::ReadOnly),
            (Access::Write, _) => mounts::copy(outside.as_fd(), Path::new(""), Mounted::Writable),
            (Access::Hide, Shape::Folder) => mounts::memory(64 << 10, 256, "755"),
            (Access::Hide, Shape::File) => self.empty_file(),
        };
        let mount = mount.doing(doing).map_err(Failure::Wall)?;
        mounts::put(mount.as_fd(), place.as_fd()).doing(doing).map_err(Failure::Wall)?;
        if (placement.access, shape) == (Access::Write, Shape::Folder) {
            let empty = self.empty_file().doing(doing).map_err(Failure::Wall)?;
            protect::cover(mount.as_fd(), empty.as_fd()).map_err(Failure::Wall)?;
        }
        if placement.access == Access::Hide {
            self.to_close.push(mount);
        }
        Ok(())
    }

    /// An empty file that nobody can write.
    fn empty_file(&self) -> Result<OwnedFd, Errno> {
        self.write("etc/.empty", "")?;
        mounts::copy(self.top.as_fd(), Path::new("etc/.empty"), Mounted::ReadOnly)
    }

    /// Closes what was open for building, and leaves the host's root behind. `processes` is
    /// the most that there may be at a time.
    pub(crate) fn enter(self, processes: u32) -> Result<(), Fault> {
        if let Some(fresh) = &self.processes {
            limit_processes(fresh.as_fd(), processes);
            self.mask(fresh.as_fd())?;
            mounts::restrict(fresh.as_fd(), Mounted::ReadOnly)
                .doing(|| "make `/proc` read-only".into())?;
        }
        for mount in &self.to_close {
            mounts::restrict(mount.as_fd(), Mounted::ReadOnly)
                .doing(|| "make a hidden folder read-only".into())?;
        }
        rustix::process::fchdir(&self.top).doing(|| "enter the new root".into())?;
        rustix::process::pivot_root(".", ".").doing(|| "change the root".into())?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)
            .doing(|| "leave the host's root".into())?;
        rustix::process::chdir("/").doing(|| "enter the new root".into())?;
        self.close_root().doing(|| "make the root read-only".into())
    }

    /// Makes the root itself read-only, and none of what is mounted on it.
    fn close_root(&self) -> Result<(), Errno> {
        mounts::restrict_one(self.top.as_fd(), Mounted::ReadOnly)
    }

    fn mask(&self, processes: BorrowedFd<'_>) -> Result<(), Fault> {
        let empty = self.empty_file().doing(|| "make an empty file".into())?;
        for name in MASKED {
            let doing = || format!("cover `/proc/{name}`");
            let place = match mounts::name(processes, name) {
                Err(Errno::NOENT) => continue,
                place => place.doing(doing)?,
            };
            let cover = mounts::copy(empty.as_fd(), Path::new(""), Mounted::ReadOnly);
            mounts::put(cover.doing(doing)?.as_fd(), place.as_fd()).doing(doing)?;
        }
        Ok(())
    }

    fn place(&self, path: &Path, shape: Shape) -> Result<OwnedFd, Errno> {
        mounts::place(self.top.as_fd(), path, shape)
    }

    /// Shows a path of the outside at the same path inside.
    fn bind(&self, path: &Path, shape: Shape, mounted: Mounted) -> Result<(), Fault> {
        let doing = || format!("mount `{}`", path.display());
        let mount = mounts::copy(CWD, path, mounted).doing(doing)?;
        let place = self.place(path, shape).doing(doing)?;
        mounts::put(mount.as_fd(), place.as_fd()).doing(doing)
    }

    fn link(&self, path: &Path, target: &Path) -> Result<(), Fault> {
        let doing = || format!("link `{}`", path.display());
        let path = path.strip_prefix("/").unwrap_or(path);
        let parent = path.parent().unwrap_or(Path::new(""));
        let parent = self.place(parent, Shape::Folder).doing(doing)?;
        let name = path.file_name().unwrap_or_default();
        match rustix::fs::symlinkat(target, &parent, name) {
            Err(Errno::EXIST) => Ok(()),
            made => made.doing(doing),
        }
    }

    fn write(&self, path: &str, text: &str) -> Result<(), Errno> {
        let parent = Path::new(path).parent().unwrap_or(Path::new(""));
        let parent = self.place(parent, Shape::Folder)?;
        let name = Path::new(path).file_name().unwrap_or_default();
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(0o644))?;
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        Ok(())
    }
}

/// Bounds the process numbers of this namespace, which binds root too. Kernels
/// before 6.14 have one bound for the whole machine and refuse; the other limits remain.
fn limit_processes(processes: BorrowedFd<'_>, most: u32) {
    /// The kernel keeps this many numbers back and takes no smaller bound.
    const LEAST: u32 = 301;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(processes, "sys/kernel/pid_max", flags, Mode::empty());
    if let Ok(file) = file
        && has_bound_per_namespace()
    {
        let bound = most.saturating_add(2).max(LEAST).to_string();
        let _ = rustix::io::write(&file, bound.as_bytes());
    }
}

/// Whether each namespace has a bound of its own. Before 6.14 there is one for the
/// machine, and root would change it for everybody.
fn has_bound_per_namespace() -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 14)
}

/// Whether the room's own user may write in a folder.
pub(crate) fn is_writable(folder: BorrowedFd<'_>) -> bool {
    let flags = AtFlags::EMPTY_PATH | AtFlags::EACCESS;
    rustix::fs::accessat(folder, "", rustix::fs::Access::WRITE_OK, flags).is_ok()
}
