//! What the tests share.
#![allow(dead_code, clippy::allow_attributes, reason = "each test uses a part of it")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use vault::{FileVault, Owner, Place, Secret};

pub(crate) fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned()).unwrap()
}

pub(crate) fn of(package: &str, name: &str) -> Place {
    Place::new(Owner::Package(package.to_owned()), name).unwrap()
}

pub(crate) fn shared(name: &str) -> Place {
    Place::new(Owner::Shared, name).unwrap()
}

/// A vault for which nobody may be asked.
pub(crate) fn open(path: &Path) -> FileVault {
    FileVault::open(path, || panic!("nobody may be asked for a passphrase")).unwrap()
}

pub(crate) fn value(vault: &FileVault, place: &Place) -> Option<String> {
    vault.get(place).unwrap().map(|secret| secret.expose().to_owned())
}

/// The names in a folder, in order.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}
