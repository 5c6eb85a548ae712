//! Archives inside a package: they may be there, but not as bombs, and not nested further.
//!
//! Haft never opens them. A tool or a person will, so what they would become
//! counts: the inner files are inflated, produced bytes are counted over the whole
//! package, and nothing is kept. One is looked at at a time, so that only one
//! file's bytes are ever in memory.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::{Decompress, FlushDecompress, Status};

use crate::limits::Limits;
use crate::record::{self, CENTRAL_LEN, END_LEN, LOCAL_LEN, STORED};
use crate::refusal::{Refusal, RefusalCode};
use crate::source::PIECE;

const ZIP: &[u8] = b"PK\x03\x04";
const GZIP: &[u8] = b"\x1f\x8b\x08";

/// How files begin that would unfold into others.
const ARCHIVES: [&[u8]; 7] = [
    ZIP,
    GZIP,
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd",
    b"BZh",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
];

/// How many bytes tell which of them a file is.
const LONGEST_MARK: usize = 6;

/// Why an archive with sizes over 4 GiB is refused.
const UNSEEN: &str = "uses zip64, so nobody can tell what it becomes";

/// Names of zip archives that may begin with something else: a program that unpacks itself.
const ZIP_NAMES: [&str; 8] = ["zip", "jar", "whl", "pyz", "mcpkg", "mcpb", "dxt", "nupkg"];

/// What is known of the archives inside a package so far.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Sum>);

#[derive(Debug, Default)]
struct Sum {
    /// Entries that were looked into, by where they begin.
    seen: HashSet<u64>,
    /// What they unfold to, all together.
    produced: u64,
}

/// Keeps a file's bytes while they pass, if it is an archive that was not looked into yet.
pub(crate) struct Watch<'k> {
    known: &'k Known,
    /// Where the entry begins, when it may pass more than once.
    at: Option<u64>,
    state: State<'k>,
}

enum State<'k> {
    /// Too little has passed to tell; these are the first bytes.
    Unseen { is_zip_by_name: bool, start: Vec<u8> },
    /// It is no archive we look into.
    Plain,
    /// These are its bytes so far; no other archive's are kept meanwhile.
    Archive(Vec<u8>, MutexGuard<'k, Sum>),
}

impl<'k> Watch<'k> {
    /// Watches a file; `at` is where its entry begins, when it may pass more than once.
    pub(crate) fn new(path: &str, at: Option<u64>, known: &'k Known) -> Self {
        let kind = path.rsplit_once('.').map(|(_, kind)| kind.to_ascii_lowercase());
        let is_zip_by_name = kind.is_some_and(|kind| ZIP_NAMES.contains(&kind.as_str()));
        Self { known, at, state: State::Unseen { is_zip_by_name, start: Vec::new() } }
    }

    pub(crate) fn see(&mut self, piece: &[u8]) {
        match &mut self.state {
            State::Plain => {}
            State::Archive(bytes, _) => bytes.extend_from_slice(piece),
            State::Unseen { is_zip_by_name, start } => {
                start.extend_from_slice(piece);
                // A stranger decides how the pieces are cut: the first may be a single byte.
                if *is_zip_by_name || start.starts_with(ZIP) || start.starts_with(GZIP) {
                    let start = std::mem::take(start);
                    self.state = self.look(start);
                } else if start.len() >= ZIP.len() {
                    self.state = State::Plain;
                }
            }
        }
    }

    fn look(&self, start: Vec<u8>) -> State<'k> {
        let sum = self.known.0.lock().unwrap_or_else(PoisonError::into_inner);
        if self.at.is_some_and(|at| sum.seen.contains(&at)) {
            State::Plain
        } else {
            State::Archive(start, sum)
        }
    }

    /// Refuses an archive that is a bomb, or holds another archive.
    pub(crate) fn check(self, path: &str, limits: &Limits) -> Result<(), Refusal> {
        let State::Archive(bytes, mut sum) = self.state else { return Ok(()) };
        let judge = Judge { path, limits, len: bytes.len() as u64, before: sum.produced };
        let produced = if bytes.starts_with(GZIP) { judge.gzip(&bytes) } else { judge.zip(&bytes) };
        sum.produced += produced?;
        sum.seen.extend(self.at);
        Ok(())
    }
}

/// Refuses a file that is such an archive.
pub(crate) fn check_whole(
    path: &str,
    content: &[u8],
    known: &Known,
    limits: &Limits,
) -> Result<(), Refusal> {
    let mut watch = Watch::new(path, None, known);
    watch.see(content);
    watch.check(path, limits)
}

struct Judge<'j> {
    path: &'j str,
    limits: &'j Limits,
    len: u64,
    /// What other archives in the package unfold to.
    before: u64,
}

