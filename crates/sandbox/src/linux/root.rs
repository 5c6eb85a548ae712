//! The root that a room sees: the system's programs and libraries, a fresh
//! `/proc`, a small `/dev`, an empty scratch folder, and what was granted.
//!
//! [`Root::build`] makes the part that is the same for all, ahead of time;
//! [`Root::furnish`] puts in what one order grants; [`Root::enter`] makes it the
//! only thing there is.

use std::io::Read;
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
use crate::protected::{OF_A_REPOSITORY, protected_names};

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
const WRITTEN: [(&str, &str); 8] = [
    // What keeps others out of a granted folder is not to be committed.
    ("etc/gitconfig", "[core]\n\texcludesFile = /etc/haft.exclude\n"),
    // Covers what must read as nothing.
    ("etc/.empty", ""),
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

/// Files under `/proc` that anybody may read and that are not of the room.
const MASKED: [&str; 2] = ["keys", "key-users"];

/// Files under `/proc` that only root may read: a host that is root is still that inside. Those that
/// also demand a capability, or are only written, need no cover.
const MASKED_FOR_ROOT: [&str; 7] = [
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "pagetypeinfo",
    "slabinfo",
    "timer_list",
    "vmallocinfo",
];

/// What the system has of the lists above; looked up once.
#[derive(Debug)]
pub(crate) struct System {
    programs: Vec<Entry>,
    settings: Vec<Entry>,
}

#[derive(Debug)]
enum Entry {
    Tree(PathBuf, Shape),
    Link(PathBuf, PathBuf),
}

impl System {
    /// Looks at what is there.
    pub(crate) fn find() -> Self {
        let find = |names: &[&str]| names.iter().filter_map(|name| Entry::find(name)).collect();
        Self { programs: find(&PROGRAMS), settings: find(&SETTINGS) }
    }

    /// The paths that every room can read, for walls that only name paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.programs.iter().chain(&self.settings).map(|entry| match entry {
            Entry::Tree(path, _) | Entry::Link(path, _) => Path::new("/").join(path),
        })
    }
}

impl Entry {
    fn find(name: &str) -> Option<Self> {
        let outside = Path::new("/").join(name);
        let metadata = std::fs::symlink_metadata(&outside).ok()?;
        Some(if metadata.is_symlink() {
            Self::Link(name.into(), std::fs::read_link(&outside).ok()?)
        } else if metadata.is_dir() {
            Self::Tree(name.into(), Shape::Folder)
        } else {
            Self::Tree(name.into(), Shape::File)
        })
    }
}

/// The furniture of every room, put together once by the launcher: `/etc` and `/dev`, each
/// of which a room then takes whole.
#[derive(Debug)]
pub(crate) struct Furniture {
    _top: OwnedFd,
}

/// Where the launcher keeps the furniture: a folder that is always there and that nobody grants. A
/// room knows it by its path, because a copy of a mount has no other name. It cannot be in `/proc`:
/// the kernel gives no fresh one while a part of the old one is covered.
const STORE: &str = "/sys/kernel";

impl Furniture {
    /// Puts it together, in a mount namespace of the launcher's own.
    pub(crate) fn build(system: &System) -> Result<Self, Fault> {
        let top = Workshop::open(STORE)?;
        for entry in &system.settings {
            match entry {
                Entry::Tree(path, Shape::File) => top.copy(path)?,
                shown => top.enter(shown)?,
            }
        }
        for (path, text) in WRITTEN {
            top.write(path, text).doing(|| format!("write `/{path}`"))?;
        }
        let kept_out = OF_A_REPOSITORY.iter().map(|name| (*name).to_owned());
        let names = protected_names().chain(kept_out);
        let names: String = names.map(|name| format!("/{name}\n")).collect();
        top.write("etc/haft.exclude", &names).doing(|| "write `/etc/haft.exclude`".into())?;
        for name in DEVICES {
            let device = Path::new("/dev").join(name);
            if rustix::fs::access(&device, rustix::fs::Access::EXISTS).is_ok() {
                top.bind(&device, Shape::File, Mounted::Device)?;
            }
        }
        for (path, target) in DEVICE_LINKS {
            top.link(Path::new(path), Path::new(target))?;
        }
        let terminals = top.place(Path::new("dev/pts"), Shape::Folder);
        terminals.doing(|| "make a folder for terminals".into())?;
        mounts::restrict_one(top.top.as_fd(), Mounted::ReadOnly)
            .doing(|| "make the furniture read-only".into())?;
        Ok(Self { _top: top.top })
    }
}

