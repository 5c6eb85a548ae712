//! From a package that was agreed to, to files that are ready to be put in their place.

use std::fmt;

use manifest::model::Trust;
use package::digest::Digest;
use package::extract::{Durability, ExtractError, extract};

use crate::beside::Beside;
use crate::catalog;
use crate::changing::Ready;
use crate::error::HomeError;
use crate::journal::Draft;
use crate::parcel::{Parcel, Piece};
use crate::pinned::{Pinned, Sha256, Source, actions};
use crate::record::{Agreed, Record, files};

/// A package that was agreed to.
#[derive(Clone, Debug)]
pub struct Wanted<'w> {
    /// What it came in.
    pub parcel: &'w Parcel,
    /// Which of it is meant.
    pub piece: &'w Piece,
    /// Where it came from.
    pub source: Source,
    /// The file that it came in, where it came in one.
    pub archive: Option<Digest>,
    /// How far it is trusted.
    pub trust: Trust,
    /// What was agreed to.
    pub consent: Agreed,
    /// What was shown of what runs beside its calls.
    pub beside: Beside,
    /// When, in milliseconds since 1970.
    pub now: i64,
    /// The memory of a call when nobody says, in bytes.
    pub memory: u64,
}

/// Why files could not be made ready.
#[derive(Debug)]
pub enum StageError {
    /// The staging area could not be used.
    Home(HomeError),
    /// The files could not be written.
    Extract(ExtractError),
}

impl fmt::Display for StageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Home(error) => write!(out, "{error}"),
            Self::Extract(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for StageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Home(error) => error.source(),
            Self::Extract(error) => error.source(),
        }
    }
}

/// Writes the files of a package into a draft; they go with it.
pub fn stage(draft: &mut Draft, wanted: &Wanted<'_>) -> Result<Ready, StageError> {
    let Wanted { parcel, piece, .. } = wanted;
    let package = &piece.package;
    let room = draft.room();
    let folder = draft.folder().join(&room);
    let staged = extract(parcel.archive(), &folder).map_err(StageError::Extract)?;
    // They are put on the disk together with the rest of the change.
    let listing = staged.promote(Durability::Left).map_err(StageError::Extract)?;
    let pinned = Pinned {
        id: package.canonical_id(),
        version: package.semver(),
        kind: package.kind.name().to_owned(),
        actions: actions(package),
        source: wanted.source.clone(),
        package: Sha256(listing.digest()),
        manifest: Sha256(Digest::of(&piece.bytes)),
        archive: wanted.archive.map(Sha256),
        surface: None,
        artefacts: Vec::new(),
    };
    let entry = catalog::entry(package, &piece.bytes, &pinned, wanted.trust, wanted.memory);
    let record = Record {
        pinned,
        manifest: piece.manifest.clone(),
        trust: wanted.trust.name().to_owned(),
        consent: wanted.consent.clone(),
        installed: wanted.now,
        replaced: None,
        acquired: None,
        surface: None,
        beside: wanted.beside.clone(),
        files: files(&listing),
    };
    Ok(Ready { room, folder, record, entry })
}
