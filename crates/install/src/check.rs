//! Whether a home is what it says it is.

use std::fmt;
use std::fs;

use crate::catalog::{self, id_in_catalog};
use crate::error::HomeError;
use crate::home::{Home, PACKAGES, TOOLS};
use crate::installed::Installed;
use crate::journal;
use crate::pinned::Pinned;

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A package in the lockfile has no active version, or another one.
    NotActive(String),
    /// A package in the lockfile is missing in the local catalog.
    NotListed(String),
    /// A package cannot be read.
    Unreadable(String, String),
    /// Files of a package are not what they were.
    Changed(String, Vec<String>),
    /// Something lies where only installed packages do, and belongs to none.
    Stray(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotActive(id) => {
                write!(out, "`{id}` is in `haft.lock`, and its version is not the active one")
            }
            Self::NotListed(id) => {
                write!(out, "`{id}` is in `haft.lock`, and not in `{}`", catalog::LOCAL)
            }
            Self::Unreadable(id, why) => write!(out, "`{id}` cannot be read: {why}"),
            Self::Changed(id, files) => {
                write!(out, "`{id}` was changed after it was installed: {}", files.join(", "))
            }
            Self::Stray(path) => write!(out, "`{path}` belongs to no installed package"),
        }
    }
}

/// Everything that does not fit. A change that was broken off is finished first.
pub fn check(home: &Home) -> Result<Vec<Fault>, HomeError> {
    let contents = home.read()?;
    let mut faults = Vec::new();
    let listed: std::collections::HashSet<&str> = contents.listed_locally().collect();
    let mut keys = Vec::new();
    for pinned in contents.lock.packages() {
        check_one(home, pinned, &mut faults);
        if !listed.contains(id_in_catalog(pinned)) {
            faults.push(Fault::NotListed(pinned.id.clone()));
        }
        keys.extend(pinned.key().ok().map(|key| key.to_string()));
    }
    for folder in [TOOLS, PACKAGES] {
        let entries = fs::read_dir(home.path().join(folder)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let strays = names.filter(|name| !keys.contains(name));
        faults.extend(strays.map(|name| Fault::Stray(format!("{folder}/{name}"))));
    }
    // Who held it when the home was read may have ended since.
    if journal::left(home.path()).next().is_some() {
        drop(home.hold());
    }
    faults.extend(journal::left(home.path()).map(|(path, _)| Fault::Stray(path)));
    Ok(faults)
}

fn check_one(home: &Home, pinned: &Pinned, faults: &mut Vec<Fault>) {
    let id = || pinned.id.clone();
    if !home.holds(pinned) {
        faults.push(Fault::NotActive(id()));
    }
    match Installed::load(home, pinned) {
        Err(error) => faults.push(Fault::Unreadable(id(), error.to_string())),
        Ok(installed) => {
            let changed = installed.changed();
            if !changed.is_empty() {
                faults.push(Fault::Changed(id(), changed));
            }
        }
    }
}
