//! What git outside executes or obeys in a folder that a program may write, beside the names that are
//! always protected: hooks where settings say, further settings, and repositories below the folder.
//!
//! The host looks before a program is started. What it finds is held in its place like the other names.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use super::mounts::Shape;
use super::protect::is_marked;
use super::settings::{self, Leads};
use crate::protected::{COMMON, IN_REPOSITORY, PROTECTED, REPOSITORY};

/// How far below a folder to look for repositories, how many to hold, and how many folders to open for it.
const DEPTH: usize = 4;
const REPOSITORIES: usize = 64;
const FOLDERS: usize = 20_000;

/// How many files with settings to read, and how much of one.
const FILES: usize = 32;
const LONGEST: u64 = 1 << 20;

/// How many paths to hold in one folder: each costs every start some time and two descriptors.
const MOST: usize = 512;

/// A file with settings that names more than that.
type TooMuch = PathBuf;

/// What is to be held in a writable folder: paths, and what to put where nothing is yet. Everything
/// above such a path is there.
pub(crate) fn find(folder: &Path) -> Result<BTreeMap<PathBuf, Shape>, TooMuch> {
    let mut search = Search { folder, held: BTreeMap::new() };
    let around = folder.ancestors().find(|one| one.join(REPOSITORY).symlink_metadata().is_ok());
    search.follow_settings(around.unwrap_or(folder))?;
    search.look_below()?;
    Ok(search.held)
}

struct Search<'a> {
    folder: &'a Path,
    held: BTreeMap<PathBuf, Shape>,
}

