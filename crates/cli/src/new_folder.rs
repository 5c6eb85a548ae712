//! A folder of new files, written whole or not at all, and never over what is there.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use manifest::starter::StarterFile;

use crate::exit::{Exit, Failure};

/// Refuses when something stands where a file, or a folder above it, would be written.
pub(crate) fn check_free<'p>(
    folder: &Path,
    paths: impl IntoIterator<Item = &'p str>,
) -> Result<(), Failure> {
    if !is_there(folder) {
        return Ok(());
    }
    let mut taken: Vec<PathBuf> = Vec::new();
    if folder.is_dir() {
        for path in paths {
            let found = in_the_way(folder, path);
            taken.extend(found.filter(|found| !taken.contains(found)));
        }
    } else {
        taken.push(folder.to_owned());
    }
    if taken.is_empty() { Ok(()) } else { Err(overwriting(&taken)) }
}

/// Writes the files into a folder, which is made when it is not there.
pub(crate) fn write(folder: &Path, files: &[StarterFile]) -> Result<(), Failure> {
    check_free(folder, files.iter().map(|file| file.path.as_str()))?;
    let mut undo = Undo::default();
    if folder.is_dir() {
        write_files(folder, files, &mut undo)?;
    } else {
        // A bare name has no parent to stage beside.
        let whole = std::path::absolute(folder).map_err(|error| failed(folder, error))?;
        let parent = whole.parent().unwrap_or(Path::new("/"));
        make_folder(parent, &mut undo)?;
        let beside = tempfile::Builder::new()
            .prefix(".haft-init-")
            .tempdir_in(parent)
            .map_err(|error| failed(parent, error))?;
        // The temporary folder is for our eyes only; what stays is made like any other.
        let staged = beside.path().join("new");
        write_files(&staged, files, &mut undo)?;
        fs::rename(&staged, &whole).map_err(|error| match error.kind() {
            // Somebody else was faster.
            ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory => {
                overwriting(&[folder.to_owned()])
            }
            _ => failed(folder, error),
        })?;
    }
    undo.kept = true;
    Ok(())
}

/// Takes back what was made, unless it is to be kept.
#[derive(Default)]
struct Undo {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    kept: bool,
}

impl Drop for Undo {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Whatever cannot be taken back has been changed by somebody else, and is theirs.
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn write_files(folder: &Path, files: &[StarterFile], undo: &mut Undo) -> Result<(), Failure> {
    for file in files {
        let path = folder.join(&file.path);
        make_folder(path.parent().unwrap_or(folder), undo)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(if file.executable { 0o777 } else { 0o666 });
        }
        let mut opened = options.open(&path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => overwriting(std::slice::from_ref(&path)),
            _ => failed(&path, error),
        })?;
        undo.files.push(path.clone());
        opened.write_all(&file.content).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// Makes a folder and those above it that are not there.
fn make_folder(folder: &Path, undo: &mut Undo) -> Result<(), Failure> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.is_dir())
        .collect();
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) => undo.folders.push(folder.to_owned()),
            Err(_) if folder.is_dir() => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(overwriting(&[folder.to_owned()]));
            }
            Err(error) => return Err(failed(folder, error)),
        }
    }
    Ok(())
}

/// What stands in the way of a file: the file itself, or something that is no folder above it.
fn in_the_way(folder: &Path, path: &str) -> Option<PathBuf> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    let above = ends.map(|end| folder.join(&path[..end])).find(|at| is_there(at) && !at.is_dir());
    above.or_else(|| Some(folder.join(path)).filter(|at| is_there(at)))
}

/// Whether there is anything of that name, be it a link that leads nowhere.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn overwriting(taken: &[PathBuf]) -> Failure {
    let names: Vec<_> = taken.iter().map(|path| format!("`{}`", path.display())).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    Failure::new(Exit::Conflict, format!("{} {are} already there", names.join(", ")))
        .hint("nothing was written; name another folder")
}

fn failed(path: &Path, error: io::Error) -> Failure {
    Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display())).cause(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> StarterFile {
        StarterFile { path: path.into(), content: b"new".to_vec(), executable: false }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_folder_holds_just_the_files() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        write(&folder, &[file("x"), file("sub/y")]).unwrap();
        assert_eq!(
            (names(&folder), names(&folder.join("sub"))),
            (vec!["sub".into(), "x".into()], vec!["y".into()])
        );
        assert_eq!(names(&home.path().join("a")), ["b"]);
    }

    #[test]
    fn a_folder_that_is_there_is_added_to() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("mine"), "mine").unwrap();
        write(home.path(), &[file("x")]).unwrap();
        assert_eq!(names(home.path()), ["mine", "x"]);
    }

    #[test]
    fn nothing_is_written_when_anything_is_in_the_way() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("sub"), "mine").unwrap();
        let failure = write(home.path(), &[file("x"), file("sub/y")]).unwrap_err();
        assert_eq!(failure.exit, Exit::Conflict);
        assert!(failure.message.contains("sub"), "{}", failure.message);
        let failure = write(&home.path().join("sub"), &[file("x")]).unwrap_err();
        assert_eq!(failure.exit, Exit::Conflict);
        let failure = write(&home.path().join("sub/deeper"), &[file("x")]).unwrap_err();
        assert_eq!(failure.exit, Exit::Conflict);
        assert_eq!(names(home.path()), ["sub"]);
    }

    #[test]
    fn what_was_begun_is_taken_back() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("mine"), "mine").unwrap();
        // The second file needs the first to be a folder.
        write(home.path(), &[file("made/x"), file("made/x/y")]).unwrap_err();
        assert_eq!(names(home.path()), ["mine"]);
        write(&home.path().join("p/q"), &[file("x"), file("x/y")]).unwrap_err();
        assert_eq!(names(home.path()), ["mine"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_is_not_written_through() {
        let home = tempfile::tempdir().unwrap();
        let outside = home.path().join("outside");
        let folder = home.path().join("in");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&outside, folder.join("x")).unwrap();
        assert_eq!(write(&folder, &[file("x")]).unwrap_err().exit, Exit::Conflict);
        assert!(!is_there(&outside));
    }
}
