//! Writing files: never over something that is there, never half.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::exit::{Exit, Failure};

/// Writes a new file; one that is there already is a conflict.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let exit = if error.kind() == std::io::ErrorKind::AlreadyExists {
            Exit::Conflict
        } else {
            Exit::Unavailable
        };
        Failure::new(exit, format!("failed to write `{}`", path.display())).cause(error)
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|error| {
        // What could not be written whole is not left behind.
        let _ = fs::remove_file(path);
        failed(error)
    })
}

/// Writes a file in one step, over what was there.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
            .cause(error)
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    write_new(&beside, bytes)?;
    fs::rename(&beside, path).map_err(|error| {
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

/// Lets a file be run.
#[cfg(unix)]
pub(crate) fn make_executable(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(|error| {
        Failure::new(Exit::Unavailable, format!("failed to make `{}` executable", path.display()))
            .cause(error)
    })
}

/// Elsewhere a file's name says whether it can be run.
#[cfg(not(unix))]
pub(crate) fn make_executable(_path: &Path) -> Result<(), Failure> {
    Ok(())
}