impl Search<'_> {
    /// Holds the repositories that are there below the folder, the nearest first.
    fn look_below(&mut self) -> Result<(), TooMuch> {
        let (mut opened, mut found) = (0, 0);
        let mut next = VecDeque::from([(self.folder.to_owned(), 0)]);
        while let Some((folder, depth)) = next.pop_front() {
            if depth == DEPTH {
                // What is in it does not matter any more, and a question is cheaper than a list.
                found += usize::from(self.hold_repository(&folder)?);
            } else {
                opened += 1;
                let Ok(entries) = fs::read_dir(&folder) else { continue };
                for entry in entries.flatten() {
                    let name = entry.file_name();
                    if name == REPOSITORY {
                        // The one at the top is protected for its name.
                        found += usize::from(depth > 0 && self.hold_repository(&folder)?);
                    } else if opened + next.len() < FOLDERS
                        && entry.file_type().is_ok_and(|kind| kind.is_dir())
                        && !(depth == 0 && PROTECTED.iter().any(|one| name == *one))
                    {
                        next.push_back((entry.path(), depth + 1));
                    }
                }
            }
            if found >= REPOSITORIES {
                break;
            }
        }
        Ok(())
    }

    /// Holds the repository in a folder; whether there is one.
    fn hold_repository(&mut self, worktree: &Path) -> Result<bool, TooMuch> {
        let repository = worktree.join(REPOSITORY);
        let found = repository.symlink_metadata();
        let Some(found) = found.ok().filter(|found| !is_marked(found.mode())) else {
            return Ok(false);
        };
        if found.is_dir() {
            // One that lacks a part is none today, and may be one tomorrow.
            for name in ["config", "config.worktree", COMMON] {
                self.hold(&repository.join(name), Shape::File);
            }
            self.hold(&repository.join("hooks"), Shape::Folder);
            if repository.join("modules").symlink_metadata().is_ok() {
                self.hold(&repository.join("modules"), Shape::Folder);
            }
        } else {
            self.hold(&repository, Shape::File);
        }
        self.follow_settings(worktree)?;
        Ok(true)
    }

    /// Holds what the settings of a repository lead to.
    fn follow_settings(&mut self, worktree: &Path) -> Result<(), TooMuch> {
        let mut repository = worktree.join(REPOSITORY);
        if let Some(elsewhere) = line_of(&repository, b"gitdir: ") {
            repository = plain(&worktree.join(elsewhere));
        } else if !repository.is_dir() {
            // The folder itself may be one.
            worktree.clone_into(&mut repository);
        }
        let common = line_of(&repository.join(COMMON), b"");
        let common = common.map_or(repository.clone(), |common| plain(&repository.join(common)));
        let mut files = VecDeque::from([common.join("config"), repository.join("config.worktree")]);
        let mut count = 0;
        while let Some(file) = files.pop_front().filter(|_| count < FILES) {
            count += 1;
            let mut hooks = None;
            for leads in settings::read(&text_of(&file)) {
                match leads {
                    // Of one file the last counts.
                    Leads::Hooks(path) => hooks = path_of(&path),
                    Leads::Include(path) => {
                        if let Some(path) = path_of(&path) {
                            let around = file.parent().unwrap_or(worktree);
                            let path = plain(&around.join(path));
                            self.hold(&path, Shape::File);
                            files.push_back(path);
                        }
                    }
                }
                if self.held.len() > MOST {
                    return Err(file);
                }
            }
            if let Some(path) = hooks {
                self.hold(&plain(&worktree.join(path)), Shape::Folder);
            }
        }
        Ok(())
    }

    /// Holds a path, if it is in the folder: itself, or the first on the way to it that is not there, and
    /// a link on the way together with what it leads to.
    fn hold(&mut self, path: &Path, shape: Shape) {
        if self.hold_until_link(path, shape)
            && let Ok(real) = path.canonicalize()
        {
            self.hold_until_link(&real, shape);
        }
    }

    /// Whether there was a link on the way.
    fn hold_until_link(&mut self, path: &Path, shape: Shape) -> bool {
        let Ok(below) = path.strip_prefix(self.folder) else { return false };
        if is_held_by_name(below) {
            return false;
        }
        let mut at = self.folder.to_owned();
        let mut parts = below.components().peekable();
        while let Some(part) = parts.next() {
            at.push(part);
            let is_last = parts.peek().is_none();
            let (shape, is_link) = match at.symlink_metadata() {
                Ok(found) if found.is_symlink() => (Shape::File, true),
                Ok(found) if found.is_dir() && !is_last && !is_marked(found.mode()) => continue,
                Ok(found) if found.is_dir() => (Shape::Folder, false),
                Ok(_) => (Shape::File, false),
                Err(_) if is_last => (shape, false),
                Err(_) => (Shape::Folder, false),
            };
            self.held.insert(at, shape);
            return is_link;
        }
        false
    }
}

/// Whether a path below a writable folder is protected for its name already.
fn is_held_by_name(below: &Path) -> bool {
    let mut parts = below.iter();
    let is_one_of = |part: Option<&std::ffi::OsStr>, names: &[&str]| {
        part.is_some_and(|part| names.iter().any(|name| part == *name))
    };
    let first = parts.next();
    is_one_of(first, &PROTECTED)
        || first.is_some_and(|first| first == REPOSITORY) && is_one_of(parts.next(), &IN_REPOSITORY)
}

fn text_of(file: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    // Opening something else than a file could wait for ever.
    let opened = fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(file);
    if let Ok(file) = opened
        && file.metadata().is_ok_and(|found| found.is_file())
    {
        let _ = file.take(LONGEST).read_to_end(&mut text);
    }
    text
}

/// What a file of one line says after these bytes.
fn line_of(file: &Path, start: &[u8]) -> Option<PathBuf> {
    let text = text_of(file);
    let line = text.strip_prefix(start)?.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
    path_of(line)
}

/// The path in a setting. One that begins with somebody's home, or with where git is, lies elsewhere.
fn path_of(text: &[u8]) -> Option<PathBuf> {
    let is_elsewhere = text.is_empty() || text.starts_with(b"~") || text.starts_with(b"%(");
    (!is_elsewhere).then(|| std::ffi::OsStr::from_bytes(text).into())
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut made = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(made.pop()),
            Component::CurDir => {}
            part => made.push(part),
        }
    }
    made
}
