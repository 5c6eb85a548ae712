//! Where the chain goes on, and what is wrong there.
//!
//! The head says where the log ends. Usually the log agrees, and one look at its last bytes shows
//! it. Where it does not, the chain goes on from whatever is vouched for, and a record
//! says what was found: the gap stays visible for ever, and the log stays usable.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::error::AuditError;
use super::folder::{Folder, options};
use super::head::{Head, HeadFile};
use super::line::{Hash, Link, link};
use super::lines::Backward;
use super::record::Kind;
use crate::time::Day;

/// Where the chain goes on.
#[derive(Debug)]
pub(super) struct End {
    /// The number of the last record; zero before the first.
    pub(super) seq: u64,
    /// Its hash; zeros before the first.
    pub(super) hash: Hash,
    /// The last day that has a log; the next record goes into no earlier one.
    pub(super) day: Option<Day>,
    /// The log of that day, where it was looked at and ends as it should, and how long it is.
    pub(super) log: Option<(File, u64)>,
    /// What the log must be told before anything else.
    pub(super) notes: Vec<(Kind, String)>,
}

impl End {
    /// After the record that a head names, in this log.
    pub(super) fn at(head: &Head, log: File) -> Self {
        let Head { seq, hash, day, bytes, .. } = *head;
        Self { seq, hash, day: Some(day), log: Some((log, bytes)), notes: Vec::new() }
    }
}

/// Finds the end, and takes a line that was half written out of the log. Whoever calls has the
/// lock.
pub(super) fn find(folder: &Folder, head: HeadFile, today: Day) -> Result<End, AuditError> {
    if let HeadFile::Signed(head) = head
        && let Some(log) = fitting(folder, &head, today)?
    {
        return Ok(End::at(&head, log));
    }
    let mut notes = Vec::new();
    let (mut day, mut last) = (None, Last::Nothing);
    for candidate in folder.days()?.into_iter().rev() {
        day = day.max(Some(candidate));
        last = look(folder, candidate, &mut notes)?;
        if !matches!(last, Last::Nothing) {
            break;
        }
    }
    // Two more than the head knows are a call that was to be signed for with the next record, and that one.
    let is_two_behind = matches!((head, &last), (HeadFile::Signed(head), Last::Record(link))
        if head.seq.checked_add(2) == Some(link.seq));
    let before = if is_two_behind { last_but_one(folder)? } else { None };
    let (seq, hash, note) = join(head, &last, before.as_ref());
    notes.extend(note.map(|note| (Kind::Mended, note)));
    Ok(End { seq, hash, day, log: None, notes })
}

/// The last whole line of a log.
enum Last {
    Nothing,
    Garbage,
    Record(Link),
}

/// The log whose last record is where the head says, by a quick look.
fn fitting(folder: &Folder, head: &Head, today: Day) -> Result<Option<File>, AuditError> {
    if today > head.day && folder.log(today).exists() {
        return Ok(None);
    }
    let path = folder.log(head.day);
    let expected = head.last_bytes();
    let look = || -> io::Result<Option<File>> {
        let mut file = options().read(true).append(true).open(&path)?;
        if file.metadata()?.len() != head.bytes || head.bytes < expected.len() as u64 {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(head.bytes - expected.len() as u64))?;
        let mut last = vec![0; expected.len()];
        file.read_exact(&mut last)?;
        Ok((last == expected.as_bytes()).then_some(file))
    };
    match look() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        looked => looked.map_err(AuditError::file("open", &path)),
    }
}

