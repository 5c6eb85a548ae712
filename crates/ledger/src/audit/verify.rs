//! Everything that is wrong with a log.
//!
//! The log is walked once from its first line to its last, in little memory, while others go on
//! writing: what they add after the walk began is not looked at.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use super::error::AuditError;
use super::fault::{Fault, Finding};
use super::folder::Folder;
use super::head::{self, Head, HeadFile};
use super::key::{self, Key, PublicKey};
use super::line::{Hash, Link, link};
use super::lines::{Forward, Next};
use crate::time::Day;

/// More findings than these are only counted.
const MAX_FINDINGS: usize = 1_000;

/// What a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How many lines were read.
    pub lines: u64,
    /// The signed head, when the key signed it.
    pub head: Option<Head>,
    /// What is wrong, in the order of the log; what concerns its end comes last.
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub more: u64,
}

impl Report {
    /// Whether nothing was changed, moved or taken away.
    pub fn is_sound(&self) -> bool {
        self.more == 0 && self.findings.iter().all(|finding| finding.fault.is_harmless())
    }
}

/// Walks a log from end to end.
pub fn verify(folder: &Path) -> Result<Report, AuditError> {
    let folder = Folder::new(folder.to_owned());
    let Snapshot { head, has_key, unchecked, logs } = snapshot(&folder)?;
    let mut walk = Walk::begin(head, has_key, unchecked);
    for (index, (day, length)) in logs.iter().enumerate() {
        walk.place = (format!("{day}.log"), 0);
        let path = folder.log(*day);
        let is_last = index + 1 == logs.len();
        let walked = File::open(&path)
            .and_then(|file| Forward::new(file, 0, *length))
            .and_then(|lines| walk.file(lines, is_last));
        walked.map_err(AuditError::file("read", &path))?;
    }
    Ok(walk.finish())
}

/// A log as it was at one moment.
struct Snapshot {
    head: HeadFile,
    has_key: bool,
    unchecked: Option<Fault>,
    /// The days, and how long their files are.
    logs: Vec<(Day, u64)>,
}

fn snapshot(folder: &Folder) -> Result<Snapshot, AuditError> {
    let _lock = folder.lock_to_read()?;
    let key = PublicKey::read(folder)?;
    let bytes = folder.read_small(head::FILE)?;
    let sealed = HeadFile::is_sealed(bytes.as_deref()).then(|| {
        let own = Key::look(folder).filter(|own| key.as_ref().is_some_and(|key| own.is_of(key)));
        own.map(|own| HeadFile::check_own(bytes.as_deref(), &own))
    });
    let head = match sealed {
        Some(checked) => checked.unwrap_or(HeadFile::Bad),
        None => HeadFile::check(bytes.as_deref(), key.as_ref()),
    };
    let mut logs = Vec::new();
    for day in folder.days()? {
        let path = folder.log(day);
        let length = path.metadata().map_err(AuditError::file("look at", &path))?.len();
        logs.push((day, length));
    }
    let unchecked = match &key {
        Some(_) => matches!(sealed, Some(None)).then_some(Fault::HeadSealed),
        None if folder.file(key::PUBLIC).exists() => Some(Fault::KeyUnreadable),
        None => Some(Fault::KeyMissing),
    };
    // Whoever began it was killed before the key was kept that signs it: nothing was ever written here.
    let is_first = bytes.and_then(|bytes| Head::parse(&bytes)).is_some_and(|head| head.seq == 0);
    if is_first && logs.is_empty() && matches!(unchecked, Some(Fault::KeyMissing)) {
        return Ok(Snapshot { head: HeadFile::Missing, has_key: false, unchecked, logs });
    }
    Ok(Snapshot { head, has_key: key::is_there(folder), unchecked, logs })
}

#[derive(Debug)]
pub(super) struct Walk {
    report: Report,
    /// The file and the line.
    place: (String, u64),
    /// The record with the highest number so far.
    last: (u64, Hash),
    /// The record in the line before; none after a line that is not to be trusted.
    before: Option<(u64, Hash)>,
    /// How many such lines came since the last good one.
    broken: u64,
    head: HeadFile,
    /// Whether there is a key, which signs a head before it is kept.
    has_key: bool,
    /// Why no head can be checked, where none can.
    unchecked: Option<Fault>,
    /// The hash of the record that the head names.
    hash_at_head: Option<Hash>,
    /// Whether the record after it may be signed for with the one that follows.
    goes_on: bool,
    /// Calls that began and have not ended yet: their numbers, and where that stands. Those whose end may be among
    /// what was changed or is gone are not: nobody can say of them that they have none.
    begun: BTreeMap<u64, (String, u64)>,
}

impl Walk {
    /// Before the first line of a log with this head.
    pub(super) fn begin(head: HeadFile, has_key: bool, unchecked: Option<Fault>) -> Self {
        Self {
            report: Report { lines: 0, head: None, findings: Vec::new(), more: 0 },
            place: (String::new(), 0),
            last: (0, Hash::default()),
            before: Some((0, Hash::default())),
            broken: 0,
            head,
            has_key,
            unchecked,
            hash_at_head: None,
            goes_on: false,
            begun: BTreeMap::new(),
        }
    }

    /// The next line of a log that is in no file, and where it is.
    pub(super) fn line(&mut self, name: &str, number: u64, line: &[u8]) {
        self.place = (name.to_owned(), number);
        self.next(line);
    }

    /// What was found, after the last line.
    pub(super) fn finish(mut self) -> Report {
        self.end();
        self.report
    }

