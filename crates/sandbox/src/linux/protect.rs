//! How a writable folder keeps what must not be planted in it.
//!
//! The launcher, outside, makes a placeholder for each protected name that is
//! missing ([`Guard`]), because only something that is there can be covered. The room, inside, covers
//! each name with a read-only view of itself ([`cover`]): what is a mount
//! point can be neither written, removed nor renamed. Afterwards the launcher takes its placeholders away.
//!
//! A placeholder is an empty file or folder of an otherwise pointless mode, locked while
//! in use, so that two rooms can share one and one left by a power cut is known again.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::covers::Covers;
use super::mounts::{self, Doing, Mounted, Shape};
use super::root::is_writable;
use super::wire::{Failure, Placement};
use crate::level::Fault;
use crate::protected::{COMMON, FOLDERS, IN_REPOSITORY, OF_A_REPOSITORY, PROTECTED, REPOSITORY};

/// The mode of a placeholder: readable to its owner, and a sticky bit that means nothing there.
const FILE_MODE: u32 = 0o1400;
const FOLDER_MODE: u32 = 0o1500;

/// The placeholders of one room, taken away when it is dropped, the last first.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    placeholders: Vec<Placeholder>,
}

/// What stands where something could be planted. It is taken away when it is dropped.
#[derive(Debug)]
struct Placeholder {
    parent: OwnedFd,
    name: OsString,
    shape: Shape,
    /// Holds the shared lock, when it is in use.
    held: OwnedFd,
}

impl Guard {
    /// Makes what is missing in a folder that may be written.
    pub(crate) fn add(&mut self, granted: &Placement) -> Result<(), Failure> {
        let (opened, shape) = granted.open()?;
        if shape != Shape::Folder || !is_writable(opened.as_fd()) {
            return Ok(());
        }
        self.keep_all(&opened, granted.path.path()).map_err(Failure::Wall)
    }

    fn keep_all(&mut self, opened: &OwnedFd, folder: &Path) -> Result<(), Fault> {
        let doing =
            |name: &str| format!("keep `{}` from being planted", folder.join(name).display());
        for name in PROTECTED {
            let shape = if FOLDERS.contains(&name) { Shape::Folder } else { Shape::File };
            self.keep(opened.as_fd(), name, shape).doing(|| doing(name))?;
        }
        match look(opened.as_fd(), REPOSITORY).doing(|| doing(REPOSITORY))? {
            Some(FileType::Directory) if !Self::is_placeholder(opened.as_fd(), REPOSITORY) => {
                let repository =
                    mounts::name(opened.as_fd(), REPOSITORY).doing(|| doing(REPOSITORY))?;
                self.keep_repository(repository.as_fd(), folder)?;
            }
            _ => {
                let kept = self.keep(opened.as_fd(), REPOSITORY, Shape::Folder);
                kept.doing(|| doing(REPOSITORY))?;
            }
        }
        self.keep_bare(opened.as_fd(), folder)
    }

    /// Makes what is missing at a path that stays as it is. Everything above it is there.
    pub(crate) fn hold(&mut self, path: &Path, shape: Shape) -> Result<(), Fault> {
        let doing = || format!("keep `{}` from being planted", path.display());
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let parent = mounts::plain(parent).doing(doing)?;
        if is_writable(parent.as_fd()) {
            self.keep(parent.as_fd(), name, shape).doing(doing)?;
        }
        Ok(())
    }

    fn keep_repository(&mut self, repository: BorrowedFd<'_>, folder: &Path) -> Result<(), Fault> {
        if !is_writable(repository) {
            return Ok(());
        }
        let doing = || format!("keep the hooks of `{}`", folder.display());
        for name in IN_REPOSITORY {
            let shape = match name {
                "hooks" | "modules" => Shape::Folder,
                _ => Shape::File,
            };
            self.keep(repository, name, shape).doing(doing)?;
        }
        Ok(())
    }

