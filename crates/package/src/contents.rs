//! The files of a package, wherever they are, and which of them is the manifest.

use manifest::dialect::skill;
use manifest::dialect::{Form, recognise};
use manifest::document::MAX_MANIFEST;
use manifest::folder::{Folder, FolderError, Script};
use manifest::json::parse;
use manifest::path::folded;

use rayon::prelude::*;

use crate::archive::Archive;
use crate::digest::{Digest, FileDigest, Listing};
use crate::refusal::{ReadError, Refusal, RefusalCode};

/// Names a manifest has by custom.
pub const MANIFEST_NAMES: [&str; 3] = ["manifest.json", "tools.json", "tool.json"];

/// The files of a package: on the disk, in an archive, in a bundle.
pub trait Contents: Sync {
    /// The paths of all files.
    fn paths(&self) -> Vec<&str>;

    /// The size of a file; nothing when it is not there.
    fn size(&self, path: &str) -> Option<u64>;

    /// Whether a file can be run.
    fn is_executable(&self, path: &str) -> bool;

    /// Reads a file that is there.
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError>;
}

impl Contents for Archive {
    fn paths(&self) -> Vec<&str> {
        self.entries().iter().map(|entry| entry.path.as_str()).collect()
    }

    fn size(&self, path: &str) -> Option<u64> {
        self.get(path).map(|entry| entry.size)
    }

    fn is_executable(&self, path: &str) -> bool {
        self.get(path).is_some_and(|entry| entry.executable)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        match self.get(path) {
            Some(entry) => Archive::read(self, entry),
            None => Err(ReadError::Disk(std::io::ErrorKind::NotFound.into())),
        }
    }
}

/// A package with one more file, which stands before one of the same path.
pub struct With<'c> {
    /// The package.
    pub contents: &'c dyn Contents,
    /// The path of the file.
    pub path: &'c str,
    /// What stands in it.
    pub content: &'c [u8],
}

impl Contents for With<'_> {
    fn paths(&self) -> Vec<&str> {
        let mut paths = self.contents.paths();
        paths.retain(|path| *path != self.path);
        paths.push(self.path);
        paths.sort_unstable();
        paths
    }

    fn size(&self, path: &str) -> Option<u64> {
        if path == self.path {
            return Some(self.content.len() as u64);
        }
        self.contents.size(path)
    }

    fn is_executable(&self, path: &str) -> bool {
        path != self.path && self.contents.is_executable(path)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        if path == self.path {
            return Ok(self.content.to_vec());
        }
        self.contents.read(path)
    }
}

/// A package without one of its files.
pub struct Except<'c> {
    /// The package.
    pub contents: &'c dyn Contents,
    /// The file that is left out.
    pub path: &'c str,
}

impl Contents for Except<'_> {
    fn paths(&self) -> Vec<&str> {
        self.contents.paths().into_iter().filter(|path| *path != self.path).collect()
    }

    fn size(&self, path: &str) -> Option<u64> {
        self.contents.size(path).filter(|_| path != self.path)
    }

    fn is_executable(&self, path: &str) -> bool {
        self.contents.is_executable(path)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        self.contents.read(path)
    }
}

/// Reads every file and gives its digest.
pub fn listing(contents: &dyn Contents) -> Result<Listing, ReadError> {
    let paths = contents.paths();
    let digests: Result<Vec<_>, ReadError> = paths
        .par_iter()
        .map(|path| {
            let content = contents.read(path)?;
            let (path, size) = ((*path).to_owned(), content.len() as u64);
            Ok(FileDigest { path, size, sha256: Digest::of(&content) })
        })
        .collect();
    Ok(Listing::new(digests?))
}