    fn file(&mut self, mut lines: Forward, is_last: bool) -> io::Result<()> {
        loop {
            let line = match lines.next()? {
                Next::Line(line) => line,
                Next::End => return Ok(()),
                Next::Torn => {
                    self.place.1 += 1;
                    if is_last {
                        self.found(Fault::Torn);
                    } else {
                        self.begun.clear();
                        self.found(Fault::Unended);
                    }
                    return Ok(());
                }
            };
            self.place.1 += 1;
            self.next(&line);
        }
    }

    fn next(&mut self, line: &[u8]) {
        self.report.lines += 1;
        match link(line) {
            Ok(link) if link.hash == link.computed => self.good(&link),
            Ok(_) => self.bad(Fault::Edited),
            Err(why) => self.bad(Fault::Unreadable(why)),
        }
    }

    fn bad(&mut self, fault: Fault) {
        self.found(fault);
        self.begun.clear();
        self.before = None;
        self.broken += 1;
    }

    fn good(&mut self, link: &Link) {
        let follows = self
            .before
            .is_some_and(|(seq, hash)| seq.checked_add(1) == Some(link.seq) && link.prev == hash);
        let is_in_place = follows || self.jump(link);
        match (link.kind.as_str(), &link.note) {
            ("mended", note) => self.found(Fault::Mended(note.clone().unwrap_or_default())),
            ("torn", note) => self.found(Fault::PutAside(note.clone().unwrap_or_default())),
            ("begin", _) if is_in_place && self.begun.len() < MAX_FINDINGS => {
                self.begun.insert(link.seq, self.place.clone());
            }
            ("end", _) => drop(link.begin.and_then(|begin| self.begun.remove(&begin))),
            _ => {}
        }
        if link.seq > self.last.0 {
            self.last = (link.seq, link.hash);
        }
        if matches!(self.head, HeadFile::Signed(head) if head.seq == link.seq) {
            self.hash_at_head = Some(link.hash);
        }
        if matches!(self.head, HeadFile::Signed(head) if head.seq.checked_add(1) == Some(link.seq))
        {
            self.goes_on = link.goes_on();
        }
        self.before = Some((link.seq, link.hash));
        self.broken = 0;
    }

    /// A record that does not follow the line before it; whether it may stand here all the same.
    fn jump(&mut self, link: &Link) -> bool {
        self.begun.clear();
        let (last, hash) = self.last;
        if link.seq <= last {
            let is_known = self.forget_missing(link.seq);
            self.found(if link.seq < last && (is_known || link.seq + 1 < last) {
                Fault::Misplaced { seq: link.seq, after: last }
            } else {
                Fault::Repeated { seq: link.seq }
            });
            return false;
        }
        let gap = link.seq - last - 1;
        if gap > self.broken {
            self.found(Fault::Missing { from: last + 1, to: link.seq - 1 });
        } else if gap == 0 && link.prev != hash {
            self.found(Fault::Unlinked { seq: link.seq });
        }
        true
    }

    /// A record that was missing is here after all; whether it was.
    fn forget_missing(&mut self, seq: u64) -> bool {
        let found = self.report.findings.iter().rposition(
            |finding| matches!(finding.fault, Fault::Missing { from, to } if from <= seq && seq <= to),
        );
        let Some(at) = found else { return false };
        match &mut self.report.findings[at].fault {
            Fault::Missing { from, to } if from == to => drop(self.report.findings.remove(at)),
            Fault::Missing { from, .. } if *from == seq => *from += 1,
            Fault::Missing { to, .. } if *to == seq => *to -= 1,
            _ => {}
        }
        true
    }

    /// Says which calls never ended, and holds the head against the last record.
    fn end(&mut self) {
        let place = self.place.clone();
        let begun = std::mem::take(&mut self.begun);
        // Where nothing vouches for the end of the log, more may have followed.
        if matches!(self.head, HeadFile::Signed(head) if head.seq <= self.reached()) {
            for (seq, begun) in begun {
                self.place = begun;
                self.found(Fault::Unfinished { seq });
            }
        }
        self.place = place;
        self.check_head();
    }

    /// The number of the last record, with those that cannot be read counted.
    fn reached(&self) -> u64 {
        self.last.0.saturating_add(self.broken)
    }

    fn check_head(&mut self) {
        let (last, _) = self.last;
        let in_head = (head::FILE.to_owned(), 1);
        let head = match self.head {
            // Nobody ever wrote here.
            HeadFile::Missing if self.report.lines == 0 && !self.has_key => return,
            HeadFile::Missing => {
                self.place = (head::FILE.to_owned(), 0);
                return self.found(Fault::HeadMissing);
            }
            HeadFile::Bad => {
                let fault = self.unchecked.take().unwrap_or(Fault::HeadUnsigned);
                let is_about_key = matches!(fault, Fault::KeyMissing | Fault::KeyUnreadable);
                self.place = if is_about_key { (key::PUBLIC.to_owned(), 0) } else { in_head };
                return self.found(fault);
            }
            HeadFile::Signed(head) => head,
        };
        self.report.head = Some(head);
        let reached = self.reached();
        if head.seq > reached {
            return self.found(Fault::Cut { from: reached + 1, to: head.seq });
        }
        if self.hash_at_head.is_some_and(|hash| hash != head.hash) {
            self.place = in_head.clone();
            self.found(Fault::HeadDiffers { seq: head.seq });
        }
        match last.saturating_sub(head.seq) {
            0 => {}
            records if records == 1 || (records == 2 && self.goes_on) => {
                self.found(Fault::HeadBehind { records });
            }
            _ => {
                self.place = in_head;
                self.found(Fault::Unsigned { from: head.seq + 1, to: last });
            }
        }
    }

    fn found(&mut self, fault: Fault) {
        if self.report.findings.len() < MAX_FINDINGS {
            let (file, line) = self.place.clone();
            self.report.findings.push(Finding { file, line, fault });
        } else {
            self.report.more += u64::from(!fault.is_harmless());
        }
    }
}
