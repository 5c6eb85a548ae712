//! A package as it came: its files, what its manifest says, and who vouches for it.

use std::fmt;
use std::sync::Arc;

use manifest::companion::{self, Companion};
use manifest::dialect::{Form, skill as skill_file};
use manifest::document::{Options, Report, check, read};
use manifest::folder::{COMPANION, Folder, LAYERS};
use manifest::json::parse;
use manifest::model::Package;
use manifest::skill;
use package::archive::{Archive, Trailer};
use package::contents::{Around, Contents, find_manifest};
use package::digest::{Digest, Listing};
use package::limits::Limits;
use package::pack::{PackError, Packing, Secrets, pack};
use package::refusal::ReadError;
use package::signature::{self, State, Verdict};

use crate::record::OURS;

/// A package that was read whole: every file was seen, and the manifest has no errors.
#[derive(Debug)]
pub struct Parcel {
    archive: Archive,
    /// Its files with their digests.
    pub listing: Listing,
    /// What its manifest describes, or the entries of its catalogs.
    pub pieces: Vec<Piece>,
    /// What its signatures come to.
    pub verdict: Verdict,
}

/// One package of a parcel.
#[derive(Clone, Debug)]
pub struct Piece {
    /// What it says about itself.
    pub package: Package,
    /// The path of its manifest, or of the catalog that it is in.
    pub manifest: String,
    /// What stands there.
    pub bytes: Arc<[u8]>,
}

/// Why something cannot be installed as a package.
#[derive(Debug)]
pub enum ParcelError {
    /// It cannot be read, or is refused.
    Read(ReadError),
    /// It cannot be packed.
    Pack(PackError),
    /// The manifest has errors.
    Invalid {
        /// Its path.
        path: String,
        /// What stands in it.
        bytes: Vec<u8>,
        /// What is wrong with it.
        report: Box<Report>,
    },
    /// Its manifest describes nothing that could be installed.
    NoPackage(Form),
    /// It was changed after it was signed.
    Changed(Vec<String>),
    /// It has files where only we write.
    Ours(String),
    /// There is more in its signature file than a signature.
    Signature,
}

impl fmt::Display for ParcelError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(out, "{error}"),
            Self::Pack(error) => write!(out, "{error}"),
            Self::Invalid { path, .. } => write!(out, "the manifest `{path}` is not valid"),
            Self::NoPackage(form) => write!(out, "it holds no package but {}", form.noun()),
            Self::Changed(_) => out.write_str("it was changed after it was signed"),
            Self::Ours(path) => {
                write!(out, "it has a file `{path}`, and only haft writes below `{OURS}/`")
            }
            Self::Signature => {
                write!(out, "`{}` has more than {} bytes", signature::PATH, signature::MAX_FILE)
            }
        }
    }
}

impl std::error::Error for ParcelError {}

impl From<ReadError> for ParcelError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl Parcel {
    /// Reads an archive; a manifest without an id gets this one.
    pub fn open(archive: Archive, fallback_id: &str) -> Result<Self, ParcelError> {
        let ours = |path: &str| path == OURS || path.starts_with(&format!("{OURS}/"));
        if let Some(entry) = archive.entries().iter().find(|entry| ours(&entry.path)) {
            return Err(ParcelError::Ours(entry.path.clone()));
        }
        let mut pieces = match find_manifest(&archive) {
            Ok(manifest) => read_at(&archive, &manifest, fallback_id)?,
            Err(refused) => {
                let catalogs = catalogs(&archive, fallback_id)?;
                if catalogs.is_empty() {
                    return Err(refused.into());
                }
                catalogs
            }
        };
        apply_around(&archive, &mut pieces)?;
        let listing = archive.listing()?;
        let signed = match Contents::size(&archive, signature::PATH) {
            Some(size) if size > signature::MAX_FILE => return Err(ParcelError::Signature),
            Some(_) => Some(Contents::read(&archive, signature::PATH)?),
            None => None,
        };
        let verdict = signature::check(&listing, signed.as_deref());
        if verdict.state == State::Invalid {
            return Err(ParcelError::Changed(verdict.faults));
        }
        Ok(Self { archive, listing, pieces, verdict })
    }

    /// Packs files first: those of a folder, or of a bundle.
    pub fn pack(contents: &dyn Contents, fallback_id: &str) -> Result<Self, ParcelError> {
        let mut bytes = Vec::new();
        let packing = Packing { contents, secrets: Secrets::NotLookedFor };
        pack(&packing, &mut bytes).map_err(ParcelError::Pack)?;
        Self::open(Archive::from_bytes(bytes, Trailer::Refused, &Limits::DEFAULT)?, fallback_id)
    }

