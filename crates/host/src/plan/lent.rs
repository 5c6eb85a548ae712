//! Folders that an engine is lent, to be read.
//!
//! Our own walls hold whatever lies in a granted folder. A mount of an engine does not: what is mounted below is as writable as it
//! was, and who listens on a socket answers, read-only or not. So a folder with such things is not lent.

use std::fs::FileType;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::judge::without_holding_up_others;

/// How many files are looked at.
const MOST_FILES: usize = 100_000;

/// Refuses what an engine cannot hold to be read and nothing else.
pub(super) fn check(granted: &[PathBuf]) -> Result<(), String> {
    if granted.is_empty() {
        return Ok(());
    }
    without_holding_up_others(|| look_through(granted, MOST_FILES))
}

fn look_through(granted: &[PathBuf], mut left: usize) -> Result<(), String> {
    let mounts = mounts().ok_or("what is mounted here cannot be told")?;
    for grant in granted {
        if let Some(mount) = mounts.iter().find(|mount| *mount != grant && mount.starts_with(grant))
        {
            let (mount, grant) = (mount.display(), grant.display());
            return Err(format!(
                "an engine cannot hold `{mount}` to reading, which is mounted in `{grant}`"
            ));
        }
        check_files(grant, &mut left)?;
    }
    Ok(())
}

/// Where something is mounted.
fn mounts() -> Option<Vec<PathBuf>> {
    if !cfg!(target_os = "linux") {
        return Some(Vec::new());
    }
    let table = std::fs::read("/proc/self/mountinfo").ok()?;
    let lines = table.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| line.split(|byte| *byte == b' ').nth(4).map(unescaped)).collect()
}

/// A path of the kernel's table, in which some bytes are octal numbers.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&bytes))
}

fn too_many() -> String {
    format!("there are more than {MOST_FILES} files in what is granted, too many to look at")
}

fn check_files(grant: &Path, left: &mut usize) -> Result<(), String> {
    let unreadable = |path: &Path| format!("`{}` cannot be looked through", path.display());
    let kind = grant.symlink_metadata().map_err(|_| unreadable(grant))?.file_type();
    let mut ahead = vec![(grant.to_owned(), kind)];
    while let Some((path, kind)) = ahead.pop() {
        if !is_plain(kind) {
            let path = path.display();
            return Err(format!("an engine cannot keep it from `{path}`, which is no plain file"));
        }
        if kind.is_dir() {
            for entry in std::fs::read_dir(&path).map_err(|_| unreadable(&path))? {
                let entry = entry.map_err(|_| unreadable(&path))?;
                let kind = entry.file_type().map_err(|_| unreadable(&path))?;
                // Before it is kept: one folder alone may hold more than there is memory for.
                *left = left.checked_sub(1).ok_or_else(too_many)?;
                ahead.push((entry.path(), kind));
            }
        }
    }
    Ok(())
}

fn is_plain(kind: FileType) -> bool {
    kind.is_dir() || kind.is_file() || kind.is_symlink()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        assert_eq!(unescaped(b"/a\\040b\\134c\\"), Path::new("/a b\\c\\"));
        #[cfg(target_os = "linux")]
        assert!(mounts().expect("a table").contains(&PathBuf::from("/proc")));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_mounted_below_or_listens_is_not_lent() {
        let folder = std::env::temp_dir().join(format!("haft-lent-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("a/b")).expect("a folder");
        std::fs::write(folder.join("a/b/file"), "x").expect("a file");
        assert_eq!(check(std::slice::from_ref(&folder)), Ok(()));
        let few = look_through(std::slice::from_ref(&folder), 2).expect_err("there are three");
        assert!(few.contains("too many"), "{few}");
        assert_eq!(look_through(std::slice::from_ref(&folder), 3), Ok(()));
        let socket = std::os::unix::net::UnixListener::bind(folder.join("a/b/socket"));
        let refused = check(std::slice::from_ref(&folder)).expect_err("there is a socket");
        assert!(refused.contains("a/b/socket"), "{refused}");
        drop(socket);
        std::fs::remove_dir_all(&folder).expect("it goes");
        let refused = check(&["/".into()]).expect_err("much is mounted there");
        assert!(refused.contains("mounted in `/`"), "{refused}");
    }
}
