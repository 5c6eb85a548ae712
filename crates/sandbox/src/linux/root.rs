//! The root that a room sees: the system's programs and libraries, a fresh
//! `/proc`, a small `/dev`, an empty scratch folder, and what was granted.
//!
//! [`Root::build`] makes the part that is the same for all, ahead of time;
//! [`Root::furnish`] puts in what one order grants; [`Root::enter`] makes it the
//! only thing there is.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, UnmountFlags};

use super::covers::{Covers, Lookout};
use super::furniture::{STORE, System, Workshop};
use super::mounts::{self, Doing, Mounted, Shape};
use super::wire::{Access, Failure, Order, Placement};
use super::{image, protect};
use crate::confinement::SCRATCH;
use crate::level::Fault;

/// The user and the group that a walled process believes to be.
pub(crate) const INSIDE_ID: u32 = 1000;

/// Where the settings of the system are; of these a room has only a few.
const SETTINGS: &str = "/etc";

/// Where devices are.
const DEVICES: &str = "/dev";

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

/// A root under construction. It lies on top of the host's root, which paths
/// still resolve in until [`Root::enter`].
#[derive(Debug)]
pub(crate) struct Root {
    top: Workshop,
    /// How many roots lie beneath, one on the other: the host's, and one that was replaced.
    beneath: usize,
    /// The fresh `/proc`; `None` where the host's own is masked and the kernel refuses a whole one.
    processes: Option<OwnedFd>,
    /// What becomes read-only when everything is in its place.
    to_close: Vec<OwnedFd>,
    /// What was put where, and the folders on the way that must not be renamed.
    placed: Vec<(PathBuf, Access)>,
    /// What lies on files of the outside.
    covers: Covers,
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
        let mut built = Self {
            top,
            beneath: 1,
            processes: None,
            to_close: Vec::new(),
            placed: Vec::new(),
            covers: Covers::default(),
            user,
        };
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
        if let Some(image) = &order.root {
            self.top = image::replace(&self.top, image, order)?;
            self.beneath += 1;
        }
        self.scratch(order.scratch).map_err(Failure::Wall)?;
        for placement in &order.placements {
            self.furnish_one(placement)?;
        }
        for held in &order.held {
            self.hold(held.path.path()).map_err(Failure::Wall)?;
        }
        if !order.devices.is_empty() {
            self.make_anew(DEVICES).map_err(Failure::Wall)?;
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
        let (outside, shape) = placement.open()?;
        let doing = || format!("grant `{}`", named());
        self.pin_above(path).map_err(Failure::Wall)?;
        let place = match self.top.place(path, shape) {
            Err(Errno::ROFS) if path.starts_with(SETTINGS) => {
                self.make_anew(SETTINGS).map_err(Failure::Wall)?;
                self.top.place(path, shape)
            }
            place => place,
        };
        let place = place.doing(doing).map_err(Failure::Wall)?;
        let mount = match (placement.access, shape) {
            (Access::Read, _) => mounts::copy(outside.as_fd(), Path::new(""), Mounted::ReadOnly),
            (Access::Write, _) => mounts::copy(outside.as_fd(), Path::new(""), Mounted::Writable),
            (Access::Hide, Shape::Folder) => mounts::memory(64 << 10, 256, "755"),
            (Access::Hide, Shape::File) => Self::empty_file(),
        };
        let mount = mount.doing(doing).map_err(Failure::Wall)?;
        // In a folder of the outside it may be taken away or moved there.
        if self.placed.iter().any(|(above, _)| path.starts_with(above)) {
            self.covers.note(mount.as_fd(), path).map_err(Failure::Wall)?;
        }
        mounts::put(mount.as_fd(), place.as_fd()).doing(doing).map_err(Failure::Wall)?;
        self.placed.push((path.to_owned(), placement.access));
        if placement.access != Access::Hide && shape == Shape::Folder {
            let empty = Self::nothing().doing(doing).map_err(Failure::Wall)?;
            protect::cover_sockets(mount.as_fd(), empty.as_fd()).map_err(Failure::Wall)?;
        }
        if (placement.access, shape) == (Access::Write, Shape::Folder) {
            let empty = Self::nothing().doing(doing).map_err(Failure::Wall)?;
            protect::cover(mount.as_fd(), path, empty.as_fd(), &mut self.covers)
                .map_err(Failure::Wall)?;
        }
        if placement.access == Access::Hide {
            self.to_close.push(mount);
        }
        Ok(())
    }