/// A file system in memory in which things are put in their places.
#[derive(Debug)]
struct Workshop {
    top: OwnedFd,
}

impl Workshop {
    /// Makes one and mounts it at a path.
    fn open(path: &str) -> Result<Self, Fault> {
        let doing = || format!("mount a file system in memory on `{path}`");
        let top = mounts::memory(4 << 20, 4096, "755").doing(doing)?;
        let place = mounts::name(CWD, path).doing(doing)?;
        mounts::put(top.as_fd(), place.as_fd()).doing(doing)?;
        Ok(Self { top })
    }

    fn enter(&self, entry: &Entry) -> Result<(), Fault> {
        match entry {
            Entry::Tree(path, shape) => {
                self.bind(&Path::new("/").join(path), *shape, Mounted::ReadOnly)
            }
            Entry::Link(path, target) => self.link(path, target),
        }
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
        let (parent, name) = (path.parent(), path.file_name().unwrap_or_default());
        let made = match parent.filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => {
                let parent = self.place(parent, Shape::Folder).doing(doing)?;
                rustix::fs::symlinkat(target, &parent, name)
            }
            None => rustix::fs::symlinkat(target, &self.top, name),
        };
        match made {
            Err(Errno::EXIST) => Ok(()),
            made => made.doing(doing),
        }
    }

    /// Copies a file of the outside: a view of it is one more thing for every room to make and to
    /// take down. One that is too long for that is shown.
    fn copy(&self, path: &Path) -> Result<(), Fault> {
        /// A quarter of what a workshop holds.
        const LONGEST: u64 = 1 << 20;
        let outside = Path::new("/").join(path);
        let doing = || format!("copy `{}`", outside.display());
        let mut text = Vec::new();
        let file = std::fs::File::open(&outside).doing(doing)?;
        file.take(LONGEST + 1).read_to_end(&mut text).doing(doing)?;
        if text.len() as u64 > LONGEST {
            return self.bind(&outside, Shape::File, Mounted::ReadOnly);
        }
        self.write(path, &text).doing(doing)
    }

    fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result<(), Errno> {
        let path = path.as_ref();
        let parent = self.place(path.parent().unwrap_or(Path::new("")), Shape::Folder)?;
        let name = path.file_name().unwrap_or_default();
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(0o644))?;
        let mut rest = text.as_ref();
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        Ok(())
    }
}

/// A root under construction. It lies on top of the host's root, which paths
/// still resolve in until [`Root::enter`].
#[derive(Debug)]
pub(crate) struct Root {
    top: Workshop,
    /// The fresh `/proc`; `None` where the host's own is masked and the kernel refuses a whole one.
    processes: Option<OwnedFd>,
    /// What becomes read-only when everything is in its place.
    to_close: Vec<OwnedFd>,
    /// What was put where, and the folders on the way that must not be renamed.
    placed: Vec<(PathBuf, Access)>,
    /// The user of the host.
    user: u32,
}

impl Root {
    /// Makes the part that is the same for every order.
    pub(crate) fn build(system: &System, user: u32) -> Result<Self, Fault> {
        let top = Workshop::open("/")?;
        for entry in &system.programs {
            top.enter(entry)?;
        }
        for name in ["etc", "dev"] {
            let doing = || format!("take over `/{name}`");
            let part = mounts::take(CWD, &Path::new(STORE).join(name)).doing(doing)?;
            let place = top.place(Path::new(name), Shape::Folder).doing(doing)?;
            mounts::put(part.as_fd(), place.as_fd()).doing(doing)?;
        }
        let mut built =
            Self { top, processes: None, to_close: Vec::new(), placed: Vec::new(), user };
        built.terminals()?;
        built.processes()?;
        Ok(built)
    }

