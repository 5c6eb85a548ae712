//! The files of a folder that belong into a package.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::beneath::{open_file, open_root};
use crate::contents::Contents;
use crate::limits::Limits;
use crate::names::{Kind, check_names};
use crate::refusal::{ReadError, Refusal, RefusalCode};

/// The file that says what stays out, in the manner of `.gitignore`.
pub const IGNORE_FILE: &str = ".mcpkgignore";

/// What never goes into a package, whatever an ignore file says.
const NEVER: [&str; 5] = [".git", ".hg", ".svn", ".jj", IGNORE_FILE];

/// What stays out unless the ignore file takes it back with `!`.
const USUALLY_NOT: [&str; 11] = [
    ".DS_Store",
    "Thumbs.db",
    "__pycache__/",
    "*.pyc",
    "**/node_modules/.bin/",
    "/*.mcpkg",
    "/*.mcpb",
    "/*.dxt",
    "/*.bundle.json",
    "/.haft-*",
    ".haft-unpack-*/",
];

/// The largest ignore file.
const MAX_IGNORE: u64 = 256 * 1024;

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path in the package.
    pub path: String,
    /// Its size when it was found.
    pub size: u64,
    /// Whether its owner may run it.
    pub executable: bool,
}

/// The files of a folder that belong into a package, in the order of their paths.
#[derive(Debug)]
pub struct Gathered {
    /// The folder, open, so that its path cannot be bent between finding and reading.
    root: OwnedFd,
    files: Vec<Found>,
    /// Paths that were left out because a rule says so.
    pub left_out: Vec<String>,
}

/// Why a folder cannot be packed.
#[derive(Debug)]
pub enum GatherError {
    /// A path, a size or the number of files is refused.
    Refused(Refusal),
    /// Links: what they lead to could be anything.
    Links(Vec<String>),
    /// A device, pipe or socket.
    Special(String),
    /// A name that is not UTF-8.
    NotUtf8(String),
    /// A line of the ignore file that means nothing.
    BadRule(String),
    /// A file or folder that cannot be read.
    Disk {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

impl fmt::Display for GatherError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatherError::Refused(refusal) => refusal.fmt(out),
            GatherError::Links(paths) => {
                let names: Vec<_> = paths.iter().take(8).map(|path| format!("`{path}`")).collect();
                let more = if paths.len() > 8 { ", …" } else { "" };
                let are = if paths.len() == 1 { "is a link" } else { "are links" };
                write!(out, "{}{more} {are}, and a package holds files only", names.join(", "))
            }
            GatherError::Special(path) => {
                write!(out, "`{path}` is a device, pipe or socket, and a package holds files only")
            }
            GatherError::NotUtf8(path) => write!(out, "the name of `{path}` is not UTF-8"),
            GatherError::BadRule(rule) => write!(out, "`{IGNORE_FILE}` has a bad rule: {rule}"),
            GatherError::Disk { path, .. } => write!(out, "failed to read `{}`", path.display()),
        }
    }
}

impl std::error::Error for GatherError {}

/// Finds the files of a folder that belong into a package.
pub fn gather(folder: &Path, limits: &Limits) -> Result<Gathered, GatherError> {
    let rules = rules(folder)?;
    let (files, left_out, links) = (Vec::new(), Vec::new(), Vec::new());
    let mut walk = Walk { rules, limits, files, left_out, links };
    walk.folder(folder, "", 0)?;
    let Walk { mut files, mut left_out, mut links, .. } = walk;
    if !links.is_empty() {
        links.sort();
        return Err(GatherError::Links(links));
    }
    left_out.sort();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let root =
        open_root(folder).map_err(|cause| GatherError::Disk { path: folder.to_owned(), cause })?;
    let gathered = Gathered { root, files, left_out };
    let names = gathered.files.iter().map(|file| (file.path.as_str(), Kind::File));
    check_names(names, limits).map_err(GatherError::Refused)?;
    check_total(&gathered.files, limits).map_err(GatherError::Refused)?;
    Ok(gathered)
}

