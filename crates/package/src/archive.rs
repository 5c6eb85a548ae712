//! A zip archive, opened strictly.
//!
//! Whoever has an [`Archive`] knows that its structure is sound: the entries
//! stand one after the other from the first byte on, the directory follows, the
//! end record ends the file, both headers of each entry agree, every path is
//! plain and no two are one. So every reader of these bytes sees the same files.

mod directory;
mod entry;

use std::fs::File;
use std::io;

use rayon::prelude::*;

pub use crate::content::Entry;
use crate::content::{self, Sink};
use crate::digest::{Digest, FileDigest, Hasher, Listing};
use crate::limits::Limits;
use crate::mcpb;
use crate::nested;
use crate::refusal::{ReadError, Refusal, RefusalCode};
use crate::source::{PIECE, Source};

/// What may follow an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailer {
    /// Nothing.
    Refused,
    /// The signature of an MCPB file; it is cut off and counts for nothing.
    Mcpb,
}

/// An archive whose structure is sound.
#[derive(Debug)]
pub struct Archive {
    source: Source,
    limits: Limits,
    len: u64,
    end: u64,
    entries: Vec<Entry>,
    /// What is known of archives inside.
    inner: nested::Known,
}

impl Archive {
    /// Opens an archive on the disk.
    pub fn open(file: File, trailer: Trailer, limits: &Limits) -> Result<Self, ReadError> {
        Self::of(Source::File(file), trailer, limits)
    }

    /// Opens an archive in memory.
    pub fn from_bytes(
        bytes: Vec<u8>,
        trailer: Trailer,
        limits: &Limits,
    ) -> Result<Self, ReadError> {
        Self::of(Source::Bytes(bytes), trailer, limits)
    }

    fn of(source: Source, trailer: Trailer, limits: &Limits) -> Result<Self, ReadError> {
        let len = source.len()?;
        let end = match trailer {
            Trailer::Refused => None,
            Trailer::Mcpb => mcpb::trailer(&source, len)?,
        };
        let end = end.unwrap_or(len);
        if mcpb::has_end_record(&source, end, len)? {
            let message = "the signature after the archive holds another end record";
            return Err(Refusal::new(RefusalCode::TwoEndRecords, message).into());
        }
        let mut entries = directory::read(&source, end, len - end, limits)?;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let inner = nested::Known::default();
        Ok(Self { source, limits: *limits, len, end, entries, inner })
    }

    /// The files, in the order of their paths.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The file at a path.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.path.as_str().cmp(path)).ok()?;
        self.entries.get(at)
    }

    /// How many bytes a signature after the archive has.
    pub fn trailer_len(&self) -> u64 {
        self.len - self.end
    }

    /// Passes a file's content on, piece by piece, and checks size and checksum.
    /// What was passed on counts only when this succeeds.
    pub fn stream(&self, entry: &Entry, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        content::stream(&self.source, entry, &self.limits, &self.inner, sink)
    }

    /// Reads a whole file.
    pub fn read(&self, entry: &Entry) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::with_capacity(usize::try_from(entry.size).unwrap_or(0));
        self.stream(entry, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Reads every file and gives its digest.
    pub fn listing(&self) -> Result<Listing, ReadError> {
        let digests: Result<Vec<_>, ReadError> = self
            .entries
            .par_iter()
            .map(|entry| {
                let mut hasher = Hasher::default();
                self.stream(entry, &mut |part| {
                    hasher.update(part);
                    Ok(())
                })?;
                let (path, size) = (entry.path.clone(), entry.size);
                Ok(FileDigest { path, size, sha256: hasher.finish() })
            })
            .collect();
        Ok(Listing::new(digests?))
    }

    /// The digest of the whole file, a signature after the archive included.
    pub fn digest(&self) -> io::Result<Digest> {
        let mut hasher = Hasher::default();
        let mut buffer = vec![0; PIECE];
        let mut at = 0;
        while at < self.len {
            let left = usize::try_from(self.len - at).unwrap_or(usize::MAX);
            let piece = &mut buffer[..left.min(PIECE)];
            self.source.read_at(piece, at)?;
            hasher.update(piece);
            at += piece.len() as u64;
        }
        Ok(hasher.finish())
    }

    /// A file's data as it stands in the archive, for a new archive.
    pub(crate) fn raw(&self, entry: &Entry) -> io::Result<Vec<u8>> {
        self.source.part(entry.data, usize::try_from(entry.compressed).unwrap_or(usize::MAX))
    }
}
