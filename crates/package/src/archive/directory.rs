//! Where the parts of an archive are: the end record, the directory, the entries.

use std::io;

use super::Entry;
use super::entry::{self, Listed};
use crate::limits::Limits;
use crate::names::{Kind, check_names};
use crate::record::{self, CENTRAL_LEN, END_LEN, End};
use crate::refusal::{ReadError, Refusal, RefusalCode};
use crate::source::Source;

/// How far back an end record may be looked for, to say why it is not at the end.
const MAX_COMMENT: u64 = 0xffff;

/// The lengths of a commit id: the one comment that is let pass.
const COMMIT_ID: [u16; 2] = [40, 64];

/// The most bytes one line of the directory takes, names and extra fields included.
const MAX_LINE: u64 = 2_048;

/// Reads the directory of an archive that ends at `end`, and checks every entry's own header.
/// A signature of `trailer` bytes may follow, and may be counted as the archive's comment.
pub(super) fn read(
    source: &Source,
    end: u64,
    trailer: u64,
    limits: &Limits,
) -> Result<Vec<Entry>, ReadError> {
    let (record, at) = end_record(source, end, trailer)?;
    check_end(source, &record, at, limits)?;
    let directory = source.part(
        u64::from(record.directory_offset),
        usize::try_from(record.directory_size).unwrap_or(usize::MAX),
    )?;
    let listed = lines(&directory, record.entries)?;
    entry::check_sizes(&listed, limits)?;
    check_names(listed.iter().map(|line| (line.path.as_str(), line.kind)), limits)?;
    check_order(&listed)?;
    let mut entries = Vec::with_capacity(listed.len());
    let mut expected = 0;
    let directory_offset = u64::from(record.directory_offset);
    for (index, line) in listed.iter().enumerate() {
        check_place(line, expected)?;
        // Whatever the next line claims, no entry reaches beyond the directory.
        let next = listed.get(index + 1).map_or(u64::MAX, |next| u64::from(next.header.offset));
        let next = next.min(directory_offset);
        let (data, after) = entry::check_local(source, line, next)?;
        expected = after;
        if line.kind == Kind::File {
            entries.push(Entry {
                path: line.path.clone(),
                size: u64::from(line.header.common.size),
                executable: line.executable,
                compressed: u64::from(line.header.common.compressed),
                crc: line.header.common.crc,
                method: line.header.common.method,
                data,
            });
        }
    }
    match expected.cmp(&directory_offset) {
        std::cmp::Ordering::Equal => {
            entry::check_growth(&listed, limits)?;
            Ok(entries)
        }
        std::cmp::Ordering::Less if expected == 0 => {
            Err(Refusal::new(RefusalCode::PrefixData, "bytes stand before the directory").into())
        }
        std::cmp::Ordering::Less => {
            let message = "bytes between the last entry and the directory belong to neither";
            Err(Refusal::new(RefusalCode::Gap, message).into())
        }
        std::cmp::Ordering::Greater => {
            let message = "the last entry reaches into the directory";
            Err(Refusal::new(RefusalCode::Overlap, message).into())
        }
    }
}

/// Finds the end record, which must end the archive.
fn end_record(source: &Source, end: u64, trailer: u64) -> Result<(End, u64), ReadError> {
    let candidate = |comment: u64| -> io::Result<Option<(End, u64)>> {
        let Some(at) = end.checked_sub(END_LEN as u64 + comment) else { return Ok(None) };
        let bytes = source.part(at, END_LEN)?;
        Ok(record::end(&bytes).map(|record| (record, at)))
    };
    if let Some((record, at)) = candidate(0)?
        && (record.comment_len == 0 || u64::from(record.comment_len) == trailer)
    {
        return Ok((record, at));
    }
    for len in COMMIT_ID {
        if let Some((record, at)) = candidate(u64::from(len))?
            && record.comment_len == len
        {
            let comment = source.part(end - u64::from(len), usize::from(len))?;
            let is_id = comment.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if is_id {
                return Ok((record, at));
            }
        }
    }
    Err(no_end(source, end)?.into())
}

/// Says why there is no end record at the end.
fn no_end(source: &Source, end: u64) -> io::Result<Refusal> {
    let tail_len = end.min(MAX_COMMENT + END_LEN as u64);
    let tail = source.part(end - tail_len, usize::try_from(tail_len).unwrap_or(0))?;
    let marks = tail.windows(4).enumerate().rev();
    let last = marks
        .filter(|(_, window)| record::mark(window) == Some(record::END))
        .find_map(|(at, _)| record::end(&tail[at..]).map(|record| (record, at)));
    Ok(match last {
        Some((record, at)) if tail.len() - at - END_LEN == usize::from(record.comment_len) => {
            let message = format!(
                "the archive has a comment of {} bytes that is no commit id",
                record.comment_len
            );
            Refusal::new(RefusalCode::ArchiveComment, message)
        }
        Some((record, at)) if tail.len() - at - END_LEN > usize::from(record.comment_len) => {
            let extra = tail.len() - at - END_LEN - usize::from(record.comment_len);
            Refusal::new(
                RefusalCode::TrailingData,
                format!("{extra} bytes follow the end of the archive"),
            )
        }
        _ => Refusal::new(
            RefusalCode::NotAnArchive,
            "there is no end record: this is no zip archive, or its end is missing",
        ),
    })
}

