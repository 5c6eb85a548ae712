//! Packages at paths of this machine.

use std::path::Path;

use install::{Parcel, ParcelError, Source};
use manifest::dialect::{Dialect, skill};
use manifest::document::{Options, read};
use manifest::model::{Acquire, Package, Trust};
use package::contents::MANIFEST_NAMES;
use package::digest::Digest;
use package::gather::gather;
use package::limits::Limits;

use super::{Fetched, Fetching};
use crate::exit::Failure;
use crate::printer::line;
use crate::{container, disk, draw};

impl Fetching<'_> {
    /// What is at a path that the owner typed.
    pub(super) fn path(&self, path: &Path) -> Result<Fetched, Failure> {
        let absolute =
            path.canonicalize().map_err(|error| Failure::unread(path.display(), error))?;
        let (parcel, archive) = self.read_path(&absolute, path)?;
        let because = "you typed its path".to_owned();
        let source = Source::Path(absolute.display().to_string());
        self.known(parcel, source, archive, (Trust::Local, because))
    }

    /// Reads a folder, an archive, a bundle or a manifest, which is told under another name; with the digest of the
    /// file that it came in.
    pub(super) fn read_path(
        &self,
        absolute: &Path,
        told: &Path,
    ) -> Result<(Parcel, Option<Digest>), Failure> {
        let opened =
            |parcel: Result<Parcel, ParcelError>| parcel.map_err(|error| self.refused(told, error));
        if absolute.is_dir() {
            return Ok((opened(self.folder(absolute)?)?, None));
        }
        if container::is_archive(absolute) || super::is_bundle(&disk::read(absolute)?) {
            let container = container::open(absolute, self.printer)?;
            let (digest, name) = (container.digest, container.name());
            let archive = container.into_archive()?;
            let parcel = opened(Parcel::open(archive, self.id.unwrap_or(&name)))?;
            return Ok((parcel, Some(digest)));
        }
        Ok((opened(self.manifest(absolute)?)?, None))
    }

    /// The files of a folder.
    fn folder(&self, folder: &Path) -> Result<Result<Parcel, ParcelError>, Failure> {
        check_has_manifest(folder)?;
        let gathered = gather(folder, &Limits::DEFAULT)
            .map_err(|error| Failure::invalid(error.to_string()))?;
        let name =
            folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let parcel = Parcel::pack(&gathered, self.id.unwrap_or(&name));
        let is_misnamed =
            |package: &Package| package.dialect == Dialect::Skill && package.id != name;
        let pieces = parcel.iter().flat_map(|parcel| &parcel.pieces);
        if let Some(piece) = pieces.into_iter().find(|piece| is_misnamed(&piece.package)) {
            let id = line(&piece.package.id);
            let message = format!("the skill is called `{id}`, and its folder `{}`", line(&name));
            return Err(Failure::invalid(message)
                .hint("give both the same name: agents look for a skill by its folder"));
        }
        Ok(parcel)
    }

    /// A manifest by itself; where it speaks of files that come with it, those around it too.
    fn manifest(&self, file: &Path) -> Result<Result<Parcel, ParcelError>, Failure> {
        let bytes = disk::read(file)?;
        let name = disk::folder_name(file).unwrap_or_default();
        let fallback = self.id.unwrap_or(&name);
        let options = Options { fallback_id: Some(fallback), ..Options::default() };
        let (_, packages) = read(&bytes, &options)
            .map_err(|report| draw::refused(file, &bytes, &report, self.printer))?;
        let with_files =
            |acquire: &Acquire| matches!(acquire, Acquire::Bundle | Acquire::LocalPath { .. });
        let folder =
            file.parent().filter(|_| packages.iter().any(|package| with_files(&package.acquire)));
        match folder {
            Some(folder) => {
                let named = file.file_name().map(|name| name.to_string_lossy().into_owned());
                let parcel = self.folder(folder)?;
                Ok(parcel.and_then(|parcel| {
                    parcel.narrowed(named.as_deref().unwrap_or_default(), fallback)
                }))
            }
            None => Ok(Parcel::of_manifest(bytes, fallback)),
        }
    }
}

/// Refuses a folder that holds nothing that could be a manifest, before all that lies below it is read.
fn check_has_manifest(folder: &Path) -> Result<(), Failure> {
    let entries = folder.read_dir().map_err(|error| Failure::unread(folder.display(), error))?;
    let could_be = |name: &str| name == skill::FILE_NAME || name.to_lowercase().ends_with(".json");
    let names = entries.flatten().map(|entry| entry.file_name());
    if names.into_iter().any(|name| could_be(&name.to_string_lossy())) {
        return Ok(());
    }
    let message = format!("`{}` holds no package: there is no manifest in it", folder.display());
    let names: Vec<_> = MANIFEST_NAMES.iter().map(|name| format!("`{name}`")).collect();
    Err(Failure::invalid(message).hint(format!(
        "a package has {}, or another JSON at its top that is a manifest, such as `server.json`, or a `{}`",
        names.join(", "),
        skill::FILE_NAME
    )))
}
