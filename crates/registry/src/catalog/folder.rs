//! A folder with manifests and packages.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use manifest::dialect::{Form, skill};
use manifest::document::{MAX_MANIFEST, Options, read as read_document};
use manifest::model::Package;
use package::archive::{Archive, Trailer};
use package::contents::{Contents, MANIFEST_NAMES, find_manifest};
use package::limits::Limits;

use super::read::{Held, Listed, Listing};

/// How deep below the folder is looked.
const DEEPEST: usize = 4;
/// How many files and folders are looked at.
const MOST: usize = 20_000;

/// Finds the packages below a folder: manifests under their usual names, skills, and archives. Links are not followed.
pub(super) fn read(folder: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let mut left = vec![(folder.to_owned(), 0)];
    let mut looked_at = 0;
    let mut is_first = true;
    while let Some((folder, depth)) = left.pop() {
        let entries = match fs::read_dir(&folder) {
            // The one that was named must be there; one below may be closed.
            Err(error) if is_first => return Err(error),
            Err(error) => {
                listing.warn(format!("`{}`: {error}", folder.display()));
                continue;
            }
            Ok(entries) => entries,
        };
        is_first = false;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            looked_at += 1;
            if looked_at > MOST {
                listing.warn(format!("more than {MOST} files; the rest was passed over"));
                return Ok(listing);
            }
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            if found.is_dir() && depth < DEEPEST && !is_hidden(&path) {
                left.push((path, depth + 1));
            } else if found.is_file() {
                match one(&path) {
                    Some(Ok(package)) => {
                        let held = Held::File(path);
                        listing.packages.push(Listed { package, held });
                    }
                    Some(Err(why)) => listing.warn(format!("`{}`: {why}", path.display())),
                    None => {}
                }
            }
        }
    }
    Ok(listing)
}

/// The package of a file; none where the file is no such thing.
fn one(path: &Path) -> Option<Result<Package, String>> {
    let name = path.file_name()?.to_str()?;
    if MANIFEST_NAMES.contains(&name) {
        return Some(manifest_at(path));
    }
    // A skill that has a manifest beside it is what that says.
    if name == skill::FILE_NAME
        && !MANIFEST_NAMES.iter().any(|one| path.with_file_name(one).exists())
    {
        return Some(manifest_at(path));
    }
    let is_package = path.extension().is_some_and(|kind| kind == "mcpkg");
    is_package.then(|| packed(path))
}

fn manifest_at(path: &Path) -> Result<Package, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(MAX_MANIFEST as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    let id = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    document(&bytes, id.as_deref())
}

fn packed(path: &Path) -> Result<Package, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let archive = Archive::open(file, Trailer::Refused, &Limits::DEFAULT);
    let archive = archive.map_err(|error| error.to_string())?;
    let manifest = find_manifest(&archive).map_err(|error| error.to_string())?;
    let bytes = Contents::read(&archive, &manifest).map_err(|error| error.to_string())?;
    document(&bytes, path.file_stem().map(|name| name.to_string_lossy()).as_deref())
}

fn document(bytes: &[u8], id: Option<&str>) -> Result<Package, String> {
    let options = Options { fallback_id: id, ..Options::default() };
    match read_document(bytes, &options) {
        Ok((report, mut packages))
            if report.form == Some(Form::Manifest) && packages.len() == 1 =>
        {
            Ok(packages.remove(0))
        }
        Ok(_) => Err("it is no manifest of one package".to_owned()),
        Err(report) => {
            Err(report.findings.first().map_or_else(String::new, |one| one.message.clone()))
        }
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}
