//! Files of a package on the disk: beneath one fresh folder, whole or not at all.
//!
//! Everything is written into a folder of our own beside the target, through
//! open folders and never through a path that somebody else could bend: each
//! step is opened without following links, each file is created anew. The whole
//! is synced once, then takes its name in one step.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustix::fs::{CWD, Mode, OFlags};

use crate::archive::{Archive, Entry};
use crate::beneath::{FOLDER, open_folder, open_root, parted};
use crate::digest::{FileDigest, Hasher, Listing};
use crate::refusal::ReadError;

/// Whether the files must outlive a loss of power before they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// They are on the disk before the folder has its name.
    Synced,
    /// They are on the disk when the system gets to it.
    Left,
}

/// Why nothing was extracted. Nothing of it is left behind.
#[derive(Debug)]
pub enum ExtractError {
    /// The archive is refused, or cannot be read.
    Read(ReadError),
    /// Something stands where the folder would be.
    Taken(PathBuf),
    /// A file or folder cannot be written.
    Write {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

impl fmt::Display for ExtractError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtractError::Read(error) => error.fmt(out),
            ExtractError::Taken(path) => write!(out, "`{}` is already there", path.display()),
            ExtractError::Write { path, .. } => {
                write!(out, "failed to write `{}`", path.display())
            }
        }
    }
}

impl std::error::Error for ExtractError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ExtractError::Write { cause, .. } => Some(cause),
            ExtractError::Read(_) | ExtractError::Taken(_) => None,
        }
    }
}

/// Files that were extracted, in a folder that has no name yet. Dropping it removes them.
#[derive(Debug)]
pub struct Staged {
    target: PathBuf,
    /// Removed with everything in it when dropped.
    _holder: tempfile::TempDir,
    /// The same folder, open: its path could have been bent since.
    inside: OwnedFd,
    listing: Listing,
}

impl Staged {
    /// The files with the digests of what was written.
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Syncs the files and gives the folder its name.
    pub fn promote(self, durability: Durability) -> Result<Listing, ExtractError> {
        let failed = |cause| ExtractError::Write { path: self.target.clone(), cause };
        if durability == Durability::Synced {
            sync_all(&self.inside).map_err(failed)?;
        }
        let made = make_parents(&self.target).map_err(failed)?;
        let undo = || made.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
        // An empty folder of that name is replaced, and its mode stays; anything else stays whole.
        if let Ok(there) = self.target.symlink_metadata() {
            let mode = Mode::from_raw_mode(there.permissions().mode() & 0o777);
            rustix::fs::chmodat(&self.inside, WHOLE, mode, rustix::fs::AtFlags::empty())
                .map_err(|cause| failed(cause.into()))?;
        }
        if let Err(cause) = rustix::fs::renameat(&self.inside, WHOLE, CWD, &self.target) {
            undo();
            let cause = io::Error::from(cause);
            return Err(match cause.kind() {
                io::ErrorKind::AlreadyExists
                | io::ErrorKind::DirectoryNotEmpty
                | io::ErrorKind::NotADirectory => ExtractError::Taken(self.target.clone()),
                _ => failed(cause),
            });
        }
        if durability == Durability::Synced
            && let Err(cause) = sync_names(&self.target, &made)
        {
            // It does not count, so it is not there.
            let _ = rustix::fs::renameat(CWD, &self.target, &self.inside, WHOLE);
            undo();
            return Err(failed(cause));
        }
        Ok(self.listing)
    }
}

/// So many files are written by whoever asks for them, one after the other: to wake others takes longer.
const FEW: usize = 16;
/// The name of the folder inside our own until it is moved.
const WHOLE: &str = "whole";

/// Extracts an archive beside the folder it is to become. All checks are made on the
/// bytes that are written.
pub fn extract(archive: &Archive, target: &Path) -> Result<Staged, ExtractError> {
    let target = std::path::absolute(target)
        .map_err(|cause| ExtractError::Write { path: target.to_owned(), cause })?;
    // Without a slash at its end, which would ask for what lies behind a link.
    let target: PathBuf = target.components().collect();
    let failed = |cause| ExtractError::Write { path: target.clone(), cause };
    if !is_free(&target) {
        return Err(ExtractError::Taken(target));
    }
    // For our eyes only: nobody else can reach inside while the files are written.
    let holder = tempfile::Builder::new()
        .prefix(&format!(".haft-unpack-{}-", std::process::id()))
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(nearest(&target))
        .map_err(failed)?;
    let inside = open_root(holder.path()).map_err(failed)?;
    rustix::fs::mkdirat(&inside, WHOLE, Mode::from_raw_mode(0o755))
        .map_err(|cause| failed(cause.into()))?;
    let root = rustix::fs::openat(&inside, WHOLE, FOLDER, Mode::empty())
        .map_err(|cause| failed(cause.into()))?;
    let writing = Writing { archive, root: &root, target: &target };
    writing.folders()?;
    let entries = archive.entries();
    let listing = if entries.len() <= FEW {
        Listing::new(writing.files(entries)?)
    } else {
        // Neighbours share a folder, so each worker takes a run of them.
        let runs = entries.len().div_ceil(rayon::current_num_threads() * 4).max(1);
        let digests: Result<Vec<Vec<FileDigest>>, ExtractError> =
            entries.par_chunks(runs).map(|run| writing.files(run)).collect();
        Listing::new(digests?.into_iter().flatten().collect())
    };
    Ok(Staged { target, _holder: holder, inside, listing })
}

