//! Files beneath one folder, where links lead nowhere else.
//!
//! Every step is opened by itself from the folder before and follows no link; a link is read and walked as the image would
//! walk it, whose root is this folder: `/` is the folder, and above it is nothing.

use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::limits::Limits;
use crate::refusal::{Code, ImageError};
use crate::tar::shown;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How many links are followed on one way; the kernel has the same number.
const MOST_LINKS: usize = 40;

/// A folder with the files of an image.
pub(crate) struct Tree<'t> {
    root: OwnedFd,
    /// Where it is, for errors.
    path: PathBuf,
    limits: Limits,
    /// What was used up of the limits.
    entries: Cell<u64>,
    steps: Cell<u64>,
    /// Whether nobody waits for it any more.
    is_called_off: &'t dyn Fn() -> bool,
}

/// After so many steps it is looked whether anybody waits.
const STRIDE: u64 = 256;

/// What a way does where nothing is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Refuse,
}

/// A folder of the tree that was walked to, with the names that lead there through no link.
struct Walked {
    folders: Vec<(OsString, OwnedFd)>,
}

/// The folder of an entry, and what the entry is called there.
pub(crate) struct Place {
    walked: Walked,
    name: OsString,
}

impl<'t> Tree<'t> {
    /// A tree in a folder; the folder's own path is the caller's to trust.
    pub(crate) fn open(
        path: &Path,
        limits: &Limits,
        is_called_off: &'t dyn Fn() -> bool,
    ) -> Result<Self, ImageError> {
        let flags = FOLDER.difference(OFlags::NOFOLLOW);
        let root = rustix::fs::open(path, flags, Mode::empty());
        let root = root.map_err(|errno| ImageError::Read(path.to_owned(), errno.into()))?;
        let (entries, steps) = (Cell::new(0), Cell::new(0));
        Ok(Self { root, path: path.to_owned(), limits: *limits, entries, steps, is_called_off })
    }

    /// One entry more, or a folder that one of them makes.
    pub(crate) fn count_entry(&self, name: &[u8]) -> Result<(), ImageError> {
        self.entries.set(self.entries.get() + 1);
        if self.entries.get() > self.limits.entries {
            return Err(ImageError::refused(Code::TooManyEntries, shown(name)));
        }
        self.step(name)
    }

