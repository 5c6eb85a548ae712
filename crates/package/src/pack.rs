//! From files to an archive: read, looked through for secrets, compressed on all cores.

use std::fmt;
use std::io::{self, Write};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rayon::prelude::*;

use crate::contents::Contents;
use crate::digest::{FileDigest, Listing};
use crate::limits::Limits;
use crate::nested;
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
    /// What becomes of secrets.
    pub secrets: Secrets<'p>,
}

/// What becomes of secrets in the files.
#[derive(Clone, Copy, Debug)]
pub enum Secrets<'p> {
    /// They are refused, but for files whose secrets the author knows of.
    RefusedBut(&'p Allowed),
    /// They are nobody's business: the files have been packed before.
    NotLookedFor,
}

impl Secrets<'_> {
    fn is_allowed(self, path: &str) -> bool {
        match self {
            Secrets::RefusedBut(known) => known.has(path),
            Secrets::NotLookedFor => true,
        }
    }
}

/// Files whose secrets the author knows of: paths from the top, folders, or patterns in the
/// manner of `.gitignore`.
#[derive(Debug)]
pub struct Allowed(Vec<(String, Gitignore)>);

impl Allowed {
    /// Reads patterns; one that means nothing is given back.
    pub fn new(patterns: &[String]) -> Result<Self, String> {
        let one = |pattern: &String| {
            let plain = pattern.trim_start_matches("./").trim_start_matches('/');
            let mut builder = GitignoreBuilder::new("");
            let rule = builder.add_line(None, &format!("/{plain}")).map(|_| ());
            let built = rule.and_then(|()| builder.build());
            built.map(|rule| (pattern.clone(), rule)).map_err(|_| pattern.clone())
        };
        patterns.iter().map(one).collect::<Result<_, _>>().map(Self)
    }

    fn has(&self, path: &str) -> bool {
        self.0.iter().any(|(_, rule)| covers(rule, path))
    }

    /// A pattern that no path fits.
    pub fn idle(&self, paths: &[&str]) -> Option<&str> {
        let idle = |rule: &Gitignore| !paths.iter().any(|path| covers(rule, path));
        self.0.iter().find(|(_, rule)| idle(rule)).map(|(pattern, _)| pattern.as_str())
    }
}

fn covers(rule: &Gitignore, path: &str) -> bool {
    rule.matched_path_or_any_parents(path, false).is_ignore()
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
    paths.sort_unstable();
    let known = nested::Known::default();
    let mut writer = Writer::new(out);
    let mut files: Vec<FileDigest> = Vec::with_capacity(paths.len());
    let mut leaks = Vec::new();
    for batch in batches(&paths, packing) {
        let packed: Vec<Result<Packed, Fault>> =
            batch.par_iter().map(|path| packing.file(path, &known)).collect();
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

/// Looks through all files for secrets, and packs nothing.
pub fn leaks(packing: &Packing<'_>) -> Result<Vec<Leak>, PackError> {
    let mut leaks = Vec::new();
    let known = nested::Known::default();
    for path in packing.contents.paths() {
        match packing.content(path, &known) {
            Ok(_) => {}
            Err(Fault::Leak(leak)) => leaks.push(leak),
            Err(Fault::Read(path, cause)) => return Err(PackError::Read { path, cause }),
        }
    }
    Ok(leaks)
}

enum Fault {
    Leak(Leak),
    Read(String, ReadError),
}

impl Packing<'_> {
    fn file(&self, path: &str, known: &nested::Known) -> Result<Packed, Fault> {
        let content = self.content(path, known)?;
        Ok(Packed::compress(path, &content, self.contents.is_executable(path)))
    }

    /// A file's content, unless it holds a secret, or no reader would take it.
    fn content(&self, path: &str, known: &nested::Known) -> Result<Vec<u8>, Fault> {
        let leak = |what, line| Fault::Leak(Leak { path: path.to_owned(), what, line });
        let unread = |cause| Fault::Read(path.to_owned(), cause);
        let is_allowed = self.secrets.is_allowed(path);
        if let Some(what) = secrets::by_name(path).filter(|_| !is_allowed) {
            return Err(leak(what, None));
        }
        let content = self.contents.read(path).map_err(unread)?;
        if !is_allowed && let Some((what, line)) = secrets::in_text(&content) {
            return Err(leak(what, Some(line)));
        }
        nested::check_whole(path, &content, known, &Limits::DEFAULT)
            .map_err(|refusal| unread(refusal.into()))?;
        Ok(content)
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