fn check_end(source: &Source, record: &End, at: u64, limits: &Limits) -> Result<(), ReadError> {
    let refuse = |code, message: &str| Err(ReadError::from(Refusal::new(code, message)));
    let has_locator = match at.checked_sub(20) {
        Some(place) => record::mark(&source.part(place, 4)?) == Some(record::LOCATOR64),
        None => false,
    };
    if has_locator
        || record.entries == 0xffff
        || record.directory_size == u32::MAX
        || record.directory_offset == u32::MAX
    {
        return refuse(RefusalCode::Zip64, "the archive uses zip64, which nothing here needs");
    }
    if record.disk != 0 || record.directory_disk != 0 || record.entries_here != record.entries {
        return refuse(RefusalCode::SeveralDisks, "the archive is split over several disks");
    }
    if usize::from(record.entries) > limits.entries {
        let message = format!(
            "the archive has {} entries; at most {} are allowed",
            record.entries, limits.entries
        );
        return refuse(RefusalCode::TooManyEntries, &message);
    }
    let (offset, size) = (u64::from(record.directory_offset), u64::from(record.directory_size));
    if size > u64::from(record.entries) * MAX_LINE {
        return refuse(RefusalCode::BadDirectory, "the directory is larger than its entries need");
    }
    if offset + size == at {
        return Ok(());
    }
    // The directory does not end where the end record begins: say what is in between.
    if offset + size > at {
        return refuse(RefusalCode::BadDirectory, "the directory is not where the end record says");
    }
    if record::mark(&source.part(offset + size, 4)?) == Some(record::END) {
        return refuse(RefusalCode::TwoEndRecords, "there is more than one end record");
    }
    let begins = source.part(at - size, 4)?;
    if size > 0 && record::mark(&begins) == Some(record::CENTRAL) {
        let extra = at - size - offset;
        let message = format!("{extra} bytes stand before the archive");
        return refuse(RefusalCode::PrefixData, &message);
    }
    refuse(RefusalCode::BadDirectory, "the directory is not where the end record says")
}

/// Reads the lines of the directory.
fn lines(directory: &[u8], count: u16) -> Result<Vec<Listed>, Refusal> {
    let damaged = || Refusal::new(RefusalCode::BadDirectory, "the directory is damaged");
    let mut listed = Vec::with_capacity(usize::from(count));
    let mut left = directory;
    for _ in 0..count {
        let header = record::central(left).ok_or_else(damaged)?;
        let rest = &left[CENTRAL_LEN..];
        let name_len = usize::from(header.common.name_len);
        let extra_len = usize::from(header.common.extra_len);
        let after = name_len + extra_len + usize::from(header.comment_len);
        if rest.len() < after {
            return Err(damaged());
        }
        let (name, rest) = rest.split_at(name_len);
        listed.push(entry::check_central(header, name, &rest[..extra_len])?);
        left = &left[CENTRAL_LEN + after..];
    }
    if left.is_empty() {
        Ok(listed)
    } else {
        let message = "the directory has more lines than the end record counts";
        Err(Refusal::new(RefusalCode::BadDirectory, message))
    }
}

/// The directory lists the entries in the order in which they stand.
fn check_order(listed: &[Listed]) -> Result<(), Refusal> {
    let behind = listed.windows(2).find(|pair| pair[1].header.offset <= pair[0].header.offset);
    match behind {
        None => Ok(()),
        Some(pair) => {
            let words = "overlaps the one before it, or stands out of order";
            Err(Refusal::entry(RefusalCode::Overlap, &pair[1].path, words))
        }
    }
}

/// Entries stand one right after the other.
fn check_place(line: &Listed, expected: u64) -> Result<(), Refusal> {
    let offset = u64::from(line.header.offset);
    match offset.cmp(&expected) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => {
            Err(Refusal::entry(RefusalCode::Overlap, &line.path, "overlaps the one before it"))
        }
        std::cmp::Ordering::Greater if expected == 0 => Err(Refusal::new(
            RefusalCode::PrefixData,
            format!("{offset} bytes stand before the first entry"),
        )),
        std::cmp::Ordering::Greater => Err(Refusal::entry(
            RefusalCode::Gap,
            &line.path,
            format!("follows {} bytes that belong to no entry", offset - expected),
        )),
    }
}
