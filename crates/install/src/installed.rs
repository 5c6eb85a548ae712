//! An installed package, read again from where it lies.

use std::fs;
use std::path::{Path, PathBuf};

use manifest::companion;
use manifest::document::{Options, read};
use manifest::folder::{Folder, FolderError, Script};
use manifest::model::Package;
use manifest::skill;
use package::digest::Digest;

use crate::error::{Doing, HomeError};
use crate::home::Home;
use crate::parcel::companion_of;
use crate::pinned::Pinned;
use crate::record::Record;
use crate::whole;

/// A package that lies in a home.
#[derive(Clone, Debug)]
pub struct Installed {
    /// What it says about itself.
    pub package: Package,
    /// The folder with its files.
    pub root: PathBuf,
    /// How it came here.
    pub record: Record,
}

impl Installed {
    /// Reads the version that is pinned. What is no longer what was agreed to is refused.
    pub fn load(home: &Home, pinned: &Pinned) -> Result<Self, HomeError> {
        let key = pinned.key().map_err(|error| broken(home.path(), &error.to_string()))?;
        let version = pinned.folder();
        let (root, record) = (home.folder(&key, &version), home.record(&key, &version)?);
        let path = root.join(&record.manifest);
        let bytes = fs::read(&path).map_err(|cause| Doing::Read(path.clone()).failed(cause))?;
        if Digest::of(&bytes) != pinned.manifest.0 {
            return Err(broken(&path, "it was changed after it was installed"));
        }
        let bare = pinned.parted().map_or(pinned.id.as_str(), |(_, id)| id);
        let options = Options { fallback_id: Some(bare), ..Options::default() };
        let (_, packages) = read(&bytes, &options)
            .map_err(|_| broken(&path, "its manifest is not valid any more"))?;
        let package = packages.into_iter().find(|package| package.canonical_id() == pinned.id);
        let mut package = package.ok_or_else(|| broken(&path, "it describes another package"))?;
        skill::apply(&Here(&root, &record), &mut package);
        let companion = companion_of(&Here(&root, &record))
            .map_err(|_| broken(&root, "its haft.json is not valid any more"))?;
        if let Some(companion) = companion {
            companion::apply(&companion, &mut package);
        }
        Ok(Self { package, root, record })
    }

    /// Every file that is not what it was, or is gone, those that were acquired among them.
    pub fn changed(&self) -> Vec<String> {
        whole::changed(&self.root, &self.record)
    }

    /// The same for the files of the package alone, which is quick enough for every call.
    pub fn changed_files(&self) -> Vec<String> {
        whole::changed_files(&self.root, &self.record)
    }
}

fn broken(path: &Path, why: &str) -> HomeError {
    HomeError::Broken { path: path.to_owned(), why: why.to_owned() }
}

/// The files of an installed package; we wrote them, and none of them is a link.
struct Here<'h>(&'h Path, &'h Record);

impl Folder for Here<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FolderError> {
        fs::read(self.0.join(path)).map_err(|_| FolderError::Missing)
    }

    fn test_files(&self) -> Vec<String> {
        Vec::new()
    }

    /// Those that were agreed to: what somebody put beside them later is none.
    fn scripts(&self) -> Vec<Script> {
        let script = |path: &str| {
            let name = path.strip_prefix(skill::FOLDER)?.strip_prefix('/')?;
            let is_executable = is_executable(&self.0.join(path));
            (!name.contains('/')).then(|| Script { name: name.to_owned(), is_executable })
        };
        self.1.files.iter().filter_map(|file| script(&file.path)).collect()
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o100 != 0)
}

#[cfg(not(unix))]
fn is_executable(_path: &Path) -> bool {
    false
}
