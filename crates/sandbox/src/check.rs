//! Whether paths and text are such that a process can have them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use crate::outcome::SpawnError;

/// An absolute path below the root, without `.` and `..`, that a process can have.
pub(crate) fn check_absolute(path: &Path) -> Result<(), SpawnError> {
    let mut parts = path.components();
    let is_plain = parts.next() == Some(Component::RootDir)
        && parts.clone().count() > 0
        && parts.all(|part| matches!(part, Component::Normal(_)))
        && !path.as_os_str().as_bytes().contains(&0);
    if is_plain { Ok(()) } else { Err(SpawnError::BadPath(path.to_owned())) }
}

/// Text without a zero byte.
pub(crate) fn check_text(text: &OsStr) -> Result<(), SpawnError> {
    if text.as_bytes().contains(&0) { Err(SpawnError::BadText) } else { Ok(()) }
}

/// The name of a variable.
pub(crate) fn check_name(name: &OsStr) -> Result<(), SpawnError> {
    let is_name = !name.is_empty() && !name.as_bytes().contains(&b'=');
    if is_name { check_text(name) } else { Err(SpawnError::BadText) }
}