/// Whether a folder can take this name: nothing is there, or an empty folder.
fn is_free(target: &Path) -> bool {
    match target.symlink_metadata() {
        Err(_) => true,
        Ok(found) => {
            found.is_dir() && fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none())
        }
    }
}

struct Writing<'w> {
    archive: &'w Archive,
    root: &'w OwnedFd,
    target: &'w Path,
}

impl Writing<'_> {
    fn failed(&self, path: &str, cause: impl Into<io::Error>) -> ExtractError {
        ExtractError::Write { path: self.target.join(path), cause: cause.into() }
    }

    /// Makes every folder there is, before any file.
    fn folders(&self) -> Result<(), ExtractError> {
        let mut made = std::collections::HashSet::new();
        for entry in self.archive.entries() {
            for (end, _) in entry.path.match_indices('/') {
                let path = &entry.path[..end];
                if made.insert(path) {
                    let (parent, name) = parted(path);
                    let folder = self.open(parent)?;
                    rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o755))
                        .map_err(|cause| self.failed(path, cause))?;
                }
            }
        }
        Ok(())
    }

    /// Writes files; the folder of the one before stays open for the next.
    fn files(&self, entries: &[Entry]) -> Result<Vec<FileDigest>, ExtractError> {
        let mut digests = Vec::with_capacity(entries.len());
        let mut open: Option<(&str, OwnedFd)> = None;
        for entry in entries {
            let (parent, name) = parted(&entry.path);
            let folder = match open.take() {
                Some((path, folder)) if path == parent => folder,
                _ => self.open(parent)?,
            };
            digests.push(self.file(&folder, name, entry)?);
            open = Some((parent, folder));
        }
        Ok(digests)
    }

    fn file(
        &self,
        folder: &OwnedFd,
        name: &str,
        entry: &Entry,
    ) -> Result<FileDigest, ExtractError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(if entry.executable { 0o755 } else { 0o644 });
        let opened = rustix::fs::openat(folder, name, flags | OFlags::CLOEXEC, mode)
            .map_err(|cause| self.failed(&entry.path, cause))?;
        let mut file = File::from(opened);
        let mut hasher = Hasher::default();
        let mut unwritten = None;
        let read = self.archive.stream(entry, &mut |part| {
            hasher.update(part);
            file.write_all(part).map_err(|cause| {
                let kind = cause.kind();
                unwritten = Some(cause);
                kind.into()
            })
        });
        if let Some(cause) = unwritten {
            return Err(self.failed(&entry.path, cause));
        }
        read.map_err(ExtractError::Read)?;
        let (path, size) = (entry.path.clone(), entry.size);
        Ok(FileDigest { path, size, sha256: hasher.finish() })
    }

    /// Opens a folder beneath the root, step by step, following no link.
    fn open(&self, path: &str) -> Result<OwnedFd, ExtractError> {
        open_folder(self.root, path).map_err(|cause| self.failed(path, cause))
    }
}

/// The nearest folder above a path that is there.
fn nearest(path: &Path) -> &Path {
    path.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(Path::new("/"))
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("/"))
}

/// Makes the folders above a path that are missing; gives those, the outermost first.
fn make_parents(path: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = path.ancestors().skip(1).take_while(|above| !above.is_dir());
    let mut made: Vec<_> = missing.map(Path::to_owned).collect();
    made.reverse();
    for (index, folder) in made.iter().enumerate() {
        if let Err(cause) = fs::create_dir(folder) {
            made[..index].iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
            return Err(cause);
        }
    }
    Ok(made)
}

/// Puts the names of a folder, and of those made above it, on the disk.
fn sync_names(target: &Path, made: &[PathBuf]) -> io::Result<()> {
    let named = made.iter().map(PathBuf::as_path).chain([target]);
    named.map(parent_of).try_for_each(|parent| File::open(parent)?.sync_all())
}

/// Puts a folder on the disk, with everything below it.
pub fn sync_whole(folder: &Path) -> io::Result<()> {
    sync_all(&open_root(folder)?)
}

/// Puts everything on the disk that holds a folder, in one step.
#[cfg(target_os = "linux")]
fn sync_all(folder: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(folder)?)
}

/// Elsewhere each file is synced by itself.
#[cfg(not(target_os = "linux"))]
fn sync_all(folder: &OwnedFd) -> io::Result<()> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(folder, name, flags, Mode::empty())?;
        if rustix::fs::fstat(&opened)?.st_mode & 0o170_000 == 0o040_000 {
            sync_all(&opened)?;
        } else {
            rustix::fs::fsync(&opened)?;
        }
    }
    Ok(rustix::fs::fsync(folder)?)
}
