//! The files of a tar, below one new folder.
//!
//! Nothing else is in that folder and nobody else writes there, so a file that lies below it by its name lies below it
//! on the disk: links are refused.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, EntryType};

use super::error::AcquireError;

/// How many bytes all files may have together.
const MOST_BYTES: u64 = 4 << 30;
/// How many files there may be.
const MOST_FILES: usize = 200_000;

/// What is left out of each path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Without<'w> {
    /// The first folder, whatever it is called.
    First,
    /// This folder; what does not lie in it is not wanted.
    Folder(&'w Path),
}

impl Without<'_> {
    fn of(self, path: &Path) -> Option<PathBuf> {
        match self {
            Self::First => Some(path.components().skip(1).collect()),
            Self::Folder(folder) => path.strip_prefix(folder).ok().map(Path::to_owned),
        }
    }
}

/// Unpacks a tar into a folder, and says how many files there were.
pub(super) fn unpack(
    what: &str,
    tar: impl Read,
    into: &Path,
    without: Without<'_>,
) -> Result<usize, AcquireError> {
    let hostile = |file: &Path, why| AcquireError::Hostile {
        what: what.to_owned(),
        file: file.display().to_string(),
        why,
    };
    let broken = |error: io::Error| AcquireError::Unreadable {
        what: "an archive",
        why: format!("{what}: {error}"),
    };
    let disk = |path: &Path, error| AcquireError::Disk(path.to_owned(), error);
    let mut left = MOST_BYTES;
    let mut files = 0;
    fs::create_dir_all(into).map_err(|error| disk(into, error))?;
    let mut archive = Archive::new(tar);
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader | EntryType::XHeader) {
            continue;
        }
        if !is_below(&path) {
            return Err(hostile(&path, "which lies elsewhere"));
        }
        let Some(inside) = without.of(&path) else { continue };
        match kind {
            EntryType::Directory => {
                let folder = into.join(&inside);
                fs::create_dir_all(&folder).map_err(|error| disk(&folder, error))?;
            }
            EntryType::Regular | EntryType::Continuous => {
                files += 1;
                if files > MOST_FILES || entry.size() > left {
                    return Err(hostile(&path, "and that is more than one package may have"));
                }
                if inside.as_os_str().is_empty() {
                    return Err(hostile(&path, "which is no folder"));
                }
                left -= entry.size();
                let is_program = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
                let target = into.join(&inside);
                let write = || -> io::Result<()> {
                    fs::create_dir_all(target.parent().unwrap_or(into))?;
                    let mut file = File::create_new(&target)?;
                    io::copy(&mut entry, &mut file)?;
                    if is_program { make_executable(&target) } else { Ok(()) }
                };
                let mut write = write;
                write().map_err(|error| disk(&target, error))?;
            }
            EntryType::Symlink | EntryType::Link => {
                return Err(hostile(&path, "which is a link"));
            }
            _ => return Err(hostile(&path, "which is neither a file nor a folder")),
        }
    }
    Ok(files)
}

/// Whether a path lies below the folder it is looked at from.
pub(super) fn is_below(path: &Path) -> bool {
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => name.to_str().is_some_and(|name| name != ".git"),
        _ => false,
    };
    path.components().all(is_plain) && path.components().next().is_some()
}

/// Lets a file be executed.
pub(super) fn make_executable(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    #[cfg(not(unix))]
    let _has_no_such_thing = path;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tar::{Builder, Header};

    fn one(name: &str, kind: EntryType, mode: u32) -> Vec<u8> {
        let mut header = Header::new_gnu();
        let bytes: &[u8] = if kind == EntryType::Regular { b"text" } else { b"" };
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        // As somebody writes it who does not ask a library whether it is right.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if kind != EntryType::Regular {
            header.as_old_mut().linkname[..4].copy_from_slice(b"/etc");
        }
        header.set_cksum();
        let mut builder = Builder::new(Vec::new());
        builder.append(&header, bytes).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn files_lie_below_the_folder_or_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("into");
        for name in ["../x", "/x", "a/../../x", "package/../../x", "a/.git/hooks/x"] {
            let tar = one(name, EntryType::Regular, 0o644);
            let refused = unpack("it", &*tar, &into, Without::First);
            assert!(matches!(refused, Err(AcquireError::Hostile { .. })), "{name}: {refused:?}");
        }
        for kind in [EntryType::Symlink, EntryType::Link, EntryType::Fifo, EntryType::Char] {
            let refused = unpack("it", &*one("a/x", kind, 0o777), &into, Without::First);
            assert!(matches!(refused, Err(AcquireError::Hostile { .. })), "{kind:?}: {refused:?}");
        }
        assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn the_first_folder_is_left_out_and_programs_stay_programs() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        for (name, mode, kept) in [("any/bin/run", 0o6777, 0o755), ("any/text", 0o600, 0o644)] {
            let tar = one(name, EntryType::Regular, mode);
            assert_eq!(unpack("it", &*tar, folder.path(), Without::First).unwrap(), 1);
            let path = folder.path().join(name.strip_prefix("any/").unwrap());
            let found = fs::metadata(path).unwrap().permissions().mode() & 0o7777;
            assert_eq!(found & 0o755, kept & 0o755, "{name}");
        }
        let elsewhere = one("other/x", EntryType::Regular, 0o644);
        let into = folder.path().join("into");
        let count = unpack("it", &*elsewhere, &into, Without::Folder(Path::new("sub"))).unwrap();
        assert_eq!(count, 0, "what is not asked for is not there");
    }
}