    fn terminals(&self) -> Result<(), Fault> {
        let doing = || "make terminals of its own".into();
        let settings = [("mode", "0620"), ("ptmxmode", "0666")];
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let terminals = mounts::fresh("devpts", &settings, flags).doing(doing)?;
        let place = self.top.place(Path::new("dev/pts"), Shape::Folder).doing(doing)?;
        mounts::put(terminals.as_fd(), place.as_fd()).doing(doing)
    }

    /// A `/proc` of the room's own processes. Where the host's `/proc` is partly covered (as in a
    /// container) the kernel refuses another whole one; then the part with processes alone is tried.
    fn processes(&mut self) -> Result<(), Fault> {
        let doing = || "mount a fresh `/proc`".into();
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let place = self.top.place(Path::new("proc"), Shape::Folder).doing(doing)?;
        let mounted = match mounts::fresh("proc", &[], flags) {
            Err(Errno::PERM) => mounts::fresh("proc", &[("subset", "pid")], flags),
            mounted => mounted,
        };
        let processes = mounted.doing(doing)?;
        mounts::put(processes.as_fd(), place.as_fd()).doing(doing)?;
        self.mask(processes.as_fd())?;
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
            self.top.bind(device.path(), Shape::File, Mounted::Device).map_err(Failure::Wall)?;
        }
        for (path, target) in &order.links {
            self.top.link(path.path(), target.path()).map_err(Failure::Wall)?;
        }
        Ok(())
    }

    fn scratch(&mut self, size: u64) -> Result<(), Fault> {
        let doing = || "make the scratch folder".into();
        // A file in memory costs the kernel about a kilobyte even when it is empty.
        let inodes = (size / 1024).clamp(64, 1 << 20);
        let scratch = mounts::memory(size.max(4096), inodes, "1777").doing(doing)?;
        let place = self.top.place(Path::new(SCRATCH), Shape::Folder).doing(doing)?;
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
        self.pin_above(path).doing(doing).map_err(Failure::Wall)?;
        let place = self.top.place(path, shape).doing(doing).map_err(Failure::Wall)?;
        let mount = match (placement.access, shape) {
            (Access::Read, _) => mounts::copy(outside.as_fd(), Path::new(""), Mounted::ReadOnly),
            (Access::Write, _) => mounts::copy(outside.as_fd(), Path::new(""), Mounted::Writable),
            (Access::Hide, Shape::Folder) => mounts::memory(64 << 10, 256, "755"),
            (Access::Hide, Shape::File) => self.empty_file(),
        };
        let mount = mount.doing(doing).map_err(Failure::Wall)?;
        mounts::put(mount.as_fd(), place.as_fd()).doing(doing).map_err(Failure::Wall)?;
        self.placed.push((path.to_owned(), placement.access));
        if placement.access != Access::Hide && shape == Shape::Folder {
            let empty = self.empty_file().doing(doing).map_err(Failure::Wall)?;
            protect::cover_sockets(mount.as_fd(), empty.as_fd()).map_err(Failure::Wall)?;
        }
        if (placement.access, shape) == (Access::Write, Shape::Folder) {
            let empty = self.empty_file().doing(doing).map_err(Failure::Wall)?;
            protect::cover(mount.as_fd(), empty.as_fd()).map_err(Failure::Wall)?;
        }
        if placement.access == Access::Hide {
            self.to_close.push(mount);
        }
        Ok(())
    }

    /// Makes mount points of the folders between a path and a writable folder around it: what is
    /// one cannot be renamed, so that nothing else takes the place of the path outside.
    fn pin_above(&mut self, path: &Path) -> Result<(), Errno> {
        let above: Vec<_> = path.ancestors().skip(1).collect();
        let access = |folder: &Path| {
            let found = self.placed.iter().rev().find(|(one, _)| one == folder);
            found.map(|(_, access)| *access)
        };
        let nearest = above.iter().position(|folder| access(folder).is_some());
        let Some(end) = nearest.filter(|end| access(above[*end]) == Some(Access::Write)) else {
            return Ok(());
        };
        for folder in above[..end].iter().rev() {
            let place = self.top.place(folder, Shape::Folder)?;
            let view = mounts::take(place.as_fd(), Path::new(""))?;
            mounts::put(view.as_fd(), place.as_fd())?;
            self.placed.push(((*folder).to_owned(), Access::Write));
        }
        Ok(())
    }

    /// An empty file that nobody can write.
    fn empty_file(&self) -> Result<OwnedFd, Errno> {
        mounts::take(self.top.top.as_fd(), Path::new("etc/.empty"))
    }

    /// Closes what was open for building, and leaves the host's root behind. `processes` is
    /// the most that there may be at a time.
    pub(crate) fn enter(self, processes: u32) -> Result<(), Fault> {
        if let Some(fresh) = &self.processes {
            limit_processes(fresh.as_fd(), processes);
            bound_user_namespace(fresh.as_fd());
            mounts::restrict(fresh.as_fd(), Mounted::ReadOnly)
                .doing(|| "make `/proc` read-only".into())?;
        }
        for mount in &self.to_close {
            mounts::restrict_one(mount.as_fd(), Mounted::ReadOnly)
                .doing(|| "make a hidden folder read-only".into())?;
        }
        rustix::process::fchdir(&self.top.top).doing(|| "enter the new root".into())?;
        rustix::process::pivot_root(".", ".").doing(|| "change the root".into())?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)
            .doing(|| "leave the host's root".into())?;
        rustix::process::chdir("/").doing(|| "enter the new root".into())?;
        self.close_root().doing(|| "make the root read-only".into())
    }

    /// Makes the root itself read-only, and none of what is mounted on it.
    fn close_root(&self) -> Result<(), Errno> {
        mounts::restrict_one(self.top.top.as_fd(), Mounted::ReadOnly)
    }

    fn mask(&self, processes: BorrowedFd<'_>) -> Result<(), Fault> {
        let for_root: &[&str] = if self.user == 0 { &MASKED_FOR_ROOT } else { &[] };
        for name in MASKED.iter().chain(for_root) {
            let doing = || format!("cover `/proc/{name}`");
            let place = match mounts::name(processes, *name) {
                Err(Errno::NOENT) => continue,
                place => place.doing(doing)?,
            };
            let cover = self.empty_file();
            mounts::put(cover.doing(doing)?.as_fd(), place.as_fd()).doing(doing)?;
        }
        Ok(())
    }
}

