//! The files of a package, wherever they are, and which of them is the manifest.

use manifest::dialect::{Form, recognise};
use manifest::document::MAX_MANIFEST;
use manifest::folder::{Folder, FolderError};
use manifest::json::parse;

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
/// top that is a manifest of some dialect.
pub fn find_manifest(contents: &dyn Contents) -> Result<String, ReadError> {
    let customary: Vec<&str> =
        contents.paths().into_iter().filter(|path| MANIFEST_NAMES.contains(path)).collect();
    if let [only] = customary[..] {
        return Ok(only.to_owned());
    }
    let candidates = if customary.is_empty() {
        let at_top = |path: &&str| {
            path.rsplit_once('.').is_some_and(|(name, kind)| !name.contains('/') && kind == "json")
        };
        contents.paths().into_iter().filter(at_top).collect()
    } else {
        customary
    };
    let mut manifests = Vec::new();
    for path in candidates {
        if contents.size(path).is_some_and(|size| size <= MAX_MANIFEST as u64)
            && is_manifest(&contents.read(path)?)
        {
            manifests.push(path.to_owned());
        }
    }
    let refusal = match manifests.len() {
        1 => return Ok(manifests.remove(0)),
        0 => {
            let names = MANIFEST_NAMES.map(|name| format!("`{name}`")).join(", ");
            let message = format!("there is no manifest; looked for {names}");
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

fn is_manifest(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| parse(text).root.as_ref().and_then(recognise))
        .is_some_and(|(_, form)| form == Form::Manifest)
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
}