impl Gathered {
    /// The files.
    pub fn files(&self) -> &[Found] {
        &self.files
    }
}

impl Contents for Gathered {
    fn paths(&self) -> Vec<&str> {
        self.files.iter().map(|file| file.path.as_str()).collect()
    }

    fn size(&self, path: &str) -> Option<u64> {
        self.files.iter().find(|file| file.path == path).map(|file| file.size)
    }

    fn is_executable(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path && file.executable)
    }

    /// Reads a file, but no more than it had when it was found, and through no link.
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let size = self.size(path).ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        let file = open_file(&self.root, path)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        file.take(size + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != size {
            let words = "changed while it was read";
            return Err(Refusal::entry(RefusalCode::SizeMismatch, path, words).into());
        }
        Ok(bytes)
    }
}

fn check_total(files: &[Found], limits: &Limits) -> Result<(), Refusal> {
    let total: u64 = files.iter().map(|file| file.size).sum();
    if total > limits.total_bytes {
        let message =
            format!("the files have {total} bytes; at most {} are allowed", limits.total_bytes);
        return Err(Refusal::new(RefusalCode::TotalTooLarge, message));
    }
    Ok(())
}

fn rules(folder: &Path) -> Result<Gitignore, GatherError> {
    let mut builder = GitignoreBuilder::new(folder);
    for rule in USUALLY_NOT {
        builder.add_line(None, rule).map_err(|error| GatherError::BadRule(error.to_string()))?;
    }
    let path = folder.join(IGNORE_FILE);
    let failed = |cause| GatherError::Disk { path: path.clone(), cause };
    let opened = open_root(folder).and_then(|root| open_file(&root, IGNORE_FILE));
    match opened {
        Ok(file) => {
            let mut text = String::new();
            file.take(MAX_IGNORE + 1).read_to_string(&mut text).map_err(failed)?;
            if text.len() as u64 > MAX_IGNORE {
                return Err(GatherError::BadRule(format!("it has more than {MAX_IGNORE} bytes")));
            }
            for line in text.trim_start_matches('\u{feff}').lines() {
                builder
                    .add_line(None, line)
                    .map_err(|error| GatherError::BadRule(error.to_string()))?;
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    builder.build().map_err(|error| GatherError::BadRule(error.to_string()))
}

struct Walk<'l> {
    rules: Gitignore,
    limits: &'l Limits,
    files: Vec<Found>,
    left_out: Vec<String>,
    links: Vec<String>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, above: &str, depth: usize) -> Result<(), GatherError> {
        let failed = |cause| GatherError::Disk { path: folder.to_owned(), cause };
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let path = format!("{above}{}", name.to_string_lossy());
            let kind = entry
                .file_type()
                .map_err(|cause| GatherError::Disk { path: entry.path(), cause })?;
            let is_never = NEVER.iter().any(|never| name.eq_ignore_ascii_case(never));
            if is_never || self.rules.matched(&path, kind.is_dir()).is_ignore() {
                self.left_out.push(path);
            } else if name.to_str().is_none() {
                return Err(GatherError::NotUtf8(path));
            } else if kind.is_dir() {
                if depth >= manifest::path::MAX_SEGMENTS {
                    let fault = manifest::path::PathFault::TooDeep;
                    return Err(GatherError::Refused(Refusal::path(&path, fault)));
                }
                self.folder(&entry.path(), &(path + "/"), depth + 1)?;
            } else if kind.is_symlink() {
                self.links.push(path);
            } else if kind.is_file() {
                self.file(&entry, path)?;
            } else {
                return Err(GatherError::Special(path));
            }
        }
        Ok(())
    }

    /// The name at the top beneath which most files lie so far.
    fn fullest(&self) -> &str {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for file in &self.files {
            *counts.entry(file.path.split('/').next().unwrap_or_default()).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map_or("", |(name, _)| name)
    }

    fn file(&mut self, entry: &fs::DirEntry, path: String) -> Result<(), GatherError> {
        let metadata =
            entry.metadata().map_err(|cause| GatherError::Disk { path: entry.path(), cause })?;
        let (size, limits) = (metadata.len(), self.limits);
        if size > limits.file_bytes {
            let words = format!("has {size} bytes; at most {} are allowed", limits.file_bytes);
            let refusal = Refusal::entry(RefusalCode::FileTooLarge, &path, words);
            return Err(GatherError::Refused(refusal));
        }
        // Two more may be added later: where the files come from, and who vouches for them.
        let most = limits.entries.saturating_sub(2);
        if self.files.len() >= most {
            let message = format!(
                "the folder has more than {most} files, most of them in `{}`",
                self.fullest()
            );
            return Err(GatherError::Refused(Refusal::new(RefusalCode::TooManyEntries, message)));
        }
        self.files.push(Found { path, size, executable: is_executable(&metadata) });
        Ok(())
    }
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

/// Elsewhere nothing says so.
#[cfg(not(unix))]
fn is_executable(_metadata: &fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        folder
    }

    fn packed(folder: &Path) -> Vec<String> {
        let gathered = gather(folder, &Limits::DEFAULT).unwrap();
        gathered.files.into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn everything_goes_in_but_what_never_does() {
        let folder = folder(&[
            "manifest.json",
            ".git/config",
            "sub/.git",
            "a/b.py",
            "a/__pycache__/b.pyc",
            "server/node_modules/.bin/x",
            "node_modules/x/index.js",
            "old-1.0.0.mcpkg",
            ".hidden",
        ]);
        assert_eq!(
            packed(folder.path()),
            [".hidden", "a/b.py", "manifest.json", "node_modules/x/index.js"]
        );
    }

    #[test]
    fn an_ignore_file_speaks_as_gitignore_does() {
        let folder =
            folder(&["manifest.json", "a.log", "keep.log", "build/x", "src/build/y", "z.pyc"]);
        fs::write(folder.path().join(IGNORE_FILE), "# notes\n*.log\n!keep.log\n/build/\n!z.pyc\n")
            .unwrap();
        assert_eq!(packed(folder.path()), ["keep.log", "manifest.json", "src/build/y", "z.pyc"]);
    }

    #[test]
    fn an_ignore_file_cannot_bring_a_repository_in() {
        let folder = folder(&["manifest.json", ".git/config"]);
        fs::write(folder.path().join(IGNORE_FILE), "!.git\n!.mcpkgignore\n").unwrap();
        assert_eq!(packed(folder.path()), ["manifest.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_pipes_are_refused_unless_they_stay_out() {
        let folder = folder(&["manifest.json"]);
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let error = gather(folder.path(), &Limits::DEFAULT).unwrap_err();
        assert!(matches!(&error, GatherError::Links(paths) if paths == &["link"]), "{error}");
        fs::write(folder.path().join(IGNORE_FILE), "link\n").unwrap();
        assert_eq!(packed(folder.path()), ["manifest.json"]);
    }

    #[test]
    fn limits_hold_for_folders_too() {
        let folder = folder(&["a", "bb", "CC"]);
        let code = |limits: Limits| match gather(folder.path(), &limits) {
            Err(GatherError::Refused(refusal)) => Some(refusal.code),
            _ => None,
        };
        let limits = Limits::DEFAULT;
        assert_eq!(code(Limits { entries: 4, ..limits }), Some(RefusalCode::TooManyEntries));
        assert_eq!(code(Limits { file_bytes: 1, ..limits }), Some(RefusalCode::FileTooLarge));
        assert_eq!(code(Limits { total_bytes: 4, ..limits }), Some(RefusalCode::TotalTooLarge));
        fs::write(folder.path().join("cc"), "").unwrap();
        assert_eq!(code(limits), Some(RefusalCode::CaseTwin));
    }
}