    /// How many entries there were.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.get()
    }

    /// One name more that is looked at.
    fn step(&self, name: &[u8]) -> Result<(), ImageError> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > self.limits.steps {
            return Err(ImageError::refused(Code::TooMuchWork, shown(name)));
        }
        if self.steps.get().is_multiple_of(STRIDE) && (self.is_called_off)() {
            return Err(ImageError::refused(Code::CalledOff, shown(name)));
        }
        Ok(())
    }

    fn failed(&self, name: &OsStr, errno: Errno) -> ImageError {
        ImageError::Write(self.path.join(name), errno.into())
    }

    /// The place of an entry by its name in a layer. The folders above are made where they are missing. `None` is the
    /// root itself.
    pub(crate) fn place(&self, name: &[u8]) -> Result<Option<Place>, ImageError> {
        self.place_of(name, Missing::Make)
    }

    fn place_of(&self, name: &[u8], missing: Missing) -> Result<Option<Place>, ImageError> {
        let mut parts = parts(name, &self.limits)?;
        let Some(last) = parts.pop() else { return Ok(None) };
        let walked = self.walk(parts, missing)?;
        Ok(Some(Place { walked, name: last }))
    }

    /// Walks to a folder.
    fn walk(&self, parts: Vec<OsString>, missing: Missing) -> Result<Walked, ImageError> {
        let mut walked = Walked { folders: Vec::new() };
        let mut links = 0;
        let mut ahead = VecDeque::from(parts);
        while let Some(part) = ahead.pop_front() {
            self.step(part.as_bytes())?;
            if part == ".." {
                walked.folders.pop();
                continue;
            }
            if walked.folders.len() >= self.limits.depth {
                return Err(ImageError::refused(Code::PathTooDeep, shown(part.as_bytes())));
            }
            let at = walked.last(self);
            let opened = match rustix::fs::openat(at, &part, FOLDER, Mode::empty()) {
                Err(Errno::NOENT) if missing == Missing::Make => {
                    self.count_entry(part.as_bytes())?;
                    rustix::fs::mkdirat(at, &part, Mode::from_raw_mode(0o755))
                        .and_then(|()| rustix::fs::openat(at, &part, FOLDER, Mode::empty()))
                }
                opened => opened,
            };
            match opened {
                Ok(folder) => walked.folders.push((part, folder)),
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    let target = rustix::fs::readlinkat(at, &part, Vec::new());
                    let target = target.map_err(|_| {
                        ImageError::refused(Code::FileAsParent, shown(part.as_bytes()))
                    })?;
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(ImageError::refused(Code::LinkLoop, shown(part.as_bytes())));
                    }
                    let target = target.into_bytes();
                    if target.first() == Some(&b'/') {
                        walked.folders.clear();
                    }
                    for step in steps(&target).rev() {
                        ahead.push_front(step);
                    }
                }
                Err(errno) => return Err(self.failed(&part, errno)),
            }
        }
        Ok(walked)
    }

    /// Makes a folder. One that is there stays, with what is in it.
    pub(crate) fn folder(&self, place: &Place) -> Result<(), ImageError> {
        let at = place.walked.last(self);
        if self.kind(place)? == Some(FileType::Directory) {
            return Ok(());
        }
        self.clear(place)?;
        rustix::fs::mkdirat(at, &place.name, Mode::from_raw_mode(0o755))
            .map_err(|errno| self.failed(&place.name, errno))
    }

    /// Makes an empty file, in the place of whatever is there.
    pub(crate) fn file(&self, place: &Place, mode: u32) -> Result<File, ImageError> {
        self.clear(place)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let at = place.walked.last(self);
        let mode = Mode::from_raw_mode(mode & 0o777);
        let opened = rustix::fs::openat(at, &place.name, flags | OFlags::CLOEXEC, mode);
        opened.map(File::from).map_err(|errno| self.failed(&place.name, errno))
    }

    /// Makes an empty file where there is none.
    pub(crate) fn ensure_file(&self, name: &[u8]) -> Result<(), ImageError> {
        let Some(place) = self.place(name)? else { return Ok(()) };
        match self.kind(&place)? {
            Some(FileType::RegularFile) => Ok(()),
            _ => self.file(&place, 0o644).map(drop),
        }
    }

    /// Whether there is no more at the root than can be shown.
    pub(crate) fn check_root(&self) -> Result<(), ImageError> {
        let (count, most) = (self.names(self.root.as_fd())?.len(), self.limits.at_root);
        if count <= most {
            return Ok(());
        }
        Err(ImageError::refused(Code::RootTooWide, format!("{count}, and {most} are allowed")))
    }

    /// Makes a folder where nothing is, and those above it.
    pub(crate) fn ensure_folder(&self, name: &[u8]) -> Result<(), ImageError> {
        self.walk(parts(name, &self.limits)?, Missing::Make).map(drop)
    }

    /// Makes a symbolic link that may say anything: who follows it is inside.
    pub(crate) fn link(&self, place: &Place, target: &[u8]) -> Result<(), ImageError> {
        if target.is_empty() || target.len() > self.limits.path_bytes || target.contains(&0) {
            return Err(ImageError::refused(Code::LinkTarget, shown(target)));
        }
        self.clear(place)?;
        let at = place.walked.last(self);
        rustix::fs::symlinkat(OsStr::from_bytes(target), at, &place.name)
            .map_err(|errno| self.failed(&place.name, errno))
    }

    /// Gives a file of the tree one more name.
    pub(crate) fn hard_link(&self, place: &Place, target: &[u8]) -> Result<(), ImageError> {
        let refused = || ImageError::refused(Code::LinkTarget, shown(target));
        let missing = |error: ImageError| match error {
            ImageError::Write(..) => refused(),
            other => other,
        };
        let source = self.place_of(target, Missing::Refuse).map_err(missing)?;
        let source = source.ok_or_else(refused)?;
        match self.kind(&source)? {
            Some(FileType::RegularFile | FileType::Symlink) => {}
            _ => return Err(refused()),
        }
        if source.path() == place.path() {
            return Ok(());
        }
        self.clear(place)?;
        let (from, to) = (source.walked.last(self), place.walked.last(self));
        rustix::fs::linkat(from, &source.name, to, &place.name, AtFlags::empty()).map_err(|errno| {
            match errno {
                // The target was what had to make room.
                Errno::NOENT => refused(),
                errno => self.failed(&place.name, errno),
            }
        })
    }

    /// Takes away what a lower layer put at a place; what is in `kept` stays, with the folders above it.
    pub(crate) fn white_out(
        &self,
        place: &Place,
        kept: &HashSet<PathBuf>,
    ) -> Result<(), ImageError> {
        self.remove(place.walked.last(self), &place.name, &place.path(), &|path| {
            kept.contains(path)
        })
    }

    /// The same for everything in a folder, unless that was `done` before.
    pub(crate) fn white_out_all(
        &self,
        folder: &[u8],
        kept: &HashSet<PathBuf>,
        done: &mut HashSet<PathBuf>,
    ) -> Result<(), ImageError> {
        let walked = self.walk(parts(folder, &self.limits)?, Missing::Make)?;
        let path: PathBuf = walked.names().collect();
        if !done.insert(path.clone()) {
            return Ok(());
        }
        let at = walked.last(self);
        for name in self.names(at)? {
            self.remove(at, &name, &path.join(&name), &|path| kept.contains(path))?;
        }
        Ok(())
    }

    /// What is at a place; `None` where nothing is.
    fn kind(&self, place: &Place) -> Result<Option<FileType>, ImageError> {
        let at = place.walked.last(self);
        match rustix::fs::statat(at, &place.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NAMETOOLONG) => {
                Err(ImageError::refused(Code::PathTooLong, shown(place.name.as_bytes())))
            }
            Err(errno) => Err(self.failed(&place.name, errno)),
        }
    }

    fn clear(&self, place: &Place) -> Result<(), ImageError> {
        match self.kind(place)? {
            None => Ok(()),
            Some(_) => self.remove(place.walked.last(self), &place.name, &place.path(), &|_| false),
        }
    }

    /// Removes a file, or a folder with all that is in it and not kept.
    fn remove(
        &self,
        at: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        is_kept: &dyn Fn(&Path) -> bool,
    ) -> Result<(), ImageError> {
        self.step(name.as_bytes())?;
        let failed = |errno| self.failed(name, errno);
        match rustix::fs::openat(at, name, FOLDER, Mode::empty()) {
            Ok(folder) => {
                for child in self.names(folder.as_fd())? {
                    self.remove(folder.as_fd(), &child, &path.join(&child), is_kept)?;
                }
                if is_kept(path) {
                    return Ok(());
                }
                match rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR) {
                    // Something in it was kept.
                    Err(Errno::NOTEMPTY) => Ok(()),
                    removed => removed.map_err(failed),
                }
            }
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::LOOP | Errno::NOTDIR) if is_kept(path) => Ok(()),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                rustix::fs::unlinkat(at, name, AtFlags::empty()).map_err(failed)
            }
            Err(errno) => Err(failed(errno)),
        }
    }

    fn names(&self, folder: BorrowedFd<'_>) -> Result<Vec<OsString>, ImageError> {
        let failed = |errno| self.failed(OsStr::new(""), errno);
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name.to_vec()));
            }
        }
        Ok(names)
    }

    /// Where a file is that can be executed, as a program inside would find it; `None` where the path leads to none. What comes
    /// back has no steps upwards, and its last part is that of the path: by that name it is started.
    pub(crate) fn program(&self, path: &[u8]) -> Option<PathBuf> {
        let mut ahead: Vec<OsString> = steps(path).collect();
        let is_plain = ahead.iter().all(|step| step != "..");
        let mut named = is_plain.then(|| PathBuf::from(OsStr::from_bytes(path)));
        for _ in 0..MOST_LINKS {
            // What ends upwards is a folder.
            let name = ahead.pop().filter(|name| name != "..")?;
            let walked = self.walk(ahead, Missing::Refuse).ok()?;
            let place = Place { walked, name };
            named = named.or_else(|| Some(Path::new("/").join(place.path())));
            let at = place.walked.last(self);
            match self.kind(&place).ok()?? {
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(at, &place.name, Vec::new()).ok()?;
                    let target = target.as_bytes();
                    ahead = match target.first() {
                        Some(b'/') => Vec::new(),
                        _ => place.walked.names().map(ToOwned::to_owned).collect(),
                    };
                    ahead.extend(steps(target));
                }
                FileType::RegularFile => {
                    let found = rustix::fs::statat(at, &place.name, AtFlags::SYMLINK_NOFOLLOW);
                    return named.filter(|_| found.is_ok_and(|found| found.st_mode & 0o111 != 0));
                }
                _ => return None,
            }
        }
        None
    }
}

