//! The vault's folder: files that only their owner can touch, replaced whole, by one process at a time.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat};
use zeroize::Zeroizing;

use super::error::{Unsafe, VaultError};

/// The largest file in the folder.
pub(super) const MAX_FILE: usize = 16 * 1024 * 1024;
/// What a file is called until it is whole. One process writes at a time, so one name is enough, and
/// what a killed one left is found and removed.
const UNFINISHED: &str = ".new";
const LOCK: &str = "lock";

/// The folder, open: whatever happens to its path, this is the one that was looked at.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    open: File,
}

/// Nobody else writes while this is there.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Folder {
    /// Opens the folder; `None` where there is none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, VaultError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(open) => File::from(open),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {
                return Err(VaultError::Unsafe { path: path.to_owned(), fault: Unsafe::Kind });
            }
            Err(cause) => return Err(disk("open", path, cause)),
        };
        let about = open.metadata().map_err(|cause| disk("look at", path, cause))?;
        check_ours(path, &about)?;
        Ok(Some(Self { path: path.to_owned(), open }))
    }

    /// Opens the folder, and makes it first where there is none.
    pub(super) fn make(path: &Path) -> Result<Self, VaultError> {
        match rustix::fs::mkdir(path, Mode::from_raw_mode(0o700)) {
            Ok(()) => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let parent = parent.unwrap_or(Path::new("."));
                let synced = File::open(parent).and_then(|parent| parent.sync_all());
                synced.map_err(|cause| disk("sync", parent, cause))?;
            }
            Err(rustix::io::Errno::EXIST) => {}
            Err(cause) => return Err(disk("make", path, cause)),
        }
        Self::open(path)?.ok_or_else(|| disk("open", path, io::ErrorKind::NotFound))
    }

    /// Where a file of that name is.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Waits until nobody else writes.
    pub(super) fn lock(&self) -> Result<Lock, VaultError> {
        let path = self.file(LOCK);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = self.open_file(LOCK, flags | OFlags::CLOEXEC)?;
        let file = file.ok_or_else(|| disk("open", &path, io::ErrorKind::NotFound))?;
        file.lock().map_err(|cause| disk("lock", &path, cause))?;
        Ok(Lock { _file: file })
    }

    /// Reads a file whole; `None` where there is none.
    pub(super) fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        // A pipe of that name must not keep us waiting.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Some(file) = self.open_file(name, flags)? else { return Ok(None) };
        let failed = |cause| disk("read", &self.file(name), cause);
        let length = file.metadata().map_err(failed)?.len();
        // With room for all of it from the start, no copy is left behind by growing.
        let mut bytes =
            Zeroizing::new(Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1));
        let read = file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes);
        read.map_err(failed)?;
        if bytes.len() > MAX_FILE {
            return Err(VaultError::Unsafe { path: self.file(name), fault: Unsafe::Size });
        }
        Ok(Some(bytes))
    }

    /// Replaces a file: it is the old one or the new one, whatever happens and whenever.
    pub(super) fn replace(&self, _: &Lock, name: &str, bytes: &[u8]) -> Result<(), VaultError> {
        let mut unfinished = OsString::from(name);
        unfinished.push(UNFINISHED);
        self.unlink(Path::new(&unfinished))?;
        let written = self
            .write_new(&unfinished, bytes)
            .and_then(|()| Ok(rustix::fs::renameat(&self.open, &unfinished, &self.open, name)?));
        if let Err(cause) = written {
            let _ = self.unlink(Path::new(&unfinished));
            return Err(disk("write", &self.file(name), cause));
        }
        self.sync()
    }

    /// Removes a file, and what was left of writing it; one that is not there is fine.
    pub(super) fn remove(&self, lock: &Lock, name: &str) -> Result<(), VaultError> {
        let was_there = self.unlink(Path::new(name))?;
        self.remove_unfinished(lock, name)?;
        if was_there { self.sync() } else { Ok(()) }
    }

    /// Removes what was left of writing a file.
    pub(super) fn remove_unfinished(&self, _: &Lock, name: &str) -> Result<(), VaultError> {
        let was_there = self.unlink(Path::new(&format!("{name}{UNFINISHED}")))?;
        if was_there { self.sync() } else { Ok(()) }
    }

    fn open_file(&self, name: &str, flags: OFlags) -> Result<Option<File>, VaultError> {
        let path = self.file(name);
        let file = match openat(&self.open, name, flags, Mode::from_raw_mode(0o600)) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NXIO) => {
                return Err(VaultError::Unsafe { path, fault: Unsafe::Kind });
            }
            Err(cause) => return Err(disk("open", &path, cause)),
        };
        let about = file.metadata().map_err(|cause| disk("look at", &path, cause))?;
        let fault = if !about.is_file() {
            Some(Unsafe::Kind)
        } else if about.nlink() > 1 {
            Some(Unsafe::Linked)
        } else if about.len() > MAX_FILE as u64 {
            Some(Unsafe::Size)
        } else {
            None
        };
        match fault {
            Some(fault) => Err(VaultError::Unsafe { path, fault }),
            None => check_ours(&path, &about).map(|()| Some(file)),
        }
    }

    fn write_new(&self, name: &OsString, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.open, name, flags, Mode::from_raw_mode(0o600))?);
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Takes a name away; says whether it was there.
    fn unlink(&self, name: &Path) -> Result<bool, VaultError> {
        match rustix::fs::unlinkat(&self.open, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(cause) => Err(disk("remove", &self.path.join(name), cause)),
        }
    }

    fn sync(&self) -> Result<(), VaultError> {
        self.open.sync_all().map_err(|cause| disk("sync", &self.path, cause))
    }
}

/// Refuses what another user owns, or what anybody else may touch.
fn check_ours(path: &Path, about: &Metadata) -> Result<(), VaultError> {
    let mode = about.mode() & 0o7777;
    let fault = if about.uid() != rustix::process::geteuid().as_raw() {
        Unsafe::Owner
    } else if mode & 0o077 != 0 {
        Unsafe::Mode(mode)
    } else {
        return Ok(());
    };
    Err(VaultError::Unsafe { path: path.to_owned(), fault })
}

fn disk(doing: &'static str, path: &Path, cause: impl Into<io::Error>) -> VaultError {
    VaultError::Disk { doing, path: path.to_owned(), cause: cause.into() }
}