    /// The same files, and of what they describe only what one of them does.
    pub fn narrowed(mut self, manifest: &str, fallback_id: &str) -> Result<Self, ParcelError> {
        let found = self.archive.get(manifest).is_some();
        if found && self.pieces.iter().any(|piece| piece.manifest != manifest) {
            self.pieces = read_at(&self.archive, manifest, fallback_id)?;
            apply_around(&self.archive, &mut self.pieces)?;
        }
        Ok(self)
    }

    /// A manifest that stands for itself: everything it needs is acquired, or reached elsewhere.
    pub fn of_manifest(bytes: Vec<u8>, fallback_id: &str) -> Result<Self, ParcelError> {
        Self::pack(&Alone(bytes), fallback_id)
    }

    /// The files, to be extracted.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// What stands for all its files.
    pub fn digest(&self) -> Digest {
        self.listing.digest()
    }
}

/// What stands beside manifests counts for all of them.
fn apply_around(archive: &Archive, pieces: &mut [Piece]) -> Result<(), ParcelError> {
    let companion = companion_of(&Around(archive))?;
    for piece in pieces {
        skill::apply(&Around(archive), &mut piece.package);
        if let Some(companion) = &companion {
            companion::apply(companion, &mut piece.package);
        }
    }
    Ok(())
}

/// What the manifest at a path describes.
fn read_at(archive: &Archive, path: &str, fallback_id: &str) -> Result<Vec<Piece>, ParcelError> {
    let bytes = Contents::read(archive, path)?;
    let options = Options { fallback_id: Some(fallback_id), ..Options::default() };
    let (report, packages) = match read(&bytes, &options) {
        Ok(read) => read,
        Err(report) => {
            let (path, report) = (path.to_owned(), Box::new(report));
            return Err(ParcelError::Invalid { path, bytes, report });
        }
    };
    let form = report.form.unwrap_or(Form::Manifest);
    if packages.is_empty() || !matches!(form, Form::Manifest | Form::Catalog | Form::Bundle) {
        return Err(ParcelError::NoPackage(form));
    }
    let bytes: Arc<[u8]> = bytes.into();
    let piece = |package| Piece { package, manifest: path.to_owned(), bytes: Arc::clone(&bytes) };
    Ok(packages.into_iter().map(piece).collect())
}

/// The entries of both layers of a catalog, or of one of them; those above take the place of those below.
fn catalogs(archive: &Archive, fallback_id: &str) -> Result<Vec<Piece>, ParcelError> {
    let mut pieces: Vec<Piece> = Vec::new();
    for name in [LAYERS.0, LAYERS.1] {
        if archive.get(name).is_none() {
            continue;
        }
        for piece in read_at(archive, name, fallback_id)? {
            match pieces.iter_mut().find(|one| one.package.id == piece.package.id) {
                Some(under) => {
                    let trust = under.package.trust.min(piece.package.trust);
                    *under = piece;
                    under.package.trust = trust;
                }
                None => pieces.push(piece),
            }
        }
    }
    Ok(pieces)
}

/// A manifest and no other file.
struct Alone(Vec<u8>);

impl Alone {
    /// What it is called that had no folder of its own.
    fn name(&self) -> &'static str {
        let is_skill = std::str::from_utf8(&self.0).is_ok_and(skill_file::is_skill);
        if is_skill { skill_file::FILE_NAME } else { MANIFEST }
    }
}

impl Contents for Alone {
    fn paths(&self) -> Vec<&str> {
        vec![self.name()]
    }

    fn size(&self, path: &str) -> Option<u64> {
        (path == self.name()).then_some(self.0.len() as u64)
    }

    fn is_executable(&self, _path: &str) -> bool {
        false
    }

    fn read(&self, _path: &str) -> Result<Vec<u8>, ReadError> {
        Ok(self.0.clone())
    }
}

/// What a manifest in JSON is called that had no folder of its own.
const MANIFEST: &str = "manifest.json";

/// The companion beside a manifest, where there is one.
pub fn companion_of(folder: &dyn Folder) -> Result<Option<Companion>, ParcelError> {
    let found = |name: &&str| Some(((*name).to_owned(), folder.read(name).ok()?));
    let Some((path, bytes)) = [COMPANION, "meta/haft.json"].iter().find_map(found) else {
        return Ok(None);
    };
    let report = check(&bytes, &Options { form: Some(Form::Companion), ..Options::default() });
    let text = std::str::from_utf8(&bytes).ok().filter(|_| report.is_valid());
    match text.and_then(|text| parse(text).root) {
        Some(root) => Ok(Some(companion::read(&root))),
        None => Err(ParcelError::Invalid { path, report: Box::new(report), bytes }),
    }
}
