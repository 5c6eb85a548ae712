//! The files of a log, and its lock.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::error::AuditError;
use crate::time::Day;

/// How long a writer waits for the others.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than any small file here holds.
const SMALL: u64 = 4 * 1024;

/// The folder `audit` of a home.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

/// The file that those lock together who wait for the lock; it is there from the first record on, and everybody can read it.
const BELL: &str = "key.pub";

/// A small file, and what was in it.
#[derive(Debug)]
pub(super) struct Small {
    pub(super) file: File,
    pub(super) bytes: Vec<u8>,
}

/// The lock of a log, held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(pub(super) File);

impl Lock {
    /// Lets it go, and keeps its file.
    pub(super) fn let_go(self) -> io::Result<File> {
        self.0.unlock()?;
        Ok(self.0)
    }
}

/// Heard by whoever has the lock, until it is dropped.
struct Bell(File);

impl Bell {
    fn ring(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        file.try_lock_shared().ok().map(|()| Self(file))
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn log(&self, day: Day) -> PathBuf {
        self.0.join(format!("{day}.log"))
    }

    /// Makes the folder, for its owner alone.
    fn make(&self) -> Result<(), AuditError> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&self.0).map_err(AuditError::file("make", &self.0))
    }

    /// Waits for the lock by its file, which was kept.
    pub(super) fn lock_again(&self, file: File) -> Result<Lock, AuditError> {
        self.wait_for(&file)?;
        Ok(Lock(file))
    }

    /// Waits for the lock, which only one process has at a time.
    pub(super) fn lock(&self) -> Result<Lock, AuditError> {
        let path = self.file("lock");
        let opened = match options().write(true).create(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make()?;
                options().write(true).create(true).open(&path)
            }
            opened => opened,
        };
        let file = opened.map_err(AuditError::file("open", &path))?;
        self.wait_for(&file)?;
        Ok(Lock(file))
    }

    /// The same for somebody who only reads; there is none where nobody ever wrote.
    pub(super) fn lock_to_read(&self) -> Result<Option<Lock>, AuditError> {
        let path = self.file("lock");
        match File::open(&path) {
            Ok(file) => {
                self.wait_for(&file)?;
                Ok(Some(Lock(file)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(AuditError::file("open", &path)(source)),
        }
    }

    /// A process that was stopped while it had the lock must not stop all others for ever.
    fn wait_for(&self, file: &File) -> Result<(), AuditError> {
        let path = || self.file("lock");
        let (mut begun, mut bell) = (None, None);
        let mut pause = Duration::from_micros(50);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(source)) => {
                    return Err(AuditError::file("lock", &path())(source));
                }
                Err(TryLockError::WouldBlock) => {}
            }
            bell = bell.or_else(|| Bell::ring(&self.file(BELL)));
            if begun.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err(AuditError::Busy { path: path() });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    /// Whether somebody waits for the lock, or may for all that can be told.
    pub(super) fn is_awaited(&self) -> bool {
        let bell = File::open(self.file(BELL));
        bell.map_or(true, |bell| bell.try_lock().is_err() || bell.unlock().is_err())
    }

    /// The days that have a log, the first one first.
    pub(super) fn days(&self) -> Result<Vec<Day>, AuditError> {
        let listed = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(AuditError::file("list", &self.0))?,
        };
        let mut days = Vec::new();
        for entry in listed {
            let name = entry.map_err(AuditError::file("list", &self.0))?.file_name();
            days.extend(
                name.to_str().and_then(|name| name.strip_suffix(".log")).and_then(Day::parse),
            );
        }
        days.sort_unstable();
        Ok(days)
    }

    /// A small file's bytes, if it is there.
    pub(super) fn read_small(&self, name: &str) -> Result<Option<Vec<u8>>, AuditError> {
        Ok(self.open_small(name, options().read(true))?.map(|small| small.bytes))
    }

    /// A small file that may be written over, if it is there.
    pub(super) fn take_small(&self, name: &str) -> Result<Option<Small>, AuditError> {
        self.open_small(name, options().read(true).write(true))
    }

    fn open_small(&self, name: &str, how: &OpenOptions) -> Result<Option<Small>, AuditError> {
        let path = self.file(name);
        let file = match how.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(AuditError::file("open", &path))?,
        };
        // All of it is read at once.
        let mut bytes = Vec::with_capacity(4 * 1024);
        (&file).take(SMALL).read_to_end(&mut bytes).map_err(AuditError::file("read", &path))?;
        Ok(Some(Small { file, bytes }))
    }

    /// Writes a small file over what was in it, where that is no longer than the new, which a process that is
    /// killed does whole or not at all: it is one call, and less than a page. Else it is replaced, and the file is gone.
    pub(super) fn overwrite(
        &self,
        name: &str,
        old: Option<Small>,
        bytes: &[u8],
    ) -> Result<Option<Small>, AuditError> {
        // What was not written whole is not taken for a head, and replaced.
        let is_over = |file: &File| Ok::<_, io::Error>(write_at_start(file, bytes)? == bytes.len());
        let fits = |old: &Small| old.bytes.len() <= bytes.len() && bytes.len() as u64 <= SMALL;
        match old.filter(fits) {
            Some(Small { file, .. }) if is_over(&file).unwrap_or(false) => {
                Ok(Some(Small { file, bytes: bytes.to_vec() }))
            }
            _ => self.replace(name, bytes, |_| Ok(())).map(|()| None),
        }
    }

    /// Replaces a small file in one step; `sync` makes it last beyond a power cut.
    pub(super) fn replace(
        &self,
        name: &str,
        bytes: &[u8],
        sync: fn(&File) -> io::Result<()>,
    ) -> Result<(), AuditError> {
        let (path, new) = (self.file(name), self.file(&format!("{name}.new")));
        let file = options().write(true).create(true).truncate(true).open(&new);
        let mut file = file.map_err(AuditError::file("open", &new))?;
        file.write_all(bytes)
            .and_then(|()| sync(&file))
            .map_err(AuditError::file("write", &new))?;
        std::fs::rename(&new, &path).map_err(AuditError::file("replace", &path))
    }
}

#[cfg(unix)]
fn write_at_start(file: &File, bytes: &[u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, 0)
}

#[cfg(not(unix))]
fn write_at_start(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    io::Seek::rewind(&mut file)?;
    file.write(bytes)
}

/// Files here are for their owner alone.
pub(super) fn options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "rights are set on Unix only"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_lock_hears_that_somebody_waits_for_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path().to_owned());
        let lock = folder.lock().unwrap();
        assert!(folder.is_awaited(), "nobody can ring");
        std::fs::write(folder.file(BELL), "").unwrap();
        assert!(!folder.is_awaited());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| folder.lock_to_read().unwrap().is_some());
            while !folder.is_awaited() {
                thread::yield_now();
            }
            drop(lock);
            assert!(waiting.join().unwrap());
        });
        assert!(!folder.is_awaited());
    }
}
