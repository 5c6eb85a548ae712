//! A package in one file: an archive or a bundle, opened as the user named it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use install::parcel::companion_of;
use manifest::companion;
use manifest::dialect::{Dialect, Form};
use manifest::document::{MAX_BUNDLE, Options, read};
use manifest::folder::{FileReport, check_with_folder};
use manifest::json::parse;
use manifest::model::Package;
use package::archive::{Archive, Trailer};
use package::bundle::{Bundle, BundleError};
use package::contents::{Around, Contents, find_manifest};
use package::digest::{Digest, Listing};
use package::limits::Limits;
use package::pack::{Packing, Secrets, pack};
use package::refusal::ReadError;
use package::signature::{self, State, Verdict};

use crate::draw;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

/// Archives by the end of their name.
const ARCHIVES: [&str; 4] = ["mcpkg", "mcpb", "dxt", "zip"];
/// Those that may carry a signature after the archive.
const WITH_TRAILER: [&str; 2] = ["mcpb", "dxt"];

/// A package in one file.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) path: PathBuf,
    pub(crate) inside: Inside,
    /// The digest of the file itself.
    pub(crate) digest: Digest,
    pub(crate) size: u64,
}

#[derive(Debug)]
pub(crate) enum Inside {
    Archive(Archive),
    Bundle(Bundle),
}

/// What a package says about itself.
pub(crate) struct Described {
    /// Where the manifest is.
    pub(crate) manifest: String,
    /// The manifest first, then the files it speaks of.
    pub(crate) reports: Vec<FileReport>,
    /// What it comes to, when it is valid.
    pub(crate) package: Option<Package>,
}

/// Whether a file is an archive, by its name or by how it begins.
pub(crate) fn is_archive(path: &Path) -> bool {
    if has_kind(path, &ARCHIVES) {
        return true;
    }
    if !path.is_file() {
        return false;
    }
    let mut begins = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut begins));
    read.is_ok() && (&begins == b"PK\x03\x04" || &begins == b"PK\x05\x06")
}

fn has_kind(path: &Path, kinds: &[&str]) -> bool {
    path.extension().is_some_and(|kind| kinds.iter().any(|known| kind.eq_ignore_ascii_case(known)))
}

/// Opens the package in a file.
pub(crate) fn open(path: &Path, printer: Printer) -> Result<Container, Failure> {
    let failed = |error: std::io::Error| Failure::unread(path.display(), error);
    if path.is_dir() {
        let message = format!("`{}` is a folder, not a package", path.display());
        return Err(Failure::invalid(message).hint("`haft pack` makes a package of it"));
    }
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        let message = format!("`{}` is no file; a package is read at any place", path.display());
        return Err(Failure::invalid(message).hint("write it to a file first"));
    }
    let mut file = File::open(path).map_err(failed)?;
    let size = metadata.len();
    let path = path.to_owned();
    if is_archive(&path) {
        let trailer = if has_kind(&path, &WITH_TRAILER) { Trailer::Mcpb } else { Trailer::Refused };
        let archive = Archive::open(file, trailer, &Limits::DEFAULT)
            .map_err(|error| refused(&path, &error))?;
        let digest = archive.digest().map_err(failed)?;
        return Ok(Container { path, inside: Inside::Archive(archive), digest, size });
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_BUNDLE as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    let is_bundle = std::str::from_utf8(&bytes).is_ok_and(|text| {
        let root = parse(text).root;
        root.is_some_and(|root| root.get("manifest").is_some() && root.get("files").is_some())
    });
    if !is_bundle {
        let message = format!("`{}` is neither an archive nor a bundle", path.display());
        return Err(Failure::invalid(message).hint(
            "`haft validate` looks at a manifest by itself, and `haft pack` takes its folder",
        ));
    }
    let digest = Digest::of(&bytes);
    let bundle = Bundle::read(&bytes, &Limits::DEFAULT)
        .map_err(|error| bad_bundle(&path, &bytes, error, printer))?;
    Ok(Container { path, inside: Inside::Bundle(bundle), digest, size })
}

impl Container {
    /// Its files.
    pub(crate) fn contents(&self) -> &dyn Contents {
        match &self.inside {
            Inside::Archive(archive) => archive,
            Inside::Bundle(bundle) => bundle,
        }
    }

    /// Reads every file and gives its digest.
    pub(crate) fn listing(&self) -> Result<Listing, Failure> {
        let listing = match &self.inside {
            Inside::Archive(archive) => archive.listing(),
            Inside::Bundle(bundle) => package::contents::listing(bundle),
        };
        listing.map_err(|error| refused(&self.path, &error))
    }

    /// What its signatures come to.
    pub(crate) fn verdict(&self, listing: &Listing) -> Result<Verdict, Failure> {
        let content = self.signature()?;
        Ok(signature::check(listing, content.as_deref()))
    }

    /// Refuses a package that was changed after it was signed; gives its files.
    pub(crate) fn check_unbroken(&self) -> Result<Listing, Failure> {
        let listing = self.listing()?;
        let verdict = self.verdict(&listing)?;
        if verdict.state != State::Invalid {
            return Ok(listing);
        }
        let message = format!("`{}` was changed after it was signed", self.path.display());
        Err(Failure::invalid(message).details(verdict.faults))
    }

