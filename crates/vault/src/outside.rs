//! Values that somebody else keeps: a variable, or a file.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::secret::{MAX_SECRET, Secret, SecretError};

/// Why there is no value.
#[derive(Debug)]
pub enum OutsideError {
    /// There is no such variable.
    NoVariable(String),
    /// The file cannot be read.
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// It is no plain file.
    NoFile(PathBuf),
    /// Others may write the file, so its content is anybody's.
    Writable(PathBuf),
    /// The file belongs to neither us nor the system.
    Foreign(PathBuf),
    /// What is there is no secret value.
    Value {
        /// What was read.
        source: String,
        /// What is wrong with it.
        fault: SecretError,
    },
}

impl fmt::Display for OutsideError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutsideError::NoVariable(name) => write!(out, "there is no variable `{name}`"),
            OutsideError::File { path, .. } => write!(out, "failed to read `{}`", path.display()),
            OutsideError::NoFile(path) => write!(out, "`{}` is no plain file", path.display()),
            OutsideError::Writable(path) => {
                write!(out, "`{}` is not used: others may write it", path.display())
            }
            OutsideError::Foreign(path) => {
                write!(out, "`{}` is not used: it belongs to another user", path.display())
            }
            OutsideError::Value { source, fault } => write!(out, "`{source}`: {fault}"),
        }
    }
}

impl std::error::Error for OutsideError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OutsideError::File { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// The value of a variable in an environment that the caller brings.
pub fn from_environment<'e>(
    name: &str,
    environment: impl IntoIterator<Item = (&'e str, &'e str)>,
) -> Result<Secret, OutsideError> {
    let found = environment.into_iter().find(|(variable, _)| *variable == name);
    let (_, value) = found.ok_or_else(|| OutsideError::NoVariable(name.to_owned()))?;
    Secret::new(value.to_owned())
        .map_err(|fault| OutsideError::Value { source: name.to_owned(), fault })
}

/// The content of a file, without the line end after it. Links are followed, and others may read it:
/// containers hand secrets over that way.
pub fn from_file(path: &Path) -> Result<Secret, OutsideError> {
    Opened::file(path)?.read()
}

/// A file that is open: whatever happens to its path, this is the one that is read.
#[derive(Debug)]
pub struct Opened {
    path: PathBuf,
    file: File,
}

impl Opened {
    /// Opens a plain file that others may not write: it is ours or the system's, as those of containers are.
    pub fn file(path: &Path) -> Result<Self, OutsideError> {
        let failed = |cause| OutsideError::File { path: path.to_owned(), cause };
        // A pipe must not keep us waiting.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(OutsideError::NoFile(path.to_owned()));
        }
        let is_ours = [0, rustix::process::geteuid().as_raw()].contains(&about.uid());
        if !is_ours {
            return Err(OutsideError::Foreign(path.to_owned()));
        }
        if about.mode() & 0o022 != 0 {
            return Err(OutsideError::Writable(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// Where it really lies, as the system says of what is open.
    pub fn place(&self) -> Result<PathBuf, OutsideError> {
        let failed = |cause| OutsideError::File { path: self.path.clone(), cause };
        place_of(&self.file).map_err(failed)
    }

    /// Its content, without the line end after it.
    pub fn read(self) -> Result<Secret, OutsideError> {
        read(self.file, &self.path)
    }
}

#[cfg(target_vendor = "apple")]
fn place_of(file: &File) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let path = rustix::fs::getpath(file)?;
    Ok(std::ffi::OsString::from_vec(path.into_bytes()).into())
}

#[cfg(not(target_vendor = "apple"))]
fn place_of(file: &File) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn read(file: File, path: &Path) -> Result<Secret, OutsideError> {
    let failed = |cause| OutsideError::File { path: path.to_owned(), cause };
    // The longest value, a line end of two bytes, and one byte that shows that there is more.
    let most = MAX_SECRET + 3;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    file.take(most as u64).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        bytes.pop_if(|byte| *byte == b'\r');
    }
    Secret::from_bytes(std::mem::take(&mut *bytes))
        .map_err(|fault| OutsideError::Value { source: path.display().to_string(), fault })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_variable_is_looked_up_in_what_the_caller_brings() {
        let environment = [("TOKEN", "value"), ("EMPTY", "")];
        let value = |name| from_environment(name, environment);
        assert_eq!(value("TOKEN").unwrap().expose(), "value");
        assert!(matches!(value("PATH"), Err(OutsideError::NoVariable(_))));
        assert!(matches!(
            value("EMPTY"),
            Err(OutsideError::Value { fault: SecretError::Empty, .. })
        ));
    }

    #[test]
    fn a_file_is_read_without_its_last_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for (content, value) in [("a\nb\r\n", "a\nb"), ("a", "a"), ("a\n\n", "a\n")] {
            fs::write(&path, content).unwrap();
            assert_eq!(from_file(&path).unwrap().expose(), value);
        }
        fs::write(&path, "x".repeat(MAX_SECRET) + "\r\n").unwrap();
        assert_eq!(from_file(&path).unwrap().expose().len(), MAX_SECRET);
        fs::write(&path, "x".repeat(MAX_SECRET + 1)).unwrap();
        assert!(matches!(
            from_file(&path),
            Err(OutsideError::Value { fault: SecretError::TooLong, .. })
        ));
    }

    #[test]
    fn an_open_file_says_where_it_lies_whatever_becomes_of_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (path, link) = (folder.join("token"), folder.join("link"));
        fs::write(&path, "value").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let opened = Opened::file(&link).unwrap();
        fs::remove_file(&link).unwrap();
        fs::write(&link, "another").unwrap();
        assert_eq!(opened.place().unwrap(), path);
        assert_eq!(opened.read().unwrap().expose(), "value");
    }

    #[test]
    fn what_others_may_write_or_what_is_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "value").unwrap();
        for mode in [0o620, 0o602, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(matches!(from_file(&path), Err(OutsideError::Writable(_))), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(from_file(&path).unwrap().expose(), "value");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(4_242), None).unwrap();
            assert!(matches!(from_file(&path), Err(OutsideError::Foreign(_))));
        }
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(matches!(from_file(&pipe), Err(OutsideError::NoFile(_))));
        assert!(matches!(from_file(folder.path()), Err(OutsideError::NoFile(_))));
        assert!(matches!(from_file(Path::new("/no/such")), Err(OutsideError::File { .. })));
    }
}