impl Walked {
    fn last<'w>(&'w self, tree: &'w Tree<'_>) -> BorrowedFd<'w> {
        self.folders.last().map_or(tree.root.as_fd(), |(_, folder)| folder.as_fd())
    }

    fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.folders.iter().map(|(name, _)| name.as_os_str())
    }
}

impl Place {
    /// Where it is, through no link.
    pub(crate) fn path(&self) -> PathBuf {
        self.walked.names().chain([self.name.as_os_str()]).collect()
    }
}

/// The parts of a name in a layer. One that leads upwards is refused: nobody writes such a name in good faith.
fn parts(name: &[u8], limits: &Limits) -> Result<Vec<OsString>, ImageError> {
    let refused = |code| Err(ImageError::refused(code, shown(name)));
    if name.is_empty() {
        return refused(Code::EmptyName);
    }
    if name.contains(&0) {
        return refused(Code::NulByte);
    }
    let parts: Vec<_> = steps(name).collect();
    if name.len() > limits.path_bytes || parts.iter().any(|part| part.len() > 255) {
        return refused(Code::PathTooLong);
    }
    if parts.iter().any(|part| part == "..") {
        return refused(Code::ParentSegment);
    }
    if parts.len() > limits.depth {
        return refused(Code::PathTooDeep);
    }
    Ok(parts)
}

/// The steps of a path, without those that lead nowhere.
fn steps(path: &[u8]) -> impl DoubleEndedIterator<Item = OsString> {
    let steps = path.split(|byte| *byte == b'/').filter(|step| !matches!(*step, b"" | b"."));
    steps.map(|step| OsString::from_vec(step.to_vec()))
}
