//! Files beneath one open folder: every step is opened by itself, and no link is followed.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

/// How a folder is opened.
pub(crate) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the folder beneath which everything lies; its own path is the caller's to trust.
pub(crate) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?)
}

/// Opens a folder beneath another.
pub(crate) fn open_folder(root: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let mut folder = root.try_clone()?;
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        folder = rustix::fs::openat(&folder, segment, FOLDER, Mode::empty())?;
    }
    Ok(folder)
}

/// Opens a file beneath a folder to be read; anything but a plain file is refused.
pub(crate) fn open_file(root: &OwnedFd, path: &str) -> io::Result<File> {
    let (parent, name) = parted(path);
    let folder = open_folder(root, parent)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    if kind == FileType::RegularFile {
        Ok(File::from(file))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"))
    }
}

/// A path's folder and name.
pub(crate) fn parted(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