    /// A folder can be a repository itself, and one that is none must not become one: git
    /// looks there too when what it finds in `.git` has been made useless.
    fn keep_bare(&mut self, folder: BorrowedFd<'_>, path: &Path) -> Result<(), Fault> {
        let doing = || format!("look at `{}`", path.display());
        if is_bare(folder).doing(doing)? {
            self.keep_repository(folder, path)
        } else {
            self.keep(folder, missing_part(folder), Shape::File).doing(doing)
        }
    }

    fn is_placeholder(folder: BorrowedFd<'_>, name: &str) -> bool {
        rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| is_marked(stat.st_mode))
    }

    /// Makes a placeholder, or joins one that another room holds. What is the owner's is left alone.
    fn keep(
        &mut self,
        parent: BorrowedFd<'_>,
        name: impl AsRef<OsStr>,
        shape: Shape,
    ) -> Result<(), Errno> {
        let name = name.as_ref();
        let mut was_emptied = false;
        loop {
            let around = parent.try_clone_to_owned().map_err(|_| Errno::MFILE)?;
            let (held, is_new) = match make(parent, name, shape) {
                Err(Errno::EXIST) => match join(parent, name) {
                    Ok(Some(held)) => (held, false),
                    Ok(None) => return Ok(()),
                    Err(Errno::NOENT) => continue,
                    Err(error) => return Err(error),
                },
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => return Ok(()),
                made => (made?, true),
            };
            // From here on it is taken away whatever happens.
            let placeholder = Placeholder { parent: around, name: name.into(), shape, held };
            if is_new {
                placeholder.fill()?;
            } else if !was_emptied && placeholder.is_unfilled()? {
                // Whoever made it was killed over it, or does it now and makes another.
                was_emptied = true;
                continue;
            }
            lock(&placeholder.held)?;
            // Its last holder may have taken it away between the look and the lock.
            if placeholder.look()?.is_some() {
                self.placeholders.push(placeholder);
                return Ok(());
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        while self.placeholders.pop().is_some() {}
    }
}

impl Placeholder {
    fn fill(&self) -> Result<(), Errno> {
        match content(&self.name) {
            b"" => Ok(()),
            content if rustix::io::write(&self.held, content)? == content.len() => Ok(()),
            _ => Err(Errno::NOSPC),
        }
    }

    fn is_unfilled(&self) -> Result<bool, Errno> {
        Ok(!content(&self.name).is_empty() && rustix::fs::fstat(&self.held)?.st_size == 0)
    }

    /// What has its name, if that is still it.
    fn look(&self) -> Result<Option<rustix::fs::Stat>, Errno> {
        let held = rustix::fs::fstat(&self.held)?;
        match rustix::fs::statat(&self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) if (now.st_dev, now.st_ino) == (held.st_dev, held.st_ino) => Ok(Some(now)),
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Placeholder {
    /// Takes it away, unless another room holds it or the owner has put something of theirs in its place.
    fn drop(&mut self) {
        if rustix::fs::flock(&self.held, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        let flags = match self.shape {
            Shape::Folder => AtFlags::REMOVEDIR,
            Shape::File => AtFlags::empty(),
        };
        if let Ok(Some(now)) = self.look()
            && is_marked(now.st_mode)
            && (self.shape == Shape::Folder || says_nothing(&now, &self.name))
        {
            let _ = rustix::fs::unlinkat(&self.parent, &*self.name, flags);
        }
    }
}

/// Locks a placeholder as one of those who use it. Whoever takes it away has it alone for a moment;
/// a program that made itself one and never lets go must not hold us up.
fn lock(held: &OwnedFd) -> Result<(), Errno> {
    for _ in 0..100 {
        match rustix::fs::flock(held, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(std::time::Duration::from_millis(1)),
            locked => return locked,
        }
    }
    Err(Errno::BUSY)
}

/// Whether something of this mode is a placeholder.
pub(crate) fn is_marked(mode: u32) -> bool {
    matches!(
        (FileType::from_raw_mode(mode), mode & 0o7777),
        (FileType::RegularFile, FILE_MODE) | (FileType::Directory, FOLDER_MODE)
    )
}

/// What a placeholder holds. Git refuses to work where this one file is there and empty.
fn content(name: &OsStr) -> &'static [u8] {
    if name == COMMON { b".\n" } else { b"" }
}

/// Whether a file holds no more than a placeholder does. One that was not filled holds less.
fn says_nothing(stat: &rustix::fs::Stat, name: &OsStr) -> bool {
    stat.st_size == 0 || usize::try_from(stat.st_size) == Ok(content(name).len())
}

fn look(folder: BorrowedFd<'_>, name: &str) -> Result<Option<FileType>, Errno> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        stat => Ok(Some(FileType::from_raw_mode(stat?.st_mode))),
    }
}

fn is_bare(folder: BorrowedFd<'_>) -> Result<bool, Errno> {
    let is_there = |name| {
        let found = look(folder, name)?;
        Ok(found.is_some() && !Guard::is_placeholder(folder, name))
    };
    Ok(is_there("HEAD")? && is_there("objects")? && is_there("refs")?)
}

/// What a folder that is no repository lacks of one.
fn missing_part(folder: BorrowedFd<'_>) -> &'static str {
    let is_missing = |name: &&&str| {
        look(folder, name).is_ok_and(|found| found.is_none()) || Guard::is_placeholder(folder, name)
    };
    OF_A_REPOSITORY.iter().find(is_missing).unwrap_or(&OF_A_REPOSITORY[0])
}

/// The mode is right from the first moment, so that nobody takes a placeholder for the owner's.
fn make(parent: BorrowedFd<'_>, name: &OsStr, shape: Shape) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match shape {
        Shape::File => {
            let flags = flags | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
            rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(FILE_MODE))
        }
        Shape::Folder => {
            rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(FOLDER_MODE))?;
            rustix::fs::openat(parent, name, flags | OFlags::DIRECTORY, Mode::empty()).inspect_err(
                |_| {
                    let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
                },
            )
        }
    }
}