/// The path of the manifest: one of the customary names, else the one JSON file at the
/// top that is a manifest of some dialect, else the `SKILL.md` at the top. What another reader could take for the manifest
/// is refused beside it.
pub fn find_manifest(contents: &dyn Contents) -> Result<String, ReadError> {
    let paths = contents.paths();
    let customary: Vec<&str> = paths
        .iter()
        .copied()
        .filter(|path| MANIFEST_NAMES.contains(&folded(path).as_str()))
        .collect();
    if let Some(odd) = customary.iter().find(|path| !MANIFEST_NAMES.contains(path)) {
        let words = "is a manifest's name in other letters, which some systems take for it";
        return Err(Refusal::entry(RefusalCode::SeveralManifests, odd, words).into());
    }
    if let [only] = customary[..] {
        return Ok(only.to_owned());
    }
    let is_fallback = customary.is_empty();
    let candidates = if is_fallback {
        let at_top = |path: &&str| {
            path.rsplit_once('.').is_some_and(|(name, kind)| !name.contains('/') && kind == "json")
        };
        paths.into_iter().filter(at_top).collect()
    } else {
        customary
    };
    let mut manifests = Vec::new();
    for path in candidates {
        let is_small = contents.size(path).is_some_and(|size| size <= MAX_MANIFEST as u64);
        let judged = if is_small { judge(&contents.read(path)?) } else { Judged::Unclear };
        // A customary name counts unless it is plainly something else; any other only when it
        // plainly is a manifest.
        if judged == Judged::Manifest || (judged == Judged::Unclear && !is_fallback) {
            manifests.push(path.to_owned());
        }
    }
    let refusal = match manifests.len() {
        1 => return Ok(manifests.remove(0)),
        0 if contents.size(skill::FILE_NAME).is_some() => return Ok(skill::FILE_NAME.to_owned()),
        0 => {
            let names = MANIFEST_NAMES.map(|name| format!("`{name}`")).join(", ");
            let message = format!(
                "there is no manifest; looked for {names}, and any other JSON at the top that is one, such as `server.json`, or a `SKILL.md`"
            );
            Refusal::new(RefusalCode::NoManifest, message)
        }
        _ => {
            let names: Vec<_> = manifests.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("there is more than one manifest: {}", names.join(", "));
            Refusal::new(RefusalCode::SeveralManifests, message)
        }
    };
    Err(refusal.into())
}

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judged {
    /// A manifest of some dialect.
    Manifest,
    /// Something else, as every reader sees.
    Other,
    /// Not even plain JSON, so readers may differ.
    Unclear,
}

fn judge(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Unclear };
    let parsed = parse(text);
    match parsed.root {
        Some(root) if parsed.faults.is_empty() => match recognise(&root) {
            Some((_, Form::Manifest)) => Judged::Manifest,
            _ => Judged::Other,
        },
        _ => Judged::Unclear,
    }
}

/// The files around a manifest, for its checks.
#[derive(Clone, Copy)]
pub struct Around<'c>(pub &'c dyn Contents);

impl Folder for Around<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FolderError> {
        if self.0.size(path).is_some() {
            return self.0.read(path).map_err(|error| FolderError::Unreadable(error.to_string()));
        }
        let inside = format!("{path}/");
        let is_folder = self.0.paths().iter().any(|other| other.starts_with(&inside));
        Err(if is_folder { FolderError::NotAFile } else { FolderError::Missing })
    }

    fn test_files(&self) -> Vec<String> {
        let is_test = |path: &&str| {
            path.strip_prefix("tests/")
                .is_some_and(|name| name.ends_with(".test.json") && !name.contains('/'))
        };
        self.0.paths().into_iter().filter(is_test).map(str::to_owned).collect()
    }

    fn scripts(&self) -> Vec<Script> {
        let script = |path: &str| {
            let name = path.strip_prefix(manifest::skill::FOLDER)?.strip_prefix('/')?;
            let is_executable = self.0.is_executable(path);
            (!name.contains('/')).then(|| Script { name: name.to_owned(), is_executable })
        };
        self.0.paths().into_iter().filter_map(script).collect()
    }
}
