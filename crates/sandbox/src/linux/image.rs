//! A root that is made of a folder, as an image has it, instead of the system's programs and libraries.
//!
//! The folder is shown read-only, and nothing is ever made in it. Where something granted has no place there, the folders on
//! the way are made anew, and what the image has in them is shown one by one.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::furniture::{STORE, Workshop};
use super::mounts::{self, Doing, Mounted, Shape};
use super::wire::{Failure, Order, Placement};
use crate::confinement::SCRATCH;
use crate::level::Fault;

/// What every room has of its own; an image's are not shown.
const OWN: [&str; 3] = ["proc", "dev", "tmp"];

/// Where settings are. It is a folder also where the image has a link, so that what it has in it can be ours.
const SETTINGS: &str = "etc";

/// Files that say who and where the program is. One that the image has no place for is left out.
const SAID: [&str; 5] = ["etc/passwd", "etc/group", "etc/hosts", "etc/hostname", "etc/resolv.conf"];

/// The most files and folders that are shown one by one.
const MOST_SHOWN: usize = 1024;

/// Makes a root of a folder, and takes `/proc` and `/dev` over from the one that was made for all.
pub(crate) fn replace(
    before: &Workshop,
    image: &Placement,
    order: &Order,
) -> Result<Workshop, Failure> {
    let (folder, shape) = image.open()?;
    if shape != Shape::Folder {
        return Err(Failure::Wall(Fault {
            doing: format!("make a root of `{}`", image.path.path().display()),
            errno: Errno::NOTDIR.raw_os_error(),
        }));
    }
    build(before, &folder, order).map_err(Failure::Wall)
}

fn build(before: &Workshop, folder: &OwnedFd, order: &Order) -> Result<Workshop, Fault> {
    let top = Workshop::open("/")?;
    show(&top, folder, order)?;
    for name in ["proc", "dev"] {
        let doing = || format!("take over `/{name}`");
        let place = top.place(Path::new(name), Shape::Folder).doing(doing)?;
        let there = mounts::name(before.top.as_fd(), name).doing(doing)?;
        mounts::put(there.as_fd(), place.as_fd()).doing(doing)?;
    }
    for path in SAID {
        let doing = || format!("mount `/{path}`");
        let Some(place) = file_at(&top, path) else { continue };
        let said = mounts::take(CWD, &Path::new(STORE).join(path)).doing(doing)?;
        mounts::put(said.as_fd(), place.as_fd()).doing(doing)?;
    }
    Ok(top)
}

/// A plain file at a path of the new root, through no link.
fn file_at(top: &Workshop, path: &str) -> Option<OwnedFd> {
    let (folder, name) = path.split_once('/')?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(&top.top, folder, flags, Mode::empty()).ok()?;
    let file = mounts::name(folder.as_fd(), name).ok()?;
    let found = rustix::fs::fstat(&file).ok()?;
    (FileType::from_raw_mode(found.st_mode) == FileType::RegularFile).then_some(file)
}

/// Shows what is in the folder: whole where nothing has to be made below, else one by one.
fn show(top: &Workshop, image: &OwnedFd, order: &Order) -> Result<(), Fault> {
    let wanted = wanted(order);
    let mut shown = 0;
    let mut opened = VecDeque::from([PathBuf::new()]);
    while let Some(at) = opened.pop_front() {
        let doing = || format!("show `/{}` of the image", at.display());
        let folder = open_below(image.as_fd(), &at).doing(doing)?;
        for name in names(folder.as_fd()).doing(doing)? {
            let path = at.join(&name);
            if OWN.iter().any(|own| path == Path::new(own)) {
                continue;
            }
            shown += 1;
            if shown > MOST_SHOWN {
                return Err(Fault { doing: doing(), errno: libc::E2BIG });
            }
            let doing = || format!("show `/{}` of the image", path.display());
            let stat =
                rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW).doing(doing)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if has_to_be_made(image.as_fd(), &path, &wanted) => {
                    top.place(&path, Shape::Folder).doing(doing)?;
                    opened.push_back(path);
                }
                FileType::Symlink if path == Path::new(SETTINGS) => {
                    let view = settings(image.as_fd()).doing(doing)?;
                    let place = top.place(&path, Shape::Folder).doing(doing)?;
                    mounts::put(view.as_fd(), place.as_fd()).doing(doing)?;
                }
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(&folder, &name, Vec::new()).doing(doing)?;
                    top.link(&path, Path::new(&OsString::from_vec(target.into_bytes())))?;
                }
                kind => {
                    let shape = match kind {
                        FileType::Directory => Shape::Folder,
                        _ => Shape::File,
                    };
                    let view = mounts::copy(folder.as_fd(), Path::new(&name), Mounted::ReadOnly);
                    let view = view.doing(doing)?;
                    let place = top.place(&path, shape).doing(doing)?;
                    mounts::put(view.as_fd(), place.as_fd()).doing(doing)?;
                }
            }
        }
    }
    Ok(())
}

/// A view of the folder that the image's link for its settings leads to, as the image would follow it.
fn settings(image: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    // Whoever renames or mounts something anywhere meanwhile makes the kernel unsure, and then it wants to be asked again.
    let folder = loop {
        match rustix::fs::openat2(image, SETTINGS, flags, Mode::empty(), resolve) {
            Err(rustix::io::Errno::AGAIN) => {}
            opened => break opened?,
        }
    };
    mounts::copy(folder.as_fd(), Path::new(""), Mounted::ReadOnly)
}

/// The paths that something is put on or made at.
fn wanted(order: &Order) -> Vec<PathBuf> {
    let placed = order.placements.iter().map(|one| one.path.path());
    let held = order.held.iter().map(|one| one.path.path());
    let linked = order.links.iter().map(|(path, _)| path.path());
    let all = placed.chain(held).chain(linked).filter(|path| !path.starts_with(SCRATCH));
    all.map(|path| path.strip_prefix("/").unwrap_or(path).to_owned()).collect()
}

/// Whether something is wanted below a folder of the image that the image has no place for.
fn has_to_be_made(image: BorrowedFd<'_>, folder: &Path, wanted: &[PathBuf]) -> bool {
    wanted.iter().any(|path| {
        path != folder && path.starts_with(folder) && {
            let parent = path.parent().unwrap_or(Path::new(""));
            let name = path.file_name().unwrap_or_default();
            let parent = open_below(image, parent);
            !parent.is_ok_and(|parent| mounts::name(parent.as_fd(), name).is_ok())
        }
    })
}

/// Opens a folder of the image, through no link.
fn open_below(image: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = rustix::fs::openat(image, ".", flags, Mode::empty())?;
    for part in path.components() {
        folder = rustix::fs::openat(&folder, part.as_os_str(), flags, Mode::empty())?;
    }
    Ok(folder)
}

fn names(folder: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}
