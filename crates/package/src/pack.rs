//! From files to an archive: read, looked through for secrets, compressed on all cores.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};

use rayon::prelude::*;

use crate::contents::Contents;
use crate::digest::{FileDigest, Listing};
use crate::refusal::ReadError;
use crate::secrets::{self, Leak};
use crate::write::{Packed, Writer, Written};

/// How many bytes are compressed before they are written, so that memory stays bounded.
const BATCH: u64 = 32 * 1024 * 1024;

/// What goes into an archive.
#[derive(Clone, Copy)]
pub struct Packing<'p> {
    /// The files.
    pub contents: &'p dyn Contents,
    /// Files that are made while packing, and stand before those of the same path.
    pub made: &'p [(String, Vec<u8>)],
    /// Files whose secrets the author knows of.
    pub allowed: &'p HashSet<String>,
}

/// An archive that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its size and digest.
    pub written: Written,
    /// Its files.
    pub listing: Listing,
}

/// Why no archive was made.
#[derive(Debug)]
pub enum PackError {
    /// These files hold secrets.
    Leaks(Vec<Leak>),
    /// A file cannot be read.
    Read {
        /// Which one.
        path: String,
        /// Why.
        cause: ReadError,
    },
    /// The archive cannot be written.
    Write(io::Error),
}

impl fmt::Display for PackError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackError::Leaks(leaks) => write!(out, "{} files hold secrets", leaks.len()),
            PackError::Read { path, .. } => write!(out, "failed to read `{path}`"),
            PackError::Write(_) => out.write_str("failed to write the archive"),
        }
    }
}

impl std::error::Error for PackError {}

/// Writes an archive. When it fails, what was written is no archive and must be dropped.
pub fn pack(packing: &Packing<'_>, out: impl Write + Send) -> Result<Made, PackError> {
    let mut paths: Vec<&str> = packing.contents.paths();
    let is_made = |path: &str| packing.made.iter().any(|(made, _)| made == path);
    paths.retain(|path| !is_made(path));
    paths.extend(packing.made.iter().map(|(path, _)| path.as_str()));
    paths.sort_unstable();
    let mut writer = Writer::new(out);
    let mut files: Vec<FileDigest> = Vec::with_capacity(paths.len());
    let mut leaks = Vec::new();
    for batch in batches(&paths, packing) {
        let packed: Vec<Result<Packed, Fault>> =
            batch.par_iter().map(|path| packing.file(path)).collect();
        for file in packed {
            match file {
                Ok(file) if leaks.is_empty() => {
                    files.extend(file.digest());
                    writer.add(&file).map_err(PackError::Write)?;
                }
                Ok(_) => {}
                Err(Fault::Leak(leak)) => leaks.push(leak),
                Err(Fault::Read(path, cause)) => return Err(PackError::Read { path, cause }),
            }
        }
    }
    if !leaks.is_empty() {
        return Err(PackError::Leaks(leaks));
    }
    let written = writer.finish().map_err(PackError::Write)?;
    Ok(Made { written, listing: Listing::new(files) })
}

enum Fault {
    Leak(Leak),
    Read(String, ReadError),
}

impl Packing<'_> {
    fn file(&self, path: &str) -> Result<Packed, Fault> {
        let leak = |what, line| Fault::Leak(Leak { path: path.to_owned(), what, line });
        let is_allowed = self.allowed.contains(path);
        if let Some(what) = secrets::by_name(path).filter(|_| !is_allowed) {
            return Err(leak(what, None));
        }
        let read;
        let content = match self.made.iter().find(|(made, _)| made == path) {
            Some((_, content)) => content,
            None => {
                read = self
                    .contents
                    .read(path)
                    .map_err(|cause| Fault::Read(path.to_owned(), cause))?;
                &read
            }
        };
        if let Some((what, line)) = secrets::in_text(content).filter(|_| !is_allowed) {
            return Err(leak(what, Some(line)));
        }
        Ok(Packed::compress(path, content, self.contents.is_executable(path)))
    }
}

/// Splits paths into runs that are not too large together.
fn batches<'p>(paths: &'p [&'p str], packing: &Packing<'_>) -> Vec<&'p [&'p str]> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (index, path) in paths.iter().enumerate() {
        bytes += packing.contents.size(path).unwrap_or_default();
        if bytes >= BATCH || index + 1 == paths.len() {
            batches.push(&paths[start..=index]);
            (start, bytes) = (index + 1, 0);
        }
    }
    batches
}