impl Judge<'_> {
    /// Looks at every entry the directory lists. Gives what they unfold to.
    fn zip(&self, bytes: &[u8]) -> Result<u64, Refusal> {
        let ends = ends(bytes);
        let [(end, at)] = ends[..] else {
            let is_none = ends.is_empty();
            return if is_none { Ok(0) } else { Err(self.bomb("has more than one end record")) };
        };
        let locator = at.checked_sub(20).and_then(|place| record::mark(&bytes[place..]));
        if end.entries == 0xffff
            || [end.directory_size, end.directory_offset].contains(&u32::MAX)
            || locator == Some(record::LOCATOR64)
        {
            return Err(self.bomb(UNSEEN));
        }
        let start = at.saturating_sub(end.directory_size as usize);
        // A program that unpacks itself stands before the archive.
        let shift = start.saturating_sub(end.directory_offset as usize);
        let mut left = bytes.get(start..at).unwrap_or_default();
        let (mut lines, mut total, mut read) = (0, 0, 0);
        while let Some(line) = record::central(left) {
            let common = line.common;
            if [common.size, common.compressed, line.offset].contains(&u32::MAX) {
                return Err(self.bomb(UNSEEN));
            }
            lines += 1;
            if lines > self.limits.entries {
                return Err(self.bomb("has too many entries"));
            }
            // If entries could share their data, little would take long to unfold.
            read += u64::from(common.compressed);
            if read > self.len {
                return Err(self.bomb("has entries that overlap"));
            }
            total += self.entry(bytes, shift + line.offset as usize, &common, total)?;
            let after = usize::from(common.name_len)
                + usize::from(common.extra_len)
                + usize::from(line.comment_len);
            left = left.get(CENTRAL_LEN + after..).unwrap_or_default();
        }
        Ok(total)
    }

    /// Unfolds one inner file and gives its size.
    fn entry(
        &self,
        bytes: &[u8],
        at: usize,
        listed: &record::Common,
        before: u64,
    ) -> Result<u64, Refusal> {
        let claimed = u64::from(listed.size);
        self.count(before + claimed)?;
        let Some(local) = bytes.get(at..).and_then(record::local) else { return Ok(claimed) };
        let start = at + LOCAL_LEN + usize::from(local.name_len) + usize::from(local.extra_len);
        let end = start.saturating_add(listed.compressed as usize).min(bytes.len());
        let data = bytes.get(start..end).unwrap_or_default();
        let made = if listed.method == STORED {
            self.begins(data)?;
            data.len() as u64
        } else {
            self.inflate(data, before)?
        };
        Ok(made.max(claimed))
    }

    fn gzip(&self, bytes: &[u8]) -> Result<u64, Refusal> {
        let mut reader = flate2::bufread::MultiGzDecoder::new(bytes);
        let mut buffer = vec![0; PIECE];
        let mut total = 0;
        let mut start = Vec::new();
        // Damaged data ends the look: there is nothing more to unfold.
        while let Ok(made) = std::io::Read::read(&mut reader, &mut buffer) {
            if made == 0 {
                break;
            }
            if start.len() < LONGEST_MARK {
                start.extend(buffer[..made].iter().take(LONGEST_MARK));
                self.begins(&start)?;
            }
            total += made as u64;
            self.count(total)?;
        }
        Ok(total)
    }

    fn inflate(&self, data: &[u8], before: u64) -> Result<u64, Refusal> {
        let mut inflate = Decompress::new(false);
        let mut buffer = vec![0; PIECE];
        loop {
            let (read, made) = (inflate.total_in(), inflate.total_out());
            let left = data.get(usize::try_from(read).unwrap_or(usize::MAX)..).unwrap_or_default();
            let status = inflate.decompress(left, &mut buffer, FlushDecompress::None);
            let produced = usize::try_from(inflate.total_out() - made).unwrap_or(0);
            if made == 0 {
                self.begins(&buffer[..produced])?;
            }
            self.count(before + inflate.total_out())?;
            let stands_still = produced == 0 && inflate.total_in() == read;
            if stands_still || !matches!(status, Ok(Status::Ok | Status::BufError)) {
                return Ok(inflate.total_out());
            }
        }
    }

    fn begins(&self, start: &[u8]) -> Result<(), Refusal> {
        if ARCHIVES.iter().any(|mark| start.starts_with(mark)) {
            let words = "is an archive that holds another archive";
            return Err(Refusal::entry(RefusalCode::NestedArchive, self.path, words));
        }
        Ok(())
    }

    fn count(&self, total: u64) -> Result<(), Refusal> {
        let is_too_much = self.before + total > self.limits.total_bytes;
        if is_too_much || self.limits.is_bomb(self.len, total) {
            return Err(self.bomb(&format!("unfolds from {} to more than {total} bytes", self.len)));
        }
        Ok(())
    }

    fn bomb(&self, words: &str) -> Refusal {
        let words = format!("is an archive that {words}");
        Refusal::entry(RefusalCode::NestedBomb, self.path, words)
    }
}

/// The end records that some reader would go by, and where they are: the last, and every one
/// that ends where the file ends.
fn ends(bytes: &[u8]) -> Vec<(record::End, usize)> {
    let from = bytes.len().saturating_sub(END_LEN + 0xffff);
    let marks = bytes[from..].windows(4).enumerate().rev();
    let mut found = Vec::new();
    for (place, _) in marks.filter(|(_, window)| record::mark(window) == Some(record::END)) {
        let at = from + place;
        if let Some(end) = record::end(&bytes[at..]) {
            let is_whole = at + END_LEN + usize::from(end.comment_len) == bytes.len();
            if found.is_empty() || is_whole {
                found.push((end, at));
            }
        }
    }
    found
}