/// Looks at the end of a day's log; bytes without a line's end are put aside.
fn look(folder: &Folder, day: Day, notes: &mut Vec<(Kind, String)>) -> Result<Last, AuditError> {
    let path = folder.log(day);
    let file = options().read(true).write(true).open(&path);
    let file = file.map_err(AuditError::file("open", &path))?;
    let read = AuditError::file("read", &path);
    let looked = (|| -> io::Result<_> {
        let length = file.metadata()?.len();
        let mut lines = Backward::new(file.try_clone()?, length)?;
        let whole = lines.at();
        Ok((length, whole, lines.next()?.map(|(_, line)| line)))
    })();
    let (length, whole, line) = looked.map_err(read)?;
    if whole < length {
        let name = format!("torn-{day}-{whole}");
        put_aside(folder, &file, whole, &name)?;
        file.set_len(whole).map_err(AuditError::file("cut", &path))?;
        let bytes = length - whole;
        notes.push((Kind::Torn, format!("{bytes} bytes without a line's end are in `{name}`")));
    }
    Ok(match line {
        None => Last::Nothing,
        Some(line) => match link(&line) {
            Ok(link) if link.hash == link.computed => Last::Record(link),
            _ => Last::Garbage,
        },
    })
}

/// The record before the last one.
fn last_but_one(folder: &Folder) -> Result<Option<Link>, AuditError> {
    let mut is_last = true;
    for day in folder.days()?.into_iter().rev() {
        let path = folder.log(day);
        let found = (|| -> io::Result<_> {
            let file = options().read(true).open(&path)?;
            let length = file.metadata()?.len();
            let mut lines = Backward::new(file, length)?;
            while let Some((_, line)) = lines.next()? {
                if !std::mem::take(&mut is_last) {
                    return Ok(Some(line));
                }
            }
            Ok(None)
        })();
        if let Some(line) = found.map_err(AuditError::file("read", &path))? {
            return Ok(link(&line).ok().filter(|link| link.hash == link.computed));
        }
    }
    Ok(None)
}

fn put_aside(folder: &Folder, mut from: &File, at: u64, name: &str) -> Result<(), AuditError> {
    let path = folder.file(name);
    let mut aside = options().write(true).create(true).truncate(true).open(&path);
    let copied = aside.as_mut().map_err(|error| io::Error::from(error.kind())).and_then(|aside| {
        from.seek(SeekFrom::Start(at))?;
        io::copy(&mut from, aside)?;
        aside.sync_data()
    });
    copied.map_err(AuditError::file("write", &path))
}

/// Number and hash to go on from, and what does not fit.
fn join(head: HeadFile, last: &Last, before: Option<&Link>) -> (u64, Hash, Option<String>) {
    let zeros = Hash::default();
    let follows =
        |link: &Link, seq: u64, hash| seq.checked_add(1) == Some(link.seq) && link.prev == hash;
    match (head, last) {
        (HeadFile::Signed(head), Last::Nothing) if head.seq == 0 => (0, zeros, None),
        // More than the head knows: killed between a record and its head. The records count.
        (HeadFile::Signed(head), Last::Record(link))
            if link.hash == head.hash
                || follows(link, head.seq, head.hash)
                || before.is_some_and(|before| {
                    before.goes_on()
                        && follows(before, head.seq, head.hash)
                        && follows(link, before.seq, before.hash)
                }) =>
        {
            (link.seq, link.hash, None)
        }
        (HeadFile::Signed(head), last) => {
            let note =
                format!("the head names record {} ({}), but {}", head.seq, head.hash, said(last));
            match last {
                Last::Record(link) if link.seq > head.seq => (link.seq, link.hash, Some(note)),
                _ => (head.seq, head.hash, Some(note)),
            }
        }
        (head, last) => {
            let which =
                if head == HeadFile::Missing { "is missing" } else { "is not signed by the key" };
            let note = Some(format!("the head {which}, and {}", said(last)));
            match last {
                Last::Record(link) => (link.seq, link.hash, note),
                Last::Nothing | Last::Garbage => (0, zeros, note),
            }
        }
    }
}

fn said(last: &Last) -> String {
    match last {
        Last::Nothing => "the log is empty".to_owned(),
        Last::Garbage => "the log ends in a line that is no sound record".to_owned(),
        Last::Record(link) => format!("the log ends with record {} ({})", link.seq, link.hash),
    }
}
