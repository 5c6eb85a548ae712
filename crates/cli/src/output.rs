//! Writing files: never over something that is there, never half.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};
use crate::{interrupt, shell};

/// Refuses a file that cannot be written, because the folder it would be in is not there.
pub(crate) fn check_folder_of(path: &Path) -> Result<(), Failure> {
    let folder = folder_of(path);
    if folder.is_dir() {
        return Ok(());
    }
    let shown = folder.display().to_string();
    Err(Failure::new(Exit::NotFound, format!("there is no folder `{shown}`")).hint(made_by(&shown)))
}

/// How a folder is made that is not there.
pub(crate) fn made_by(folder: &str) -> String {
    format!("`mkdir -p {}` makes it", shell::word(folder))
}

/// Writes a new file; one that is there already is a conflict.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            let message = format!("`{}` is there already, and is not written over", path.display());
            return Failure::new(Exit::Conflict, message).hint("name another, or move it away");
        }
        let message = format!("failed to write `{}`", path.display());
        Failure::new(Exit::Unavailable, message).cause(error)
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|error| {
        // What could not be written whole is not left behind.
        let _ = fs::remove_file(path);
        failed(error)
    })
}

/// Writes a new file that only its owner can read, whole or not at all.
pub(crate) fn keep_secret(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    Beside::with_mode(path, 0o600)?.keep(bytes)
}

/// Writes a new file, whole or not at all, and puts it on the disk.
pub(crate) fn keep(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    Beside::with_mode(path, 0o666)?.keep(bytes)
}

/// Makes a folder that only its owner can look into; one that is there stays as it is.
pub(crate) fn make_private_folder(path: &Path) -> Result<(), Failure> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path).map_err(|error| {
        Failure::new(Exit::Unavailable, format!("failed to make `{}`", path.display())).cause(error)
    })
}

/// Puts the names in a folder on the disk.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Failure> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    fs::File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| {
        Failure::new(Exit::Unavailable, format!("failed to sync `{}`", path.display())).cause(error)
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

/// A new file beside the one it is to become. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Beside {
    target: PathBuf,
    file: tempfile::NamedTempFile,
}

impl Beside {
    pub(crate) fn new(target: &Path) -> Result<Self, Failure> {
        Self::with_mode(target, 0o666)
    }

    #[cfg_attr(not(unix), expect(unused_variables, reason = "only Unix has modes"))]
    fn with_mode(target: &Path, mode: u32) -> Result<Self, Failure> {
        let folder = folder_of(target);
        check_folder_of(target)?;
        if target.symlink_metadata().is_ok_and(|there| !there.is_file() && !there.is_symlink()) {
            let message = format!("`{}` is there already, and is no file", target.display());
            return Err(
                Failure::new(Exit::Conflict, message).hint("name another file with --output")
            );
        }
        interrupt::watch(folder);
        let prefix = interrupt::prefix();
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(mode));
        }
        let file = builder.tempfile_in(folder).map_err(|error| unwritten(target, error))?;
        Ok(Self { target: target.to_owned(), file })
    }

    pub(crate) fn file(&mut self) -> impl Write + Send + '_ {
        io::BufWriter::with_capacity(1 << 20, self.file.as_file_mut())
    }

    /// What was written so far, to be read.
    pub(crate) fn reopen(&self) -> Result<fs::File, Failure> {
        self.file.reopen().map_err(|error| unwritten(&self.target, error))
    }

    /// A file in the place of another, with its mode.
    pub(crate) fn like(target: &Path) -> Result<Self, Failure> {
        let beside = Self::new(target)?;
        let metadata = fs::metadata(target).map_err(|error| unwritten(target, error))?;
        let file = beside.file.as_file();
        file.set_permissions(metadata.permissions()).map_err(|error| unwritten(target, error))?;
        Ok(beside)
    }

    /// Fills the file and gives it its name, unless something has that name already.
    fn keep(mut self, bytes: &[u8]) -> Result<(), Failure> {
        let target = self.target;
        let file = self.file.as_file_mut();
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|error| unwritten(&target, error))?;
        self.file.persist_noclobber(&target).map_err(|error| unwritten(&target, error.error))?;
        sync_folder(folder_of(&target)).inspect_err(|_| {
            // What may not outlive the next power cut does not count.
            let _ = fs::remove_file(&target);
        })
    }

    /// Puts the file on the disk, then in the place of what was there.
    pub(crate) fn replace(self) -> Result<(), Failure> {
        let target = self.target;
        self.file.as_file().sync_all().map_err(|error| unwritten(&target, error))?;
        self.file.persist(&target).map_err(|error| unwritten(&target, error.error))?;
        sync_folder(folder_of(&target))
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn unwritten(path: &Path, error: io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound,
        io::ErrorKind::AlreadyExists => Exit::Conflict,
        _ => Exit::Unavailable,
    };
    Failure::new(exit, format!("failed to write `{}`", path.display())).cause(error)
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