    /// What stands in its signature file.
    pub(crate) fn signature(&self) -> Result<Option<Vec<u8>>, Failure> {
        match self.contents().size(signature::PATH) {
            None => Ok(None),
            Some(size) if size > signature::MAX_FILE => Err(Failure::invalid(format!(
                "`{}` of `{}` has more than {} bytes",
                signature::PATH,
                self.path.display(),
                signature::MAX_FILE
            ))),
            Some(_) => self.read(signature::PATH).map(Some),
        }
    }

    /// Reads one file.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Failure> {
        self.contents().read(path).map_err(|error| refused(&self.path, &error))
    }

    /// The archive; that of a bundle is made in memory.
    pub(crate) fn into_archive(self) -> Result<Archive, Failure> {
        match self.inside {
            Inside::Archive(archive) => Ok(archive),
            Inside::Bundle(bundle) => {
                let mut bytes = Vec::new();
                let packing = Packing { contents: &bundle, secrets: Secrets::NotLookedFor };
                pack(&packing, &mut bytes).map_err(|error| Failure::invalid(error.to_string()))?;
                Archive::from_bytes(bytes, Trailer::Refused, &Limits::DEFAULT)
                    .map_err(|error| refused(&self.path, &error))
            }
        }
    }

    /// What is wrong with its manifest and the files it speaks of.
    pub(crate) fn reports(&self, dialect: Option<Dialect>) -> Result<Vec<FileReport>, Failure> {
        let (path, bytes) = self.manifest()?;
        let name = self.name();
        let options = Options { dialect, fallback_id: Some(&name), ..Options::default() };
        Ok(check_with_folder(&path, bytes, &options, &Around(self.contents())))
    }

    /// Its manifest: where it is, and what stands in it.
    pub(crate) fn manifest(&self) -> Result<(String, Vec<u8>), Failure> {
        let path = find_manifest(self.contents()).map_err(|error| refused(&self.path, &error))?;
        let bytes = self.read(&path)?;
        Ok((path, bytes))
    }

    /// What it says about itself.
    pub(crate) fn described(&self, id: Option<&str>) -> Result<Described, Failure> {
        let fallback = id.map_or_else(|| self.name(), str::to_owned);
        describe(self.contents(), &fallback, &self.path)
    }

    /// The name of a package that has no id of its own: that of its file, without the version.
    pub(crate) fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match stem.rsplit_once("-0.0.0+") {
            Some((name, sha)) if sha.len() == 12 => name.to_owned(),
            _ => stem,
        }
    }
}

/// Finds the manifest among files, checks it and reads it.
pub(crate) fn describe(
    contents: &dyn Contents,
    fallback_id: &str,
    path: &Path,
) -> Result<Described, Failure> {
    let manifest = find_manifest(contents).map_err(|error| refused(path, &error))?;
    let bytes = contents.read(&manifest).map_err(|error| refused(path, &error))?;
    let options = Options { fallback_id: Some(fallback_id), ..Options::default() };
    let package = read(&bytes, &options).ok().and_then(|(report, mut packages)| {
        let is_one = report.form == Some(Form::Manifest) && packages.len() == 1;
        is_one.then(|| packages.remove(0))
    });
    let mut package = package;
    if let Some(package) = &mut package {
        manifest::skill::apply(&Around(contents), package);
    }
    if let (Some(package), Some(companion)) =
        (&mut package, companion_of(&Around(contents)).ok().flatten())
    {
        companion::apply(&companion, package);
    }
    let reports = check_with_folder(&manifest, bytes, &options, &Around(contents));
    Ok(Described { manifest, reports, package })
}

/// What to say of a package that is refused.
pub(crate) fn refused(path: &Path, error: &ReadError) -> Failure {
    let shown = path.display();
    match error {
        ReadError::Refused(refusal) => Failure::invalid(format!("`{shown}` is refused"))
            .cause(format!("{refusal} [{}]", refusal.code)),
        ReadError::Disk(error) => {
            Failure::new(Exit::Unavailable, format!("failed to read `{shown}`")).cause(error)
        }
    }
}

/// What to say of a bundle that cannot be read or written.
pub(crate) fn bad_bundle(
    path: &Path,
    bytes: &[u8],
    error: BundleError,
    printer: Printer,
) -> Failure {
    match error {
        BundleError::Invalid(report) => draw::refused(path, bytes, &report, printer),
        BundleError::Read(error) => refused(path, &error),
        BundleError::Missing(missing) => {
            let message =
                format!("a Jumith registry must know what `{}` does not say", path.display());
            let asked =
                missing.iter().map(|missing| format!("{}: {}", missing.pointer, missing.what));
            Failure::invalid(message)
                .details(asked)
                .hint("give it with --set, for example --set /entry/main=dist/index.js")
        }
        BundleError::Convert(_) => {
            let message = format!("`{}` cannot be described for a Jumith registry", path.display());
            Failure::invalid(message)
                .hint("`haft convert --to jumith` says why; a bundle holds a tool with one action")
        }
    }
}