    /// Gives the room a folder of its own, with the same in it as in the one that all rooms share, which
    /// has no place for anything else.
    fn make_anew(&mut self, folder: &str) -> Result<(), Fault> {
        let doing = || format!("make `{folder}` anew");
        let own = mounts::memory(1 << 20, 1024, "755").doing(doing)?;
        let place = self.top.place(Path::new(folder), Shape::Folder).doing(doing)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let shared = rustix::fs::openat(&place, ".", flags, Mode::empty()).doing(doing)?;
        mounts::put(own.as_fd(), place.as_fd()).doing(doing)?;
        for entry in rustix::fs::Dir::read_from(&shared).doing(doing)? {
            let entry = entry.doing(doing)?;
            let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
            let shape = match entry.file_type() {
                _ if name == Path::new(".") || name == Path::new("..") => continue,
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(&shared, name, Vec::new()).doing(doing)?;
                    rustix::fs::symlinkat(target, &own, name).doing(doing)?;
                    continue;
                }
                FileType::Directory => Shape::Folder,
                _ => Shape::File,
            };
            let view = mounts::take(shared.as_fd(), name).doing(doing)?;
            let place = mounts::place(own.as_fd(), name, shape).doing(doing)?;
            mounts::put(view.as_fd(), place.as_fd()).doing(doing)?;
        }
        self.to_close.push(own);
        Ok(())
    }

    /// Covers what stays as it is in a writable folder, and holds what is above it in its place.
    fn hold(&mut self, path: &Path) -> Result<(), Fault> {
        let doing = || format!("cover `{}`", path.display());
        let nearest = path.ancestors().find_map(|folder| self.access(folder));
        let Some(parent) = path.parent().filter(|_| nearest == Some(Access::Write)) else {
            return Ok(());
        };
        self.pin_above(path)?;
        let parent = self.top.place(parent, Shape::Folder).doing(doing)?;
        let empty = Self::nothing().doing(doing)?;
        protect::cover_one(parent.as_fd(), path, empty.as_fd(), &mut self.covers)
    }

    /// How a path itself was granted.
    fn access(&self, path: &Path) -> Option<Access> {
        let found = self.placed.iter().rev().find(|(one, _)| one == path);
        found.map(|(_, access)| *access)
    }

    /// Makes mount points of the folders between a path and a writable folder around it: what is
    /// one cannot be renamed, so that nothing else takes the place of the path outside.
    fn pin_above(&mut self, path: &Path) -> Result<(), Fault> {
        let above: Vec<_> = path.ancestors().skip(1).collect();
        let nearest = above.iter().position(|folder| self.access(folder).is_some());
        let Some(end) = nearest.filter(|end| self.access(above[*end]) == Some(Access::Write))
        else {
            return Ok(());
        };
        for folder in above[..end].iter().rev() {
            let doing = || format!("hold `{}` in its place", folder.display());
            let place = self.top.place(folder, Shape::Folder).doing(doing)?;
            let view = mounts::take(place.as_fd(), Path::new("")).doing(doing)?;
            self.covers.note(view.as_fd(), folder)?;
            mounts::put(view.as_fd(), place.as_fd()).doing(doing)?;
            self.placed.push(((*folder).to_owned(), Access::Write));
        }
        Ok(())
    }

    /// An empty file that nobody can write.
    fn empty_file() -> Result<OwnedFd, Errno> {
        mounts::take(CWD, &Path::new(STORE).join("etc/.empty"))
    }

    /// The file that is empty, in its place: of what has none, only kernels from 6.15 on make another view.
    fn nothing() -> Result<OwnedFd, Errno> {
        mounts::name(CWD, Path::new(STORE).join("etc/.empty"))
    }

    /// Closes what was open for building, and leaves the host's root behind. `processes` is
    /// the most that there may be at a time. What comes back tells when a cover has fallen off.
    pub(crate) fn enter(self, processes: u32) -> Result<Option<Lookout>, Fault> {
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
        let doing = || "leave the host's root".to_owned();
        for _ in 0..self.beneath {
            rustix::mount::unmount(".", UnmountFlags::DETACH).doing(doing)?;
        }
        rustix::process::chdir("/").doing(|| "enter the new root".into())?;
        self.check_alone().doing(doing)?;
        self.close_root().doing(|| "make the root read-only".into())?;
        self.covers.look_out()
    }

    /// Makes sure that nothing lies on the root any more: the way up from it would lead there.
    fn check_alone(&self) -> Result<(), Errno> {
        let own = rustix::fs::fstat(&self.top.top)?;
        let up = rustix::fs::statat(CWD, "/..", AtFlags::SYMLINK_NOFOLLOW)?;
        if (own.st_dev, own.st_ino) == (up.st_dev, up.st_ino) { Ok(()) } else { Err(Errno::BUSY) }
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
            let cover = Self::empty_file();
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