/// Bounds of the room's user namespace: none below it, also where the list of system calls had a
/// hole (and without one, no other kind of namespace either), and no more watches on files than
/// leave the host enough, which counts them for its user.
const BOUNDS: [(&str, &str); 3] = [
    ("max_user_namespaces", "0"),
    ("max_inotify_instances", "64"),
    ("max_inotify_watches", "16384"),
];

/// Sets what of the bounds this kernel has.
fn bound_user_namespace(processes: BorrowedFd<'_>) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = rustix::fs::openat(processes, "sys/user", flags, Mode::empty()) else {
        return;
    };
    for (name, value) in BOUNDS {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::openat(&folder, name, flags, Mode::empty()) {
            let _ = rustix::io::write(&file, value.as_bytes());
        }
    }
}

/// The kernel keeps so many process numbers back.
const LEAST_NUMBERS: u32 = 301;

/// Bounds the process numbers of this namespace, which binds root too.
fn limit_processes(processes: BorrowedFd<'_>, most: u32) {
    if !has_numbers_of_its_own() {
        return;
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(processes, "sys/kernel/pid_max", flags, Mode::empty());
    if let Ok(file) = file {
        // Numbers below the kernel's own reserve are not given out a second time.
        let bound = most.saturating_add(LEAST_NUMBERS + 1).to_string();
        let _ = rustix::io::write(&file, bound.as_bytes());
    }
}

/// Whether each namespace has a bound of its own. Before 6.14 there is one for the
/// machine, and root would change it for everybody.
fn has_numbers_of_its_own() -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 14)
}

/// Whether the room's own user may write in a folder, or may let themselves: an owner can.
pub(crate) fn is_writable(folder: BorrowedFd<'_>) -> bool {
    let may_write = rustix::fs::Access::WRITE_OK;
    rustix::fs::accessat(folder, ".", may_write, AtFlags::EACCESS).is_ok()
        || rustix::fs::fstat(folder)
            .is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw())
}
