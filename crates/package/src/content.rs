//! What a file holds: inflated piece by piece, and checked while it passes.

use std::io;

use flate2::{Decompress, FlushDecompress, Status};

use crate::limits::Limits;
use crate::nested;
use crate::record::STORED;
use crate::refusal::{ReadError, Refusal, RefusalCode};
use crate::source::{PIECE, Source};

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path, which is plain.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Whether it can be run.
    pub executable: bool,
    pub(crate) compressed: u64,
    pub(crate) crc: u32,
    pub(crate) method: u16,
    /// Where its data begins.
    pub(crate) data: u64,
}

/// Where the pieces of a file go.
pub type Sink<'s> = dyn FnMut(&[u8]) -> io::Result<()> + 's;

/// Passes an entry's content on, and refuses what is not as its header says.
pub(crate) fn stream(
    source: &Source,
    entry: &Entry,
    limits: &Limits,
    known: &nested::Known,
    sink: &mut Sink<'_>,
) -> Result<(), ReadError> {
    let mut check = Check {
        entry,
        produced: 0,
        crc: crc32fast::Hasher::new(),
        inner: nested::Watch::new(&entry.path, Some(entry.data), known),
        sink,
    };
    if entry.method == STORED {
        stored(source, &mut check)?;
    } else {
        inflated(source, &mut check)?;
    }
    check.finish(limits)
}

fn stored(source: &Source, check: &mut Check<'_, '_>) -> Result<(), ReadError> {
    let mut input = Pieces::of(source, check.entry);
    while let Some(piece) = input.next()? {
        check.pass(piece)?;
    }
    Ok(())
}

fn inflated(source: &Source, check: &mut Check<'_, '_>) -> Result<(), ReadError> {
    let bad = |entry: &Entry, words: &str| {
        ReadError::from(Refusal::entry(RefusalCode::BadDeflate, &entry.path, words))
    };
    let entry = check.entry;
    let mut input = Pieces::of(source, entry);
    let mut inflate = Decompress::new(false);
    let mut output = vec![0; PIECE];
    let mut ended = false;
    while let Some(mut piece) = input.next()? {
        while !piece.is_empty() {
            if ended {
                return Err(bad(entry, "has bytes after the end of its compressed data"));
            }
            let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
            let status = inflate.decompress(piece, &mut output, FlushDecompress::None);
            let status = status.map_err(|_| bad(entry, "has damaged compressed data"))?;
            let read = usize::try_from(inflate.total_in() - before_in).unwrap_or(usize::MAX);
            let made = usize::try_from(inflate.total_out() - before_out).unwrap_or(usize::MAX);
            check.pass(&output[..made])?;
            ended = status == Status::StreamEnd;
            if read == 0 && made == 0 && !ended {
                return Err(bad(entry, "has damaged compressed data"));
            }
            piece = &piece[read..];
        }
    }
    // What fits in no whole piece is still inside.
    while !ended {
        let before = inflate.total_out();
        let status = inflate.decompress(&[], &mut output, FlushDecompress::Finish);
        let status = status.map_err(|_| bad(entry, "has damaged compressed data"))?;
        let made = usize::try_from(inflate.total_out() - before).unwrap_or(usize::MAX);
        check.pass(&output[..made])?;
        ended = status == Status::StreamEnd;
        if made == 0 && !ended {
            return Err(bad(entry, "has compressed data that ends too early"));
        }
    }
    Ok(())
}

/// The data of an entry, a piece at a time.
struct Pieces<'s> {
    source: &'s Source,
    at: u64,
    left: u64,
    buffer: Vec<u8>,
}

impl<'s> Pieces<'s> {
    fn of(source: &'s Source, entry: &Entry) -> Self {
        let size = usize::try_from(entry.compressed).unwrap_or(PIECE).min(PIECE);
        Self { source, at: entry.data, left: entry.compressed, buffer: vec![0; size] }
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.left == 0 {
            return Ok(None);
        }
        let len = usize::try_from(self.left).unwrap_or(PIECE).min(PIECE);
        let piece = &mut self.buffer[..len];
        self.source.read_at(piece, self.at)?;
        self.at += len as u64;
        self.left -= len as u64;
        Ok(Some(piece))
    }
}

/// What is known of a file's content so far.
struct Check<'e, 's> {
    entry: &'e Entry,
    produced: u64,
    crc: crc32fast::Hasher,
    inner: nested::Watch<'e>,
    sink: &'e mut Sink<'s>,
}

impl Check<'_, '_> {
    fn pass(&mut self, piece: &[u8]) -> Result<(), ReadError> {
        self.produced += piece.len() as u64;
        // The header's size is within the limits, so nothing beyond it is ever produced.
        if self.produced > self.entry.size {
            return Err(self.wrong_size("more than"));
        }
        self.crc.update(piece);
        self.inner.see(piece);
        Ok((self.sink)(piece)?)
    }

    fn finish(self, limits: &Limits) -> Result<(), ReadError> {
        if self.produced != self.entry.size {
            return Err(self.wrong_size("less than"));
        }
        if self.crc.clone().finalize() != self.entry.crc {
            let words = "has another checksum than its header says";
            return Err(Refusal::entry(RefusalCode::CrcMismatch, &self.entry.path, words).into());
        }
        Ok(self.inner.check(&self.entry.path, limits)?)
    }

    fn wrong_size(&self, words: &str) -> ReadError {
        let words = format!("has {words} the {} bytes its header says", self.entry.size);
        Refusal::entry(RefusalCode::SizeMismatch, &self.entry.path, words).into()
    }
}