/// Opens what is there if it is a placeholder; `None` if it is the owner's.
fn join(parent: BorrowedFd<'_>, name: &OsStr) -> Result<Option<OwnedFd>, Errno> {
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_marked(stat.st_mode) {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS | Errno::LOOP) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

/// Covers each protected name of a folder in the room with a read-only view of itself.
pub(crate) fn cover(
    folder: BorrowedFd<'_>,
    path: &Path,
    empty: BorrowedFd<'_>,
    covers: &mut Covers,
) -> Result<(), Fault> {
    for name in PROTECTED {
        cover_one(folder, &path.join(name), empty, covers)?;
    }
    let doing = || "cover a repository".into();
    let repository = path.join(REPOSITORY);
    match look(folder, REPOSITORY).doing(doing)? {
        Some(FileType::Directory) => {
            // A mount point cannot be renamed, so no other repository takes this one's place.
            let place = mounts::name(folder, REPOSITORY).doing(doing)?;
            let stat = rustix::fs::fstat(&place).doing(doing)?;
            let mounted =
                if is_marked(stat.st_mode) { Mounted::ReadOnly } else { Mounted::Writable };
            let view = mounts::copy(place.as_fd(), Path::new(""), mounted).doing(doing)?;
            covers.note(view.as_fd(), &repository)?;
            mounts::put(view.as_fd(), place.as_fd()).doing(doing)?;
            if mounted == Mounted::Writable {
                for name in IN_REPOSITORY {
                    cover_one(view.as_fd(), &repository.join(name), empty, covers)?;
                }
            }
        }
        _ => cover_one(folder, &repository, empty, covers)?,
    }
    if is_bare(folder).doing(doing)? {
        IN_REPOSITORY.iter().try_for_each(|name| cover_one(folder, &path.join(name), empty, covers))
    } else {
        cover_one(folder, &path.join(missing_part(folder)), empty, covers)
    }
}

/// How deep and how far to look for sockets.
const DEPTH: usize = 4;
const ENTRIES: usize = 4096;

/// Covers the sockets in a granted folder: whoever may look at one may talk to what listens there, and
/// nothing else in the kernel forbids it. Deep ones and those made later are not found.
pub(crate) fn cover_sockets(folder: BorrowedFd<'_>, empty: BorrowedFd<'_>) -> Result<(), Fault> {
    let doing = || "cover a socket".to_owned();
    let open = |at: BorrowedFd<'_>, name: &std::ffi::CStr| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(at, name, flags, Mode::empty())
    };
    // A folder that cannot be listed is not entered by what runs as the same user either.
    let Ok(top) = open(folder, c".") else { return Ok(()) };
    let mut next = std::collections::VecDeque::from([(top, 0)]);
    let mut seen = 0;
    while let Some((folder, depth)) = next.pop_front() {
        let Ok(entries) = rustix::fs::Dir::read_from(&folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            seen += 1;
            if seen > ENTRIES {
                return Ok(());
            }
            match entry.file_type() {
                FileType::Socket => {
                    let place = mounts::name(folder.as_fd(), name).doing(doing)?;
                    let cover = mounts::copy(empty, Path::new(""), Mounted::ReadOnly);
                    mounts::put(cover.doing(doing)?.as_fd(), place.as_fd()).doing(doing)?;
                }
                FileType::Directory if depth < DEPTH => {
                    next.extend(open(folder.as_fd(), name).ok().map(|one| (one, depth + 1)));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Covers what has this path outside, and lies in this folder.
pub(crate) fn cover_one(
    folder: BorrowedFd<'_>,
    path: &Path,
    empty: BorrowedFd<'_>,
    covers: &mut Covers,
) -> Result<(), Fault> {
    let doing = || format!("cover `{}`", path.display());
    let place = match mounts::name(folder, path.file_name().unwrap_or_default()) {
        // Nobody of this user can plant anything where they cannot write.
        Err(Errno::NOENT) if !is_writable(folder) => return Ok(()),
        place => place.doing(doing)?,
    };
    let stat = rustix::fs::fstat(&place).doing(doing)?;
    let view = match FileType::from_raw_mode(stat.st_mode) {
        // A link cannot be mounted, only covered; it would be followed to wherever it leads.
        FileType::Symlink => mounts::copy(empty, Path::new(""), Mounted::ReadOnly),
        _ => mounts::copy(place.as_fd(), Path::new(""), Mounted::ReadOnly),
    };
    let view = view.doing(doing)?;
    covers.note(view.as_fd(), path)?;
    mounts::put(view.as_fd(), place.as_fd()).doing(doing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::wire::{Access, Bytes};

    #[test]
    fn nothing_is_made_where_a_link_or_another_folder_has_taken_the_place_of_a_granted_one() {
        let around = tempfile::tempdir().unwrap();
        let around = around.path().canonicalize().unwrap();
        let folder = around.join("above/granted");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir_all(around.join("other/granted")).unwrap();
        let found = rustix::fs::stat(&folder).unwrap();
        let identity = (found.st_dev, found.st_ino);
        let granted = Placement { path: Bytes::of(&folder), access: Access::Write, identity };
        assert!(Guard::default().add(&granted).is_ok());
        std::fs::rename(around.join("above"), around.join("gone")).unwrap();
        for target in ["gone", "other"] {
            std::os::unix::fs::symlink(target, around.join("above")).unwrap();
            let mut guard = Guard::default();
            assert!(matches!(guard.add(&granted), Err(Failure::Moved(_))), "{target}");
            assert!(guard.hold(&folder.join("hooks"), Shape::Folder).is_err());
            assert_eq!(std::fs::read_dir(around.join(target).join("granted")).unwrap().count(), 0);
            std::fs::remove_file(around.join("above")).unwrap();
        }
        std::fs::rename(around.join("other"), around.join("above")).unwrap();
        assert!(matches!(Guard::default().add(&granted), Err(Failure::Moved(_))));
    }
}
