//! Whether paths and text are such that a process can have them.

use std::ffi::{OsStr, OsString};
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

/// Arguments without a zero byte.
pub(crate) fn check_arguments(argv: &[OsString]) -> Result<(), SpawnError> {
    let bad = argv.iter().position(|text| text.as_bytes().contains(&0));
    bad.map_or(Ok(()), |number| Err(SpawnError::BadArgument(number)))
}

/// A variable without a zero byte, whose name is one.
pub(crate) fn check_variable(name: &OsStr, value: &OsStr) -> Result<(), SpawnError> {
    let is_name = !name.is_empty() && !name.as_bytes().contains(&b'=');
    let is_text = [name, value].iter().all(|text| !text.as_bytes().contains(&0));
    if is_name && is_text { Ok(()) } else { Err(SpawnError::BadVariable(name.to_owned())) }
}
