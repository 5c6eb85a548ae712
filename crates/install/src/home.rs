//! A home on the disk: where its files are, how they are read, and the one lock around every change.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::catalog;
use crate::contents::Contents;
use crate::error::{Doing, HomeError};
use crate::journal::{self, Draft};
use crate::key::Key;
use crate::lockfile::{self, Lockfile};
use crate::pinned::Pinned;
use crate::record::{self, Record};
use crate::revoked::{self, Revocations};
use crate::whole;

/// Versions of packages.
pub(crate) const PACKAGES: &str = "packages";
/// Links to those that are active.
pub(crate) const TOOLS: &str = "tools";
/// Whoever changes anything holds this file.
const LOCK: &str = "locks/home";
/// The system's number for what is not there.
const NOT_FOUND: i32 = 2;

/// A home. It is made only when something is put into it.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// The home at a path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What is in it. A change that was broken off is finished first.
    pub fn read(&self) -> Result<Contents, HomeError> {
        // Whoever makes a change may begin and end it while this is read: then it is read again.
        for _ in 0..8 {
            if journal::is_pending(&self.0) {
                drop(self.hold()?);
            } else if journal::left(&self.0).next().is_some() {
                // It counts for nothing, so whoever may not sweep it can read all the same.
                drop(self.hold());
            }
            let contents = self.look();
            if !journal::is_pending(&self.0) {
                return contents;
            }
        }
        let _held = self.hold()?;
        self.look()
    }

    /// Finishes a change that was broken off, where one was.
    pub fn settle(&self) -> Result<(), HomeError> {
        if journal::is_pending(&self.0) { self.hold().map(drop) } else { Ok(()) }
    }

    /// Holds the lock against every other change, once what was broken off is finished.
    pub(crate) fn hold(&self) -> Result<File, HomeError> {
        let place = self.0.join(LOCK);
        let doing = Doing::Lock(place.clone());
        let folder = place.parent().unwrap_or(&self.0);
        journal::make_private(folder).map_err(|cause| doing.failed(cause))?;
        let held = File::options().create(true).append(true).open(&place);
        let held = held.map_err(|cause| doing.failed(cause))?;
        held.lock().map_err(|cause| doing.failed(cause))?;
        journal::recover(&self.0)?;
        Ok(held)
    }

    /// A folder in which a change is prepared.
    pub fn draft(&self) -> Result<Draft, HomeError> {
        Draft::begin(&self.0)
    }

    /// The folder of an installed version.
    pub fn folder(&self, key: &Key, version: &str) -> PathBuf {
        self.0.join(PACKAGES).join(key.as_str()).join(version)
    }

    /// Whether the version that is pinned lies here and is the active one.
    pub fn holds(&self, pinned: &Pinned) -> bool {
        let Ok(key) = pinned.key() else { return false };
        let folder = pinned.folder();
        let active = fs::read_link(self.0.join(TOOLS).join(key.as_str()));
        let leads = active.is_ok_and(|to| to.file_name().is_some_and(|name| *name == *folder));
        leads && self.folder(&key, &folder).join(record::NAME).is_file()
    }

    /// Whether the same version of a package lies here with other bytes.
    pub fn has_other(&self, key: &Key, pinned: &Pinned) -> bool {
        let own = pinned.folder();
        let Some((version, _)) = own.rsplit_once('-') else { return false };
        let there = fs::read_dir(self.0.join(PACKAGES).join(key.as_str()));
        there.into_iter().flatten().flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            *name != own && name.rsplit_once('-').is_some_and(|(other, _)| other == version)
        })
    }

    /// Whether that is so, and every file of it is what it was.
    pub fn holds_whole(&self, pinned: &Pinned) -> bool {
        let Ok(key) = pinned.key() else { return false };
        let folder = self.folder(&key, &pinned.folder());
        let record = self.record(&key, &pinned.folder());
        self.holds(pinned) && record.is_ok_and(|record| whole::changed(&folder, &record).is_empty())
    }

    /// How an installed version came here.
    pub fn record(&self, key: &Key, version: &str) -> Result<Record, HomeError> {
        let path = self.folder(key, version).join(record::NAME);
        let bytes = read(&path, lockfile::MOST)?;
        let bytes = bytes.ok_or_else(|| {
            Doing::Read(path.clone()).failed(io::Error::from_raw_os_error(NOT_FOUND))
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| HomeError::Broken { path, why: error.to_string() })
    }

    /// How a version that is installed came here.
    pub fn record_of(&self, pinned: &Pinned) -> Result<Record, HomeError> {
        self.record(&key(pinned)?, &pinned.folder())
    }

    pub(crate) fn look(&self) -> Result<Contents, HomeError> {
        let lock = self.parsed(lockfile::NAME, lockfile::MOST, Lockfile::parse)?;
        let local = self.parsed(catalog::LOCAL, catalog::MOST, catalog::briefs)?;
        let base = self.parsed(catalog::BASE, catalog::MOST, catalog::briefs)?;
        let revoked = self.parsed(revoked::NAME, revoked::MOST, Revocations::parse)?;
        Ok(Contents { lock, revoked, local, base })
    }

    pub(crate) fn parsed<T: Default>(
        &self,
        name: &str,
        most: u64,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, HomeError> {
        let path = self.0.join(name);
        match read(&path, most)? {
            Some(bytes) => parse(&bytes).map_err(|why| HomeError::Broken { path, why }),
            None => Ok(T::default()),
        }
    }
}

/// The lockfile at a path, wherever that is.
pub fn read_lockfile(path: &Path) -> Result<Lockfile, HomeError> {
    let missing = || Doing::Read(path.to_owned()).failed(io::Error::from_raw_os_error(NOT_FOUND));
    let bytes = read(path, lockfile::MOST)?.ok_or_else(missing)?;
    let lock = Lockfile::parse(&bytes);
    let lock = lock.map_err(|why| HomeError::Broken { path: path.to_owned(), why })?;
    let whole = path.canonicalize().map_err(|cause| Doing::Read(path.to_owned()).failed(cause))?;
    Ok(match whole.parent() {
        Some(folder) => lock.read_from(folder),
        None => lock,
    })
}

/// A file of the home, where it is there.
fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, HomeError> {
    let doing = Doing::Read(path.to_owned());
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|cause| doing.failed(cause))?,
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|cause| doing.failed(cause))?;
    if bytes.len() as u64 > most {
        let why = format!("it is longer than {} MiB", most >> 20);
        return Err(HomeError::Broken { path: path.to_owned(), why });
    }
    Ok(Some(bytes))
}

/// What a package is called on the disk.
pub(crate) fn key(pinned: &Pinned) -> Result<Key, HomeError> {
    pinned
        .key()
        .map_err(|error| HomeError::Broken { path: lockfile::NAME.into(), why: error.to_string() })
}
