//! A log that is copied elsewhere, line by line: what is still to be copied, and whether a copy is whole.
//!
//! Nothing is remembered of what was copied. Whoever has the copy knows its last record, and is given what follows it.

use std::fs::File;
use std::io;
use std::path::Path;

use super::Fault;
use super::error::AuditError;
use super::folder::Folder;
use super::head::{self, HeadFile};
use super::key::{self, PublicKey};
use super::line::{Link, link};
use super::lines::{Backward, Forward, Next};
use super::read::Place;
use super::verify::{Report, Walk};
use crate::time::Day;

/// The end of a log as its key signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The public key, by which the log is known.
    pub key: String,
    /// The signed end, as it is in its file.
    pub head: String,
    /// The number of the last record that it vouches for.
    pub seq: u64,
}

/// The signed end of a log; nothing where nobody wrote yet, or nothing vouches for the end.
pub fn signed_end(folder: &Path) -> Result<Option<Signed>, AuditError> {
    let folder = Folder::new(folder.to_owned());
    let Some(_lock) = folder.lock_to_read()? else { return Ok(None) };
    let (key, head) = (folder.read_small(key::PUBLIC)?, folder.read_small(head::FILE)?);
    let public = key.as_deref().and_then(PublicKey::parse);
    let HeadFile::Signed(end) = HeadFile::check(head.as_deref(), public.as_ref()) else {
        return Ok(None);
    };
    let text = |bytes: Option<Vec<u8>>| {
        String::from_utf8_lossy(&bytes.unwrap_or_default()).trim_end().to_owned()
    };
    Ok(Some(Signed { key: text(key), head: text(head), seq: end.seq }))
}

/// The sound lines of a log after one record and up to another, in the order of the log.
#[derive(Debug)]
pub struct Lines {
    folder: Folder,
    after: u64,
    to: u64,
    /// Days whose files are not read yet, the last one first; the one on top from here.
    left: Vec<(Day, u64)>,
    open: Option<Forward>,
}

impl Lines {
    /// The lines after a record, up to another. The log is looked through from its end.
    pub fn between(folder: &Path, after: u64, to: u64) -> Result<Self, AuditError> {
        let folder = Folder::new(folder.to_owned());
        let mut left = Vec::new();
        for day in folder.days()?.into_iter().rev() {
            let Place { at, .. } = behind(&folder, day, after)?;
            left.push((day, at));
            if at > 0 {
                break;
            }
        }
        Ok(Self { folder, after, to, left, open: None })
    }

    /// The next lines, each with its number; none at the end.
    pub fn next_few(&mut self, most: usize) -> Result<Vec<(u64, String)>, AuditError> {
        let mut few = Vec::new();
        while few.len() < most {
            let Some((day, at)) = self.left.last() else { break };
            let path = self.folder.log(*day);
            let failed = AuditError::file("read", &path);
            match next_line(&mut self.open, &path, *at).map_err(failed)? {
                None => {
                    self.open = None;
                    self.left.pop();
                }
                Some(line) => few.extend(sound(&line).and_then(|link| {
                    let is_wanted = link.seq > self.after && link.seq <= self.to;
                    is_wanted.then(|| (link.seq, String::from_utf8_lossy(&line).into_owned()))
                })),
            }
        }
        Ok(few)
    }
}

/// A copy of a log that is looked through, line by line.
#[derive(Debug)]
pub struct Checking {
    walk: Walk,
    name: String,
}

impl Checking {
    /// Begins with the key of a log, by which its lines are named in what is found, and its signed end.
    pub fn begin(key: &str, head: &str) -> Self {
        let public = PublicKey::parse(key.as_bytes());
        // A file has a line's end, which a copy need not have.
        let head = (!head.is_empty()).then(|| format!("{}\n", head.trim_end()));
        let head = HeadFile::check(head.as_deref().map(str::as_bytes), public.as_ref());
        let unchecked = public.is_none().then_some(Fault::KeyUnreadable);
        Self { walk: Walk::begin(head, true, unchecked), name: key.to_owned() }
    }

    /// The next line, and the number under which it is kept.
    pub fn line(&mut self, seq: u64, line: &str) {
        self.walk.line(&self.name, seq, line.as_bytes());
    }

    /// What was found.
    pub fn end(self) -> Report {
        self.walk.finish()
    }
}

/// The next whole line of a file, which is opened where it is not yet.
fn next_line(open: &mut Option<Forward>, path: &Path, at: u64) -> io::Result<Option<Vec<u8>>> {
    let lines = match open {
        Some(lines) => lines,
        None => open.insert(Forward::new(File::open(path)?, at, u64::MAX)?),
    };
    Ok(match lines.next()? {
        Next::Line(line) => Some(line),
        Next::Torn | Next::End => None,
    })
}

/// Where the line after a record begins; at the beginning of the file where the record is in none of its lines.
fn behind(folder: &Folder, day: Day, after: u64) -> Result<Place, AuditError> {
    let path = folder.log(day);
    let look = || -> io::Result<u64> {
        let file = File::open(&path)?;
        let length = file.metadata()?.len();
        let mut lines = Backward::new(file, length)?;
        let mut end = lines.at();
        while let Some((start, line)) = lines.next()? {
            if sound(&line).is_some_and(|link| link.seq <= after) {
                return Ok(end);
            }
            end = start;
        }
        Ok(0)
    };
    Ok(Place { day, at: look().map_err(AuditError::file("read", &path))? })
}

fn sound(line: &[u8]) -> Option<Link> {
    link(line).ok().filter(|link| link.hash == link.computed)
}
