//! Manifests on the disk: reading them within limits, finding them, what stands beside them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use manifest::dialect::{Dialect, skill};
use manifest::document::{MAX_MANIFEST, size_limit};
use manifest::folder::{Folder, FolderError, Script};

use crate::exit::{Exit, Failure};

/// Folders that never hold manifests of one's own.
pub(crate) const SKIPPED: [&str; 5] =
    ["node_modules", "target", "__pycache__", "venv", "site-packages"];

/// Hidden folders that do.
const SEEN: [&str; 2] = [".well-known", ".mcp"];

/// How deep below a folder manifests are looked for.
const MAX_DEPTH: usize = 32;

/// Reads a file named by the user; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        return read_bounded(&mut std::io::stdin().lock(), None).map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to read standard input").cause(error)
        });
    }
    let failed = |error: std::io::Error| Failure::unread(path.display(), error);
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    read_bounded(&mut file, Some(length)).map_err(failed)
}

/// Reads as much of a file as its kind may have, and one byte more, so that the excess is seen.
fn read_bounded(source: &mut impl Read, length: Option<u64>) -> std::io::Result<Vec<u8>> {
    let capacity =
        length.map_or(0, |length| usize::try_from(length).unwrap_or(usize::MAX).min(MAX_MANIFEST));
    let mut bytes = Vec::with_capacity(capacity + 1);
    source.by_ref().take(MAX_MANIFEST as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_MANIFEST {
        let limit = size_limit(&bytes);
        if limit > MAX_MANIFEST {
            source.take((limit + 1 - bytes.len()) as u64).read_to_end(&mut bytes)?;
        }
    }
    Ok(bytes)
}

/// The manifest a user means: the file itself, or the one in a folder.
pub(crate) fn manifest_in(path: &Path) -> Result<PathBuf, Failure> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let names = package::contents::MANIFEST_NAMES;
    let mut found = names.iter().map(|name| path.join(name)).filter(|file| file.is_file());
    let folder = path.display();
    match (found.next(), found.next()) {
        (Some(file), None) => Ok(file),
        (None, _) => Err(Failure::new(Exit::NotFound, format!("no manifest in `{folder}`"))
            .hint(format!("looked for {}", names.join(", ")))),
        (Some(_), Some(_)) => {
            Err(Failure::invalid(format!("more than one manifest in `{folder}`"))
                .hint("name the file"))
        }
    }
}

/// The files below a folder that may be manifests of a dialect, or of any, sorted; those of skills are no JSON. Links are
/// not followed.
pub(crate) fn document_files(
    folder: &Path,
    dialect: Option<Dialect>,
) -> Result<Vec<PathBuf>, Failure> {
    let is_meant = |name: &str| match (dialect, name == skill::FILE_NAME) {
        (None, true) | (Some(Dialect::Skill), _) => name == skill::FILE_NAME,
        (_, is_skill) => {
            !is_skill && Path::new(name).extension().is_some_and(|kind| kind == "json")
        }
    };
    let mut found = Vec::new();
    let mut left = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = left.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| {
            Failure::new(Exit::Unavailable, format!("failed to list `{}`", folder.display()))
                .cause(error)
        })?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else { continue };
            let is_hidden = name.starts_with('.') && !SEEN.contains(&name.as_ref());
            if kind.is_dir() && !is_hidden && !SKIPPED.contains(&name.as_ref()) && depth < MAX_DEPTH
            {
                left.push((entry.path(), depth + 1));
            } else if kind.is_file() && !is_hidden && is_meant(&name) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The folder a manifest stands in.
#[derive(Debug)]
pub(crate) struct Beside(PathBuf);

impl Beside {
    /// What stands beside a file.
    pub(crate) fn of(path: &Path) -> Self {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Self(parent.unwrap_or(Path::new(".")).to_owned())
    }
}

impl Folder for Beside {
    fn read(&self, path: &str) -> Result<Vec<u8>, FolderError> {
        let mut current = self.0.clone();
        for segment in path.split('/') {
            if matches!(segment, "" | "." | "..") {
                return Err(FolderError::Missing);
            }
            current.push(segment);
            // A link could lead anywhere, so none is followed, at any step.
            match current.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => return Err(FolderError::NotAFile),
                Ok(_) => {}
                Err(_) => return Err(FolderError::Missing),
            }
        }
        if !current.is_file() {
            return Err(FolderError::NotAFile);
        }
        read(&current).map_err(|failure| FolderError::Unreadable(failure.causes.join(": ")))
    }

    fn test_files(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.join("tests")) else { return Vec::new() };
        let mut paths: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.ends_with(".test.json"))
            .map(|name| format!("tests/{name}"))
            .collect();
        paths.sort();
        paths
    }

    fn scripts(&self) -> Vec<Script> {
        let Ok(entries) = std::fs::read_dir(self.0.join(manifest::skill::FOLDER)) else {
            return Vec::new();
        };
        let script = |entry: std::fs::DirEntry| {
            // A link could lead anywhere.
            let found = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            let name = entry.file_name().into_string().ok()?;
            Some(Script { name, is_executable: is_executable(&found) })
        };
        entries.flatten().filter_map(script).collect()
    }
}

#[cfg(unix)]
fn is_executable(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_found: &std::fs::Metadata) -> bool {
    false
}

/// The id of a manifest that has none of its own: the name of its folder.
pub(crate) fn folder_name(path: &Path) -> Option<String> {
    let absolute = std::path::absolute(path).ok()?;
    Some(absolute.parent()?.file_name()?.to_string_lossy().into_owned())
}
