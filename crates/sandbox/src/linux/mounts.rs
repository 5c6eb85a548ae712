//! The calls of the new mount interface, each with a word of what it was for.
//!
//! Mounts are made detached, given their attributes, and only then put in
//! their place, so there is no moment in which they are there and too open.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};
use serde::{Deserialize, Serialize};

use crate::level::Fault;

/// Adds what was being done to an error of the system.
pub(crate) trait Doing<T> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, Fault>;
}

impl<T> Doing<T> for Result<T, Errno> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, Fault> {
        self.map_err(|error| Fault { doing: doing(), errno: error.raw_os_error() })
    }
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, Fault> {
        self.map_err(|error| Fault { doing: doing(), errno: error.raw_os_error().unwrap_or(0) })
    }
}

/// What a mount lets be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mounted {
    /// Read and execute.
    ReadOnly,
    /// Read, write and execute.
    Writable,
    /// A device: read and write, execute nothing.
    Device,
}

impl Mounted {
    fn attributes(self) -> u64 {
        let flags = match self {
            Self::ReadOnly => {
                MountAttrFlags::MOUNT_ATTR_RDONLY
                    | MountAttrFlags::MOUNT_ATTR_NOSUID
                    | MountAttrFlags::MOUNT_ATTR_NODEV
            }
            Self::Writable => MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
            Self::Device => MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
        };
        u64::from(flags.bits())
    }
}

/// A file system of its own kind, with these settings, not yet anywhere.
pub(crate) fn fresh(
    kind: &str,
    settings: &[(&str, &str)],
    flags: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in settings {
        rustix::mount::fsconfig_set_string(&context, *key, *value)?;
    }
    rustix::mount::fsconfig_create(&context)?;
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

/// An empty folder in memory of at most so many bytes.
pub(crate) fn memory(size: u64, inodes: u64, mode: &str) -> Result<OwnedFd, Errno> {
    let settings =
        [("size", &*size.to_string()), ("nr_inodes", &*inodes.to_string()), ("mode", mode)];
    fresh("tmpfs", &settings, MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV)
}

/// Another view of a file or a folder and all that is mounted below it.
pub(crate) fn copy(
    folder: BorrowedFd<'_>,
    path: &Path,
    mounted: Mounted,
) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
        | if path.as_os_str().is_empty() {
            OpenTreeFlags::AT_EMPTY_PATH
        } else {
            OpenTreeFlags::empty()
        };
    let tree = rustix::mount::open_tree(folder, path, flags)?;
    restrict(tree.as_fd(), mounted)?;
    Ok(tree)
}

/// Another view of a folder and all that is mounted below it, with the rights these have already.
pub(crate) fn take(folder: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | if path.as_os_str().is_empty() {
            OpenTreeFlags::AT_EMPTY_PATH
        } else {
            OpenTreeFlags::empty()
        };
    rustix::mount::open_tree(folder, path, flags)
}

/// Takes rights away from a mount and all below it.
pub(crate) fn restrict(mount: BorrowedFd<'_>, mounted: Mounted) -> Result<(), Errno> {
    set(mount, mounted, libc::AT_RECURSIVE)
}

/// Takes rights away from a mount alone.
pub(crate) fn restrict_one(mount: BorrowedFd<'_>, mounted: Mounted) -> Result<(), Errno> {
    set(mount, mounted, 0)
}

fn set(mount: BorrowedFd<'_>, mounted: Mounted, reach: libc::c_int) -> Result<(), Errno> {
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let attributes = Attributes {
        set: mounted.attributes(),
        clear: 0,
        propagation: libc::MS_PRIVATE,
        user_namespace: 0,
    };
    // SAFETY: the descriptor is open, the path an empty C string, and the
    // structure has the size that is passed with it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | reach,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

/// Puts a detached mount on top of a file or folder.
pub(crate) fn put(mount: BorrowedFd<'_>, place: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, "", place, "", flags)
}

/// Opens a file or folder only to name it; never through a symbolic link at its end.
pub(crate) fn name(folder: BorrowedFd<'_>, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, path, flags, Mode::empty())
}

/// Opens a file or folder only to name it, by a path with no link in it.
pub(crate) fn plain(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve)
}

/// What a place must be, so that something can be put on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shape {
    Folder,
    File,
}

/// The place of a path below a root, made where it is missing. Links on the way are refused.
pub(crate) fn place(root: BorrowedFd<'_>, path: &Path, shape: Shape) -> Result<OwnedFd, Errno> {
    let parts: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            std::path::Component::Normal(part) => Some(part),
            _ => None,
        })
        .collect();
    let mut opened: Option<OwnedFd> = None;
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        let at = opened.as_ref().map_or(root, AsFd::as_fd);
        let made = match (is_last, shape) {
            (true, Shape::File) => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                rustix::fs::openat(at, *part, flags, Mode::from_raw_mode(0o444)).map(drop)
            }
            _ => rustix::fs::mkdirat(at, *part, Mode::from_raw_mode(0o755)),
        };
        // What cannot be made may be there all the same.
        opened = Some(name(at, *part).map_err(|missing| made.err().unwrap_or(missing))?);
    }
    opened.map_or_else(|| name(root, "."), Ok)
}
